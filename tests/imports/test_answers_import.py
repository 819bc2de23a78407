"""Files of answers in Easel's own format: whatever the design, what the page could have sent, once, or nothing."""

import csv
import io
import json
import math
import random
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits import undo
from app.annotation.platforms.answer_files import read_platform_rows_and_notes
from app.annotation.platforms.cell_reading import ReadingNotes, ReadingOptions
from app.annotation.platforms.easel_results import is_export_refusing_unread_columns
from app.annotation.platforms.result_format import ResultRow
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.file_format import ValueFormat
from app.designs.registry import DESIGNS
from app.designs.slider import Slider
from app.errors import Conflict, Refusal
from app.exports.condition_cells import CONDITION_COLUMNS
from app.exports.registry import open_export_or_refuse
from app.exports.responses import (
    CRITERION_COLUMN,
    CRITERION_POSITION_COLUMN,
    LABEL_COLUMN,
    REMARK_TEXT_COLUMNS,
    RESPONSE_EXPORT_COLUMNS,
    SEGMENT_USE_COLUMNS,
    UNJUDGED_REASON_COLUMN,
    VERSION_COLUMN,
)
from app.imports import responses_import
from app.record.revisions import switch_revision_if_it_misses_decisions
from app.text.table_formats import ExportFormat
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import create_draft, create_launched_campaign, import_items, import_results, replay_is_clean
from tests.toys import register
from tests.toys.smiley import Smiley

HEADER = "hit,annotator,item,value\n"
TWO = HEADER + "h1,Ann,v0,70\nh1,Ann,v1,30\nh1,Ben,v3,0\nh1,Ben,v0,100\n"
POSTERIORS = (
    "SELECT number, state, score, variance, judgments FROM current_posteriors WHERE campaign_id = :id ORDER BY 1"
)
TABLES = ("responses", "hits", "assignments", "annotators")


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    register(monkeypatch.setitem)


async def text_of(engine: AsyncEngine, slug: str, what: str, format_: ExportFormat = "csv") -> str:
    return "".join([piece async for piece in (await open_export_or_refuse(engine, slug, what, format_)).chunks])


async def refused(engine, campaign, content, name="answers.csv"):
    with pytest.raises(Refusal) as problem:
        await import_results(engine, campaign, content, name)
    return problem.value


async def nothing_stored(engine):
    return [await fetch_value(engine, f"SELECT count(*) FROM {table}") for table in TABLES] == [0] * len(TABLES)


async def test_a_hit_of_several_rows_is_an_assignment_a_closed_hit_and_a_response(engine):
    campaign = await create_launched_campaign(engine)
    imported = await import_results(engine, campaign, TWO)
    assert (imported.responses, imported.items, imported.known, imported.without_worker) == (2, 3, 0, 0)
    assert await fetch_rows(
        engine,
        "SELECT r.items, r.values, r.source, r.received_at, h.items, h.closed_at, s.external_id, a.platform, "
        "a.worker_id FROM responses r JOIN hits h ON h.id = r.hit_id JOIN assignments s ON s.id = h.assignment_id "
        "JOIN annotators a ON a.id = r.annotator_id ORDER BY r.seq",
    ) == [
        ([0, 1], [70, 30], "import", NOW, [0, 1], NOW, "h1", "elsewhere", "Ann"),
        ([3, 0], [0, 100], "import", NOW, [3, 0], NOW, "h1", "elsewhere", "Ben"),
    ]
    assert await fetch_rows(
        engine, "SELECT number, state, judgments FROM current_posteriors WHERE judgments > 0 ORDER BY number"
    ) == [(0, [2.7, 1.3], 2), (1, [1.3, 1.7], 1), (3, [1.0, 2.0], 1)]
    assert await replay_is_clean(engine, campaign.slug)


async def test_rows_of_a_hit_may_stand_apart_and_in_any_order_if_they_have_positions(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(
        engine,
        campaign,
        "position;value;item;annotator;hit;submitted_at;issued_at\n2;30;v1;Ann;h1;2026-01-02T03:04:05Z;\n"
        "1;5;v2;Ann;h2;2026-01-03 00:00;\n"
        "1;70;v0;Ann;h1;2026-01-02T05:04:06+02:00;2026-01-02\n2;6;v0;Ann;h2;;\n",
    )
    moments = [datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)]
    assert await fetch_rows(engine, "SELECT items, values, received_at FROM responses ORDER BY seq") == [
        ([0, 1], [70, 30], moments[0]),
        ([2, 0], [5, 6], moments[1]),
    ]
    assert await fetch_value(engine, "SELECT issued_at FROM hits ORDER BY id LIMIT 1") == datetime(
        2026, 1, 2, tzinfo=UTC
    )


async def test_json_lines_have_a_row_an_item_or_an_object_a_hit(engine):
    campaign = await create_launched_campaign(engine)
    rows = [
        {"hit": 1, "annotator": "Ann", "items": ["v0", "v1"], "values": [70, 30.5]},
        {"hit": 2, "annotator": "Ann", "item": "v2", "value": 5, "position": None},
    ]
    await import_results(engine, campaign, "\n".join(map(json.dumps, rows)), "answers.jsonl")
    assert await fetch_rows(engine, "SELECT items, values FROM responses ORDER BY seq") == [
        ([0, 1], [70, 30.5]),
        ([2], [5]),
    ]


async def test_lists_that_do_not_fit_are_refused(engine, subtests):
    for lists, code in (
        ('"items": ["v0"], "values": [1, 2]', "lists_unequal"),
        ('"items": "v0", "values": [1]', "lists_unequal"),
        ('"items": [], "values": []', "lists_unequal"),
        ('"items": ["v0", "v1"], "value": 1', "lists_unequal"),
        ('"items": ["v0", "v1"], "values": [null, null]', "scores_missing"),
        ('"items": ["v0", "v1"], "values": [1, [2]]', "score_not_a_number"),
        ('"items": ["v0", "v0"], "values": [1, 2]', "item_repeated"),
        ('"items": ["v0"], "values": [1], "item": "v1"', "column_twice"),
    ):
        with subtests.test(lists=lists, code=code):
            campaign = await create_launched_campaign(engine)
            problem = await refused(engine, campaign, f'{{"hit": 1, "annotator": "Ann", {lists}}}', "answers.jsonl")
            assert (problem.code, problem.details["line"]) == (code, 1)
            assert await nothing_stored(engine)


async def test_one_wrong_row_and_nothing_is_imported_and_its_line_is_named(engine, subtests):
    for content, code, line, words in (
        ("annotator,item,value\nAnn,v0,1\n", "result_columns", None, "item_column=item, value_column=value"),
        ("hit,annotator,item\nh,Ann,v0\n", "result_columns", None, "No column looks right for value"),
        (HEADER, "file_empty", None, "no responses"),
        (HEADER.replace("value", "value,mood") + "h,Ann,v0,1,x\n", "column_unknown", 1, "mood"),
        (HEADER.replace("value", "value,rank") + "h,Ann,v0,1,1\n", "column_unknown", 1, "rank"),
        (HEADER.replace("value", "value,score") + "h,Ann,v0,1,1\n", "column_twice", 1, "value"),
        (HEADER + "h,Ann,v0,70\n,Ann,v1,30\n", "hit_missing", 3, "hit is empty"),
        (HEADER + "h,Ann,v0,70\nh,,v1,30\n", "annotator_missing", 3, "annotator is empty"),
        (HEADER + "h,Ann,v0,70\nh,Ann,,30\n", "item_missing", 3, "item is empty"),
        (HEADER + f"h,{'A' * 201},v0,70\n", "id_too_long", 2, "annotator has more than 200"),
        (HEADER + "h,Ann,v0,70\nh,Ann,v1,30\nh,Ann,v9,30\n", "item_unknown", 4, "v9"),
        (HEADER + "h,Ann,v0,70\ng,Ann,v0,70\nh,Ann,v0,70\n", "item_repeated", 4, "v0"),
        (HEADER + "h,Ann,v0,\nh,Ann,v1,NA\n", "scores_missing", 2, "no row"),
        (HEADER + "h,Ann,v0,70\nh,Ann,v1,high\n", "score_not_a_number", 3, "high"),
        (HEADER + "h,Ann,v0,70\nh,Ann,v1,100.5\n", "score_out_of_range", 3, "not between 0 and 100"),
        (HEADER + "".join(f"h,Ann,v{k},1\n" for k in range(11)), "hit_size", 2, "11 items with a score"),
        ("hit,annotator,item,value,position\nh,Ann,v0,1,0\n", "position_unusable", 2, "0"),
        ("hit,annotator,item,value,position\nh,Ann,v0,1,1\nh,Ann,v1,1,\n", "position_unusable", 2, "its own position"),
        ("hit,annotator,item,value,position\nh,Ann,v0,1,3\nh,Ann,v1,1,3\n", "position_unusable", 2, "its own position"),
        ("hit,annotator,item,value,submitted_at\nh,Ann,v0,1,noon\n", "time_unreadable", 2, "noon"),
        ("hit,annotator,item,value,submitted_at\nh,Ann,v0,1,0001-01-01T00:00+14:00\n", "time_unreadable", 2, "+14"),
        ("hit,annotator,item,value,submitted_at\nh,Ann,v0,1,0001-01-01T00:00:00\n", "time_unreadable", 2, "0001"),
        ("hit,annotator,item,value,not_applicable\nh,Ann,v0,1,true\n", "na_unknown", 2, "not_applicable"),
        ("hit,annotator,item,value,not_applicable\nh,Ann,v0,1,perhaps\n", "na_unknown", 2, "not_applicable"),
    ):
        with subtests.test(content=content, code=code, line=line, words=words):
            items = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(11) if k != 9 or "v10" in content)
            campaign = await create_launched_campaign(engine, items)
            problem = await refused(engine, campaign, content)
            assert (problem.code, problem.details.get("line")) == (code, line)
            assert words in problem.message
            assert problem.message.endswith("Nothing was imported.")
            assert await nothing_stored(engine)


async def test_a_column_that_comes_late_in_json_lines_is_refused_too(engine):
    row = '{"hit": 1, "annotator": "Ann", "item": "v0", "value": 5}\n'
    problem = await refused(
        engine, await create_launched_campaign(engine), row + row.replace("}", ', "mood": "x"}'), "a.jsonl"
    )
    assert (problem.code, problem.details["line"], problem.details["columns"]) == ("column_unknown", 2, ["mood"])


# Nothing counts twice


async def test_a_second_import_counts_nothing_twice(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, TWO)
    problem = await refused(engine, campaign, TWO)
    assert (problem.code, problem.details["line"]) == ("assignment_known", 2)
    grown = await import_results(engine, campaign, TWO + "h2,Ann,v0,7\nh2,Ann,v1,3\n")
    assert (grown.responses, grown.known) == (1, 2)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 6
    assert await replay_is_clean(engine, campaign.slug)


async def test_several_annotators_may_have_answered_the_same_hit_and_each_is_known(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, TWO)
    imported = await import_results(engine, campaign, TWO.replace("Ben", "Cas"))
    assert (imported.responses, imported.known) == (1, 1)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 3


@pytest.mark.parametrize("other", ["h1,Ben,v3,0\nh1,Ben,v0,99\n", "h1,Ben,v0,100\nh1,Ben,v3,0\n", "h1,Ben,v3,0\n"])
async def test_a_hit_that_is_there_with_another_answer_is_refused_with_its_line(engine, other):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, TWO)
    with pytest.raises(
        Conflict, match="Line 3: the task h1 of Ben is already in “Verbs”, with another answer"
    ) as problem:
        await import_results(engine, campaign, HEADER + "h7,Ann,v0,1\n" + other)
    assert (problem.value.code, problem.value.details["line"]) == ("assignment_known", 3)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


async def test_whoever_comes_from_elsewhere_under_the_same_id_is_somebody_else(engine):
    campaign = await create_launched_campaign(engine)
    mturk = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nh1,Ann,v0,v1,70,30\n"
    await import_results(engine, campaign, mturk)
    assert (await import_results(engine, campaign, TWO)).known == 0
    assert await fetch_rows(engine, "SELECT platform, worker_id FROM annotators ORDER BY platform, worker_id") == [
        ("elsewhere", "Ann"),
        ("elsewhere", "Ben"),
        ("mturk", "Ann"),
    ]
    rows = list(csv.DictReader(io.StringIO(await text_of(engine, campaign.slug, "assignments"))))
    assert [(row["platform"], row["assignment"]) for row in rows] == [
        ("mturk", "h1"),
        ("elsewhere", "h1"),
        ("elsewhere", "h1"),
    ]


# Exports


async def answered(engine: AsyncEngine, **settings: Any) -> Any:
    """A campaign in which three people worked, and one of Mechanical Turk who could not judge an item."""
    campaign = await create_launched_campaign(engine, judgments_per_item=9, items_per_hit=3, **settings)
    rng = random.Random(7)
    people = [await create_annotator(engine, campaign, name) for name in ("one", "two", "three")]
    for turn in range(9):
        hit = await try_to_lease_hit(engine, people[turn % 3])
        await submit_scores(engine, people[turn % 3], hit, scores=[float(rng.randrange(101)) for _ in hit.items])
    marked = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2,Answer.na1,Answer.na2\n"
    await import_results(engine, campaign, marked + "A1,W1,v0,v1,70,50,,on\nA2,W1,v2,v3,,50,on,on\n")
    return campaign


@pytest.mark.parametrize("law", ["easl", "ra", "trueskill", "easl-aware"])
@pytest.mark.parametrize("format_", ["csv", "jsonl"])
async def test_an_export_in_a_copy_of_the_campaign_gives_the_same_posteriors_to_the_bit(engine, law, format_):
    campaign = await answered(engine, update_law=law)
    copy = await create_launched_campaign(engine, name="Copy", judgments_per_item=9, items_per_hit=3, update_law=law)
    exported = await text_of(engine, campaign.slug, "responses", format_)
    imported = await import_results(engine, copy, exported, f"responses.{format_}")
    assert (imported.responses, imported.not_applicable, imported.without_score) == (10, 3, 1)
    assert await fetch_rows(engine, POSTERIORS, id=copy.id) == await fetch_rows(engine, POSTERIORS, id=campaign.id)
    assert await replay_is_clean(engine, copy.slug)
    again = await refused(engine, copy, exported, f"responses.{format_}")
    assert again.code == "assignment_known"
    columns = ("position", "item", "score", "rank", "received_at", "issued_at", "not_applicable")
    tables = [
        [
            [row[name] for name in columns]
            for row in csv.DictReader(io.StringIO(await text_of(engine, slug, "responses")))
        ]
        for slug in (campaign.slug, copy.slug)
    ]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
async def test_of_an_answer_that_was_changed_the_newer_one_is_read(engine, format_):
    campaign, copy = await create_launched_campaign(engine), await create_launched_campaign(engine, name="Copy")
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    told = await submit_scores(engine, me, hit, scores=[1.0] * len(hit.items))
    async with borrow_autocommit_driver(engine) as connection:
        for score in (50.0, 90.0):
            sent = Answer(dict.fromkeys(hit.items, score))
            told = await undo.replace_answer_and_return_receipt_or_refuse(
                connection, me, hit.id, told.seq, sent, now=NOW
            )
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    exported = await text_of(engine, campaign.slug, "responses", format_)
    assert len(exported.splitlines()) == (format_ == "csv") + 3 * len(hit.items)
    assert (await import_results(engine, copy, exported, f"responses.{format_}")).responses == 1
    assert await fetch_rows(engine, POSTERIORS, id=copy.id) == await fetch_rows(engine, POSTERIORS, id=campaign.id)
    assert await replay_is_clean(engine, copy.slug)
    for known in (campaign, copy):
        assert (await refused(engine, known, exported, f"responses.{format_}")).code == "assignment_known"


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
async def test_an_export_with_comments_flags_and_reasons_is_read(engine, format_):
    settings: dict[str, Any] = {"items_per_hit": 3, "cannot_be_judged": True, "comment_on": "HIT", "flag_on": "both"}
    campaign, copy = [await create_launched_campaign(engine, name=name, **settings) for name in ("First", "Second")]
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[10.0, 20.0, 30.0])
    exported = await text_of(engine, campaign.slug, "responses", format_)
    assert "hit_comment" in exported
    assert (await import_results(engine, copy, exported, f"responses.{format_}")).responses == 1
    assert await fetch_rows(engine, POSTERIORS, id=copy.id) == await fetch_rows(engine, POSTERIORS, id=campaign.id)


def test_every_column_of_an_export_is_known():
    optional = (
        *SEGMENT_USE_COLUMNS,
        CRITERION_COLUMN,
        CRITERION_POSITION_COLUMN,
        LABEL_COLUMN,
        UNJUDGED_REASON_COLUMN,
        *REMARK_TEXT_COLUMNS,
        VERSION_COLUMN,
        *CONDITION_COLUMNS,
    )
    assert is_export_refusing_unread_columns(1, (*RESPONSE_EXPORT_COLUMNS, *optional))


async def test_an_export_in_its_own_campaign_counts_nothing_twice(engine):
    campaign = await answered(engine)
    exported = await text_of(engine, campaign.slug, "responses")
    problem = await refused(engine, campaign, exported)
    assert problem.code == "assignment_known"
    assert "All rows of this file are already in" in problem.message
    head, first, *_ = exported.splitlines()
    changed = dict(zip(head.split(","), first.split(","), strict=True)) | {"score": "1.25"}
    other = await refused(engine, campaign, f"{head}\n{','.join(changed.values())}\n")
    assert "with another answer" in other.message


# Classes


MTURK = (
    "HITId,AssignmentId,WorkerId,AcceptTime,SubmitTime,Input.id1,Answer.range1,Answer.na1\nh1,A1,Ann,Sat Jan 03 "
    "12:04:05 PST 2026,Sat Jan 03 12:05:05 PST 2026,v0,70,\nh1,A2,Ben,Sat Jan 03 12:04:05 PST 2026,{},v0,70,\n"
)


async def test_an_answer_of_the_future_is_refused_with_its_line(engine, subtests):
    for content, column in (
        ("hit,annotator,item,value,{}\nh,Ann,v0,1,2026-01-04\nh,Ann,v1,1,2999-01-01T10:00Z\n", "submitted_at"),
        ("hit,annotator,item,value,{}\nh,Ann,v0,1,2026-01-04\nh,Ann,v1,1,2026-01-06T09:00:01Z\n", "issued_at"),
        ('{{"hit": "h", "annotator": "Ann", "items": ["v0"], "values": [1], "{}": 4102444800}}\n', "submitted_at"),
        (MTURK.format("Sat Jan 03 12:05:05 PST 2099"), "SubmitTime"),
    ):
        with subtests.test(content=content, column=column):
            campaign = await create_launched_campaign(engine)
            name = "answers.jsonl" if content.startswith("{{") else "answers.csv"
            problem = await refused(engine, campaign, content.format(column), name)
            expected = {"line": 3 if name == "answers.csv" else 1, "column": column}
            assert (problem.code, problem.details) == ("time_in_future", expected)
            assert "is in the future" in problem.message
            assert await nothing_stored(engine)


async def test_a_clock_of_another_machine_may_be_a_day_ahead(engine):
    campaign = await create_launched_campaign(engine)
    header = "hit,annotator,item,value,submitted_at\n"
    times = "h,Ann,v0,1,2026-01-06T09:00:00Z\nh,Ann,v1,1,2026-01-05\n"
    assert (await import_results(engine, campaign, header + times)).responses == 1


MOODS: dict[str, Any] = {"design": "smiley", "update_law": "smiles", "rule": "in_order", "items_per_hit": 3}


async def test_a_class_is_named_by_its_label_or_its_number(engine):
    campaign = await create_launched_campaign(engine, **MOODS)
    await import_results(engine, campaign, HEADER + "h,Ann,v0,happy\nh,Ann,v1,so so\nh,Ann,v2,0\nh,Ann,v3,2.0\n")
    assert await fetch_value(engine, "SELECT values FROM responses") == [2, 1, 0, 2]


@pytest.mark.parametrize(
    ("cell", "code"), [("angry", "class_unknown"), ("3", "score_out_of_range"), ("1.5", "score_out_of_range")]
)
async def test_what_is_no_class_is_refused_with_the_labels(engine, cell, code):
    campaign = await create_launched_campaign(engine, **MOODS)
    problem = await refused(engine, campaign, HEADER + f"h,Ann,v0,{cell}\nh,Ann,v1,1\n")
    assert (problem.code, problem.details["line"]) == (code, 2)
    assert "sad, so so, happy" in problem.message or code == "score_out_of_range"


async def test_where_labels_are_numbers_themselves_only_labels_name_classes(engine):
    campaign = await create_launched_campaign(engine, **MOODS, design_settings={"names": ["1", "2", "3"]})
    await import_results(engine, campaign, HEADER + "h,Ann,v0,1\nh,Ann,v1,3\n")
    assert await fetch_value(engine, "SELECT values FROM responses") == [0, 2]
    assert (await refused(engine, campaign, HEADER + "g,Ann,v0,0\ng,Ann,v1,1\n")).code == "class_unknown"
    exported = await text_of(engine, campaign.slug, "responses")
    copy = await create_launched_campaign(engine, name="Copy", **MOODS, design_settings={"names": ["1", "2", "3"]})
    await import_results(engine, copy, exported)
    assert await fetch_value(engine, "SELECT values FROM responses ORDER BY seq DESC LIMIT 1") == [0, 2]


@pytest.mark.parametrize(("label", "moods"), [("happy", True), ("so so", False)])
async def test_an_export_of_other_classes_is_refused(engine, label, moods):
    """Its numbers would be read as labels that nobody chose."""
    campaign = await create_launched_campaign(engine, **(MOODS if moods else {}))
    exported = f"seq,hit,annotator,item,score,label\n1,h,a,v0,1.0,{label}\n1,h,a,v1,0.0,sad\n"
    problem = await refused(engine, campaign, exported)
    assert (problem.code, problem.details["line"]) == ("class_unknown", 2)
    assert (
        f"called “{label}” in this file, but is {'called “so so” here' if moods else 'not a label in this campaign'}"
        in problem.message
    )


# Every design


SETTINGS: dict[str, dict[str, Any]] = {"smiley": MOODS, "baseline": {"design_settings": {"baseline": "v3"}}}


@pytest.mark.parametrize("name", [*DESIGNS, "smiley"])
async def test_the_example_of_every_design_can_be_imported(engine, name):
    campaign = await create_launched_campaign(engine, **{"design": name} | SETTINGS.get(name, {}))
    content = responses_import.example_response_csv_or_empty(campaign, [f"v{k}" for k in range(campaign.items_per_hit)])
    assert (await import_results(engine, campaign, content)).responses == 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_pair_has_two_items_and_their_places_are_those_of_an_order(engine):
    campaign = await create_launched_campaign(engine, design="pairwise", design_settings={"ties_allowed": False})
    assert (await refused(engine, campaign, HEADER + "h,Ann,v0,1\n")).message.startswith(
        "Line 2: this task has 1 item with a place, but should have 2."
    )
    assert (await refused(engine, campaign, HEADER + "h,Ann,v0,1\nh,Ann,v1,2\nh,Ann,v2,2\n")).code == "hit_size"
    tied = await refused(engine, campaign, HEADER + "g,Ann,v0,1\ng,Ann,v1,2\nh,Ann,v0,1\nh,Ann,v1,1\n")
    assert (tied.code, tied.details["line"]) == ("answer_impossible", 4)
    assert "What you entered is kept" not in tied.message
    assert (await refused(engine, campaign, HEADER + "h,Ann,v0,1\nh,Ann,v1,3\n")).code == "score_out_of_range"
    assert await nothing_stored(engine)


async def test_a_hit_without_the_baseline_is_refused(engine):
    campaign = await create_launched_campaign(engine, design="baseline", design_settings={"baseline": "v3"})
    problem = await refused(engine, campaign, HEADER + "g,Ann,v3,1\ng,Ann,v1,2\nh,Ann,v0,1\nh,Ann,v1,2\n")
    assert (problem.code, problem.details["line"]) == ("item_missing", 4)
    assert "“v3”" in problem.message
    assert await nothing_stored(engine)


@pytest.mark.parametrize("name", [*DESIGNS, "smiley"])
async def test_an_export_of_any_design_gives_the_same_posteriors_to_the_bit(engine, name):
    settings: dict[str, Any] = {"design": name, "judgments_per_item": 9} | SETTINGS.get(name, {})
    campaign, copy = [await create_launched_campaign(engine, name=title, **settings) for title in ("One", "Copy")]
    rng = random.Random(3)
    for turn in range(9):
        who = await create_annotator(engine, campaign, f"a{turn % 3}")
        hit = await try_to_lease_hit(engine, who)
        await submit_scores(
            engine, who, hit, scores=campaign.design.simulate_answer_values([rng.random() for _ in hit.items])
        )
    await import_results(engine, copy, await text_of(engine, campaign.slug, "responses"))
    assert await fetch_rows(engine, POSTERIORS, id=copy.id) == await fetch_rows(engine, POSTERIORS, id=campaign.id)
    assert await replay_is_clean(engine, copy.slug)


# Whatever somebody sends

CELLS = st.sampled_from(["", "a", "b", "1", "2", "2.0", "-0", "1e9", "nan", "true", "happy", "2026-01-01", "é" * 201])
COLUMNS = ["hit", "annotator", "item", "value", "position", "issued_at", "not_applicable", "seq", "rank", "odd"]


@given(
    st.lists(st.sampled_from(COLUMNS), max_size=4, unique=True),
    st.lists(st.lists(CELLS, min_size=8, max_size=8), max_size=5),
    st.sampled_from([Slider(), Smiley()]),
)
def test_whatever_a_file_holds_it_is_refused_in_words_or_read_as_hits_that_can_be(more, rows, design):
    columns = [*COLUMNS[:4], *[name for name in more if name not in COLUMNS[:4]]]
    file = io.StringIO()
    csv.writer(file).writerows([columns, *(row[: len(columns)] for row in rows)])
    sent = io.BytesIO(file.getvalue().encode())
    hits: list[ResultRow] = []
    notes = ReadingNotes()
    with suppress(Refusal):
        _, hits, notes = read_platform_rows_and_notes(
            sent, "a.csv", ValueFormat(design), now=NOW, max_mb=1, options=ReadingOptions()
        )
    if not hits:
        return
    assert sum(len(hit.items) for hit in hits) + notes.missing == len(rows)
    assert len({(hit.worker_id, hit.assignment_id) for hit in hits}) == len(hits)
    for hit in hits:
        assert len(set(hit.items)) == len(hit.items) == len(hit.scores)
        given = [score for score in hit.scores if score is not None]
        if "seq" in columns:  # an export has no value beside an item that was marked
            given = [score for score in given if not math.isnan(score)]
        assert all(design.stored_value_or_none(score) == score for score in given)


async def test_labels_and_ids_that_look_like_formulas_come_back_from_an_export_for_spreadsheets(engine):
    labels = {"labels": ["=same", "-other", "'quoted"]}
    campaign = await create_launched_campaign(
        engine, "id,text\n=1+1,a\n@home,b\n", design="categories", design_settings=labels
    )
    await import_results(engine, campaign, HEADER + "h1,Ann,=1+1,=same\nh2,Ann,@home,-other\nh3,Ben,@home,'quoted\n")
    file = await open_export_or_refuse(engine, campaign.slug, "responses", "csv", spreadsheet=True)
    content = "".join([piece async for piece in file.chunks])
    assert "'=same" in content
    twin = await create_launched_campaign(
        engine, "id,text\n=1+1,a\n@home,b\n", design="categories", design_settings=labels, name="Twin"
    )
    assert (await import_results(engine, twin, content)).responses == 3


EXCEL_IDS = (
    *("001", "1e5", "2024-01-05", "3/4", "MARCH1", "0x1F", "+49 30", "-5", "00123456789012345678", "1E-2", "=2+3"),
    *("@home", "TRUE", "1.50", "'90s", "plain"),
)


def opened_and_saved(content: str) -> str:
    """Return a CSV file as a spreadsheet program changes it: numbers, truth values and dates lose their writing."""
    rows = list(csv.reader(io.StringIO(content.removeprefix("\ufeff"))))

    def saved(cell: str) -> str:
        if cell.lower() in {"true", "false"}:
            return cell.upper()
        if cell in {"3/4", "MARCH1", "2024-01-05"}:
            return "04.03.2026"
        if cell.startswith(("=", "@", "+")):
            return "#NAME?"
        with suppress(ValueError):
            return f"{float(cell):.15g}"
        return cell

    file = io.StringIO()
    csv.writer(file).writerows([saved(cell) for cell in row] for row in rows)
    return file.getvalue()


async def test_ids_pass_through_a_spreadsheet_program_and_back(engine):
    items = "id,text\n" + "".join(f'"{name}",a\n' for name in EXCEL_IDS)
    campaign, twin = [await create_launched_campaign(engine, items, name=name) for name in ("First", "Twin")]
    answers = HEADER + "".join(f'h{k},Ann,"{name}",{k}\n' for k, name in enumerate(EXCEL_IDS))
    await import_results(engine, campaign, answers)
    sent = await open_export_or_refuse(engine, campaign.slug, "responses", spreadsheet=True)
    twice = opened_and_saved(opened_and_saved("".join([piece async for piece in sent.chunks])))
    assert (await import_results(engine, twin, twice)).responses == len(EXCEL_IDS)
    own = "SELECT items, values FROM responses WHERE campaign_id = :id ORDER BY seq"
    assert await fetch_rows(engine, own, id=twin.id) == await fetch_rows(engine, own, id=campaign.id)


async def test_an_export_of_items_for_spreadsheets_gives_the_same_items_again(engine):
    items = "id,text,code\n" + "".join(f'"{name}","{name}",007\n' for name in EXCEL_IDS)
    campaign = await create_launched_campaign(engine, items)
    sent = await open_export_or_refuse(engine, campaign.slug, "items", spreadsheet=True)
    content = opened_and_saved("".join([piece async for piece in sent.chunks]))
    again = await create_draft(engine, name="Again")
    await import_items(engine, again, content, shown="text")
    own = "SELECT external_id, shown, fields ->> 'code' FROM items WHERE campaign_id = :id ORDER BY number"
    assert await fetch_rows(engine, own, id=again.id) == await fetch_rows(engine, own, id=campaign.id)


async def test_apostrophes_of_other_tables_of_items_stay(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\n'001,'007\n")
    assert await fetch_rows(engine, "SELECT external_id, shown FROM items") == [("'001", "'007")]


async def test_ids_from_a_spreadsheet_export_name_items_in_a_table_of_ones_own(engine):
    campaign = await create_launched_campaign(engine, "id,text\n001,a\n'007,b\n007,c\n")
    await import_results(engine, campaign, HEADER + "h1,Ann,'001,70\nh1,Ann,'007,30\n")
    assert await fetch_rows(engine, "SELECT items FROM responses") == [([0, 1],)]
    refusal = await refused(engine, campaign, HEADER + "h2,Ann,'001,70\nh2,Ann,001,30\n")
    assert (refusal.code, refusal.details["line"]) == ("item_repeated", 2)


async def test_a_result_file_of_points_is_refused_where_no_points_are_given(engine, subtests):
    for design in [name for name, one in DESIGNS.items() if one.value_kind != "points"]:
        with subtests.test(design=design):
            campaign = await create_running_campaign(
                engine, items=4, design=design, design_settings={"baseline": "v0"} if design == "baseline" else {}
            )
            mturk = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nh1,Ann,v0,v1,2,1\n"
            assert (await refused(engine, campaign, mturk)).code == "values_are_no_points"
            assert await nothing_stored(engine)
