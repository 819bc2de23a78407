"""Comments, flags and telemetry of an export of responses are kept by the campaign that imports it."""

import json
from datetime import timedelta
from typing import Any

import pytest

from app.annotation.hits import submission
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, AnswerByCriterion, Playback, Touch
from app.designs.remarks import Remark
from app.errors import Invalid
from app.privacy.retention import erase_outdated_data
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    store_settings,
    try_to_lease_hit,
)
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, import_results, replay_is_clean
from tests.exports.test_export import written
from tests.imports.test_export_round_trip import exported_cells
from tests.privacy.people import erase_found

SETTINGS: dict[str, Any] = {
    "comment_on": "both",
    "flag_on": "both",
    "flag_reasons": ["broken", "rude"],
    "items": 6,
    "items_per_hit": 3,
}
TOLD = "SELECT extra, telemetry FROM responses WHERE campaign_id = :id ORDER BY seq"
EXPORT = "seq,hit,annotator,item,value,flag,comment,hit_flag,hit_comment,changes,input_kind,seconds_heard,viewport\n"
COMMENT = "=1+1 is “2”,\nor not"


@pytest.fixture
def engine(app):
    return app.state.database


async def answer(engine, campaign, name, build_answer):
    assignment = await create_annotator(engine, campaign, name)
    hit = await try_to_lease_hit(engine, assignment)
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(
            connection, assignment, hit.id, build_answer(hit.items), now=NOW
        )


def answer_with_all_details(items):
    first, second, third = items
    return Answer(
        {first: 10.0, second: 20.0, third: 30.0},
        {first: Touch(1200, 3, "mouse"), third: Touch(changes=0)},
        "1280x720",
        "page",
        remarks={str(first): Remark(COMMENT, "rude"), str(third): Remark("+3"), "hit": Remark("All", "broken")},
        playbacks={second: Playback(2, 3.25, 1)},
    )


async def create_two_campaigns(engine, **settings):
    return [await create_running_campaign(engine, name=name, **SETTINGS | settings) for name in ("First", "Second")]


@pytest.mark.parametrize(("format_", "file"), [("csv", "a.csv"), ("jsonl", "a.jsonl")])
@pytest.mark.parametrize("spreadsheet", [False, True])
async def test_they_are_kept_with_the_answer_and_exported_again(engine, format_, file, spreadsheet):
    first, second = await create_two_campaigns(engine)
    await answer(engine, first, "ada", answer_with_all_details)
    await answer(engine, first, "ben", lambda items: Answer(dict.fromkeys(items, 40.0)))
    await execute_sql(engine, "UPDATE campaigns SET content = 'audio'")  # whose exports have plays
    content = await written(engine, first.slug, "responses", format_, spreadsheet=spreadsheet)
    receipt = await import_results(engine, second, content, file)
    assert receipt.remarks == 5
    stored = await fetch_rows(engine, TOLD, id=second.id)
    assert stored == await fetch_rows(engine, TOLD, id=first.id)
    assert stored[1] == (None, None)
    assert await exported_cells(engine, second) == await exported_cells(engine, first)
    assert await replay_is_clean(engine, second.slug)


@pytest.mark.parametrize("criteria_with_telemetry", [("fluent", "true"), ("fluent",), ("true",)])
async def test_telemetry_by_each_criterion_is_kept(engine, criteria_with_telemetry):
    criteria = [{"name": name, "question": "How?"} for name in ("fluent", "true")]
    first, second = await create_two_campaigns(engine, criteria=criteria)

    def by_criterion(items):
        return AnswerByCriterion(
            {
                name: Answer(
                    dict.fromkeys(items, score),
                    {items[0]: Touch(changes=k)} if name in criteria_with_telemetry else {},
                    "9x9" if len(criteria_with_telemetry) == len(criteria) else None,
                    "page",
                )
                for k, (name, score) in enumerate((("fluent", 10.0), ("true", 90.0)))
            }
        )

    await answer(engine, first, "ada", by_criterion)
    await import_results(engine, second, await written(engine, first.slug, "responses", "csv"), "a.csv")
    stored = await fetch_rows(engine, TOLD, id=second.id)
    assert stored == await fetch_rows(engine, TOLD, id=first.id)
    assert stored[0][1]


async def test_telemetry_of_one_criterion_alone_is_kept(engine):
    criteria = [{"name": name, "question": "How?"} for name in ("fluent", "true")]
    first, second = await create_two_campaigns(engine, criteria=criteria)

    def by_criterion(items):
        touches = {items[0]: Touch(changes=2)}
        return AnswerByCriterion(
            {
                "fluent": Answer(dict.fromkeys(items, 10.0), {}, None, "page"),
                "true": Answer(dict.fromkeys(items, 90.0), touches, None, "page"),
            }
        )

    await answer(engine, first, "ada", by_criterion)
    await import_results(engine, second, await written(engine, first.slug, "responses", "csv"), "a.csv")
    stored = await fetch_rows(engine, TOLD, id=second.id)
    assert stored == await fetch_rows(engine, TOLD, id=first.id)
    assert stored[0][1] is not None


async def test_a_flag_without_a_reason_is_kept_from_json_lines(engine):
    first, second = await create_two_campaigns(engine, flag_reasons=[])
    await answer(
        engine,
        first,
        "ada",
        lambda items: Answer(dict.fromkeys(items, 40.0), remarks={str(items[0]): Remark(flag="")}),
    )
    await import_results(engine, second, await written(engine, first.slug, "responses", "jsonl"), "a.jsonl")
    stored = await fetch_rows(engine, TOLD, id=second.id)
    assert stored == await fetch_rows(engine, TOLD, id=first.id)
    assert '"flag": ""' in json.dumps(stored[0][0])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (f",{'x' * 501},,,,,,", "the comment “x+…” is not a text of at most 500 characters"),
        (f"{'x' * 81},,,,,,,", "the flag “x+…” is not a text of at most 80 characters"),
        (",,,,many,,,", "changes “many” is not a whole number"),
        (",,,,3.5,,,", "changes “3.5” is not a whole number"),
        (",,,,,foot,,", "input_kind “foot” is not one of"),
        (",,,,,,long,", "seconds_heard “long” is not a number"),
        (",,,,,,-1,", "seconds_heard “-1” is not a number"),
        (f",,,,,,,{'9' * 41}", "the viewport “9+” is not a text of at most 40 characters"),
    ],
)
async def test_what_no_export_has_is_refused_with_its_line(engine, cells, message):
    campaign = await create_running_campaign(engine, **SETTINGS)
    table = f"{EXPORT}1,h,a,v0,5,,,,,,,,\n1,g,a,v1,5,{cells}\n"
    with pytest.raises(Invalid, match=f"Line 3: .*{message}") as refusal:
        await import_results(engine, campaign, table, "a.csv")
    assert refusal.value.code == "detail_unusable"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_counts_may_have_a_decimal_point_as_programs_write_columns_with_empty_cells(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    table = f"{EXPORT}1,h,a,v0,5,,,,,3.0,,,\n1,h,a,v1,5,,,,,,,,\n"
    await import_results(engine, campaign, table, "a.csv")
    assert await fetch_value(engine, "SELECT telemetry FROM responses") == {"changes": [3, None]}


async def test_rows_of_a_hit_that_differ_in_the_comment_on_it_are_refused(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    table = f"{EXPORT}1,h,a,v0,5,,,,All,,,,\n1,h,a,v1,5,,,,None,,,,\n"
    with pytest.raises(Invalid, match="the rows of this HIT differ in hit_comment") as refusal:
        await import_results(engine, campaign, table, "a.csv")
    assert refusal.value.code == "place_differs"


async def test_invisible_characters_of_a_comment_are_removed(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    row = {"seq": 1, "hit": "h", "annotator": "a", "item": "v0", "value": 5, "comment": "a\u0007b"}
    await import_results(engine, campaign, json.dumps(row) + "\n", "a.jsonl")
    assert await fetch_value(engine, "SELECT extra FROM responses") == {"remarks": {"0": {"comment": "ab"}}}


async def test_remarks_on_tasks_without_any_score_are_not_counted_as_kept(engine):
    campaign = await create_running_campaign(engine, **SETTINGS)
    head, mark = EXPORT.replace("value,", "value,not_applicable,"), ",Noise,,,,,,"
    table = f"{head}1,h,a,v0,,true,{mark}\n1,h,a,v1,,true,{mark}\n2,g,a,v0,5,false,{mark}\n"
    receipt = await import_results(engine, campaign, table, "a.csv")
    assert (receipt.without_score, receipt.remarks) == (1, 1)
    stored = await fetch_value(engine, "SELECT jsonb_agg(extra) FROM responses")
    assert stored == [{"remarks": {"0": {"comment": "Noise"}}}]


async def test_the_page_and_programs_say_how_many_remarks_are_kept(engine, researcher, api_client):  # noqa: F811
    first, second = await create_two_campaigns(engine)
    await answer(engine, first, "ada", answer_with_all_details)
    content = (await written(engine, first.slug, "responses", "csv")).encode()
    files = {"file": ("a.csv", content)}
    shown = await researcher.post(f"/admin/campaigns/{second.slug}/responses/preview", files=files)
    assert "Comments and flags kept: 5." in shown.text
    sent = await api_client.post(f"{API}/campaigns/{second.slug}/responses", files=files)
    assert sent.json()["remarks"] == 5


async def test_erasure_and_retention_reach_imported_remarks(engine):
    first, second = await create_two_campaigns(engine)
    await answer(engine, first, "ada", answer_with_all_details)
    await answer(engine, first, "ben", answer_with_all_details)
    await import_results(engine, second, await written(engine, first.slug, "responses", "jsonl"), "a.jsonl")
    worker = await fetch_value(engine, "SELECT min(worker_id) FROM annotators WHERE campaign_id = :id", id=second.id)
    await erase_found(engine, second, worker, "anonymise", now=NOW)
    has_comments = "SELECT count(*) FROM responses WHERE campaign_id = :id AND CAST(extra AS text) LIKE '%comment%'"
    assert await fetch_value(engine, has_comments, id=second.id) == 1
    await apply_action(engine, second, "finish")
    await store_settings(engine, free_text_days=1, telemetry_days=1)
    await execute_sql(engine, "UPDATE campaigns SET finished_at = :now WHERE finished_at IS NOT NULL", now=NOW)
    await erase_outdated_data(engine, now=NOW + timedelta(days=2))
    assert await fetch_value(engine, has_comments, id=second.id) == 0
    told = "SELECT count(*) FROM responses WHERE campaign_id = :id AND telemetry IS NOT NULL"
    assert await fetch_value(engine, told, id=second.id) == 0
