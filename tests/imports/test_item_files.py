"""Files of items: a text on each line, a table with a header, and a single column whose first line may be an item."""

import re

import pytest

from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.test_routes import create
from tests.workbooks import workbook_bytes

PLAIN = "Please send it.\nSend it now\nCould you, perhaps, send it?\n"
TEXTS = [("1", "Please send it."), ("2", "Send it now"), ("3", "Could you, perhaps, send it?")]
STORED = "SELECT external_id, shown FROM items ORDER BY number"
ONE_COLUMN = "Please send it.\nSend it now\nSend\n"
ONE_COLUMN_TEXTS = [("1", "Please send it."), ("2", "Send it now"), ("3", "Send")]


def words(html):
    return " ".join(re.sub("<[^>]+>", "", html).split())


async def preview(researcher, address, name, content, **fields):
    return await researcher.post(f"{address}/items/preview", data=fields, files={"file": (name, content)})


async def upload_file(researcher, address, name, content, **fields):
    return await researcher.post(f"{address}/items", data=fields, files={"file": (name, content)})


async def test_a_txt_file_is_one_text_per_line_and_loses_none(researcher, engine):
    address = await create(researcher)
    page = await preview(researcher, address, "a.txt", PLAIN)
    assert "<b>3 rows</b>, in 3 lines of text" in page.text
    assert "Every line is one text." in page.text
    assert (await upload_file(researcher, address, "a.txt", PLAIN)).status_code == 303
    assert await fetch_rows(engine, STORED) == TEXTS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", ONE_COLUMN),
        ("a.tsv", ONE_COLUMN),
        ("a", ONE_COLUMN),
        ("a.csv", '"Please send it."\nSend it now\nSend\n'),
        ("a.xlsx", workbook_bytes({"Items": [["Please send it."], ["Send it now"], ["Send"]]})),
    ],
)
async def test_the_first_line_of_a_single_column_is_an_item_and_the_page_says_so(researcher, engine, name, content):
    address = await create(researcher)
    page = await preview(researcher, address, name, content)
    assert "<b>3 rows</b>" in page.text
    assert "The first line, “Please send it.”, is an item: it is not like the name of a column." in words(page.text)
    assert (await upload_file(researcher, address, name, content)).status_code == 303
    assert await fetch_rows(engine, STORED) == ONE_COLUMN_TEXTS


async def test_a_known_or_chosen_name_is_the_header_of_a_single_column(researcher, engine):
    for fields in ({}, {"shown": "verb"}, {"read_as": "table", "shown": "verb"}, {"template": "{verb}"}):
        name = "verb" if fields else "Text"
        address = await create(researcher)
        rows = {"identifier": ":row numbers:"} | fields
        done = await upload_file(researcher, address, "a.csv", f"{name}\nrun\nwalk\n", **rows)
        assert done.status_code == 303, done.text
        stored = await fetch_rows(engine, "SELECT external_id, shown FROM items ORDER BY campaign_id DESC, number")
        assert stored[:2] == [("1", "run"), ("2", "walk")], fields
        assert len(await fetch_rows(engine, "SELECT 1 FROM items")) == 2 * await fetch_value(
            engine, "SELECT count(*) FROM campaigns"
        )


async def test_a_txt_file_with_columns_between_tabs_is_a_table(researcher, engine):
    address = await create(researcher)
    for content in ("id\ttext\na\tone\nb\ttwo, three\n", "id\ttext\nc\t“one”\n"):
        assert (await upload_file(researcher, address, "a.txt", content)).status_code == 303
    assert await fetch_rows(engine, STORED) == [("a", "one"), ("b", "two, three"), ("c", "“one”")]


@pytest.mark.parametrize("content", ["id,text\na,one\nb,two\n", 'id;text\na;"one"\nb;two\n'])
async def test_a_txt_file_with_a_known_name_above_equal_rows_is_a_table(researcher, engine, content):
    address = await create(researcher)
    assert (await upload_file(researcher, address, "a.txt", content)).status_code == 303
    assert await fetch_rows(engine, STORED) == [("a", "one"), ("b", "two")]


@pytest.mark.parametrize(
    "content",
    ["Yes, of course\nNo, never\n", "text, first\nWell, now, go\n", 'Text, he said\nthen "left", and went, home\n'],
)
async def test_commas_of_sentences_make_no_table_of_a_txt_file(researcher, engine, content):
    address = await create(researcher)
    assert (await upload_file(researcher, address, "a.txt", content)).status_code == 303
    assert await fetch_rows(engine, STORED) == [*zip("12", content.splitlines(), strict=True)]


async def test_the_first_line_of_a_txt_file_is_an_item_even_if_it_is_the_name_of_a_column(researcher):
    address = await create(researcher)
    page = await preview(researcher, address, "a.txt", "text\nSend it\n")
    assert "The first line, “text”, is an item, too." in words(page.text)
    as_table = await preview(researcher, address, "a.txt", "text\nSend it\n", read_as="table")
    assert "<b>1 row</b>" in as_table.text


async def test_a_refused_table_can_be_read_as_lines_by_a_press(researcher, engine):
    address = await create(researcher)
    page = await preview(researcher, address, "a.csv", PLAIN)
    assert page.status_code == 200
    assert "Line 3: this row has 3 cells, and the header has 1." in page.text
    assert "Nothing was imported." not in words(page.text)
    assert re.search(r'<button name="read_as" value="lines"[^>]*>Read it as one text per line</button>', page.text)
    chosen = await preview(researcher, address, "a.csv", PLAIN, read_as="lines")
    assert "<b>3 rows</b>" in chosen.text
    assert '<option value="lines" selected>' in chosen.text
    assert (await upload_file(researcher, address, "a.csv", PLAIN, read_as="lines")).status_code == 303
    assert await fetch_rows(engine, STORED) == TEXTS


async def test_a_table_with_a_known_column_is_not_offered_as_lines(researcher):
    address = await create(researcher)
    page = await preview(researcher, address, "a.csv", "id,text\n1,one\n2,two,three\n")
    assert page.status_code == 422
    assert "Line 3: this row has 3 cells, and the header has 2." in page.text
    assert "one text per line (on" not in page.text
    assert "Nothing was imported." not in page.text


async def test_another_way_of_reading_forgets_the_columns_of_the_former_one(researcher):
    address = await create(researcher)
    fields = {"previewed_as": "auto", "read_as": "table", "identifier": ":row numbers:", "shown": "text"}
    page = await preview(researcher, address, "a.csv", ONE_COLUMN, **fields)
    assert "<b>2 rows</b>" in page.text


async def test_several_columns_of_a_workbook_are_no_lines(researcher):
    address = await create(researcher)
    workbook = workbook_bytes({"Items": [["id", "text"], ["1", "one"]]})
    page = await preview(researcher, address, "a.xlsx", workbook, read_as="lines")
    assert page.status_code == 422
    assert "This workbook has several columns, so it is not one text per line." in page.text


async def test_an_unknown_way_of_reading_is_refused(researcher):
    address = await create(researcher)
    assert (await upload_file(researcher, address, "a.txt", PLAIN, read_as="words")).status_code == 422
