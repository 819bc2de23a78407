"""One zip has everything that a campaign exports, and its codebook explains every column of every file."""

import csv
import io
import zipfile
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import pytest

from app.exports.codebook import find_column_entry
from app.exports.condition_cells import CONDITION_COLUMNS
from app.exports.everything import open_everything_or_refuse
from app.exports.goal_columns import CHANCE_COLUMN, LAW_SCORE_COLUMNS, SIDE_COLUMN_BY_GOAL
from app.exports.responses import (
    CRITERION_COLUMN,
    CRITERION_POSITION_COLUMN,
    LABEL_COLUMN,
    PLAYBACK_COLUMNS,
    REMARK_TEXT_COLUMNS,
    RESPONSE_EXPORT_COLUMNS,
    SEGMENT_USE_COLUMNS,
    UNJUDGED_REASON_COLUMN,
    VERSION_COLUMN,
)
from app.exports.returning import RETURNING_EXPORT_COLUMNS
from app.exports.unanswered import UNANSWERED_EXPORT_COLUMNS
from app.exports.unjudged import UNJUDGED_EXPORT_COLUMNS
from app.exports.zip_stream import ZippedFile, stream_zip
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign, fetch_rows
from tests.campaigns.drafts import create_launched_campaign

ITEMS = "id,text,truth,mode,voice\n" + "".join(f"v{k},verb {k},{k},{k},{'ab'[k % 2]}\n" for k in range(12))
OUTPUTS = "system,segment,output\n" + "".join(f"{s},s{k},{s} says {k}\n" for s in "abc" for k in range(4))
CRITERIA = [{"name": "adequacy", "question": "Is it right?"}, {"name": "fluency", "question": "Is it fluent?"}]

# Campaigns that together write all columns that depend on settings.
CAMPAIGNS: dict[str, tuple[str, dict[str, Any]]] = {
    "slider": (
        ITEMS,
        {
            "goal": "best", "best_items": 3, "questions": ["age: How old are you?"],
            "comment_on": "both", "flag_on": "both", "cannot_be_judged": True, "when_reached": "release",
            "consent": "Do you agree?",
        },
    ),
    "easl-aware": (ITEMS, {"update_law": "easl-aware", "goal": "threshold", "threshold": 50}),
    "order": (ITEMS, {"update_law": "trueskill"}),
    "magnitude": (ITEMS, {"design": "magnitude"}),
    "categories": (ITEMS, {"design": "categories", "design_settings": {"labels": ["noun", "verb"]}}),
    "ordinal": (ITEMS, {"design": "ordinal"}),
    "pairwise": (ITEMS, {"design": "pairwise", "items_per_hit": 2}),
    "best-worst": (ITEMS, {"design": "best_worst"}),
    "criteria": (ITEMS, {"criteria": CRITERIA}),
    "systems": (OUTPUTS, {"items_per_hit": 2}),
    "conditions": (ITEMS, {"condition_column": "voice", "block_order": "balanced", "repeat_items": False}),
}  # fmt: skip


async def create_answered_campaign(engine, content, **settings):
    campaign = await create_launched_campaign(engine, content, judgments_per_item=6, **settings)
    minutes = count()
    await answer_hits_by_simulated_annotators_and_count(
        engine,
        campaign,
        hits=15,
        annotators=5,
        population=population_with_random_bias_only(0.1),
        truth_column="truth" if "truth" in content else None,
        rng=np.random.default_rng(3),
        clock=lambda: NOW + timedelta(minutes=next(minutes)),
    )
    return campaign


async def opened_zip(engine, campaign, **options):
    file = await open_everything_or_refuse(engine, campaign.slug, now=NOW, **options)
    return zipfile.ZipFile(io.BytesIO(b"".join([piece async for piece in file.chunks])))


def rows(archive, path):
    return list(csv.reader(io.StringIO(archive.read(path).decode())))


@pytest.mark.parametrize("name", CAMPAIGNS)
async def test_the_codebook_explains_every_column_of_every_file(engine, name):
    content, settings = CAMPAIGNS[name]
    archive = await opened_zip(engine, await create_answered_campaign(engine, content, **settings))
    assert archive.testzip() is None
    entries = {(file, column): meaning for file, column, meaning, _, _ in rows(archive, "codebook.csv")}
    written = {
        (path, column)
        for path in archive.namelist()
        if path.endswith(".csv") and path != "codebook.csv"
        for column in rows(archive, path)[0]
    }
    assert {*entries} - {("file", "column")} == written
    assert [column for column, meaning in entries.items() if not meaning] == []
    assert {"items.csv", "responses.csv", "annotators.csv", "decisions.csv", "campaign.yaml"} <= {*archive.namelist()}
    assert [path for path in archive.namelist() if "tables/" in path]


async def test_tables_of_all_labels_are_in_the_zip_once(engine):
    labels = {"design": "several_labels", "design_settings": {"labels": ["joy", "fear", "anger"]}}
    archive = await opened_zip(engine, await create_answered_campaign(engine, ITEMS, **labels))
    names = ("label_sets", "item_label_sets", "halo")
    paths = [path for path in archive.namelist() if path.rpartition("/")[2].removesuffix(".csv") in names]
    assert sorted(paths) == sorted([f"{name}.csv" for name in names] + [f"tables/{name}.csv" for name in names])
    assert {path for path, *_ in rows(archive, "codebook.csv")} >= {*paths}
    assert "criterion-3/scores.csv" in archive.namelist()


COLUMNS_OF_EXPORTS = {
    "responses": [
        *(*RESPONSE_EXPORT_COLUMNS, *SEGMENT_USE_COLUMNS, CRITERION_COLUMN, CRITERION_POSITION_COLUMN, LABEL_COLUMN),
        *(UNJUDGED_REASON_COLUMN, VERSION_COLUMN, *REMARK_TEXT_COLUMNS, *PLAYBACK_COLUMNS, *CONDITION_COLUMNS),
    ],
    "returning": [*RETURNING_EXPORT_COLUMNS],
    "unanswered": [*UNANSWERED_EXPORT_COLUMNS, *SEGMENT_USE_COLUMNS],
    "items": [*UNJUDGED_EXPORT_COLUMNS, *SIDE_COLUMN_BY_GOAL.values(), CHANCE_COLUMN, *LAW_SCORE_COLUMNS],
}


@pytest.mark.parametrize("export", COLUMNS_OF_EXPORTS)
async def test_columns_that_settings_add_have_entries_too(engine, export):
    campaign = await create_running_campaign(engine)
    for column in COLUMNS_OF_EXPORTS[export]:
        assert find_column_entry(export, column, campaign.criteria[0], ()).meaning, column
    assert not find_column_entry(export, "mood", campaign.criteria[0], ()).meaning


async def test_the_codebook_names_units_labels_and_own_columns(engine):
    content, settings = CAMPAIGNS["categories"]
    archive = await opened_zip(engine, await create_answered_campaign(engine, content, **settings))
    entries = {(file, column): rest for file, column, *rest in rows(archive, "codebook.csv")}
    assert entries["items.csv", "class_1"][0] == "Count of the label “noun” in the posterior"
    assert entries["items.csv", "label_percent"][1] == "%"
    assert entries["items.csv", "voice"][0] == "Your own column, as uploaded"
    assert entries["annotators.csv", "hits_counted"][0] == "Answered tasks that count"


async def test_answers_to_questions_are_explained_by_the_question_and_its_choices(engine):
    questions = ["sex: What is your sex? | female | male", "age: How old are you? | number from 18 to 99", "why: Why?"]
    campaign = await create_running_campaign(engine, questions=questions)
    entries = [
        find_column_entry("responses", f"asked_{name}", campaign.criteria[0], ()) for name in ("sex", "age", "why")
    ]
    assert entries[0].meaning == "The annotator's answer to the question “What is your sex?”"
    assert [entry.values for entry in entries] == ["female, male", "a number", ""]


async def test_tables_of_labels_are_explained_beyond_their_titles(engine):
    content, settings = CAMPAIGNS["categories"]
    archive = await opened_zip(engine, await create_answered_campaign(engine, content, **settings))
    entries = {(file, column): rest for file, column, *rest in rows(archive, "codebook.csv")}
    most_probable = ["Most probable label by Dawid and Skene’s model", "", "the labels"]
    assert entries["tables/label_items.csv", "label"] == most_probable
    assert entries["item_labels.csv", "label"][0].startswith("Final label: the adjudicated one, else the most probable")
    probability = ["Probability that the label is right", "probability", "0 to 1"]
    assert entries["tables/label_items.csv", "confidence"] == probability
    assert entries["item_labels.csv", "confidence"][0].startswith("Probability that the most probable label is right")
    assert entries["item_labels.csv", "entropy"][1] == "bits"
    assert entries["item_labels.csv", "probability_1"] == ["Probability of verb", "probability", "0 to 1"]
    assert entries["tables/labels.csv", "label"] == ["The label", "", "the labels"]
    assert entries["tables/label_annotators.csv", "accuracy"][0] == (
        "Probability that the annotator gives exactly the right label"
    )
    assert entries["tables/agreement.csv", "pairs"][1] == "pairs of judgments"


async def test_the_readme_says_the_version_how_to_cite_and_what_is_missing(engine):
    campaign = await create_running_campaign(engine)
    archive = await opened_zip(engine, campaign)
    readme = archive.read("README.md").decode()
    assert "# Verbs" in readme
    assert "## How to cite" in readme
    assert "Sakaguchi" in readme
    assert all(f"`{path}`" in readme for path in archive.namelist() if path != "README.md")
    assert "scores.csv" not in archive.namelist()
    answered = await create_answered_campaign(engine, *CAMPAIGNS["slider"][:1], name="Nouns")
    with_tables = (await opened_zip(engine, answered)).read("README.md").decode()
    assert "`scores.csv`" in with_tables.partition("## Not included")[0]


async def test_platform_ids_are_there_only_if_they_are_asked_for(engine):
    campaign = await create_running_campaign(engine)
    await create_annotator(engine, campaign, "SECRETWORKER", "prolific")
    for asked in (False, True):
        archive = await opened_zip(engine, campaign, with_platform_ids=asked)
        assert ("assignments.csv" in archive.namelist()) is asked
        assert not [path for path in archive.namelist() if b"SECRETWORKER" in archive.read(path)]


async def test_the_page_the_api_and_their_log(app, client, engine, researcher):
    campaign = await create_running_campaign(engine)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export")).text
    assert f'action="/admin/campaigns/{campaign.slug}/export/everything.zip"' in page
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/everything.zip?assignments=true")
    assert reply.headers["content-type"] == "application/zip"
    assert 'filename="verbs-everything-' in reply.headers["content-disposition"]
    assert "assignments.csv" in zipfile.ZipFile(io.BytesIO(reply.content)).namelist()
    logged = await fetch_rows(engine, "SELECT about FROM audit_log WHERE action = 'people.downloaded'")
    assert {"responses.csv", "annotators.csv", "assignments.csv"} <= {about for (about,) in logged}
    _, token = await log_in_with_role(app, client, "member", "manager", campaign)
    api = f"/api/v1/campaigns/{campaign.slug}/export/everything"
    reply = await client.get(api, headers={"authorization": f"Bearer {token}"})
    assert "items.csv" in zipfile.ZipFile(io.BytesIO(reply.content)).namelist()


async def test_viewers_get_no_zip(app, client, engine):
    campaign = await create_running_campaign(engine)
    await log_in_with_role(app, client, "member", "viewer", campaign)
    reply = await client.get(f"/admin/campaigns/{campaign.slug}/export/everything.zip")
    assert (reply.status_code, "role_forbids" in reply.text) == (403, True)


async def test_a_large_file_is_zipped_piece_by_piece():
    sent = []

    async def pieces():
        for k in range(200):
            yield np.random.default_rng(k).bytes(20_000)
            sent.append(k)

    async def files():
        yield ZippedFile("large.bin", pieces())

    received = []
    async for piece in stream_zip(files(), now=NOW):
        received.append(piece)
        assert len(piece) < 200_000
        if len(received) == 1:
            assert len(sent) < 10, "the first bytes leave before the last are read"
    assert len(zipfile.ZipFile(io.BytesIO(b"".join(received))).read("large.bin")) == 4_000_000


async def test_a_zip_whose_file_fails_cannot_be_opened():
    received = []

    async def pieces():
        yield np.random.default_rng(1).bytes(200_000)
        raise EOFError

    async def files():
        yield ZippedFile("broken.csv", pieces())

    async def receive():
        nonlocal received
        async for piece in stream_zip(files(), now=NOW):
            received += [piece]

    with pytest.raises(EOFError):
        await receive()
    assert received
    assert not zipfile.is_zipfile(io.BytesIO(b"".join(received)))
