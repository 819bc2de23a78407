"""Answers of other tools are shown as they would be stored, and read on the scale of their file."""

import asyncio
import io

import pytest
from click.testing import CliRunner

from app.cli.commands import easel
from app.errors import Refusal
from app.imports.answer_options import AnswerFileOptions
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from app.imports.responses_preview import preview_responses_of_file_or_refuse
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import create_launched_campaign

ITEMS = "id,text\ns1,Der Hund schläft.\ns2,Es regnet.\n"
BATCH = "WorkerId,AssignmentId,Input.text,Answer.rating\nW1,A1,Es regnet.,4\nW2,A2,Der Hund schläft.,7\n"
COLUMNS = {"item_column": "Input.text", "value_column": "Answer.rating"}
ONE_TO_SEVEN = {"scale_from": "1", "scale_to": "7"}
FIVE_CLASSES = {"design": "ordinal", "design_settings": {"labels": ["awful", "poor", "fair", "good", "superb"]}}
BECOMES = [(2, "A1", "W1", "Es regnet.", "s2", "4", "50"), (3, "A2", "W2", "Der Hund schläft.", "s1", "7", "100")]


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_launched_campaign(engine, ITEMS, design="rating", items_per_hit=1)


async def import_answers(engine, campaign, content, **options):
    reading = AnswerFileOptions.model_validate(options).reading_options
    return await import_responses_of_file_and_return_receipt(
        engine, campaign.slug, io.BytesIO(content.encode()), "batch.csv", now=NOW, max_mb=1, options=reading
    )


async def refusal_code(engine, campaign, content, **options):
    with pytest.raises(Refusal) as refusal:
        await import_answers(engine, campaign, content, **options)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0
    return refusal.value.code


def facts(value):
    return tuple(value[name] for name in ("line", "hit", "annotator", "item", "item_id", "cell", "value"))


async def test_a_preview_shows_what_the_first_values_become_and_stores_nothing(engine, campaign):
    options = AnswerFileOptions.model_validate(COLUMNS | ONE_TO_SEVEN).reading_options
    preview = await preview_responses_of_file_or_refuse(
        engine, campaign.slug, io.BytesIO(BATCH.encode()), "batch.csv", now=NOW, max_mb=1, options=options
    )
    assert preview.tasks == 2
    assert [facts(value.model_dump()) for value in preview.values] == BECOMES
    assert "Items found by their text: 2." in preview.sentences
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0
    await import_answers(engine, campaign, BATCH, **COLUMNS, **ONE_TO_SEVEN)
    assert await fetch_rows(engine, "SELECT values FROM responses ORDER BY seq") == [([50.0],), ([100.0],)]


async def test_a_preview_shows_the_values_of_result_files_of_mechanical_turk(engine, campaign, researcher):
    header = "WorkerId,AssignmentId,Input.id1,Answer.range1,Answer.na1\n"
    content = header + "W1,A1,s1,70 %,\nW2,A2,s2,12,on\nW3,A3,s2,5.0,\n"
    preview = await preview_responses_of_file_or_refuse(
        engine, campaign.slug, io.BytesIO(content.encode()), "batch.csv", now=NOW, max_mb=1
    )
    cells = [(value.item_id, value.cell, value.value) for value in preview.values]
    assert cells == [("s1", "70 %", "70"), ("s2", "12", ""), ("s2", "5.0", "5")]
    page = f"/admin/campaigns/{campaign.slug}/responses/preview"
    shown = await researcher.post(page, files={"file": ("batch.csv", content.encode())})
    assert 'data-head="In the file">70 %<' in shown.text


async def test_programs_preview_what_they_would_import(engine, campaign, api_client):  # noqa: F811  (the fixture)
    address = f"{API}/campaigns/{campaign.slug}/responses/preview"
    reply = await api_client.post(
        address, params=COLUMNS | ONE_TO_SEVEN, content=BATCH.encode(), headers={"content-type": "text/csv"}
    )
    assert reply.status_code == 200
    assert [facts(value) for value in reply.json()["values"]] == BECOMES
    refused = await api_client.post(address, content=BATCH.encode(), headers={"content-type": "text/csv"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "result_columns")
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_the_page_previews_a_file_and_keeps_it_for_the_import(engine, campaign, researcher):
    page = f"/admin/campaigns/{campaign.slug}"
    files = {"file": ("batch.csv", BATCH.encode())}
    shown = await researcher.post(f"{page}/responses/preview", data=COLUMNS | ONE_TO_SEVEN, files=files)
    assert shown.status_code == 200
    assert "What the first answers become" in shown.text
    assert "The import would store 2 tasks." in shown.text
    carried = shown.text.partition('name="carried" value="')[2].partition('"')[0]
    data = COLUMNS | ONE_TO_SEVEN | {"carried": carried, "carried_name": "batch.csv"}
    assert (await researcher.post(f"{page}/responses", data=data)).status_code == 303
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


async def test_a_refused_file_is_refused_in_its_preview_with_the_likely_columns(campaign, researcher):
    page = f"/admin/campaigns/{campaign.slug}"
    shown = await researcher.post(f"{page}/responses/preview", files={"file": ("batch.csv", BATCH.encode())})
    assert 'value="Answer.rating"' in shown.text
    assert "What the first answers become" not in shown.text


async def test_the_command_previews_with_dry_run(engine, campaign, database_url, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", database_url)
    file = tmp_path / "batch.csv"
    file.write_text(BATCH)
    words = ["campaign", "import-responses", campaign.slug, str(file), "--item-column", "Input.text"]
    words += ["--value-column", "Answer.rating", "--scale-from", "7", "--scale-to", "1", "--dry-run"]
    result = await asyncio.to_thread(lambda: CliRunner().invoke(easel, words))
    assert result.exit_code == 0, result.output
    assert "The import would store 2 tasks." in result.output
    assert [line.split()[-2:] for line in result.output.splitlines()[1:3]] == [["4", "50"], ["7", "0"]]
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_a_scale_with_as_many_values_as_classes_becomes_classes(engine):
    campaign = await create_launched_campaign(engine, ITEMS, items_per_hit=1, **FIVE_CLASSES)
    await import_answers(engine, campaign, BATCH.replace(",7", ",6"), **COLUMNS, scale_from="2", scale_to="6")
    assert await fetch_rows(engine, "SELECT values FROM responses ORDER BY seq") == [([2.0],), ([4.0],)]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"scale_from": "1", "scale_to": "5"}, "score_outside_file_scale"),
        ({"scale_from": "5", "scale_to": "8"}, "score_outside_file_scale"),
        ({"scale_from": "1"}, "scale_unusable"),
        ({"scale_from": "1", "scale_to": "one"}, "scale_unusable"),
        ({"scale_from": "3", "scale_to": "3"}, "scale_unusable"),
        ({"scale_from": "1e999", "scale_to": "1"}, "scale_unusable"),
        ({"scale_from": "1", "scale_to": "1e999"}, "scale_unusable"),
        ({"scale_from": "-1e308", "scale_to": "1e308"}, "scale_unusable"),
    ],
)
async def test_values_outside_the_scale_of_the_file_are_refused(engine, campaign, options, code):
    assert await refusal_code(engine, campaign, BATCH, **COLUMNS, **options) == code


async def test_a_value_between_two_classes_and_a_scale_without_ends_are_refused(engine):
    classes = await create_launched_campaign(engine, ITEMS, name="Classes", items_per_hit=1, **FIVE_CLASSES)
    assert (
        await refusal_code(engine, classes, BATCH.replace(",4", ",5"), **COLUMNS, **ONE_TO_SEVEN)
        == "score_between_classes"
    )
    unordered = {"design": "categories", "design_settings": {"labels": ["a", "b"]}}
    labels = await create_launched_campaign(engine, ITEMS, name="Labels", items_per_hit=1, **unordered)
    assert await refusal_code(engine, labels, BATCH, **COLUMNS, **ONE_TO_SEVEN) == "scale_not_possible"
