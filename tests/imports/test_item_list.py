"""The list of items: search, own columns, items that are pasted or typed, and items that are deleted from a draft."""

import pytest

from app.imports.pasted import file_name_and_bytes_of_pasted_text
from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.drafts import create_draft
from tests.campaigns.test_routes import create, launched, upload
from tests.media.files import png, zipped

CITIES = "id,verb,note\n1,abide,seen in Köln\n2,run,100%\n3,hum,a_b\n4,eat,axb\n"


async def list_page(researcher, address, **query):
    return (await researcher.get(f"{address}/items", params=query)).text


async def test_items_are_found_by_id_text_and_own_columns(researcher):
    address = await create(researcher)
    await upload(researcher, address, CITIES)
    for search, found in (("abid", "1"), ("KÖLN", "1"), ("100%", "2"), ("a_b", "3")):
        page = await list_page(researcher, address, search=search)
        assert page.count('name="item" value="') == 1, search
        assert f'name="item" value="{found}"' in page
    assert "No item matches" in await list_page(researcher, address, search="nowhere")


async def test_own_columns_are_kept_in_the_address(researcher):
    address = await create(researcher)
    await upload(researcher, address, CITIES)
    page = await list_page(researcher, address, column=["note", "verb"], search="köln")
    assert '<th scope="col">note</th><th scope="col">verb</th>' in page
    assert "seen in Köln" in page
    assert '<input type="hidden" name="column" value="note">' in page.partition('type="search"')[0]


@pytest.mark.parametrize(
    ("pasted", "read_as", "name", "content"),
    [
        ("Well, then.\nOf course", "auto", "pasted.txt", "Well, then.\nOf course"),
        ("text\nrun\nwalk", "auto", "pasted.csv", "text\nrun\nwalk"),
        ("id\ttext\n1\tone", "auto", "pasted.tsv", "id\ttext\n1\tone"),
        ("id,text\n1,one", "auto", "pasted.csv", "id,text\n1,one"),
        ("verb;gloss\nrun;move", "auto", "pasted.csv", "verb;gloss\nrun;move"),
        ('[{"id": 1}]', "auto", "pasted.json", '[{"id": 1}]'),
        ("id,text\n1,one", "lines", "pasted.txt", "id,text\n1,one"),
    ],
)
def test_a_pasted_text_is_read_as_what_it_looks_like(pasted, read_as, name, content):
    assert file_name_and_bytes_of_pasted_text(pasted, read_as) == (name, content.encode())


async def test_pasted_lines_are_previewed_and_imported_as_numbered_items(researcher, engine):
    address = await create(researcher)
    pasted = {"pasted": "A quiet room.\n\nWell, it depends."}
    page = await researcher.post(f"{address}/items/preview", data=pasted)
    assert "<b>2 rows</b>, in 3 lines of text" in page.text
    assert "Well, it depends.</textarea>" in page.text
    done = await researcher.post(f"{address}/items", data=pasted)
    assert done.status_code == 303, done.text
    stored = [("1", "A quiet room."), ("2", "Well, it depends.")]
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items ORDER BY number") == stored


async def test_names_of_images_in_a_campaign_of_texts_are_noticed(researcher):
    notice = "These look like images"
    for content, names, noticed in (
        ("text", "a.png b.JPG", True),
        ("text", "a.png b", False),
        ("image", "a.png b.png", False),
    ):
        address = await create(researcher, content=content)
        pasted = {"pasted": "\n".join(names.split())}
        page = await researcher.post(f"{address}/items/preview", data=pasted)
        assert (notice in page.text) == noticed, names


async def test_names_of_images_are_shown_as_images_in_one_click(researcher, engine):
    address = await create(researcher)
    chosen = {"pasted": "a.png\nb.png", "show_as": "image"}
    page = (await researcher.post(f"{address}/items/preview", data=chosen)).text
    assert "Items are images" in page
    assert "a.png" in page.partition('role="alert"')[2]  # there is no such file yet
    pictures = {"media": ("pictures.zip", zipped({"a.png": png(), "b.png": png(16)}))}
    page = (await researcher.post(f"{address}/items/preview", data=chosen, files=pictures)).text
    assert "All rows can be imported." in page
    assert (await researcher.post(f"{address}/items", data=chosen, files=pictures)).status_code == 303
    assert await fetch_rows(engine, "SELECT shown FROM items ORDER BY number") == [("a.png",), ("b.png",)]
    assert "Items are images" in await list_page(researcher, address)


async def test_items_that_cannot_be_images_are_refused_and_keep_their_type(researcher, engine):
    draft = await create_draft(engine, design="pairwise", differences="pair")
    address = f"/admin/campaigns/{draft.slug}"
    chosen = {"pasted": "a.png\nb.png", "show_as": "image"}
    pictures = {"media": ("pictures.zip", zipped({"a.png": png(), "b.png": png(16)}))}
    refused = await researcher.post(f"{address}/items", data=chosen, files=pictures)
    assert refused.status_code == 422
    assert "change them first" in refused.text
    assert await fetch_rows(engine, "SELECT shown FROM items") == []


async def test_an_item_is_typed_with_an_id_or_the_next_free_number(researcher, engine):
    address = await create(researcher)
    await upload(researcher, address, CITIES)
    for fields in ({"text": "sit"}, {"text": "lie", "id": "x"}):
        assert (await researcher.post(f"{address}/items/one", data=fields)).status_code == 303
    refused = await researcher.post(f"{address}/items/one", data={"text": "again", "id": "x"})
    assert refused.status_code == 422
    assert "already has “x”" in refused.text
    assert "again</textarea>" in refused.text
    stored = await fetch_rows(engine, "SELECT external_id, shown FROM items WHERE number > 3 ORDER BY number")
    assert stored == [("5", "sit"), ("x", "lie")]


async def test_a_draft_asks_before_it_deletes_and_leaves_no_gap(researcher, engine):
    address = await create(researcher)
    await upload(researcher, address, CITIES)
    chosen = {"action": "delete", "item": ["1", "3"]}
    asked = await researcher.post(f"{address}/items/chosen", data=chosen)
    assert "Delete 2 items" in asked.text
    assert "To replace all 4 items at once, upload a table and tick “Replace the 4 items”." in asked.text
    done = await researcher.post(f"{address}/items/chosen", data=chosen | {"sure": "yes"})
    assert done.status_code == 303
    assert await fetch_rows(engine, "SELECT number, external_id FROM items ORDER BY number") == [(0, "2"), (1, "4")]
    # A number that is an id already is not given again.
    await researcher.post(f"{address}/items/one", data={"text": "sit"})
    await researcher.post(f"{address}/items/one", data={"text": "lie"})
    assert await fetch_rows(engine, "SELECT external_id FROM items WHERE number > 1 ORDER BY number") == [
        ("3",),
        ("5",),
    ]


async def test_nothing_is_changed_where_nothing_or_something_unknown_is_ticked(researcher):
    address = await create(researcher)
    await upload(researcher, address, CITIES)
    for fields, status, words in (
        ({"action": "delete", "sure": "yes"}, 422, "Tick the items first"),
        ({"action": "delete", "item": "9", "sure": "yes"}, 404, "no item “9”"),
        ({"action": "burn", "item": "1"}, 404, "cannot be changed by “burn”"),
        ({"action": "retire", "item": "1"}, 409, "delete the item instead"),
    ):
        reply = await researcher.post(f"{address}/items/chosen", data=fields)
        assert reply.status_code == status, fields
        assert words in reply.text
        assert "4 items</h2>" in reply.text


async def test_after_the_launch_nothing_is_deleted(researcher):
    address = await launched(researcher)
    reply = await researcher.post(f"{address}/items/chosen", data={"action": "delete", "item": "1", "sure": "yes"})
    assert reply.status_code == 409
    assert "items can be retired, but not deleted" in reply.text
