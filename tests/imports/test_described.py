"""The preview of a file: its columns, what they are taken for, and what an import would say of it."""

import io

import pytest

from app.designs.content import Content
from app.designs.slider import Slider
from app.errors import Invalid, Refusal
from app.imports.columns import ColumnMapping
from app.imports.id_lines import IdLines
from app.imports.import_preview import MAX_LINES_PER_PROBLEM, ChosenColumns, read_upload_preview_or_refuse
from app.inference.online.laws import ONLINE_LAWS
from app.uploads.rows import ROW_NUMBERS_AS_IDS
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import create_draft, import_items


def described(content, *, taken=(), **chosen):
    file = io.BytesIO(content.encode())
    said = ChosenColumns(**chosen)
    return read_upload_preview_or_refuse(
        file,
        "items.csv",
        said,
        ONLINE_LAWS["easl"],
        content=Content(),
        designs=(("", Slider()),),
        id_lines=IdLines(taken),
        max_mb=1,
    )


def problems(content, **how):
    return [(problem.problem, problem.count, problem.lines) for problem in described(content, **how).problems]


def test_it_counts_all_rows_and_shows_the_first_five_as_annotators_would_see_them():
    found = described("id,verb\n" + "".join(f"{k},verb {k}\n" for k in range(12)), template="to {verb}")
    assert (found.format, found.columns, found.row_count) == ("csv", ("id", "verb"), 12)
    assert [(row.line, row.text) for row in found.first_rows] == [(k + 2, f"to verb {k}") for k in range(5)]
    assert found.problems == []


def test_columns_are_taken_for_what_is_likely(subtests):
    for columns, mapping in (
        ("id,freq,verb,gloss", ColumnMapping("id", "verb")),
        ("ID,freq,text", ColumnMapping("ID", "text")),
        ("verb,item_id", ColumnMapping("item_id", "verb")),
        ("freq,verb", ColumnMapping(None, "verb")),
        ("id,freq,length", ColumnMapping("id", "freq")),
        ("comment_id,verb", ColumnMapping("comment_id", "verb")),
        ("verb,Tweet ID", ColumnMapping("Tweet ID", "verb")),
        ("ResponseId,verb", ColumnMapping("ResponseId", "verb")),
        ("sid,verb", ColumnMapping("sid", "verb")),
        ("comment_id,verb,id", ColumnMapping("id", "verb")),
        ("paid,covid,verb", ColumnMapping(None, "paid")),
    ):
        with subtests.test(columns=columns, mapping=mapping):
            cells = {"freq": "1.5", "length": "3"}
            row = ",".join(cells.get(name, f"a {name}") for name in columns.split(","))
            assert described(f"{columns}\n{row}\n").mapping == mapping


def test_an_id_of_the_own_table_that_occurs_twice_is_named_and_not_replaced_by_row_numbers():
    rows = [f"c{k},verb {k}\n" for k in range(20)]
    found = described("comment_id,verb\n" + "".join([*rows, "c3,again\n"]))
    assert found.mapping.identifier == "comment_id"
    assert [(problem.problem, problem.lines) for problem in found.problems] == [("with a duplicate id", [22])]


def test_a_column_of_ids_of_something_else_is_passed_over_and_said(subtests):
    rows = "".join(f"a{k % 3},t{k},verb {k}\n" for k in range(12))
    with subtests.test("the next column names the items"):
        found = described("author_id,text_id,verb\n" + rows, taken=["t99"])
        assert (found.mapping.identifier, found.problems) == ("text_id", [])
        assert any("“author_id”" in note for note in found.notes)
    with subtests.test("no column does"):
        found = described("author_id,verb\n" + "".join(f"a{k % 3},verb {k}\n" for k in range(12)))
        assert (found.mapping, found.problems) == (ColumnMapping(None, "verb"), [])
        assert any("“author_id”" in note and "numbered" in note for note in found.notes)
    with subtests.test("a chosen column is kept"):
        assert described("author_id,text_id,verb\n" + rows, identifier="author_id").mapping.identifier == "author_id"


def test_a_file_is_read_a_few_times_at_most_to_find_its_ids():
    columns = [f"{letter}_id" for letter in "abcdefgh"]
    rows = "".join(",".join(["same"] * len(columns)) + f",verb {k}\n" for k in range(12))
    found = described(",".join(columns) + ",verb\n" + rows)
    assert found.mapping == ColumnMapping(None, "verb")
    assert found.notes == (
        "“a_id”, “b_id” and “c_id” repeat values or are empty in many rows, so the rows are numbered.",
    )


def test_a_table_with_a_column_for_each_system_is_told_to_say_which_columns_are_systems():
    hint = "To compare them, tick their columns under “These columns are systems”."
    cells = "s1,Quelle,reference,one,two,three\n"
    for columns in ("segment,source,reference,A,B,C", "name,Source,reference,A,B,C", "Segment,x,y,A,B,C"):
        assert any(hint in note for note in described(f"{columns}\n{cells}").notes), columns
    for columns in ("id,source,text,genre,year,author", "id,verb,gloss,freq,length,age"):
        assert not any(hint in note for note in described(f"{columns}\n{cells}").notes), columns
    outputs = described("system,segment,output,source\nape,s1,one,Quelle\nbee,s1,two,Quelle\n")
    assert not any(hint in note for note in outputs.notes)


def test_what_somebody_said_of_the_columns_counts():
    content = "id,verb,gloss\na,run,move\n"
    assert described(content, identifier="verb", shown="gloss").mapping == ColumnMapping("verb", "gloss")
    assert described(content, identifier=ROW_NUMBERS_AS_IDS).mapping.identifier is None
    with pytest.raises(Invalid, match="no column “noun”"):
        described(content, shown="noun")


def test_checks_are_counted_and_those_that_nobody_can_meet_are_told():
    content = "id,text,check,expected\na,x,,\ng,y,gold,80\n"
    assert (described(content).row_count, described(content).checks, problems(content)) == (2, 1, [])
    assert [row.text for row in described(content).first_rows] == ["x", "y"]
    assert problems(content + "h,z,gold,400\ni,z,silver,1\ng,z,gold,7\n") == [
        ("with an impossible expected answer", 1, [4]),
        ("with a value other than gold or attention in the column “check”", 1, [5]),
        ("with a duplicate id", 1, [6]),
    ]


def test_all_that_is_wrong_is_told_with_its_lines():
    content = "id,text\na,x\n,x\na,x\nold,x\nb,\nc,\nlong,x\n".replace("long", "l" * 201)
    assert problems(content, taken={"old"}) == [
        ("without an id", 1, [3]),
        ("with a duplicate id", 1, [4]),
        ("with an id that the campaign already has", 1, [5]),
        ("with nothing to show", 2, [6, 7]),
        ("with an id that is too long", 1, [8]),
    ]
    many = "id,text\n" + "a,x\n" * 50
    assert problems(many) == [("with a duplicate id", 49, list(range(3, 3 + MAX_LINES_PER_PROBLEM)))]


@pytest.mark.parametrize("content", ["id,text\na,x\na,y\n", "id,text\n,x\n", "id,text,alpha,beta\na,x,0,1\n"])
async def test_an_import_refuses_a_file_exactly_when_it_would_say_so(engine, content):
    priors = "alpha" in content
    assert described(content, priors=priors).problems
    with pytest.raises(Refusal):
        await import_items(engine, await create_draft(engine), content, priors=priors)


def test_a_file_without_items_is_refused():
    with pytest.raises(Invalid, match="no items"):
        described("id,text\n")


async def test_rows_without_ids_are_numbered_on_from_those_that_are_there(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "text\na\nb\n", identifier=None)
    await import_items(engine, campaign, "text\nc\n", identifier=None)
    assert await fetch_value(engine, "SELECT string_agg(external_id, ',' ORDER BY number) FROM items") == "1,2,3"


async def test_the_id_can_be_another_column(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "verb,gloss\nrun,move\n", identifier="verb", shown="gloss")
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items") == [("run", "move")]
