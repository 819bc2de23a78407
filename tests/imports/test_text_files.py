"""Text files of items: one text per line, unless they are tables."""

import pytest

from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.drafts import create_draft, import_file

ITEMS = "SELECT external_id, shown FROM items ORDER BY number"
SENTENCES = "I got the job!\nTerrible, never again, really.\n\n It is “a table”, or not.\n"
AS_ITEMS = [("1", "I got the job!"), ("2", "Terrible, never again, really."), ("3", "It is “a table”, or not.")]


async def test_each_line_of_a_text_file_is_an_item_from_the_first_one_on(engine):
    receipt = await import_file(engine, await create_draft(engine), SENTENCES, "sentences.txt")
    assert receipt.imported == 3
    assert await fetch_rows(engine, ITEMS) == AS_ITEMS


@pytest.mark.parametrize(
    "content",
    [
        "id,text\n1,one\n2,two\n",
        "id\ttext\n1\tone\n2\ttwo\n",
        'id;text\n1;"one"\n2;two\n',
        '[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]',
    ],
)
async def test_a_table_in_a_text_file_stays_a_table(engine, content):
    await import_file(engine, await create_draft(engine), content, "table.txt")
    assert await fetch_rows(engine, ITEMS) == [("1", "one"), ("2", "two")]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("text\none\ntwo\n", ["one", "two"]),
        ("verb\nrun\n", ["verb", "run"]),
        ("Yes, of course\nNo, never\nWell\n", ["Yes, of course", "No, never", "Well"]),
        ("[sighs]\n{laughs}\n", ["[sighs]", "{laughs}"]),
        ('He said "no\nShe "left".\n', ['He said "no', 'She "left".']),
        ("first\rsecond\r", ["first", "second"]),
    ],
)
async def test_a_first_line_is_a_header_only_if_it_is_known_as_one(researcher, engine, content, texts):
    campaign = await create_draft(engine)
    address = f"/admin/campaigns/{campaign.slug}/items"
    page = await researcher.post(f"{address}/preview", files={"file": ("sentences.txt", content.encode())})
    assert f"<b>{len(texts)} rows</b>" in page.text
    done = await researcher.post(
        address,
        files={"file": ("sentences.txt", content.encode())},
        data={"shown": "text", "identifier": ":row numbers:"},
    )
    assert done.status_code == 303, done.text
    assert [shown for _, shown in await fetch_rows(engine, ITEMS)] == texts


async def test_the_preview_says_that_the_first_line_is_an_item(researcher, engine):
    address = f"/admin/campaigns/{(await create_draft(engine)).slug}/items"
    page = await researcher.post(f"{address}/preview", files={"file": ("sentences.txt", SENTENCES.encode())})
    assert "One text per line, from the first line on: “I got the job!”." in page.text
    assert "<b>3 rows</b>, in 4 lines:" in page.text


async def test_any_file_is_read_as_lines_or_as_a_table_on_request(researcher, engine):
    address = f"/admin/campaigns/{(await create_draft(engine)).slug}/items"
    file = {"file": ("sentences.csv", SENTENCES.encode())}
    refused = await researcher.post(f"{address}/preview", files=file)
    assert "this row has 3 cells" in refused.text
    done = await researcher.post(address, files=file, data={"pasted_as": "lines"})
    assert done.status_code == 303, done.text
    assert await fetch_rows(engine, ITEMS) == AS_ITEMS
    table = {"file": ("verbs.txt", b"verb\nrun\n")}
    page = await researcher.post(f"{address}/preview", files=table, data={"pasted_as": "table"})
    assert "<b>1 row</b>, in 2 lines of CSV" in page.text


async def test_a_text_with_too_long_a_line_is_refused_with_its_number(researcher, engine):
    address = f"/admin/campaigns/{(await create_draft(engine)).slug}/items"
    reply = await researcher.post(address, files={"file": ("long.txt", b"one two\n" + b"x" * 100_001)})
    assert "Line 2" in reply.text
    assert "100,000 characters" in reply.text
