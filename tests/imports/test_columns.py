"""Columns of a table: names that differ in capitals, meanings that are told and can be declined, and the receipt."""

import io
from unicodedata import normalize

import pytest

from app.campaigns.launch import load_sentence_on_own_priors_or_none
from app.designs.content import Content
from app.designs.registry import DESIGNS
from app.errors import Invalid
from app.exports.registry import open_export_or_refuse
from app.imports import items, mark_checks
from app.imports.import_preview import ChosenColumns, read_upload_preview_or_refuse
from app.inference.online.laws import ONLINE_LAWS
from app.uploads.rows import ROW_NUMBERS_AS_IDS
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import VERBS, create_draft, create_launched_campaign, import_file, import_results

PRIORS = "id,text,alpha,beta\n1,a,2,3\n2,b,4,5\n"
CHECKED = "id,text,check,expected\na,x,,\nb,y,,\ng,z,gold,80\n"
SYSTEMS = "system,segment,output,source\nelk,1,a,s\nfox,1,b,s\n"


def described(content, name="items.csv", content_of=None, **chosen):
    return read_upload_preview_or_refuse(
        io.BytesIO(content.encode()),
        name,
        ChosenColumns(**chosen),
        ONLINE_LAWS["easl"],
        content=content_of or Content(),
        designs=(("", DESIGNS["ranking"].model_validate({})),),
        max_mb=1,
    )


async def problem_of(engine, campaign, content, name="items.csv", **how):
    with pytest.raises(Invalid) as problem:
        await import_file(engine, campaign, content, name, **how)
    return problem.value


# Priors


async def test_the_export_of_a_study_gives_items_without_its_scores(engine):
    first = await create_launched_campaign(engine)
    await import_results(engine, first, "hit,annotator,item,value\nh1,Ann,v0,90\nh1,Ann,v1,10\n")
    exported = "".join([piece async for piece in (await open_export_or_refuse(engine, first.slug, "items")).chunks])
    second = await create_draft(engine, name="Again")
    done = await import_file(engine, second, exported)
    assert (done.imported, done.with_prior) == (6, 0)
    assert any("“alpha” and “beta” could be" in note and "--priors" in note for note in done.notes)
    assert await fetch_rows(engine, "SELECT DISTINCT prior FROM items") == [(None,)]


async def test_priors_that_are_asked_for_are_taken_and_told_by_the_import_and_the_launch(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, PRIORS, priors=True)
    assert (done.imported, done.with_prior) == (2, 2)
    assert "“alpha” and “beta”: the prior of each item." in done.notes
    async with engine.connect() as connection:
        said = await load_sentence_on_own_priors_or_none(connection, campaign.id)
    assert said is not None
    assert said.startswith("2 items start with their own priors")
    await import_file(engine, campaign, PRIORS, replace=True)
    async with engine.connect() as connection:
        assert await load_sentence_on_own_priors_or_none(connection, campaign.id) is None


async def test_priors_that_are_asked_for_and_not_there_are_refused(engine):
    problem = await problem_of(engine, await create_draft(engine), VERBS, priors=True)
    assert problem.code == "priors_missing"
    assert "alpha and beta" in problem.message


def test_the_preview_tells_priors_and_does_not_take_them():
    found = described(PRIORS)
    assert [(one.name, one.columns, one.is_used) for one in found.meanings] == [("priors", ("alpha", "beta"), False)]
    assert described(PRIORS, priors=True).meanings[0].is_used


async def test_a_check_becomes_an_item_again_without_a_prior_that_was_not_taken(engine):

    campaign = await create_draft(engine)
    await import_file(engine, campaign, PRIORS)
    async with engine.begin() as connection:
        await mark_checks.turn_draft_items_into_checks_or_refuse(
            connection, campaign.slug, [mark_checks.CheckToMark("1", {"expected": "50"})], kind="gold"
        )
        await mark_checks.turn_check_back_into_item_or_refuse(connection, campaign.slug, "1")
    assert await fetch_rows(engine, "SELECT DISTINCT prior FROM items") == [(None,)]


# Other columns with a meaning


async def test_checks_are_told_and_can_be_declined(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, CHECKED)
    assert (done.imported, done.checks, done.rows, done.lines) == (2, 1, 3, 4)
    told = "“check” and “expected”: gold or attention items and their expected answers (1 row)."
    assert told in done.notes
    plain = await import_file(engine, campaign, CHECKED, ignored=frozenset({"check"}), replace=True)
    assert (plain.imported, plain.checks) == (3, 0)
    assert any(note.startswith("“check” and “expected”: not used") for note in plain.notes)
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0
    assert await fetch_value(engine, "SELECT fields ->> 'check' FROM items WHERE external_id = 'g'") == "gold"


def test_the_preview_counts_checks_as_long_as_they_are_taken():
    assert (described(CHECKED).checks, described(CHECKED).meanings[0].is_used) == (1, True)
    declined = described(CHECKED, ignored=frozenset({"check"}))
    assert (declined.checks, declined.meanings[0].is_used, declined.problems) == (0, False, [])


async def test_a_table_of_systems_is_told_and_what_stands_above_outputs_can_be_declined(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, SYSTEMS)
    assert any("“system”, “segment” and “output”: outputs of systems" in note for note in done.notes)
    assert any(note.startswith("“source”: the source of the segment") for note in done.notes)
    assert await fetch_value(engine, "SELECT source FROM segments") == "s"
    await import_file(engine, campaign, SYSTEMS, ignored=frozenset({"source"}), replace=True)
    assert await fetch_value(engine, "SELECT source FROM segments") is None


async def test_a_table_of_systems_can_be_items_instead(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, SYSTEMS, identifier=None, shown="output", ignored=frozenset({"system"}))
    assert done.imported == 2
    assert await fetch_rows(engine, "SELECT shown FROM items ORDER BY number") == [("a",), ("b",)]
    assert not described(SYSTEMS, ignored=frozenset({"system"})).is_outputs_table


# Names


@pytest.mark.parametrize("header", ["ID,Text", "Id,TEXT", " id ,text "])
async def test_columns_are_found_whatever_their_capitals(engine, header):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, f"{header}\n1,a\n", shown="text")
    assert done.imported == 1
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items") == [("1", "a")]
    names = [name.strip() for name in header.split(",")]
    assert f"Item ids come from the column “{names[0]}”; annotators see the column “{names[1]}”." in done.notes


async def test_two_columns_that_differ_in_capitals_alone_are_not_mixed_up(engine):
    campaign = await create_draft(engine)
    content = "id,Text,TEXT\n1,a,b\n"
    problem = await problem_of(engine, campaign, content, shown="text")
    assert problem.code == "column_unknown"
    assert "differ from it only in capital letters: Text, TEXT" in problem.message
    await import_file(engine, campaign, content, shown="TEXT")
    assert await fetch_value(engine, "SELECT shown FROM items") == "b"


async def test_columns_with_a_meaning_are_found_whatever_their_capitals_and_told(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, CHECKED.replace("check", "Check").replace("expected", "EXPECTED"))
    assert done.checks == 1
    assert "The column “Check” is used as “check”." in done.notes
    outputs = await import_file(engine, campaign, SYSTEMS.replace("system,", "System,", 1), replace=True)
    assert "The column “System” is used as “system”." in outputs.notes
    priors = await import_file(engine, campaign, PRIORS.replace("alpha", "Alpha"), priors=True, replace=True)
    assert priors.with_prior == 2


async def test_the_source_of_the_settings_is_found_whatever_its_capitals(engine):
    campaign = await create_draft(engine, source_column="source")
    done = await import_file(engine, campaign, "id,text,Source\n1,a,s\n")
    assert "The column “Source” is used as “source”." in done.notes
    assert "“source”: the source above the items, as the settings say." in done.notes
    assert await fetch_value(engine, "SELECT fields ->> 'source' FROM items") == "s"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_names_with_accents_are_found_in_either_form(engine, form):

    campaign = await create_draft(engine)
    await import_file(engine, campaign, normalize(form, "id,größe\n1,a\n"), shown=normalize("NFC", "größe"))
    assert await fetch_value(engine, "SELECT shown FROM items") == "a"


# Ids


async def test_rows_are_numbered_where_no_column_is_asked_for(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, "content\nfirst\nsecond\n", identifier=None)
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items ORDER BY number") == [
        ("1", "first"),
        ("2", "second"),
    ]
    assert any("the number of their rows" in note for note in done.notes)


async def test_a_table_without_ids_is_refused_with_the_way_to_number_its_rows(engine):
    problem = await problem_of(engine, await create_draft(engine), "content\nfirst\n")
    assert problem.code == "column_unknown"
    assert f"--id '{ROW_NUMBERS_AS_IDS}'" in problem.message


async def test_the_index_of_pandas_can_be_the_id_and_is_not_shown(engine):
    campaign = await create_draft(engine)
    await import_file(engine, campaign, ",content\n0,first\n1,second\n", identifier="index")
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items ORDER BY number") == [
        ("0", "first"),
        ("1", "second"),
    ]
    assert described(",content\n0,first\n").mapping.shown == "content"


# The receipt


async def test_what_the_last_import_did_is_kept(engine):
    campaign = await create_draft(engine)
    done = await import_file(engine, campaign, CHECKED)
    async with engine.connect() as connection:
        assert await items.load_last_import_receipt_or_none(connection, campaign.id) == done
    assert done.sentences()[0] == "Imported 2 items. The file has 3 rows in 4 lines, 1 check among them."
    outputs = await import_file(engine, campaign, SYSTEMS, replace=True)
    async with engine.connect() as connection:
        assert await items.load_last_import_receipt_or_none(connection, campaign.id) == outputs


async def test_a_column_that_only_later_rows_have_can_be_the_source(engine):
    campaign = await create_draft(engine, source_column="reference")
    rows = '{"id": 1, "text": "a"}\n{"id": 2, "text": "b", "reference": "c"}\n'
    assert (await import_file(engine, campaign, rows, "a.jsonl")).imported == 2


def test_the_preview_of_a_table_tells_lines_rows_and_how_it_was_read():
    found = described('id\ttext\n1\t"a" b\n2\tc\n', "a.tsv")
    assert (found.row_count, found.line_count, found.quotes) == (2, 3, "text")
    assert found.notes
