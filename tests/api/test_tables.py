"""Tables sent by programs: how they are read, what their columns are taken for, and what is told of it."""

import gzip
import json

from tests.api.conftest import API
from tests.api.test_api import SETTINGS, refused
from tests.workbooks import workbook_bytes

GERMAN = "id,text\ns1,Der Hund schläft.\ns2,Grüße aus Köln.\n".encode("cp1252")
PRIORS = "id,text,alpha,beta\n" + "".join(f"{k},a{k},2,3\n" for k in range(3))


async def new(api_client, **settings):
    made = await api_client.post(f"{API}/campaigns", json=SETTINGS | settings)
    return f"{API}/campaigns/{made.json()['slug']}"


async def send(api_client, address, content, kind="text/csv", **params):
    return await api_client.post(f"{address}/items", params=params, content=content, headers={"content-type": kind})


async def test_an_encoding_is_offered_and_chosen(api_client):
    address = await new(api_client)
    details = refused(await send(api_client, address, GERMAN), 422, "not_utf8")
    assert details["encodings"][0] == {"name": "windows-1252", "title": "Windows-1252", "sample": "Grüße aus Köln."}
    done = (await send(api_client, address, GERMAN, encoding="windows-1252")).json()
    assert (done["imported"], done["rows"], done["lines"]) == (2, 2, 3)
    assert "Read as Windows-1252." in done["notes"]
    refused(await send(api_client, address, GERMAN, encoding="klingon"), 422, "encoding_unknown")


async def test_rows_are_numbered_and_marks_are_text(api_client):
    address = await new(api_client)
    content = 'content\n"Hello" she said.\nBye.\n'
    refused(await send(api_client, address, content), 422, "csv_unreadable")
    details = await send(api_client, address, content, quotes="text")
    assert ":row numbers:" in details.json()["error"]["message"]
    done = await send(api_client, address, content, quotes="text", identifier=":row numbers:")
    assert done.json()["imported"] == 2
    found = (await api_client.get(f"{address}/items")).json()["items"]
    assert [(item["id"], item["text"]) for item in found] == [("1", '"Hello" she said.'), ("2", "Bye.")]


async def test_json_and_packed_tables_come_as_a_body_or_in_a_form(api_client):
    address = await new(api_client)
    rows = [{"id": k, "text": f"t{k}"} for k in range(3)]
    for kind in ("application/json", "application/x-ndjson", "text/csv"):
        assert (await send(api_client, address, json.dumps(rows), kind, replace=True)).json()["imported"] == 3
    packed = gzip.compress(json.dumps({"data": rows}).encode())
    assert (await send(api_client, address, packed, "application/gzip", replace=True)).json()["imported"] == 3
    form = {"file": ("items.json.gz", packed)}
    done = await api_client.post(f"{address}/items", params={"replace": True}, files=form)
    assert (done.json()["imported"], done.status_code) == (3, 201)


async def test_priors_are_taken_when_they_are_asked_for_and_told_at_the_launch(api_client):
    address = await new(api_client)
    done = (await send(api_client, address, PRIORS)).json()
    assert (done["imported"], done["with_prior"]) == (3, 0)
    assert any("priors=true" in note for note in done["notes"])
    done = (await send(api_client, address, PRIORS, priors=True, replace=True)).json()
    assert done["with_prior"] == 3
    led = (await api_client.post(f"{address}/transitions", json={"action": "launch"})).json()
    assert led["status"] == "running"
    assert led["notes"][0].startswith("3 items start with their own priors")


async def test_a_meaning_can_be_declined(api_client):
    address = await new(api_client)
    content = "id,text,check,expected\n1,a,,\n2,b,gold,80\n"
    done = (await send(api_client, address, content, ignore="check")).json()
    assert (done["imported"], done["checks"]) == (2, 0)
    refused(await send(api_client, address, content, ignore="everything"), 422, "invalid")


async def test_a_workbook_comes_as_a_body_or_in_a_form_and_names_its_sheet(api_client):
    address = await new(api_client)
    workbook = workbook_bytes({"Train": [["id", "text"], [1, "a"]], "Test": [["id", "text"], [2, "b"], [3, "c"]]})
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert (await send(api_client, address, workbook, kind)).json()["imported"] == 1
    done = await api_client.post(
        f"{address}/items", params={"replace": True, "sheet": "Test"}, files={"file": ("items.xlsx", workbook)}
    )
    assert (done.json()["imported"], done.status_code) == (2, 201)
    found = (await api_client.get(f"{address}/items")).json()["items"]
    assert [(item["id"], item["text"]) for item in found] == [("2", "b"), ("3", "c")]
    refused(await send(api_client, address, workbook, kind, sheet="Dev"), 422, "sheet_unknown")
    refused(await send(api_client, address, workbook_bytes({"A": []}), kind), 422, "file_empty")
