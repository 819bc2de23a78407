"""Gold and attention items in tables of systems' outputs: taken in with the outputs, or refused with the line."""

import re
import zipfile

import pytest

from app.campaigns import campaign_file
from app.errors import Conflict, Refusal
from app.imports import campaign_file_io
from app.imports.campaign_zip import SentCampaign
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value
from tests.annotation.hits.criteria import criteria_settings
from tests.annotation.hits.systems import SYSTEMS, outputs_table
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.api.test_api import refused
from tests.campaigns.drafts import VERBS, apply_action, create_draft, import_file, import_items
from tests.campaigns.test_routes import create, upload
from tests.media.files import packed, wav

HEADER = "system,segment,output,source,check,expected,tolerance\n"
OUTPUTS = "".join(f"{name},s{k},{name} {k},source {k},,,\n" for k in range(3) for name in SYSTEMS)
GOLD = "bad,s1,broken,source 1,gold,0,15\nset,s2,Set this to 100,,attention,100,\n"
STORED = "SELECT external_id, kind, shown, expected, segment FROM check_items WHERE campaign_id = :id ORDER BY number"


@pytest.fixture
def engine(app):
    return app.state.database


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


async def draft_of_systems(engine, content=HEADER + OUTPUTS, **settings):
    campaign = await create_draft(engine, items_per_hit=3, checks_percent=50, judgments_per_item=50, **settings)
    if content:
        await import_items(engine, campaign, content)
    return campaign


async def test_rows_with_a_check_become_outputs_of_no_system_wherever_they_are_in_the_table(engine):
    campaign = await draft_of_systems(engine, "")
    receipt = await import_file(engine, campaign, HEADER + GOLD + OUTPUTS)
    assert (receipt.imported, receipt.checks, receipt.gold, receipt.rows) == (12, 2, 1, 14)
    assert (
        receipt.sentences("output")[0] == "Imported 12 outputs. The file has 14 rows in 15 lines, 2 checks among them."
    )
    assert any("gold or attention items and their expected answers (2 rows)" in note for note in receipt.notes)
    stored = await fetch_rows(engine, STORED, id=campaign.id)
    assert stored == [
        ("bad / s1", "gold", "broken", {"value": 0.0, "tolerance": 15.0}, 1),
        ("set / s2", "attention", "Set this to 100", {"value": 100.0}, 2),
    ]
    assert await fetch_value(engine, "SELECT count(*) FROM items") == len(SYSTEMS)
    assert await fetch_value(engine, "SELECT has_checks FROM campaigns")


async def test_a_file_of_checks_alone_joins_the_outputs_and_jsonl_will_do(engine):
    campaign = await draft_of_systems(engine)
    rows = '{"system": "bad", "segment": "s0", "output": "x", "Check": "gold", "Expected": 5}\n'
    receipt = await import_file(engine, campaign, rows, "checks.jsonl")
    assert receipt.sentences("output")[0] == "Imported 1 gold item."
    assert [row[:2] for row in await fetch_rows(engine, STORED, id=campaign.id)] == [("bad / s0", "gold")]


REFUSED = {
    "segment_unknown": "bad,s9,broken,,gold,0,15\n",
    "segment_missing": "bad,,broken,,gold,0,15\n",
    "system_missing": ",s1,broken,,gold,0,15\n",
    "output_empty": "bad,s1,,,gold,0,15\n",
    "check_unknown": "bad,s1,broken,,silver,0,15\n",
    "expected_missing": "bad,s1,broken,,gold,,\n",
    "expected_unreadable": "bad,s1,broken,,gold,low,\n",
    "expected_impossible": "bad,s1,broken,,gold,400,\n",
    "expected_without_check": "bad,s1,broken,,,0,15\n",
    "source_differs": "bad,s1,broken,another,gold,0,15\n",
}


async def test_a_mistake_is_named_with_its_line_and_nothing_is_imported(engine, subtests):
    for code, row in REFUSED.items():
        with subtests.test(code=code):
            campaign = await draft_of_systems(engine, "")
            with pytest.raises(Refusal) as refusal:
                await import_items(engine, campaign, HEADER + OUTPUTS + row)
            assert (refusal.value.code, refusal.value.details["line"]) == (code, 14)
            assert await fetch_value(engine, "SELECT count(*) FROM items") == 0


async def test_a_check_that_is_there_is_refused_and_so_is_a_name_that_a_system_has(engine):
    campaign = await draft_of_systems(engine, HEADER + OUTPUTS + GOLD)
    with pytest.raises(Refusal, match="“bad / s1” is already in the campaign") as refusal:
        await import_items(engine, campaign, HEADER + GOLD)
    assert refusal.value.code == "output_twice"
    with pytest.raises(Refusal, match="was already on line 2") as refusal:
        await import_items(engine, await draft_of_systems(engine), HEADER + GOLD + GOLD)
    other = await draft_of_systems(engine, HEADER + OUTPUTS + "bad / s1,s1,x,,,,\n")
    with pytest.raises(Refusal, match="already has “bad / s1”") as refusal:
        await import_items(engine, other, HEADER + GOLD)
    assert refusal.value.code == "id_taken"


async def test_a_check_without_a_segment_is_refused_by_a_campaign_of_systems(engine):
    campaign = await draft_of_systems(engine)
    with pytest.raises(Refusal, match="each check belongs to a segment") as refusal:
        await import_items(engine, campaign, "id,text,check,expected\ng1,broken,gold,0\n")
    assert refusal.value.code == "check_needs_segment"


async def test_a_check_of_a_segment_is_refused_by_a_campaign_of_items(engine):
    campaign = await draft_of_systems(engine, VERBS)
    with pytest.raises(Conflict, match="has items, but this file contains outputs of systems") as refusal:
        await import_items(engine, campaign, HEADER + GOLD)
    assert refusal.value.code == "kinds_mixed"


async def test_columns_of_checks_without_the_column_check_are_refused_as_before(engine):
    with pytest.raises(Refusal, match="expected") as refusal:
        await draft_of_systems(engine, "system,segment,output,expected\nape,s1,a,3\n")
    assert refusal.value.code == "column_unknown"


async def test_whoever_declines_the_meaning_gets_outputs(engine):
    campaign = await draft_of_systems(engine, "")
    await import_items(engine, campaign, HEADER + OUTPUTS + GOLD, ignored=frozenset({"check"}))
    assert await fetch_value(engine, "SELECT count(*) FROM items") == len(SYSTEMS) + 2
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0


async def test_replacing_the_outputs_of_a_draft_removes_its_checks(engine):
    campaign = await draft_of_systems(engine, HEADER + OUTPUTS + GOLD)
    await import_file(engine, campaign, outputs_table(), replace=True)
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0
    assert await fetch_value(engine, "SELECT has_checks FROM campaigns") is False


async def test_a_campaign_file_has_the_checks_by_every_criterion(engine):
    header = "system,segment,output,check,expected adequacy,tolerance adequacy,expected fluency,check_set,explanation\n"
    outputs = header + "".join(f"{name},s{k},{name} {k},,,,,,\n" for k in range(2) for name in SYSTEMS)
    campaign = await draft_of_systems(
        engine, outputs + "bad,s1,broken,gold,0,5,90,one,no verb\n", criteria=criteria_settings(2)
    )
    async with engine.begin() as connection:
        file = await campaign_file_io.build_campaign_yaml_or_zip(connection, campaign.slug, with_items=True)
        content = b"".join(campaign_file_io.iterate_archive_bytes_then_close(file))
        read = campaign_file.parse_campaign_file(content, "a.yaml")
        copy = await campaign_file_io.create_draft_from_campaign_file(connection, SentCampaign(read), now=NOW, max_mb=1)
    assert await fetch_rows(engine, STORED, id=copy.id) == await fetch_rows(engine, STORED, id=campaign.id)
    said = "SELECT fields ->> 'check_set', fields ->> 'explanation' FROM check_items WHERE campaign_id = :id"
    assert await fetch_rows(engine, said, id=copy.id) == [("one", "no verb")]
    await apply_action(engine, copy)


async def test_a_program_adds_changes_and_reads_checks_of_segments(api_client, engine):  # noqa: F811
    campaign = await draft_of_systems(engine)
    address, kind = f"{API}/campaigns/{campaign.slug}", {"content-type": "text/csv"}
    sent = await api_client.post(f"{address}/items", content=HEADER + GOLD, headers=kind)
    assert (sent.json()["imported"], sent.json()["checks"], sent.json()["gold"]) == (0, 2, 1)
    changed = {"id": "bad / s1", "expected": "10", "tolerance": "5", "text": "more broken"}
    reply = await api_client.post(f"{address}/items/checks", json={"kind": "gold", "checks": [changed]})
    assert reply.status_code == 200, reply.text
    (first, second) = (await api_client.get(f"{address}/checks")).json()
    assert (first["external_id"], first["segment"], first["shown"], first["expected"]) == (
        "bad / s1", "s1", "more broken", "5 to 15")  # fmt: skip
    assert second["segment"] == "s2"
    of_system = {"kind": "gold", "checks": [{"id": "ape", "expected": "10"}]}
    refused(await api_client.post(f"{address}/items/checks", json=of_system), 409, "not_for_systems")
    refused(await api_client.post(f"{address}/items/known-answers", json={"column": "x"}), 409, "not_for_systems")
    unknown = HEADER + REFUSED["segment_unknown"]
    refused(await api_client.post(f"{address}/items", content=unknown, headers=kind), 422, "segment_unknown")
    plain = "id,text,check,expected\ng1,broken,gold,0\n"
    refused(await api_client.post(f"{address}/items", content=plain, headers=kind), 422, "check_needs_segment")


async def test_the_page_previews_imports_lists_and_deletes_checks(researcher, engine):
    address = await create(researcher, items_per_hit="3")
    preview = await researcher.post(f"{address}/items/preview", files={"file": ("a.csv", HEADER + OUTPUTS + GOLD)})
    assert "4 systems, 3 segments, 14 outputs, including 2 checks" in words(preview.text)
    assert "gold or attention items and their expected answers (2 rows)" in words(preview.text)
    wrong = HEADER + OUTPUTS + REFUSED["expected_without_check"]
    preview = await researcher.post(f"{address}/items/preview", files={"file": ("a.csv", wrong)})
    assert "with an expected answer but no check: line 14" in words(preview.text)
    await upload(researcher, address, HEADER + OUTPUTS + GOLD, shown="")
    page = words((await researcher.get(f"{address}/items")).text)
    assert "4 systems, 3 segments, 1 gold item, 1 attention item" in page
    assert "No task shows these checks yet." in page
    shown = await researcher.post(f"{address}/items/show-checks")
    assert shown.status_code == 303
    segment = words((await researcher.get(f"{address}/items?segment=s1")).text)
    assert "bad / s1 gold item, expected: 0 to 15" in segment
    quality = await researcher.get(f"{address}/checks")
    assert "set / s2" in quality.text
    assert "Use as item" not in quality.text
    deleted = await researcher.post(f"{address}/items/unmark", data={"item": "set / s2"})
    logged = "SELECT action, after ->> 'ids' FROM audit_log ORDER BY id DESC LIMIT 1"
    assert await fetch_rows(engine, logged) == [("items.deleted", "set / s2")]
    assert "set / s2" not in (await researcher.get(deleted.headers["location"])).text
    assert "4 systems, 3 segments, 1 gold item" in words((await researcher.get(f"{address}/items")).text)
    assert (await researcher.post(f"{address}/launch")).headers["location"] == f"{address}/share?done=launched"


async def test_a_pasted_table_adds_gold_items_to_the_segments_of_a_draft(researcher, engine):
    campaign = await draft_of_systems(engine)
    address = f"/admin/campaigns/{campaign.slug}/items"
    assert "is one more output for a segment" in words((await researcher.get(address)).text)
    table = "system,segment,output,expected\nbad,s1,broken,0\n"
    reply = await researcher.post(f"{address}/gold", data={"kind": "gold", "pasted": table, "read_as": "table"})
    assert reply.status_code == 303, words(reply.text)
    assert "Imported 1 gold item." in words((await researcher.get(reply.headers["location"])).text)
    wrong = table.replace("s1", "s7")
    reply = await researcher.post(f"{address}/gold", data={"kind": "gold", "pasted": wrong, "read_as": "table"})
    assert reply.status_code == 422
    assert "no system has an output for the segment “s7” of this check" in words(reply.text)
    assert "bad,s7,broken,0" in reply.text


async def test_previews_of_tasks_leave_the_checks_out(researcher, engine):
    campaign = await draft_of_systems(engine, HEADER + OUTPUTS + GOLD)
    for _ in range(6):
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit")).text
        assert "broken" not in page
        assert "Set this" not in page


async def test_checks_come_with_the_recordings_that_they_name(engine):
    header = "system,segment,output,check,expected,tolerance\n"
    spoken = "".join(f"{name},s{k},{name}{k}.wav,,,\n" for k in range(2) for name in ("ape", "bee"))
    names = [*(f"{name}{k}.wav" for k in range(2) for name in ("ape", "bee")), "noise.wav"]
    files = {name: wav(0.1 * (1 + place)) for place, name in enumerate(names)}
    gold = "noise,s1,noise.wav,gold,0,10\n"
    campaign = await create_draft(engine, content="audio", items_per_hit=3, checks_percent=50, judgments_per_item=9)
    with pytest.raises(Refusal) as refusal:
        await import_items(engine, campaign, header + spoken + gold.replace("noise.wav", "missing.wav"))
    assert refusal.value.code == "media_missing"
    await import_items(engine, campaign, header + spoken + gold, media=packed(files))
    assert await fetch_value(engine, "SELECT count(*) FROM media") == 5
    async with engine.begin() as connection:
        file = await campaign_file_io.build_campaign_yaml_or_zip(connection, campaign.slug, with_items=True)
        with file.file, zipfile.ZipFile(file.file) as archive:
            assert "media/noise.wav" in archive.namelist()
    await apply_action(engine, campaign)
