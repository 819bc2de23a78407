"""A refusal repeats only as much of a request as it takes to recognise it."""

import json

import pytest

from app.errors import MAX_ECHO_CHARACTERS, shorten_echo
from tests.api.conftest import API
from tests.api.test_api import draft, launched

LONG = "long" * 5000
LARGEST_REFUSAL = 5000  # bytes; whole, one name alone has 20,000


def test_a_long_text_is_cut_and_a_short_one_is_not():
    assert shorten_echo("a verb") == "a verb"
    assert shorten_echo("v" * MAX_ECHO_CHARACTERS) == "v" * MAX_ECHO_CHARACTERS
    assert shorten_echo("v" * (MAX_ECHO_CHARACTERS + 1)) == "v" * (MAX_ECHO_CHARACTERS - 1) + "…"


def told_in_short(reply, part="long"):
    """Assert that a reply is a short refusal that shortens the sent value."""
    assert 400 <= reply.status_code < 500
    assert len(reply.content) < LARGEST_REFUSAL
    assert part in reply.text
    assert "…" in reply.text
    return True


async def test_addresses_that_lead_nowhere(api_client, researcher):
    address = await launched(api_client)
    slug = address.rpartition("/")[2]
    assert told_in_short(await api_client.get(f"{API}/campaigns/{LONG}"))
    for part in ("/export/{}", "/analysis/scores/{}", "/analysis/tables/{}"):
        assert told_in_short(await api_client.get(address + part.format(LONG)))
    pages = f"/admin/campaigns/{slug}"
    asks = {"accept": "application/json"}
    for part in ("/export/{}", "/analysis/{}", "/analysis/figures/{}.svg"):
        assert told_in_short(await researcher.get(pages + part.format(LONG), headers=asks))
    assert told_in_short(await researcher.get(f"{pages}/figures/item.svg?item={LONG[:1000]}", headers=asks))


@pytest.mark.parametrize(
    ("content", "query"),
    [
        pytest.param(f"id,{LONG},{LONG}\n1,a,b\n", {}, id="a column twice"),
        pytest.param(f"id,{LONG},{LONG}2\n1,a,b\n", {}, id="two columns to choose from"),
        pytest.param("id,verb\n1,run\n", {"shown": LONG}, id="an unknown column"),
        pytest.param(f"id,{LONG}\n1,run\n", {"shown": "long"}, id="the known columns"),
        pytest.param("id,verb\n1,run\n", {"template": f"{{{LONG}}}"}, id="an unknown column in a template"),
        pytest.param(f"id,verb\n{'long' * 50},run\n{'long' * 50},go\n", {}, id="an id twice"),
        pytest.param(
            f"id,verb,alpha,beta\n1,long,0{'0' * 20_000},1\n", {"shown": "verb", "priors": True}, id="a prior"
        ),
    ],
)
async def test_files_of_items(api_client, content, query):
    address = await draft(api_client)
    reply = await api_client.post(
        f"{address}/items", params=query, content=content, headers={"content-type": "text/csv"}
    )
    assert told_in_short(reply, "00" if "alpha" in content else "long")


async def test_a_file_of_many_columns_names_some_of_them(api_client):
    columns = ",".join(f"column {k}" for k in range(400))
    content = f"id,{columns}\n"
    kind = {"content-type": "text/csv"}
    reply = await api_client.post(
        f"{await draft(api_client)}/items", params={"shown": "x"}, content=content, headers=kind
    )
    assert len(reply.content) < LARGEST_REFUSAL
    assert "id, column 0, column 1" in reply.text
    assert "and 381 more" in reply.text


async def test_files_of_results(api_client, subtests):
    for header, row in (
        (f"Input.id1,Answer.range1,Answer.na1 {LONG}", "v0,5,5"),
        ("Input.id1,Answer.range1", f"v0,{LONG}"),
        ("Input.id1,Answer.range1", f"{LONG},5"),
        ("Input.id1,Input.id2,Answer.range1,Answer.range2", f"{LONG},{LONG},1,2"),
        ("Input.id1,Answer.range1,Answer.na1", f"v0,5,{LONG}"),
        (f"Input.id1,{LONG}", "v0,5"),
        ("Input.id1,Answer.range1", f"v0,{'9' * 20_000}"),
        (f"hit,annotator,item,{LONG}", "h,a,v0,5"),
        (f"hit,annotator,item,value,{LONG}", "h,a,v0,5,5"),
        ("hit,annotator,item,value", f"h,a,{LONG},5"),
        ("hit,annotator,item,value", f"h,a,v0,{LONG}"),
        ("hit,annotator,item,value", f"h,a,v0,{'9' * 20_000}"),
        ("hit,annotator,item,value,position", f"h,a,v0,5,{LONG}"),
        ("hit,annotator,item,value,submitted_at", f"h,a,v0,5,{LONG}"),
        ("seq,hit,annotator,item,score,label", f"1,h,a,v0,5,{LONG}"),
    ):
        with subtests.test(header=header, row=row):
            address, kind = await launched(api_client), {"content-type": "text/csv"}
            reply = await api_client.post(f"{address}/responses", content=f"{header}\n{row}\n", headers=kind)
            assert told_in_short(reply, "99" if "999" in row else "long")


async def test_fields_of_json(api_client):
    sent = {LONG: 1, "name": "n"}
    assert told_in_short(await api_client.post(f"{API}/campaigns", json=sent))
    many = {f"item {k}": "x" for k in range(10_000)}
    body = json.dumps({"annotator": "a", "scores": many})
    reply = await api_client.post(f"{API}/hits/1/response", content=body, headers={"content-type": "application/json"})
    assert len(reply.content) < 100_000
