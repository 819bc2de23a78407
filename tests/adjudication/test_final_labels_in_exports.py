"""Final labels in the files, the methods paragraph, the findings and on the command line."""

# ruff: noqa: F811 (a fixture is imported, and asked for by name)

import asyncio
import csv
import io
import json
import zipfile
from datetime import datetime

import pytest

from app.text.spreadsheets import ID_COLUMNS
from tests.adjudication.labelled import create_labelled_campaign, settle
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import create_draft, import_items
from tests.test_cli import easel  # noqa: F401  (a fixture)

PAGES = "/admin/campaigns/verbs"


@pytest.fixture
def engine(app):
    return app.state.database


async def exported(researcher, name):
    reply = await researcher.get(f"{PAGES}/export/{name}.csv")
    assert reply.status_code == 200, reply.text
    return list(csv.DictReader(io.StringIO(reply.text)))


@pytest.mark.parametrize("name", ["items", "item_labels"])
async def test_files_of_items_have_the_final_label_and_where_it_is_from(researcher, engine, name):
    campaign = await create_labelled_campaign(engine, {"ann": [0, 0, 1], "bob": [0, 1, 1]})
    before = {row["id"]: row for row in await exported(researcher, name)}
    assert (before["v0"]["label"], before["v0"]["label_source"], before["v0"]["adjudicated"]) == ("yes", "answers", "")
    await settle(engine, campaign, "v1", "unclear")
    await settle(engine, campaign, "v2", "yes")
    after = {row["id"]: row for row in await exported(researcher, name)}
    columns = ("label", "adjudicated", "label_source")
    assert [after["v1"][column] for column in columns] == ["unclear", "unclear", "adjudicated"]
    assert [after["v2"][column] for column in columns] == ["yes", "yes", "adjudicated"]
    untouched = set(before["v2"]) - {*columns}
    assert all(before[item][column] == after[item][column] for item in before for column in untouched)


async def test_the_file_of_judgments_has_the_chosen_label_of_each_item_beside_the_estimated_one(researcher, engine):
    campaign = await create_labelled_campaign(engine, {"ann": [0, 0], "bob": [0, 1]})
    before = await exported(researcher, "labels")
    await settle(engine, campaign, "v1", "unclear")
    after = await exported(researcher, "labels")
    assert {(row["item"], row["adjudicated"]) for row in after} == {("v0", ""), ("v1", "unclear")}
    assert [row | {"adjudicated": ""} for row in after] == before


async def test_an_item_without_any_label_has_no_source(researcher, engine):
    labels = {"labels": ["yes", "no"]}
    await create_running_campaign(engine, items=2, design="categories", design_settings=labels, items_per_hit=1)
    assert {row["label_source"] for row in await exported(researcher, "items")} == {""}


async def test_files_of_ordered_labels_have_the_chosen_label_beside_the_score(researcher, engine):
    settings = {"design": "ordinal", "design_settings": {"labels": ["low", "high"]}}
    campaign = await create_labelled_campaign(engine, {"ann": [0, 1], "bob": [1, 1]}, **settings)
    await settle(engine, campaign, "v0", "low")
    rows = await exported(researcher, "items")
    assert [row["adjudicated"] for row in rows] == ["low", ""]
    assert "label_source" not in rows[0]


async def test_scores_have_no_such_columns(researcher, engine):
    await create_running_campaign(engine)
    (row, *_) = await exported(researcher, "items")
    assert not {"adjudicated", "label_source"} & {*row}
    refused = await researcher.get(f"{PAGES}/export/adjudications.csv")
    assert refused.status_code == 409


async def test_the_file_of_adjudications_has_every_choice_and_no_researcher(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    first = await settle(engine, campaign, "v1", "no", reason="=1+1")
    await settle(engine, campaign, "v1", None, replaces=first.id)
    rows = await exported(researcher, "adjudications")
    assert [(row["item"], row["label"], row["reason"], row["latest"]) for row in rows] == [
        ("v1", "no", "'=1+1", "false"),
        ("v1", "", "", "true"),
    ]
    assert rows[1]["replaces"] == rows[0]["adjudication"]
    assert "ada" not in str(rows)


async def test_the_zip_has_the_file_once_there_is_a_choice_and_explains_each_column(researcher, engine):
    campaign = await create_labelled_campaign(engine)

    async def zipped():
        reply = await researcher.get(f"{PAGES}/export/everything.zip")
        return zipfile.ZipFile(io.BytesIO(reply.content))

    assert not [name for name in (await zipped()).namelist() if name.endswith("adjudications.csv")]
    await settle(engine, campaign, "v1", "no")
    archive = await zipped()
    (codebook,) = [name for name in archive.namelist() if name.endswith("codebook.csv")]
    entries = list(csv.DictReader(io.StringIO(archive.read(codebook).decode())))
    explained = {(entry["file"], entry["column"]): entry["meaning"] for entry in entries}
    for file, column in (
        ("items.csv", "adjudicated"),
        ("items.csv", "label_source"),
        ("item_labels.csv", "adjudicated"),
        ("item_labels.csv", "label_source"),
        *(("adjudications.csv", name) for name in ("adjudication", "item", "label", "reason", "replaces", "latest")),
    ):
        assert explained[file, column], (file, column)


async def test_the_methods_paragraph_says_how_many_labels_a_researcher_settled(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    assert "settled" not in (await researcher.get(f"{PAGES}/export/methods")).text
    await settle(engine, campaign, "v1", "no")
    assert "Of 4 labels, 1 was settled by a researcher." in (await researcher.get(f"{PAGES}/export/methods")).text
    await settle(engine, campaign, "v3", "no")
    assert "Of 4 labels, 2 were settled by a researcher." in (await researcher.get(f"{PAGES}/export/methods")).text


async def test_findings_say_how_many_items_are_still_open(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    page = f"{PAGES}/analysis/findings"
    assert "so look at them yourself" in (await researcher.get(page)).text
    await settle(engine, campaign, "v1", "no")
    text = (await researcher.get(page)).text
    assert "On 2 items no label has a majority; 1 of them is still open: “verb 3”" in text
    assert f'href="{PAGES}/adjudicate"' in text
    await settle(engine, campaign, "v3", "no")
    assert "On 2 items no label has a majority; a researcher has settled them." in (await researcher.get(page)).text


async def test_final_labels_become_gold_items_of_a_copy(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v1", "no")
    await settle(engine, campaign, "v3", "unclear")
    file = (await researcher.get(f"{PAGES}/export/item_labels.csv")).text
    settings = {"design_settings": {"labels": ["yes", "no", "unclear"]}, "checks_percent": 20}
    copy = await create_draft(engine, name="Copy", design="categories", **settings)
    await import_items(engine, copy, file)
    page = (await researcher.get("/admin/campaigns/copy/items")).text
    assert "2 items have a known answer in the column “adjudicated”" in page
    chosen = {"column": "adjudicated", "count": "2"}
    assert (await researcher.post("/admin/campaigns/copy/items/known-answers", data=chosen)).status_code == 303
    gold = await fetch_rows(engine, "SELECT external_id, expected -> 'labels' FROM check_items ORDER BY 1")
    assert [tuple(row) for row in gold] == [("v1", ["no"]), ("v3", ["unclear"])]


async def test_commands_list_settle_change_and_reopen(easel, engine):
    await create_labelled_campaign(engine)

    async def run(*arguments):
        return await asyncio.to_thread(easel, *arguments)

    listed = await run("labels", "list", "verbs")
    assert "0 of 2 items without a majority are settled." in listed.output
    assert (await run("labels", "settle", "verbs", "v1", "no", "--reason", "Seen.")).exit_code == 0
    refused = await run("labels", "settle", "verbs", "v1", "yes")
    assert refused.exit_code == 1
    assert "already_settled" in refused.stderr
    assert (await run("labels", "settle", "verbs", "v1", "yes", "--change")).exit_code == 0
    rows = json.loads((await run("labels", "list", "verbs", "--show", "settled", "--json")).output)
    assert [(row["item"], row["adjudication"]["label"]) for row in rows] == [("v1", "yes")]
    assert (await run("labels", "reopen", "verbs", "v1")).exit_code == 0
    assert json.loads((await run("labels", "list", "verbs", "--show", "settled", "--json")).output) == []


@pytest.mark.parametrize("column", ["adjudicated", "item_label"])
def test_labels_that_look_like_numbers_stay_texts_in_spreadsheets(column):
    assert column in ID_COLUMNS


async def test_the_command_prints_the_fields_that_the_api_lists(easel, engine, api_client):
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v1", "no", reason="Seen.")
    printed = json.loads((await asyncio.to_thread(easel, "labels", "list", "verbs", "--show", "all", "--json")).output)
    listed = (await api_client.get(f"{API}/campaigns/verbs/adjudications", params={"show": "all"})).json()["items"]
    decisions = [row["adjudication"] for row in (*printed, *listed) if row["adjudication"]]
    assert [datetime.fromisoformat(decision.pop("decided_at")) for decision in decisions] == [NOW, NOW]
    assert printed == listed
