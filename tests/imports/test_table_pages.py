"""Tables on the Items page: how a file is read can be chosen, and what its columns mean is told, with a receipt."""

import re
from typing import Any

from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.test_routes import create, launched, upload
from tests.media.files import png, wav, zipped
from tests.workbooks import workbook_bytes

GERMAN = "id,text\ns1,Der Hund schläft.\ns2,Grüße aus Köln.\n".encode("cp1252")
STRAY = 'id,text\ns1,"Well begun\ns2,Plain.\ns3,Ends here"\ns4,ok\n'
EXPORTED = "id,text,alpha,beta,check,expected\n1,a,2,3,,\n2,b,4,5,,\n3,c,,,gold,80\n4,d,1,1,,\n5,e,1,1,,\n6,f,1,1,,\n"


async def preview(researcher, address, content, name="a.csv", **fields):
    return await researcher.post(f"{address}/items/preview", data=fields, files={"file": (name, content)})


async def receipt(researcher, address):
    page = (await researcher.get(f"{address}/items?done=imported")).text
    found = re.search(r'<div class="notice" role="status">(.*?)</div>', page, re.DOTALL)
    return " ".join(re.sub("<[^>]+>", " ", found[1]).split()) if found else ""


async def test_an_older_encoding_is_offered_with_a_sample_and_read_when_it_is_chosen(researcher):
    address = await create(researcher)
    page = await preview(researcher, address, GERMAN)
    assert page.status_code == 200
    assert 'name="encoding" value="windows-1252"' in page.text
    assert "Windows-1252: <q" in page.text
    assert "Grüße aus Köln." in page.text
    chosen = await preview(researcher, address, GERMAN, encoding="windows-1252")
    assert '<option value="windows-1252" selected>' in chosen.text
    assert "Read as Windows-1252." in chosen.text
    done = await upload(researcher, address, GERMAN, shown="text", encoding="windows-1252")
    assert done.headers["location"] == f"{address}/items?done=imported"
    assert "Imported 2 items. The file has 2 rows in 3 lines. Read as Windows-1252." in await receipt(
        researcher, address
    )


async def test_what_quotation_marks_are_for_is_asked_where_it_is_unclear(researcher):
    address = await create(researcher)
    page = await preview(researcher, address, STRAY)
    assert "What do quotation marks mean in this file?" in page.text
    assert 'name="quotes" value="text"' in page.text
    assert 'name="quotes" value="cells"' in page.text
    chosen = await preview(researcher, address, STRAY, quotes="text")
    assert "<b>4 rows</b>, in 5 lines of CSV" in chosen.text
    assert '<option value="text" selected>' in chosen.text


async def test_columns_with_a_meaning_are_told_with_boxes_and_a_receipt(researcher):
    address = await create(researcher)
    page = await preview(researcher, address, EXPORTED)
    boxes = dict(re.findall(r'name="take" value="(\w+)" id="[\w-]+"( checked)?', page.text))
    assert boxes == {"priors": "", "check": " checked"}
    await upload(researcher, address, EXPORTED, shown="text", asked=["priors", "check"], take=["check"])
    assert "“alpha” and “beta” could be the prior" in await receipt(researcher, address)
    assert "1 check among them" in await receipt(researcher, address)
    assert "their own priors" not in (await researcher.get(f"{address}/launch/confirm")).text
    more: dict[str, str | list[str]] = {"asked": ["priors", "check"], "take": ["priors"], "replace": "on"}
    await upload(researcher, address, EXPORTED, "a.csv", shown="text", **more)
    assert "Imported 6 items. The file has 6 rows in 7 lines." in await receipt(researcher, address)
    assert "5 items start with their own priors" in (await researcher.get(f"{address}/launch/confirm")).text


async def test_a_form_without_boxes_takes_no_priors(researcher, engine):
    address = await create(researcher)
    await upload(researcher, address, EXPORTED, shown="text")
    assert await fetch_rows(engine, "SELECT DISTINCT prior FROM items") == [(None,)]
    assert "their own priors" not in (await researcher.get(f"{address}/launch/confirm")).text


PICTURES = "id,text\n1,a.png\n2,b.png\n3,c.png\n"


async def preview_of_pictures(researcher, zip_, **fields):
    address = await create(researcher, content="image")
    files = {"file": ("a.csv", PICTURES), **({} if zip_ is None else {"media": ("m.zip", zip_)})}
    reply = await researcher.post(f"{address}/items/preview", data=fields, files=files)
    return " ".join(re.sub("<[^>]+>", " ", reply.text).split())


async def test_files_that_the_zip_lacks_or_that_no_row_names_are_told_before_the_import(researcher):
    page = await preview_of_pictures(researcher, zipped({"a.png": png(), "x.png": png(), "y.png": png()}))
    assert "The zip lacks 2 files that rows name: b.png, c.png." in page
    assert "It has 2 files that no row names: x.png, y.png." in page
    assert "Correct the zip, or the names in the file. Until then nothing can be imported." in page
    assert "All rows can be imported." not in page


async def test_files_that_no_row_names_may_be_left_out(researcher):
    files = {name: png() for name in ("a.png", "b.png", "c.png", "x.png")}
    page = await preview_of_pictures(researcher, zipped(files), skip_unnamed="on")
    assert "1 file that no row names is left out: x.png." in page
    assert "All rows can be imported." in page
    assert "All rows can be imported." in await preview_of_pictures(researcher, zipped(dict(list(files.items())[:3])))


async def test_without_a_zip_the_files_that_rows_name_are_told(researcher):
    page = await preview_of_pictures(researcher, None)
    assert "3 files that rows name have not been uploaded yet: a.png, b.png, c.png. Choose a zip with them." in page
    assert "All rows can be imported." not in page


CLIPS = {"clips/b.wav": wav(), "clips/a.wav": wav(), "clips/c.v2.wav": wav()}
SELECT_ITEMS_OF_CAMPAIGN = """
    SELECT i.external_id, i.shown FROM items i JOIN campaigns c ON c.id = i.campaign_id
    WHERE c.slug = :slug ORDER BY i.number
"""
CLIP_ITEMS = [("a", "a.wav"), ("b", "b.wav"), ("c.v2", "c.v2.wav")]


async def test_a_zip_of_media_without_a_table_makes_an_item_of_each_file(researcher, engine, subtests):
    for field in ("media", "file"):
        with subtests.test(field=field):
            address = await create(researcher, name=f"Clips as {field}", content="audio")
            files = {field: ("clips.zip", zipped(CLIPS))}
            page = await researcher.post(f"{address}/items/preview", files=files)
            text = " ".join(re.sub("<[^>]+>", " ", page.text).split())
            assert "3 rows" in text
            assert "All rows can be imported." in text
            done = await researcher.post(f"{address}/items", files=files)
            assert done.headers["location"] == f"{address}/items?done=imported"
            slug = address.rsplit("/", 1)[-1]
            assert await fetch_rows(engine, SELECT_ITEMS_OF_CAMPAIGN, slug=slug) == CLIP_ITEMS


async def test_files_of_one_name_in_two_formats_get_ids_with_their_endings(researcher):
    address = await create(researcher, content="audio")
    files = {"media": ("clips.zip", zipped({"a.wav": wav(), "a.mp3": wav()}))}
    page = await researcher.post(f"{address}/items/preview", files=files)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page.text)
    assert cells.count("a.mp3") == cells.count("a.wav") == 2


async def test_a_zip_of_other_files_is_no_table(researcher):
    address = await create(researcher, content="audio")
    page = await preview(researcher, address, zipped({"a.wav": wav(), "notes.txt": b"none"}), "clips.zip")
    assert page.status_code == 422
    assert "one table is needed here" in page.text


async def test_the_list_at_the_end_of_a_zip_is_enough(researcher):
    content = zipped({"a.png": png(), "x.png": png()})
    page = await preview_of_pictures(researcher, content[content.index(b"PK\x01\x02") :])
    assert "The zip lacks 2 files that rows name: b.png, c.png." in page
    assert "It has 1 file that no row names: x.png." in page


SHEETS: dict[str, list[list[Any]]] = {
    "Train": [["id", "text"], [1.0, "abide"]],
    "Test": [["id", "text"], ["t1", "bide"], ["t2", "stay"]],
}


async def test_a_workbook_is_read_and_another_of_its_sheets_can_be_chosen(researcher, engine):
    address = await create(researcher)
    page = await preview(researcher, address, workbook_bytes(SHEETS), "a.xlsx")
    assert "<b>1 row</b>, in 2 lines of XLSX" in page.text
    assert "Sheet “Train” was read, one of 2." in page.text
    chosen = await preview(researcher, address, workbook_bytes(SHEETS), "a.xlsx", sheet="Test")
    assert "<option selected>Test</option>" in chosen.text
    done = await upload(researcher, address, workbook_bytes(SHEETS), shown="text", sheet="Test")
    assert done.headers["location"] == f"{address}/items?done=imported"
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items ORDER BY number") == [
        ("t1", "bide"),
        ("t2", "stay"),
    ]


async def test_a_sheet_that_the_workbook_lacks_is_refused_on_the_page(researcher):
    address = await create(researcher)
    page = await preview(researcher, address, workbook_bytes(SHEETS), "a.xlsx", sheet="Dev")
    assert "This workbook has no sheet “Dev”. It has Train, Test." in page.text


async def test_a_sheet_can_be_named_for_gold_items_and_people(researcher, engine):
    address = await create(researcher)
    sheets: dict[str, list[list[Any]]] = {
        "Notes": [["about"], ["x"]],
        "Gold": [["id", "text", "expected"], ["g1", "to run", 90]],
    }
    file = {"file": ("gold.xlsx", workbook_bytes(sheets))}
    done = await researcher.post(f"{address}/items/gold", data={"kind": "gold", "sheet": "Gold"}, files=file)
    assert done.status_code == 303, done.text
    assert await fetch_rows(engine, "SELECT external_id FROM check_items") == [("g1",)]
    file = {"file": ("people.xlsx", workbook_bytes({"Notes": [["about"], ["x"]], "List": [["name"], ["Ann"]]}))}
    assert (await researcher.post(f"{address}/people", data={"sheet": "List"}, files=file)).status_code == 303
    assert await fetch_rows(engine, "SELECT name FROM personal_links") == [("Ann",)]
    refused = await researcher.post(f"{address}/people", data={"sheet": "None"}, files=file)
    assert "This workbook has no sheet “None”." in refused.text


async def test_a_sheet_can_be_named_for_answers(researcher, engine):
    address = await launched(researcher)
    answers: list[list[Any]] = [
        ["hit", "annotator", "item", "value"],
        *(["h1", "Ann", str(k), 10 * k] for k in range(1, 6)),
    ]
    file = {"file": ("answers.xlsx", workbook_bytes({"Notes": [["about"], ["x"]], "Answers": answers}))}
    done = await researcher.post(f"{address}/responses", data={"sheet": "Answers"}, files=file)
    assert done.status_code == 303, done.text
    assert await fetch_rows(engine, "SELECT count(*) FROM responses") == [(1,)]
