"""Answers from files of other tools and countries: mapped, read by what the whole file tells, and told in full."""

import io
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.annotation.platforms.answer_files import read_platform_rows_and_notes
from app.annotation.platforms.time_parsing import DateOrderUnknownError, parse_file_time_or_none
from app.designs.file_format import ValueFormat
from app.designs.slider import Slider
from app.errors import Refusal
from app.imports import responses_import
from app.imports.answer_options import AnswerFileOptions
from app.imports.response_receipt import response_receipt_sentences
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.campaigns.drafts import create_launched_campaign, replay_is_clean

ITEMS = "id,text\ns1,Der Hund schläft.\ns2,Es regnet.\ns3,Ein schöner Tag.\n"
HEADER = "hit,annotator,item,value\n"
MTURK = "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,"
TIMES = "Tue Apr 10 12:04:05 PDT 2018,Tue Apr 10 12:05:05 PDT 2018,"
STORED = (
    "SELECT a.platform, a.worker_id, ARRAY(SELECT external_id FROM unnest(r.items) WITH ORDINALITY AS u (n, k) JOIN "
    "items i ON i.campaign_id = r.campaign_id AND i.number = u.n ORDER BY k), r.values FROM responses r JOIN "
    "annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id ORDER BY r.seq"
)
LATER = NOW + timedelta(days=365)  # than all times in these files
RECEIVED = "SELECT received_at FROM responses ORDER BY seq"
SCALE = {"design": "ordinal", "design_settings": {"labels": ["1", "2", "3", "4", "5"]}}


async def imported(engine, campaign, content, name="answers.csv", **options):
    reading = AnswerFileOptions.model_validate(options).reading_options
    file = io.BytesIO(content.encode())
    return await responses_import.import_responses_of_file_and_return_receipt(
        engine, campaign.slug, file, name, now=LATER, max_mb=1, options=reading
    )


async def refused(engine, campaign, content, name="answers.csv", **options):
    with pytest.raises(Refusal) as problem:
        await imported(engine, campaign, content, name, **options)
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0
    return problem.value


# Result files of Mechanical Turk


GENERIC = (
    MTURK
    + "Input.text,Answer.rating,Answer.comment\n"
    + "".join(
        f"H1,AS{k},W{k},Submitted,{TIMES}{text},{rating},nice\n"
        for k, (text, rating) in enumerate([("Es regnet.", 4), ("Ein schöner Tag.", 2)])
    )
)


async def test_a_result_file_of_any_template_is_refused_with_a_proposal_of_its_columns(engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    refusal = await refused(engine, campaign, GENERIC)
    assert refusal.code == "result_columns"
    assert refusal.details["proposal"] == {
        "item_column": "Input.text",
        "value_column": "Answer.rating",
        "annotator_column": "WorkerId",
        "hit_column": "AssignmentId",
        "issued_at_column": "AcceptTime",
        "submitted_at_column": "SubmitTime",
    }
    assert "item_column=Input.text, value_column=Answer.rating" in refusal.message


async def test_with_its_columns_named_it_is_imported_items_found_by_their_text(engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    done = await imported(engine, campaign, GENERIC, item_column="Input.text", value_column="Answer.rating")
    assert await fetch_rows(engine, STORED) == [("mturk", "W0", ["s2"], [3.0]), ("mturk", "W1", ["s3"], [1.0])]
    assert (await fetch_rows(engine, RECEIVED))[0] == (datetime(2018, 4, 10, 19, 5, 5, tzinfo=UTC),)
    assert (done.responses, done.by_text) == (2, 2)
    told = response_receipt_sentences(done)
    assert "Items found by their text: 2." in told
    assert any(words.startswith("Columns read: item from Input.text, value from Answer.rating") for words in told)
    assert any("Answer.comment" in words for words in told if words.startswith("Columns skipped:"))
    assert await replay_is_clean(engine, campaign.slug)
    with pytest.raises(Refusal, match="already"):
        await imported(engine, campaign, GENERIC, item_column="Input.text", value_column="Answer.rating")


async def test_a_text_that_two_items_have_names_neither(engine):
    campaign = await create_launched_campaign(engine, ITEMS + "s4,Es regnet.\n", **SCALE)
    refusal = await refused(engine, campaign, GENERIC, item_column="Input.text", value_column="Answer.rating")
    assert (refusal.code, refusal.details["line"]) == ("item_ambiguous", 2)


async def test_numbered_columns_of_any_name_are_one_hit_of_several_items(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    content = (
        MTURK
        + "Input.doc1,Input.doc2,Answer.q1,Answer.q2\n"
        + f"H1,AS1,W1,Approved,{TIMES}s1,s3,20,80\nH1,AS2,W2,Approved,{TIMES}s2,,35,\n"
    )
    proposal = (await refused(engine, campaign, content)).details["proposal"]
    assert (proposal["item_column"], proposal["value_column"]) == ("Input.doc*", "Answer.q*")
    await imported(engine, campaign, content, **proposal)
    assert await fetch_rows(engine, STORED) == [
        ("mturk", "W1", ["s1", "s3"], [20.0, 80.0]),
        ("mturk", "W2", ["s2"], [35.0]),
    ]


async def test_answers_of_crowd_elements_are_read_like_columns(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    answers = json.dumps([{"range1": 20, "range2": 80}]).replace('"', '""')
    content = MTURK + f'Input.id1,Input.id2,Answer.taskAnswers\nH1,AS1,W1,Submitted,{TIMES}s1,s2,"{answers}"\n'
    await imported(engine, campaign, content)
    assert await fetch_rows(engine, STORED) == [("mturk", "W1", ["s1", "s2"], [20.0, 80.0])]


@pytest.mark.parametrize(
    "answer", [{"mood": {"label": "good"}}, {"mood": {"bad": False, "good": True}}, {"mood": "good"}]
)
async def test_a_choice_among_crowd_elements_is_its_label(engine, answer):
    labels = {"design": "categories", "design_settings": {"labels": ["bad", "good"]}}
    campaign = await create_launched_campaign(engine, ITEMS, **labels)
    answers = json.dumps([answer]).replace('"', '""')
    content = MTURK + f'Input.id,Answer.taskAnswers\nH1,AS1,W1,Submitted,{TIMES}s1,"{answers}"\n'
    await imported(engine, campaign, content, item_column="Input.id", value_column="Answer.mood")
    assert await fetch_rows(engine, STORED) == [("mturk", "W1", ["s1"], [1.0])]


async def test_a_group_of_radio_buttons_in_columns_is_one_answer(engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    content = (
        MTURK + "Input.id,Answer.r.1,Answer.r.2,Answer.r.3\n" + f"H1,AS1,W1,Submitted,{TIMES}s1,false,true,false\n"
    )
    await imported(engine, campaign, content, item_column="Input.id", value_column="Answer.r")
    assert await fetch_rows(engine, STORED) == [("mturk", "W1", ["s1"], [1.0])]


EASL = MTURK + "Input.id1,Input.id2,Answer.range1,Answer.range2\n"
TWO_RESULTS = EASL + f"H1,AS1,W1,Approved,{TIMES}s1,s2,20,80\nH1,AS2,W2,Rejected,{TIMES}s1,s2,0,0\n"


async def test_rejected_results_are_left_out_and_the_receipt_says_how_many(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    done = await imported(engine, campaign, TWO_RESULTS)
    assert (done.responses, done.rejected) == (1, 1)
    assert "Tasks left out because they were rejected, cancelled or ignored: 1." in response_receipt_sentences(done)


async def test_rejected_results_count_if_that_is_said(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    done = await imported(engine, campaign, TWO_RESULTS, rejected="count")
    assert (done.responses, done.rejected) == (2, 0)


async def test_a_file_of_rejected_results_alone_is_refused(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    refusal = await refused(engine, campaign, TWO_RESULTS.replace("Approved", "Rejected"))
    assert refusal.code == "all_rejected"


async def test_an_assignment_that_one_worker_returned_and_another_took_is_two_answers(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    one, two = [EASL + f"H1,AS1,{who},Submitted,,,s1,s2,{score},80\n" for who, score in (("W1", 20), ("W2", 30))]
    both = one + two.removeprefix(EASL)
    assert (await imported(engine, campaign, both)).responses == 2
    with pytest.raises(Refusal, match="already"):
        await imported(engine, campaign, both)
    later = EASL + "H1,AS1,W3,Submitted,,,s1,s2,50,50\n"
    assert (await imported(engine, campaign, both + later.removeprefix(EASL))).known == 2
    assert await replay_is_clean(engine, campaign.slug)


async def test_the_same_worker_has_an_assignment_once(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    line = "H1,AS1,W1,Submitted,,,s1,s2,20,80\n"
    refusal = await refused(engine, campaign, EASL + line + line)
    assert (refusal.code, refusal.details["line"]) == ("assignment_twice", 3)


# Other tools

TASK = {
    "id": 7,
    "data": {"text": "Es regnet."},
    "annotations": [
        {"id": 1, "completed_by": 3, "created_at": "2026-01-31T15:04:05Z", "result": [
            {"from_name": "quality", "to_name": "text", "type": "rating", "value": {"rating": 4}}]},
        {"id": 2, "completed_by": {"id": 4, "email": "b@lab.org"}, "created_at": "2026-01-31T15:05:05Z", "result": [
            {"from_name": "quality", "to_name": "text", "type": "rating", "value": {"rating": 2}}]},
        {"id": 5, "completed_by": 9, "was_cancelled": True, "result": []},
    ],
}  # fmt: skip


async def test_an_export_of_label_studio_has_an_answer_for_each_annotation(engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    content = json.dumps([TASK], indent=1)
    refusal = await refused(engine, campaign, content, "export.json")
    assert refusal.details["proposal"]["annotator_column"] == "annotator"
    done = await imported(engine, campaign, content, "export.json", item_column="text", value_column="quality")
    assert await fetch_rows(engine, STORED) == [
        ("elsewhere", "3", ["s2"], [3.0]),
        ("elsewhere", "b@lab.org", ["s2"], [1.0]),
    ]
    assert (done.rejected, done.by_text) == (1, 1)


async def test_several_choices_for_one_answer_are_refused(engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    annotation = {"id": 1, "completed_by": 3, "result": [
        {"from_name": "q", "type": "choices", "value": {"choices": ["1", "2"]}}]}  # fmt: skip
    content = json.dumps([{"id": 7, "data": {"text": "Es regnet."}, "annotations": [annotation]}])
    refusal = await refused(engine, campaign, content, "export.json", item_column="text", value_column="q")
    assert refusal.code == "answer_several"


def prodigy(text, accept, answer="accept"):
    options = [{"id": 1, "text": "low"}, {"id": 2, "text": "high"}]
    more = {"_input_hash": -1, "_task_hash": len(text), "_annotator_id": "anna", "_timestamp": 1_700_000_000}
    return json.dumps({"text": text, "options": options, "accept": accept, "answer": answer} | more) + "\n"


@pytest.mark.parametrize(("column", "labels"), [("accept_text", ["low", "high"]), ("accept", ["1", "2"])])
async def test_choices_of_prodigy_are_read_by_label_or_number(engine, column, labels):
    campaign = await create_launched_campaign(engine, ITEMS, design="categories", design_settings={"labels": labels})
    content = prodigy("Es regnet.", [2]) + prodigy("Der Hund schläft.", [1]) + prodigy("Ein schöner Tag.", [], "ignore")
    refusal = await refused(engine, campaign, content, "a.jsonl")
    assert refusal.details["proposal"]["value_column"] == "accept_text"
    done = await imported(engine, campaign, content, "a.jsonl", item_column="text", value_column=column)
    assert await fetch_rows(engine, STORED) == [
        ("elsewhere", "anna", ["s2"], [1.0]),
        ("elsewhere", "anna", ["s1"], [0.0]),
    ]
    assert await fetch_rows(engine, RECEIVED) == [(datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),)] * 2
    assert done.rejected == 1


CHOICES = "judge,candidate_chosen,candidate_not_chosen,time_taken\nAnn,s2,s1,12.5\nBen,s1,s2,7\nAnn,s3,s2,3\n"


async def test_choices_of_no_more_marking_are_comparisons(engine):
    campaign = await create_launched_campaign(engine, ITEMS, design="pairwise", items_per_hit=2)
    done = await imported(engine, campaign, CHOICES)
    assert await fetch_rows(engine, STORED) == [
        ("elsewhere", "Ann", ["s1", "s2"], [2.0, 1.0]),
        ("elsewhere", "Ben", ["s1", "s2"], [1.0, 2.0]),
        ("elsewhere", "Ann", ["s2", "s3"], [2.0, 1.0]),
    ]
    assert done.responses == 3
    assert await replay_is_clean(engine, campaign.slug)
    with pytest.raises(Refusal) as problem:
        await imported(engine, campaign, CHOICES)
    assert problem.value.code == "assignment_known"


async def test_choices_count_once_although_a_later_file_has_them_on_other_lines(engine):
    campaign = await create_launched_campaign(engine, ITEMS, design="pairwise", items_per_hit=2)
    header = "Judge,Candidate Chosen,Candidate Not Chosen,Time Taken\n"
    assert (await imported(engine, campaign, f"{header}Ann,s1,s2,5\nAnn,s1,s2,5\nAnn,s2,s3,6\n")).responses == 3
    done = await imported(engine, campaign, f"{header}Ben,s1,s2,9\nAnn,s2,s3,6\nAnn,s1,s2,5\nAnn,s1,s2,5\n")
    assert (done.responses, done.known) == (1, 3)
    assert len(await fetch_rows(engine, STORED)) == 4


async def test_choices_are_refused_where_annotators_do_not_compare(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    assert (await refused(engine, campaign, CHOICES)).code == "choices_not_imported"


async def test_a_choice_without_a_candidate_or_judge_is_refused_with_its_line(engine):
    campaign = await create_launched_campaign(engine, ITEMS, design="pairwise", items_per_hit=2)
    header = "Judge,Candidate_Chosen,Candidate_Not_Chosen\n"
    for row, code in (("Ann,s1,", "item_missing"), (",s1,s2", "annotator_missing")):
        refusal = await refused(engine, campaign, f"{header}{row}\n")
        assert refusal.code == code
        assert refusal.details["line"] == 2


async def test_scores_of_appraise_without_a_header_are_read_by_system_and_segment(engine):
    campaign = await create_campaign_of_systems(engine)
    ((system, segment),) = await fetch_rows(
        engine, "SELECT i.external_id, s.external_id FROM items i, segments s WHERE i.number = 0 AND s.number = 0"
    )
    rows = [("TGT", 78), ("BAD", 12)]
    content = "".join(
        f"ann01,{system},{segment},{kind},deu,eng,{score},doc1,False,1700000000.1,1700000009.2\n"
        for kind, score in rows
    )
    done = await imported(
        engine, campaign, content, item_column="system", value_column="score", segment_column="segment"
    )
    assert await fetch_rows(engine, STORED) == [("elsewhere", "ann01", [system], [78.0])]
    assert done.rejected == 1
    assert (await fetch_rows(engine, RECEIVED))[0][0].year == 2023


async def test_any_table_is_read_by_the_columns_that_are_named(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    content = "Rater;Satz;Punkte\nAnn;s1;35,5\nBen;s1;80\nAnn;s2;70\n"
    refusal = await refused(engine, campaign, content)
    assert "No column looks right for item, value" in refusal.message
    await imported(engine, campaign, content, item_column="Satz", value_column="Punkte")
    assert await fetch_rows(engine, STORED) == [
        ("elsewhere", "Ann", ["s1"], [35.5]),
        ("elsewhere", "Ben", ["s1"], [80.0]),
        ("elsewhere", "Ann", ["s2"], [70.0]),
    ]


async def test_columns_that_do_not_fit_the_file_are_refused(engine, subtests):
    for options, code in (
        ({"item_column": "nothing"}, "column_unknown"),
        ({"item_column": "-"}, "result_columns"),
        ({"annotator_column": "-"}, "result_columns"),
        ({"hit_column": "nothing"}, "column_unknown"),
        ({"value_column": "Answer.z*"}, "column_unknown"),
        ({"item_column": "Input.a*"}, "columns_unequal"),
        ({"item_column": "Input.a*", "value_column": "Answer.z*"}, "column_unknown"),
    ):
        with subtests.test(options=options, code=code):
            campaign = await create_launched_campaign(engine, ITEMS)
            content = MTURK + f"Input.a1,Input.a2,Answer.b\nH1,AS1,W1,Submitted,{TIMES}s1,s2,20\n"
            usual = {"item_column": "Input.a1", "value_column": "Answer.b"}
            assert (await refused(engine, campaign, content, **usual | options)).code == code


async def test_a_likely_column_can_be_declined(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    content = "annotator,item,value,time,segment\nAnn,s1,70,3.2,x\nAnn,s2,30,1.5,x\n"
    named = {"item_column": "item", "value_column": "value"}
    assert (await refused(engine, campaign, content, **named)).code == "time_unreadable"
    done = await imported(engine, campaign, content, **named, submitted_at_column="-")
    assert (done.responses, done.passed_over) == (2, "time, segment")


@pytest.mark.parametrize("header", ["HIT,Annotator,ITEM,Value\n", "Hit,annotator,item,VALUE\n"])
async def test_names_of_columns_may_have_other_capitals(engine, header):
    campaign = await create_launched_campaign(engine, ITEMS)
    assert (await imported(engine, campaign, header + "h1,Ann,s1,70\n")).responses == 1


async def test_capitals_of_mechanical_turks_columns_may_differ(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    await imported(engine, campaign, EASL.lower() + "H1,AS1,W1,Submitted,,,s1,s2,20,80\n")
    assert await fetch_rows(engine, STORED) == [("mturk", "W1", ["s1", "s2"], [20.0, 80.0])]


# Numbers


@pytest.mark.parametrize(
    ("cells", "read", "comma"),
    [
        (["35,5", "80"], [35.5, 80], True),
        (["0,125", "1,250"], [0.125, 1.25], True),
        (["35.5", "80"], [35.5, 80], False),
        (["35 %", "80%"], [35, 80], False),
        (["35,5 %", "80"], [35.5, 80], True),
    ],
)
async def test_numbers_are_read_as_the_whole_column_is_written(engine, cells, read, comma):
    campaign = await create_launched_campaign(engine, ITEMS)
    content = HEADER.replace(",", ";") + f"h1;Ann;s1;{cells[0]}\nh1;Ann;s2;{cells[1]}\n"
    done = await imported(engine, campaign, content)
    assert await fetch_rows(engine, STORED) == [("elsewhere", "Ann", ["s1", "s2"], read)]
    assert (done.decimal_comma, done.percent) == (comma, sum("%" in cell for cell in cells))
    assert ("Numbers were read with decimal commas." in response_receipt_sentences(done)) == comma


async def test_a_comma_that_can_be_either_is_asked_about(engine):
    campaign = await create_launched_campaign(engine, ITEMS, design="magnitude")
    content = HEADER.replace(",", ";") + "h1;Ann;s1;1,250\nh1;Ann;s2;80\n"
    refusal = await refused(engine, campaign, content)
    assert (refusal.code, refusal.details["line"]) == ("decimal_unclear", 2)
    assert "option decimal" in refusal.message
    await imported(engine, campaign, content, decimal="comma")
    assert (await fetch_rows(engine, STORED))[0][3] == pytest.approx([1.25, 80])


async def test_thousands_are_read_where_it_is_said(engine):
    campaign = await create_launched_campaign(engine, ITEMS, design="magnitude")
    content = HEADER.replace(",", ";") + "h1;Ann;s1;1,250\nh1;Ann;s2;80.5\n"
    await imported(engine, campaign, content, decimal="point")
    assert (await fetch_rows(engine, STORED))[0][3] == pytest.approx([1250, 80.5])


async def test_commas_and_points_in_one_column_are_refused(engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    refusal = await refused(engine, campaign, HEADER.replace(",", ";") + "h1;Ann;s1;35,5\nh1;Ann;s2;80.5\n")
    assert (refusal.code, refusal.details["line"]) == ("decimal_unclear", 3)


@pytest.mark.parametrize("cell", ["", "NA", "NaN", "n/a", "null"])
async def test_rows_without_a_value_are_left_out_and_told(engine, cell):
    campaign = await create_launched_campaign(engine, ITEMS)
    done = await imported(engine, campaign, HEADER + f"h1,Ann,s1,35\nh1,Ann,s2,{cell}\nh1,Ann,s3,80\n")
    assert await fetch_rows(engine, STORED) == [("elsewhere", "Ann", ["s1", "s3"], [35.0, 80.0])]
    assert done.missing == 1
    assert "Values left out because their cells are empty or say NA: 1." in response_receipt_sentences(done)


async def test_a_label_that_says_na_is_a_label(engine):
    labels = {"design": "categories", "design_settings": {"labels": ["yes", "NA"]}}
    campaign = await create_launched_campaign(engine, ITEMS, **labels)
    assert (await imported(engine, campaign, HEADER + "h1,Ann,s1,NA\n")).missing == 0
    assert (await fetch_rows(engine, STORED))[0][3] == [1.0]


# Times


async def received(engine, cells, **options):
    campaign = await create_launched_campaign(engine, ITEMS)
    header = "hit;annotator;item;value;submitted_at\n"
    content = header + "".join(f"h{k};Ann;s1;50;{cell}\n" for k, cell in enumerate(cells))
    done = await imported(engine, campaign, content, **options)
    return done, [row[0].astimezone(UTC) for row in await fetch_rows(engine, RECEIVED)]


@pytest.mark.parametrize(
    ("cells", "day", "order", "zone"),
    [
        (["31.01.2026 15:04", "5.2.2026 9:01"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "day_first", "UTC"),
        (["1/31/2026 3:04 PM", "2/5/2026 9:01 AM"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "month_first", "UTC"),
        (["31/1/2026, 15:04:05", "5/2/2026, 9:01:00"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "day_first", "UTC"),
        (["1700000000", "1770282060"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "", ""),
        (["1700000000000", "1770282060000"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "", ""),
        (["2026-01-31", "2026-02-05 09:01"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "", "UTC"),
        (["31 Jan 2026", "Feb 5, 2026 9:01 AM"], datetime(2026, 2, 5, 9, 1, tzinfo=UTC), "", "UTC"),
    ],
)
async def test_dates_are_read_where_the_whole_column_tells_how(engine, cells, day, order, zone):
    done, moments = await received(engine, cells)
    assert moments[1] == day
    assert (done.date_order, done.time_zone) == (order, zone)
    told = response_receipt_sentences(done)
    assert ("Times without a time zone were read as UTC." in told) == bool(zone)


async def test_dates_that_can_be_either_are_asked_about_by_the_name_of_the_option(engine):
    with pytest.raises(Refusal) as problem:
        await received(engine, ["5.2.2026 9:01", "6.2.2026 9:01"])
    assert (problem.value.code, problem.value.details["line"]) == ("date_order_unclear", 2)
    assert "date_order" in problem.value.message


@pytest.mark.parametrize(("order", "month"), [("day_first", 2), ("month_first", 5)])
async def test_the_option_says_how_dates_are_read(engine, order, month):
    done, moments = await received(engine, ["5.2.2026 9:01"], date_order=order)
    assert (moments[0].month, done.date_order) == (month, order)


async def test_dates_that_contradict_each_other_are_refused(engine):
    with pytest.raises(Refusal) as problem:
        await received(engine, ["31/1/2026", "1/31/2026"])
    assert (problem.value.code, problem.value.details["line"]) == ("date_order_unclear", 3)


async def test_a_time_zone_can_be_chosen(engine):
    done, moments = await received(engine, ["2026-07-01 12:00", "2026-07-01T12:00Z"], time_zone="Europe/Berlin")
    assert [moment.hour for moment in moments] == [10, 12]
    assert done.time_zone == "Europe/Berlin"


async def test_an_unknown_time_zone_is_refused(engine):
    with pytest.raises(Refusal) as problem:
        await received(engine, ["2026-07-01 12:00"], time_zone="Berlin/../etc")
    assert problem.value.code == "time_zone_unknown"


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "Factory"])
async def test_a_file_of_the_system_that_is_no_time_zone_is_refused(engine, zone):
    with pytest.raises(Refusal) as problem:
        await received(engine, ["31.1.2026"], time_zone=zone)
    assert problem.value.code == "time_zone_unknown"


async def test_a_date_whose_day_or_year_is_zero_is_refused_with_its_line(engine, subtests):
    for cell in ("0000-00-00 00:00:00", "0000-01-01T00:00:00Z", "2026-01-00", "0.1.2026", "31.1.0000", "1/0/2026"):
        with subtests.test(cell=cell):
            with pytest.raises(Refusal) as problem:
                await received(engine, ["31.1.2026", cell])
            assert (problem.value.code, problem.value.details["line"]) == ("time_unreadable", 3)


async def test_what_is_no_time_is_refused_with_its_line(engine, subtests):
    for cell in ("31.02.2026", "noon", "99999999999999", "25.12.2026 25:00", "13/13/2026"):
        with subtests.test(cell=cell):
            with pytest.raises(Refusal) as problem:
                await received(engine, ["31.1.2026", cell])
            assert (problem.value.code, problem.value.details["line"]) == ("time_unreadable", 3)


# Every door


async def test_the_page_proposes_columns_and_imports_with_them(researcher, engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    address = f"/admin/campaigns/{campaign.slug}"
    files = {"file": ("batch.csv", GENERIC)}
    page = (await researcher.post(f"{address}/responses", files=files)).text
    assert 'name="item_column" value="Input.text"' in page
    assert 'name="value_column" value="Answer.rating"' in page
    said = {"item_column": "Input.text", "value_column": "Answer.rating", "annotator_column": "", "decimal": ""}
    done = await researcher.post(f"{address}/responses", files=files, data=said)
    assert done.status_code == 303
    told = (await researcher.get(done.headers["location"])).text
    assert "Imported 2 responses on 2 items." in told
    assert "Columns read: item from Input.text, value from Answer.rating" in told


async def test_the_script_of_the_page_gets_the_proposal(researcher, engine):
    campaign = await create_launched_campaign(engine, ITEMS, **SCALE)
    reply = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/responses",
        files={"file": ("batch.csv", GENERIC)},
        headers={"x-easel": "fetch"},
    )
    error = json.loads(reply.text.splitlines()[-1])["error"]
    assert (error["code"], error["proposal"]["item_column"]) == ("result_columns", "Input.text")


async def test_a_form_with_an_unknown_choice_is_refused(researcher, engine):
    campaign = await create_launched_campaign(engine, ITEMS)
    reply = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/responses",
        files={"file": ("a.csv", HEADER + "h1,Ann,s1,70\n")},
        data={"decimal": "semicolon"},
    )
    assert reply.status_code == 422
    assert "decimal has a value that is not possible" in reply.text


# Whatever somebody sends

VALUES = st.recursive(
    st.sampled_from([None, True, 0, 4, 1.5, "", "s1", "x", "true"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "text", "rating", "result", "from_name", "value"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = (
    *("annotations", "completions", "data", "id", "text", "_task_hash", "answer", "accept", "options", "type"),
    *("Answer.taskAnswers", "Answer.r.1", "Answer.r.2", "Input.id", "WorkerId", "system", "segment", "score"),
    *("annotator", "source_language", "target_language", "AssignmentStatus", "hit", "item", "value"),
)
CHOSEN = {"item_column": "id", "value_column": "answer", "annotator_column": "text"}


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=6), min_size=1, max_size=3),
    st.sampled_from([{}, CHOSEN]),
)
def test_whatever_stands_in_a_file_of_another_tool_it_is_read_or_refused_in_words(rows, options):
    sent = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
    reading = AnswerFileOptions.model_validate(options).reading_options
    with suppress(Refusal):
        _, hits, _ = read_platform_rows_and_notes(
            sent, "a.jsonl", ValueFormat(Slider()), now=NOW, max_mb=1, options=reading
        )
        assert all(len(hit.items) == len(hit.scores) for hit in hits)


@given(st.text(st.sampled_from("0123456789.,:/ -+TZapmPMJanuary%'"), max_size=24), st.sampled_from([None, True, False]))
def test_any_text_is_a_time_or_none(text, day_first):
    with suppress(DateOrderUnknownError):
        moment = parse_file_time_or_none(text, day_first=day_first, zone=UTC)
        assert moment is None or moment.time.tzinfo is UTC
