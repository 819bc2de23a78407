"""MTurk's result files as responses: the same posteriors as the released EASL program, or nothing at all."""

import asyncio
import csv
import io
import random
import sys
from datetime import UTC, datetime
from types import FrameType

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.mturk.results import parse_mturk_time_or_none
from app.campaigns import empty_campaigns
from app.errors import Conflict, NotFound, Refusal
from app.exports.registry import open_export_or_refuse
from app.imports import imported_hits, response_storage
from app.imports.response_receipt import ResponseImportReceipt, response_receipt_sentences
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import (
    apply_action,
    create_draft,
    create_launched_campaign,
    import_items,
    import_results,
    replay_is_clean,
)

HEADER = "HITId,AssignmentId,WorkerId,AcceptTime,SubmitTime,Input.id1,Input.id2,Answer.range1,Answer.range2\n"
LONG = "".join(random.Random(2018).choices("0123456789abcdef", k=9000))  # more than an index holds, compressed
TWO = (
    HEADER
    + "H1,A1,W1,Tue Apr 10 12:04:05 PDT 2018,Tue Apr 10 12:05:05 PDT 2018,v0,v1,70,30\n"
    + "H1,A2,W2,Tue Apr 10 12:04:05 PDT 2018,later,v3,v0,0,100\n"
)


def easl_update(posteriors: dict[str, tuple[float, float]], result_file: str, n: int) -> None:
    """The formula of the released program: alpha grows by range/100, beta by the rest of 1."""
    for row in csv.DictReader(io.StringIO(result_file)):
        for k in range(1, n + 1):
            score = float(row[f"Answer.range{k}"]) / 100.0
            alpha, beta = posteriors[row[f"Input.id{k}"]]
            posteriors[row[f"Input.id{k}"]] = alpha + score, beta + (1.0 - score)


def result_file(rng: random.Random, ids: list[str], n: int, hits: int, iteration: int) -> str:
    columns = [f"Input.id{k}" for k in range(1, n + 1)] + [f"Answer.range{k}" for k in range(1, n + 1)]
    lines = [",".join(["AssignmentId", "WorkerId", *columns])]
    for hit in range(hits):
        scores = [str(rng.choice([rng.randint(0, 100), round(rng.uniform(0, 100), 2)])) for _ in range(n)]
        lines.append(",".join([f"A{iteration}-{hit}", f"W{rng.randrange(4)}", *rng.sample(ids, n), *scores]))
    return "\r\n".join(lines) + "\r\n"


def in_rows(result_file: str) -> str:
    """The same answers in Easel's own format: a row for each item."""
    lines = ["hit,annotator,item,value"]
    for row in csv.DictReader(io.StringIO(result_file)):
        places = range(1, sum(name.startswith("Input.") for name in row) + 1)
        lines += [
            f"{row['AssignmentId']},{row['WorkerId']},{row[f'Input.id{k}']},{row[f'Answer.range{k}']}" for k in places
        ]
    return "\n".join(lines) + "\n"


FORMATS = pytest.mark.parametrize("written", [str, in_rows], ids=["mturk", "rows"])


async def exported(engine: AsyncEngine, slug: str, what: str) -> list[dict[str, str]]:
    file = await open_export_or_refuse(engine, slug, what)
    return list(csv.DictReader(io.StringIO("".join([piece async for piece in file.chunks]))))


@pytest.mark.parametrize("n", [2, 5])
async def test_alpha_and_beta_are_those_of_the_easl_program_over_chained_iterations(engine, n):
    rng = random.Random(n)
    ids = [str(k) for k in range(1, 31)]
    campaign = await create_launched_campaign(
        engine,
        "id,sent,alpha,beta,mode,var\n" + "".join(f"{k},sentence {k},1,1,0.5,0.0833\n" for k in ids),
        priors=True,
    )
    posteriors = dict.fromkeys(ids, (1.0, 1.0))
    for iteration in range(4):
        results = result_file(rng, ids, n, 20, iteration)
        easl_update(posteriors, results, n)
        assert (await import_results(engine, campaign, results)).responses == 20
        model = await exported(engine, campaign.slug, "easl")
        assert list(model[0]) == ["id", "sent", "alpha", "beta", "mode", "var"]
        for row in model:
            alpha, beta = posteriors[row["id"]]
            assert float(row["alpha"]) == pytest.approx(alpha, abs=1e-9)
            assert float(row["beta"]) == pytest.approx(beta, abs=1e-9)
            mode = (alpha - 1) / (alpha + beta - 2) if alpha + beta > 2 else 0.5
            assert float(row["mode"]) == pytest.approx(mode, abs=1e-9)
            assert float(row["var"]) == pytest.approx(
                alpha * beta / ((alpha + beta) ** 2 * (alpha + beta + 1)), abs=1e-12
            )
    assert await replay_is_clean(engine, campaign.slug)


async def test_the_easl_program_can_be_left_and_joined_between_iterations(engine):
    """Its model file as items of a new campaign, its next results as responses: as if there had been one campaign."""
    rng = random.Random(3)
    ids = [str(k) for k in range(1, 11)]
    first, second = (result_file(rng, ids, 5, 6, iteration) for iteration in range(2))
    whole = await create_launched_campaign(engine, "id,sent\n" + "".join(f"{k},s {k}\n" for k in ids), name="Whole")
    await import_results(engine, whole, first)
    model = "".join([piece async for piece in (await open_export_or_refuse(engine, whole.slug, "easl")).chunks])
    part = await create_launched_campaign(engine, model, priors=True, name="Part")
    for campaign in (whole, part):
        await import_results(engine, campaign, second)
    columns = ("id", "sent", "alpha", "beta", "mode", "var")
    assert [[row[name] for name in columns] for row in await exported(engine, part.slug, "easl")] == [
        [row[name] for name in columns] for row in await exported(engine, whole.slug, "easl")
    ]


@pytest.mark.parametrize("law", ["ra", "trueskill"])
async def test_the_other_laws_take_results_too_and_replay_cleanly(engine, law):
    ids = [str(k) for k in range(1, 11)]
    campaign = await create_launched_campaign(
        engine, "id,sent\n" + "".join(f"{k},s {k}\n" for k in ids), update_law=law
    )
    await import_results(engine, campaign, result_file(random.Random(1), ids, 5, 12, 0))
    assert await replay_is_clean(engine, campaign.slug)
    assert await fetch_value(engine, "SELECT count(DISTINCT state) > 1 FROM current_posteriors")


async def test_a_result_row_is_an_assignment_a_closed_hit_and_a_response(engine):
    campaign = await create_launched_campaign(engine)
    imported = await import_results(engine, campaign, TWO)
    assert (imported.responses, imported.items, imported.over_wanted, imported.finished) == (2, 3, 0, False)
    accepted, submitted = (datetime(2018, 4, 10, 19, minute, 5, tzinfo=UTC) for minute in (4, 5))
    assert await fetch_rows(
        engine,
        "SELECT r.items, r.values, r.source, r.received_at, h.items, h.issued_at, h.closed_at, s.external_id,"
        " s.completed_at, a.platform, a.worker_id, length(a.pseudonym) FROM responses r JOIN hits h ON h.id = r.hit_id"
        " JOIN assignments s ON s.id = h.assignment_id JOIN annotators a ON a.id = r.annotator_id ORDER BY r.seq",
    ) == [
        ([0, 1], [70, 30], "import", submitted, [0, 1], accepted, submitted, "A1", submitted, "mturk", "W1", 10),
        ([3, 0], [0, 100], "import", NOW, [3, 0], accepted, NOW, "A2", NOW, "mturk", "W2", 10),
    ]
    assert await fetch_rows(
        engine, "SELECT number, state, judgments FROM current_posteriors WHERE judgments > 0 ORDER BY number"
    ) == [
        (0, [2.7, 1.3], 2),
        (1, [1.3, 1.7], 1),
        (3, [1.0, 2.0], 1),
    ]
    assert (
        await fetch_value(engine, "SELECT arrival ->> 'SubmitTime' FROM assignments WHERE external_id = 'A2'")
        == "later"
    )


async def test_a_worker_who_is_known_keeps_their_pseudonym(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, HEADER + "H1,A1,W1,,,v0,v1,70,30\n")
    before = await fetch_value(engine, "SELECT pseudonym FROM annotators")
    await import_results(engine, campaign, HEADER + "H1,A2,W1,,,v0,v1,70,30\n")
    assert await fetch_rows(engine, "SELECT pseudonym FROM annotators") == [(before,)]


async def test_without_mturks_ids_one_annotator_stands_for_the_file(engine):
    campaign = await create_launched_campaign(engine)
    bare = "Input.id1,Answer.range1,Input.id2,Answer.range2\nv0,1,v1,2\nv0,1,v1,2\n"
    done = await import_results(engine, campaign, bare)
    assert any(said.startswith("Rows without a WorkerId: 2.") for said in response_receipt_sentences(done))
    assert await fetch_rows(engine, "SELECT count(*), count(DISTINCT annotator_id) FROM responses") == [(2, 1)]
    with pytest.raises(Conflict) as problem:
        await import_results(engine, campaign, bare)
    assert problem.value.code == "assignment_known"


async def test_minus_zero_in_a_result_is_zero(engine):
    await import_results(engine, await create_launched_campaign(engine), HEADER + "H1,A1,W1,,,v0,v1,-0,30\n")
    assert await fetch_value(engine, "SELECT values::text FROM responses") == "{0,30}"


async def test_the_same_assignment_is_never_counted_twice(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, TWO)
    with pytest.raises(Conflict, match="already") as problem:
        await import_results(engine, campaign, TWO)
    assert problem.value.code == "assignment_known"
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 4


async def test_an_assignment_that_is_there_with_another_answer_is_refused_with_its_line(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, TWO)
    for other in ("v3,v0,0,99", "v0,v3,0,100", "v3,v1,0,100"):
        with pytest.raises(Conflict, match="Line 3: the assignment A2") as problem:
            await import_results(engine, campaign, HEADER + f"H9,A9,W1,,,v0,v1,70,30\nH1,A2,W2,,,{other}\n")
        assert (problem.value.code, problem.value.details["line"]) == ("assignment_known", 3)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


@pytest.mark.parametrize("stays", ["arrived", "at work", "gave up"])
async def test_an_assignment_that_is_there_without_an_answer_is_refused_with_words_that_say_so(engine, stays):
    campaign = await create_launched_campaign(engine, items_per_hit=2)
    them = await create_annotator(engine, campaign, "W2", "mturk", assignment="A2")
    if stays != "arrived":
        await try_to_lease_hit(engine, them)
    if stays == "gave up":
        await execute_sql(engine, "UPDATE hits SET closed_at = now()")
    words = "Line 3: the assignment A2 is already in “Verbs”, without an answer"
    with pytest.raises(Conflict, match=words) as problem:
        await import_results(engine, campaign, TWO)
    assert problem.value.code == "assignment_known"


async def test_a_file_that_has_grown_adds_its_new_rows(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, TWO)
    imported = await import_results(engine, campaign, TWO + "H9,A9,W1,,,v0,v1,70,30\n")
    assert (imported.responses, imported.known) == (1, 2)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 6


@pytest.mark.parametrize("law", ["easl", "ra", "trueskill", "easl-aware"])
async def test_an_import_that_broke_off_goes_on_where_it_stopped_with_the_same_bits(engine, law):
    """Whole files are read before the first row is stored; then the first ones stay, whatever happens."""
    content = "id,sent\n" + "".join(f"{k},s {k}\n" for k in range(1, 6))
    results = result_file(random.Random(4), [str(k) for k in range(1, 6)], 2, 120, 0)

    def power_cut(rows: int) -> None:
        raise ZeroDivisionError(rows)

    whole, broken = [
        await create_launched_campaign(engine, content, name=name, update_law=law) for name in ("Whole", "Broken")
    ]
    await import_results(engine, whole, results)
    with pytest.raises(ZeroDivisionError):
        await import_results(engine, broken, results, progress=power_cut)
    stored = await fetch_value(engine, "SELECT count(*) FROM responses WHERE campaign_id = :id", id=broken.id)
    assert 0 < stored < 120
    assert await replay_is_clean(engine, broken.slug)
    again = await import_results(engine, broken, results)
    assert (again.responses, again.known) == (120 - stored, stored)
    posteriors = (
        "SELECT number, state, score, variance, judgments FROM current_posteriors WHERE campaign_id = :id ORDER BY 1"
    )
    assert await fetch_rows(engine, posteriors, id=broken.id) == await fetch_rows(engine, posteriors, id=whole.id)
    assert await replay_is_clean(engine, broken.slug)


@FORMATS
async def test_of_two_imports_of_one_file_at_once_one_stores_all_rows_and_the_other_is_refused(engine, written):
    campaign = await create_launched_campaign(engine)
    results = written(result_file(random.Random(5), [f"v{k}" for k in range(6)], 2, 60, 0))
    both = (import_results(engine, campaign, results) for _ in range(2))
    done = await asyncio.gather(*both, return_exceptions=True)
    (refused,) = (one for one in done if isinstance(one, Conflict))
    (stored,) = (one for one in done if isinstance(one, ResponseImportReceipt))
    assert (refused.code, stored.responses) == ("assignment_known", 60)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 120
    assert await replay_is_clean(engine, campaign.slug)


async def test_of_two_imports_that_contradict_each_other_at_once_one_stores_nothing(engine):
    campaign = await create_launched_campaign(engine)
    rows = [f"A{k},W1,v0,v1,{k},30\n" for k in range(60)]
    head = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\n"
    other = head + "".join(row.replace(",30", ",31") for row in reversed(rows))
    both = (import_results(engine, campaign, results) for results in (head + "".join(rows), other))
    done = await asyncio.gather(*both, return_exceptions=True)
    (refused,) = (one for one in done if isinstance(one, Conflict))
    assert refused.code == "assignment_known"
    assert "Nothing was imported" in refused.message
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 60
    assert await replay_is_clean(engine, campaign.slug)


async def test_annotators_answer_between_the_rows_of_an_import(engine):
    """Of a file that takes several transactions, later rows come after the answer of somebody who was at work."""
    campaign = await create_launched_campaign(engine, judgments_per_item=1000)
    results = result_file(random.Random(6), [f"v{k}" for k in range(6)], 2, 60, 0)
    assignment = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, assignment)
    answered: list[asyncio.Task[object]] = []

    def at_work(_rows: int) -> None:
        if not answered:
            answered.append(asyncio.ensure_future(submit_scores(engine, assignment, hit)))

    await import_results(engine, campaign, results, progress=at_work)
    await asyncio.gather(*answered)
    sources = [source for (source,) in await fetch_rows(engine, "SELECT source FROM responses ORDER BY seq")]
    assert "import" in sources[: sources.index("api")]
    assert "import" in sources[sources.index("api") :]
    assert await replay_is_clean(engine, campaign.slug)


async def test_one_more_judgment_leaves_what_is_long_of_its_items_as_it_was_under_easl_aware(engine):
    """So neither a row of an import nor an answer costs more the more judgments its items have."""
    campaign = await create_launched_campaign(
        engine, "id,text\nv0,a\nv1,b\n", update_law="easl-aware", judgments_per_item=1000
    )
    parts = "SELECT state, octet_length(since) FROM states WHERE kind = 'item' ORDER BY number"
    await import_results(engine, campaign, result_file(random.Random(9), ["v0", "v1"], 2, 201, 0))
    before = await fetch_rows(engine, parts)
    await import_results(engine, campaign, result_file(random.Random(9), ["v0", "v1"], 2, 1, 1))
    assert await fetch_rows(engine, parts) == [(state, since + 16) for state, since in before]
    assignment = await create_annotator(engine, campaign)
    await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    assert await fetch_rows(engine, parts) == [(state, since + 32) for state, since in before]
    assert await replay_is_clean(engine, campaign.slug)


@FORMATS
async def test_no_step_of_the_event_loop_goes_through_the_whole_file(engine, monkeypatch, written):
    """Others' requests have their turn between two steps. Counted are calls of functions, whatever time they take."""
    monkeypatch.setattr(imported_hits, "IDS_PER_LOOKUP", 20)
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 20)
    campaign = await create_launched_campaign(engine)
    await apply_action(engine, campaign, "pause")
    rows = 1_000
    results = written(result_file(random.Random(8), [f"v{k}" for k in range(6)], 2, rows, 0))
    calls = [0, 0]  # in this step, and the most in one

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        calls[0] += event == "call"

    async def others() -> None:
        while True:
            calls[:] = [0, max(calls)]
            await asyncio.sleep(0)

    requests = asyncio.ensure_future(others())
    sys.setprofile(called)  # of this thread
    try:
        imported = await import_results(engine, campaign, results)
    finally:
        sys.setprofile(None)
        requests.cancel()
    assert imported.responses == rows
    assert calls[1] < rows


async def test_more_judgments_than_wanted_are_kept_and_said_and_the_campaign_closes(engine):
    campaign = await create_launched_campaign(engine, "id,text\nv0,a\nv1,b\n", judgments_per_item=1)
    imported = await import_results(engine, campaign, HEADER + "H1,A1,W1,,,v0,v1,70,30\nH1,A2,W2,,,v0,v1,7,3\n")
    assert (imported.over_wanted, imported.finished) == (2, True)
    assert await fetch_rows(engine, "SELECT status, finished_at FROM campaigns") == [("finished", NOW)]
    again = await import_results(engine, campaign, HEADER + "H1,A3,W1,,,v0,v1,70,30\n")
    assert (again.over_wanted, again.finished) == (2, False)


async def test_one_wrong_row_and_nothing_is_imported(engine, subtests):
    for content, code, line in (
        ("", "file_empty", None),
        (HEADER, "file_empty", None),
        ("Input.id1,Answer.range2\nv0,1\n", "result_columns", None),
        ("Input.id1,Input.id3,Answer.range1,Answer.range3\nv0,v1,1,2\n", "result_columns", None),
        ("id,text\nv0,a\n", "result_columns", None),
        (HEADER + "H1,A1,W1,,,v0,v1,70,30\nH1,A2,W1,,,v0,v9,70,30\n", "item_unknown", 3),
        (HEADER + "H1,A1,W1,,,v0,v1,70,30\nH1,A2,W1,,,v0,v0,70,30\n", "item_repeated", 3),
        (HEADER + "H1,A1,W1,,,v0,,70,30\n", "item_missing", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,,NA\n", "scores_missing", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,70,high\n", "score_not_a_number", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,70,100.5\n", "score_out_of_range", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,inf,5\n", "score_not_a_number", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,1_0,5\n", "score_not_a_number", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,٣,5\n", "score_not_a_number", 2),
        (HEADER + "H1,A1,W1,,,v0,v1,70,30\nH1,A1,W1,,,v0,v1,70,30\n", "assignment_twice", 3),
        (HEADER + "H1,A1,W1,,,v0,v1,70,30\nH1,A1,,,,v0,v1,70,30\n", "assignment_twice", 3),
        (HEADER + "H1,A1,W1,,,v0,v1,70,30\nH1,A2,W1,,,v0,v1,70\n", "ragged_row", 3),
        (HEADER + f"H1,{LONG},W1,,,v0,v1,70,30\n", "id_too_long", 2),
        (HEADER + f"H1,A1,W1,,,v0,v1,70,30\nH1,A2,{LONG},,,v0,v1,70,30\n", "id_too_long", 3),
        ('{"Input.id1": "v0", "Answer.range1": 5}\n{"Answer.range1": 5}\n', "item_missing", 2),
    ):
        with subtests.test(content=content, code=code, line=line):
            campaign = await create_launched_campaign(engine)
            with pytest.raises(Refusal) as problem:
                await import_results(engine, campaign, content)
            assert (problem.value.code, problem.value.details.get("line")) == (code, line)
            for table in ("responses", "hits", "assignments", "annotators"):
                assert await fetch_value(engine, f"SELECT count(*) FROM {table}") == 0
            assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 0


async def test_a_draft_takes_no_results(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\nv0,a\nv1,b\n")
    with pytest.raises(Conflict) as problem:
        await import_results(engine, campaign, TWO)
    assert problem.value.code == "not_launched"


async def test_a_paused_campaign_takes_results_and_stays_paused(engine):
    campaign = await create_launched_campaign(engine)
    await apply_action(engine, campaign, "pause")
    await import_results(engine, campaign, TWO)
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "paused"


async def test_results_for_a_campaign_that_does_not_exist_are_not_found(engine):
    campaign = await create_draft(engine)
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)
    with pytest.raises(NotFound):
        await import_results(engine, campaign, TWO)


@pytest.mark.parametrize(
    ("cell", "hour"),
    [
        ("Tue Apr 10 12:04:05 PDT 2018", 19),
        ("Tue Jan 09 12:04:05 PST 2018", 20),
        ("Tue Jan 09 12:04:05 UTC 2018", 12),
    ],
)
def test_mturks_times_are_read_with_their_zone(cell, hour):
    moment = parse_mturk_time_or_none(cell)
    assert moment
    assert moment.astimezone(UTC).hour == hour


def test_a_time_that_cannot_be_read_is_no_time(subtests):
    for cell in ("", "yesterday", "Tue Apr 99 12:04:05 PDT 2018", "Tue Apr 10 12:04:05 CEST 2018"):
        with subtests.test(cell=cell):
            assert parse_mturk_time_or_none(cell) is None
