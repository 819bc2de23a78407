"""The list of campaigns asks for all campaigns at once, and shows the figures of each campaign's own page."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import lifecycle, summaries
from app.dashboard import campaign_list
from app.dashboard.daily_answers import DailyAnswerCounts
from app.dashboard.incremental import IncrementalReplays, PrecisionReplay
from app.dashboard.state import load_dashboard_state
from app.record import answer_rates, changes
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import answer_all_hits, create_campaign_with_criteria


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch):
    monkeypatch.setattr(campaign_list, "INTERVALS_BUDGET_SECONDS", 60)


async def answer_by_two_people(engine, campaign, *, hits=8):
    for k in range(hits):
        me = await create_annotator(engine, campaign, f"ann {k % 2}")
        hit = await try_to_lease_hit(engine, me)
        at = NOW + timedelta(minutes=k)
        await submit_scores(engine, me, hit, now=at, scores=[30.0 + 20 * (k % 2)] * len(hit.items))


async def load_paces(engine, precisions, *, now=NOW + timedelta(minutes=8)):
    async with engine.begin() as connection:
        rows = await summaries.load_campaigns_with_progress(connection)
        return await campaign_list.load_campaign_pace_by_id(connection, precisions, rows, now=now)


@contextmanager
def statements_of(engine):
    statements = []

    def note(_connection, _cursor, statement, *_):
        statements.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine.sync_engine, "before_cursor_execute", note)


async def test_twelve_running_campaigns_are_listed_with_as_many_statements_as_two(engine):
    precisions, daily_answers = PrecisionReplay(), DailyAnswerCounts()
    campaign_counts, statement_counts = [], []
    for more in (2, 10):
        for _ in range(more):
            await answer_by_two_people(engine, await create_running_campaign(engine, judgments_per_item=40))
        await load_paces(engine, precisions)
        with statements_of(engine) as statements:
            paces = await load_paces(engine, precisions)
            async with engine.begin() as connection:
                await daily_answers.load_daily_answers_by_campaign(connection, [*paces], now=NOW)
        assert all(pace.rate and pace.interval.startswith("±") for pace in paces.values())
        campaign_counts.append(len(paces))
        statement_counts.append(len(statements))
    assert campaign_counts == [2, 12]
    assert statement_counts[0] == statement_counts[1]


@pytest.fixture
async def various(engine):
    """Campaigns whose rows have different figures: goal, criteria, labels, exclusion, pause, import, no answers."""
    made = {
        "plain": await create_running_campaign(engine, judgments_per_item=40),
        "goal": await create_running_campaign(engine, judgments_per_item=40, goal="order"),
        "criteria": await create_campaign_with_criteria(engine, 2),
        "excluded": await create_running_campaign(engine, judgments_per_item=40),
        "paused": await create_running_campaign(engine, judgments_per_item=40),
        "imported": await create_running_campaign(engine, judgments_per_item=40),
    }
    for name, campaign in made.items():
        if name == "criteria":
            await answer_all_hits(engine, campaign, people=5)
        else:
            await answer_by_two_people(engine, campaign, hits=8 if name == "plain" else 6)
    await execute_sql(engine, "UPDATE responses SET source = 'import' WHERE campaign_id = :c", c=made["imported"].id)
    await execute_sql(
        engine, "UPDATE responses SET replaces = seq - 1 WHERE seq = (SELECT max(seq) FROM responses "
        "WHERE campaign_id = :c) AND campaign_id = :c", c=made["excluded"].id
    )  # fmt: skip
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, made["paused"].slug, "pause", now=NOW)
    made["unanswered"] = await create_running_campaign(engine)
    made["draft"] = await create_running_campaign(engine, launched=False)
    return made


async def load_own_page_figures(engine, campaign, now):
    async with engine.connect() as connection:
        row = await summaries.load_campaign_with_progress_or_refuse(connection, campaign.slug)
        states = [
            await load_dashboard_state(connection, PosteriorCache(), IncrementalReplays(), criterion, now=now)
            for criterion in row.criteria
        ]
        rate = await answer_rates.load_recent_hits_per_hour_or_none(connection, campaign.id, now=now)
    return [state.figures["cards"]["goal"] for state in states], rate


async def test_a_row_of_the_list_has_the_figures_of_the_campaigns_own_page(engine, various):
    now = NOW + timedelta(minutes=8)
    paces = await load_paces(engine, PrecisionReplay(), now=now)
    for name, campaign in various.items():
        pace = paces[campaign.id]
        if name in ("unanswered", "draft"):
            assert pace == campaign_list.CampaignPace()
            continue
        cards, rate = await load_own_page_figures(engine, campaign, now)
        assert pace.rate == (f"{rate:,.0f} tasks/h" if rate and name != "paused" else ""), name
        if name == "goal":
            assert pace.goal.startswith(f"{cards[0]['value']} of "), name
        else:
            assert pace.interval == max(card["value"] for card in cards), name
    assert paces[various["plain"].id].rate != paces[various["excluded"].id].rate
    assert not paces[various["imported"].id].rate


async def test_a_cluster_reads_one_campaign_after_the_other_with_the_same_result(engine, various, monkeypatch):
    together = await load_paces(engine, PrecisionReplay())
    for module in (answer_rates, changes):
        monkeypatch.setattr(module, "leads_to_citus", lambda _connection: True)
    assert await load_paces(engine, PrecisionReplay()) == together
    assert len(together) == len(various)


async def test_a_deleted_campaign_among_others_is_polled_as_none(engine):
    campaign = await create_running_campaign(engine)
    async with engine.connect() as connection:
        poll = await changes.poll_changes(connection, campaign.id)
        polls = await changes.poll_changes_of_campaigns(
            connection, [(campaign.id + 1, None), (campaign.id, None), (campaign.id, poll.watermark)]
        )
    assert polls == [None, poll, poll._replace(first_new_seq=None, previous=poll.watermark)]
