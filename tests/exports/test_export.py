"""Exports: everything is in them once, readable by programs, and nothing about who the workers are."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import text

from app.analysis import calibrated_intervals
from app.annotation.hits import submission
from app.campaigns.settings import CampaignSettings
from app.database.session import borrow_driver_in_transaction
from app.designs.answer import Answer, Touch
from app.errors import Conflict, NotFound
from app.exports import items as items_export
from app.exports.registry import open_export_or_refuse
from app.exports.responses import RESPONSE_EXPORT_COLUMNS
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.inference.ratings.shrunken_means import shrink_means_to_prior
from app.text.spreadsheets import guard_against_formula
from tests.annotation.hits.campaigns import NOW, create_annotator, find_or_lease_next_hit, try_to_lease_hit
from tests.campaigns.drafts import apply_action, create_draft, create_launched_campaign, import_items, import_results

ITEMS = 'id,text,zipf,mode\n007,abide,3.5,x\n=1+1,"größer, ""gut""\n2",-2,y\n@home,-5,,z\n'
RESULTS = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nA1,SECRETWORKER,007,@home,70,70\n"


async def written(engine, slug: str, what: str, format_="csv", **how) -> str:
    file = await open_export_or_refuse(engine, slug, what, format_, **how)
    return "".join([piece async for piece in file.chunks])


def cells(content: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content)))


async def create_answered_campaign(engine, **settings):
    campaign = await create_launched_campaign(engine, ITEMS, **settings)
    await import_results(engine, campaign, RESULTS)
    return campaign


async def test_items_carry_their_columns_and_posterior(engine):
    campaign = await create_answered_campaign(engine)
    header, *rows = cells(await written(engine, campaign.slug, "items"))
    assert header == [
        *("id", "shown", "text", "zipf", "uploaded_mode"),
        *("alpha", "beta", "mode", "standard_deviation", "low_95", "high_95", "judgments"),
        *("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95"),
        *("shrunken_score", "shrunken_low_95", "shrunken_high_95"),
    ]
    assert [row[:5] for row in rows] == [
        ["007", "abide", "abide", "3.5", "x"],
        ["=1+1", 'größer, "gut"\n2', 'größer, "gut"\n2', "-2", "y"],
        ["@home", "-5", "-5", "", "z"],
    ]
    alpha, beta, mode, deviation, low, high = map(float, rows[0][5:11])
    assert (alpha, beta, mode) == (1.7, 1.3, 70)
    assert deviation == pytest.approx(100 * (1.7 * 1.3 / (9 * 4)) ** 0.5)
    # Beta(1.7, 1.3) by numerical integration of its density
    assert [low, high] == pytest.approx([9.30304, 96.36549], abs=1e-4)
    assert rows[0][11:] == ["1", "70.0", *[""] * 6]  # nobody else has judged it
    assert rows[1][5:12] == ["1.0", "1.0", "", "", "", "", "0"]  # the prior, and no score: nobody has judged it
    assert rows[1][12:] == [""] * 7


async def test_items_carry_the_mean_of_their_scores_and_the_interval_that_annotators_disagreement_tells(
    engine, monkeypatch
):
    monkeypatch.setattr("app.analysis.load_answers.ANSWERED_HITS_PER_BATCH", 2)
    campaign = await create_launched_campaign(engine, ITEMS, update_law="trueskill")
    results = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n"
    scores = [(20, 50), (60, 40), (70, 90)]
    rows = [f"A{k},W{k},007,@home,{one},{two}\n" for k, (one, two) in enumerate(scores)]
    await import_results(engine, campaign, results + "".join(rows))
    header, *lines = cells(await written(engine, campaign.slug, "items"))
    found = [dict(zip(header, line, strict=True)) for line in lines]
    items, annotators = np.tile([0, 2], 3), np.repeat([0, 1, 2], 2)
    tally = Tally.empty(3).with_judgments_added(items, annotators, np.ravel(scores) / 100)
    known = moderated_means_of_tally(tally)
    for number in (0, 2):
        low, high = known.select_items([number]).interval()
        expected = [100 * share for share in (known.mean[number], known.standard_error[number], low[0], high[0])]
        assert [float(found[number][name]) for name in calibrated_intervals.CALIBRATED_COLUMNS] == pytest.approx(
            expected
        )
        shrunken = shrink_means_to_prior(tally)
        expected = [100 * column[number] for column in (shrunken.score, shrunken.low, shrunken.high)]
        assert [float(found[number][name]) for name in calibrated_intervals.SHRUNKEN_COLUMNS] == pytest.approx(expected)
    assert [found[1][name] for name in calibrated_intervals.CALIBRATED_COLUMNS] == [""] * 4
    assert [found[1][name] for name in calibrated_intervals.SHRUNKEN_COLUMNS] == [""] * 3


async def test_json_lines_hold_the_same_with_numbers_as_numbers(engine):
    campaign = await create_answered_campaign(engine)
    table = cells(await written(engine, campaign.slug, "items"))
    lines = [json.loads(line) for line in (await written(engine, campaign.slug, "items", "jsonl")).splitlines()]
    assert [list(line) for line in lines] == [table[0]] * 3
    assert [["" if value is None else str(value) for value in line.values()] for line in lines] == table[1:]
    assert lines[0]["judgments"] == 1


async def test_values_of_json_items_come_back_as_they_were(engine):
    campaign = await create_launched_campaign(
        engine, '{"id": 1, "text": "a", "tags": ["ä"], "ok": true}\n{"id": 2, "text": "b"}\n'
    )
    lines = [json.loads(line) for line in (await written(engine, campaign.slug, "items", "jsonl")).splitlines()]
    assert [(line["tags"], line["ok"]) for line in lines] == [(["ä"], True), (None, None)]
    assert [row[3:5] for row in cells(await written(engine, campaign.slug, "items"))[1:]] == [
        ['["ä"]', "true"],
        ["", ""],
    ]


async def test_a_gaussian_law_names_its_own_numbers(engine):
    campaign = await create_answered_campaign(engine, update_law="trueskill")
    header, first, *_ = cells(await written(engine, campaign.slug, "items"))
    assert header[4:10] == ["mode", "mu", "sigma2", "mean", "standard_deviation", "low_95"]
    assert 100 * float(first[5]) == pytest.approx(float(first[7]))


async def test_uploaded_columns_of_all_files_appear_in_order(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text,zeta,a\n1,x,1,2\n")
    await import_items(engine, campaign, "id,text,late\n2,y,3\n")
    await import_items(engine, campaign, '{"id": 3, "uploaded_mode": 1, "mode": 2, "text": "z"}', "a.jsonl")
    await apply_action(engine, campaign)
    header, *rows = cells(await written(engine, campaign.slug, "items"))
    assert header[2:8] == ["text", "zeta", "a", "late", "uploaded_mode", "uploaded_uploaded_mode"]
    assert rows[2][2:8] == ["z", "", "", "", "1", "2"]


async def test_every_scored_item_is_a_row_of_the_responses(engine):
    campaign = await create_launched_campaign(engine, judgments_per_item=1)
    assignment = await create_annotator(engine, campaign, "secret-worker", platform="prolific")
    hit = await try_to_lease_hit(engine, assignment)
    scores = dict(zip(hit.items, (50.0, 80.5, 50.0, 0.0, 100.0), strict=True))
    touches = {hit.items[0]: Touch(1200, 3, "keyboard")}
    async with borrow_driver_in_transaction(engine) as connection:
        answer = Answer(scores, touches, viewport="390x844", source="page")
        await submission.store_answer_of_hit_and_return_receipt(connection, assignment, hit.id, answer, now=NOW)
    header, *rows = cells(await written(engine, campaign.slug, "responses"))
    assert tuple(header) == RESPONSE_EXPORT_COLUMNS
    lines = [dict(zip(header, row, strict=True)) for row in rows]
    assert [line["item"] for line in lines] == [f"v{number}" for number in hit.items]
    assert [line["position"] for line in lines] == list("12345")
    assert [(line["score"], line["rank"]) for line in lines] == [
        ("50.0", "3"),
        ("80.5", "2"),
        ("50.0", "3"),
        ("0.0", "5"),
        ("100.0", "1"),
    ]
    assert sorted(line["leader"] for line in lines) == ["false"] * 4 + ["true"]
    first = lines[0]
    assert (first["first_touch_ms"], first["changes"], first["input_kind"]) == ("1200", "3", "keyboard")
    assert (first["viewport"], first["source"], first["iteration"]) == ("390x844", "page", "")
    assert datetime.fromisoformat(first["received_at"]) == NOW
    assert datetime.fromisoformat(first["issued_at"]).tzinfo == UTC
    assert (lines[1]["first_touch_ms"], lines[1]["input_kind"]) == ("", "")


async def test_an_imported_response_does_not_pretend_to_know_its_leader(engine):
    campaign = await create_answered_campaign(engine)
    lines = [json.loads(line) for line in (await written(engine, campaign.slug, "responses", "jsonl")).splitlines()]
    assert [(line["item"], line["rank"], line["leader"], line["changes"]) for line in lines] == [
        ("007", 1, None, None),
        ("@home", 1, None, None),
    ]


@pytest.mark.parametrize("what", ["items", "responses", "assignments", "settings", "easl"])
async def test_no_export_tells_who_the_workers_are_or_how_to_get_in(engine, what):
    campaign = await create_answered_campaign(engine)
    for format_ in ("csv", "jsonl"):
        content = await written(engine, campaign.slug, what, format_)
        assert "SECRETWORKER" not in content
        assert campaign.link_key not in content


async def test_assignments_tell_whom_to_pay_for_what(engine):
    campaign = await create_launched_campaign(engine, judgments_per_item=1)
    done, _ = [await create_annotator(engine, campaign, f"SECRET-{k}", platform="prolific") for k in range(2)]
    while (work := await find_or_lease_next_hit(engine, done)).hit is not None:
        async with borrow_driver_in_transaction(engine) as connection:
            scores = Answer(dict.fromkeys(work.hit.items, 50.0))
            await submission.store_answer_of_hit_and_return_receipt(
                connection, done, work.hit.id, scores, now=NOW + timedelta(minutes=3)
            )
    content = await written(engine, campaign.slug, "assignments")
    assert "SECRET" not in content
    header, *rows = cells(content)
    assert header == [
        *("annotator", "name", "platform", "assignment", "arrived_at", "hits_answered", "last_answer_at"),
        *("completed_at", "hits_counted", "barred"),
    ]
    paid, unpaid = [dict(zip(header, row, strict=True)) for row in rows]
    assert (paid["platform"], int(paid["hits_answered"]) > 0) == ("prolific", True)
    assert datetime.fromisoformat(paid["last_answer_at"]) == NOW + timedelta(minutes=3)
    assert datetime.fromisoformat(paid["completed_at"]) == NOW
    assert (unpaid["hits_answered"], unpaid["last_answer_at"], unpaid["completed_at"]) == ("0", "", "")
    async with engine.connect() as connection:
        known = (
            await connection.execute(
                text(
                    "SELECT external_id, pseudonym FROM assignments s JOIN annotators a "
                    "ON a.id = s.annotator_id ORDER BY s.id"
                )
            )
        ).all()
    assert [(row["assignment"], row["annotator"]) for row in (paid, unpaid)] == [tuple(row) for row in known]


async def test_an_assignments_id_is_guarded_since_a_visitor_may_make_it_up(engine):
    campaign = await create_launched_campaign(engine)
    await create_annotator(engine, campaign)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE assignments SET external_id = '=cmd()'"))
    assert "'=cmd()" in await written(engine, campaign.slug, "assignments")


async def test_settings_can_be_given_to_a_new_campaign(engine):
    campaign = await create_answered_campaign(engine, gamma=0.25, middle_label="so-so")
    document = json.loads(await written(engine, campaign.slug, "settings"))
    assert (document["slug"], document["status"], document["launched_at"]) == ("verbs", "running", NOW.isoformat())
    again = CampaignSettings.model_validate(document["settings"])
    assert (again.gamma, again.middle_label, again.question) == (0.25, "so-so", campaign.question)


async def test_the_easl_file_has_the_columns_in_the_programs_order(engine):
    campaign = await create_launched_campaign(
        engine, "sent,id,alpha,note,beta,mu,sigma\nabide,1,1,n,2,0.5,0.08\n", priors=True
    )
    assert cells(await written(engine, campaign.slug, "easl")) == [
        ["id", "sent", "note", "alpha", "beta", "mode", "var"],
        ["1", "abide", "n", "1.0", "2.0", "0.0", repr(1 * 2 / (9 * 4))],
    ]


async def test_formulas_are_guarded_for_spreadsheets_and_numbers_are_not(engine):
    campaign = await create_answered_campaign(engine)
    plain = await written(engine, campaign.slug, "items")
    safe = await written(engine, campaign.slug, "items", spreadsheet=True)
    assert safe.startswith("\ufeffid,")
    assert [row[0] for row in cells(plain)[1:]] == ["007", "=1+1", "@home"]
    assert [row[0] for row in cells(safe)[1:]] == ["'007", "'=1+1", "'@home"]
    assert cells(safe)[3][1] == "-5"


def test_numbers_and_ordinary_text_stay_as_they_are(subtests):
    for cell in ("-2", "+1.5e3", "-inf", 3, None, "a=b", ""):
        with subtests.test(cell=cell):
            assert guard_against_formula(cell) == cell


async def test_text_from_an_annotators_browser_is_guarded_always(engine):
    campaign = await create_answered_campaign(engine)
    async with engine.begin() as connection:
        await connection.execute(text('UPDATE responses SET telemetry = \'{"viewport": "=cmd()"}\''))
    assert "'=cmd()" in await written(engine, campaign.slug, "responses")
    assert "'=cmd()" in await written(engine, campaign.slug, "responses", "jsonl")


async def test_a_large_export_comes_in_pieces_of_one_moment(engine, monkeypatch):
    monkeypatch.setattr(items_export, "EXPORT_ROWS_PER_BATCH", 10)
    campaign = await create_launched_campaign(engine, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(35)))
    pieces = (await open_export_or_refuse(engine, campaign.slug, "items", "jsonl")).chunks
    first = await anext(pieces)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE posteriors SET judgments = 9"))
    rest = [piece async for piece in pieces]
    assert [len(piece.splitlines()) for piece in (first, *rest)] == [10, 10, 10, 5]
    assert all(json.loads(line)["judgments"] == 0 for piece in rest for line in piece.splitlines())


async def test_an_export_that_is_left_halfway_gives_its_connection_back(engine, monkeypatch):
    monkeypatch.setattr(items_export, "EXPORT_ROWS_PER_BATCH", 1)
    campaign = await create_launched_campaign(engine)
    for _ in range(20):  # more often than the pool has connections
        pieces = (await open_export_or_refuse(engine, campaign.slug, "items")).chunks
        await anext(pieces)
        await pieces.aclose()


async def test_a_draft_has_settings_and_no_posteriors(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, ITEMS)
    assert json.loads(await written(engine, campaign.slug, "settings"))["launched_at"] is None
    assert cells(await written(engine, campaign.slug, "responses")) == [list(RESPONSE_EXPORT_COLUMNS)]
    for what in ("items", "easl"):
        with pytest.raises(Conflict) as problem:
            await open_export_or_refuse(engine, campaign.slug, what)
        assert problem.value.code == "not_launched"


async def test_a_gaussian_posterior_is_not_dressed_up_as_alpha_and_beta(engine):
    campaign = await create_answered_campaign(engine, update_law="trueskill")
    with pytest.raises(Conflict) as problem:
        await open_export_or_refuse(engine, campaign.slug, "easl")
    assert problem.value.code == "no_beta_posterior"


async def test_what_does_not_exist_is_not_found(engine):
    campaign = await create_draft(engine)
    for slug, what, code in (
        ("none", "items", "campaign_not_found"),
        (campaign.slug, "workers", "export_not_found"),
        (campaign.slug, "responses", "export_not_found"),
    ):
        with pytest.raises(NotFound) as problem:
            await open_export_or_refuse(engine, slug, what, "json" if what == "responses" else "csv")
        assert problem.value.code == code


async def test_every_column_of_items_and_responses_is_explained_where_the_page_leads(engine, researcher):
    campaign = await create_launched_campaign(engine, "id,text\n1,to run\n2,to sleep\n")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export")).text
    for kind in ("items", "responses"):
        anchor = f"columns-of-{kind}"
        assert f'href="/admin/help/researchers/exports#{anchor}">Columns<' in page
        explained = (await researcher.get("/admin/help/researchers/exports")).text.partition(f'id="{anchor}"')[2]
        columns = cells(await written(engine, campaign.slug, kind))[0]
        missing = [name for name in columns if name != "text" and f"<code>{name}</code>" not in explained]
        assert missing == []


async def test_the_page_shows_how_to_read_its_files_in_r_and_python(engine, researcher):
    campaign = await create_launched_campaign(engine, "id,text\n1,to run\n2,to sleep\n")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export")).text
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/responses.csv")
    name = reply.headers["content-disposition"].partition('filename="')[2].rstrip('"')
    assert f'read.csv("{name}"' in page
    assert f'pandas.read_csv("{name}"' in page
