"""Items that cannot be judged, on the campaign's page."""

from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard import unjudged_items
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.item import load_item_judgments_and_unable_annotators
from app.dashboard.state import load_dashboard_state
from app.database.bulk import open_snapshot
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import NOW, create_annotator, find_or_lease_next_hit, try_to_lease_hit
from tests.annotation.hits.test_unjudged import BROKEN, answer, asking


async def seen(engine, campaign):
    """Return the dashboard state and the items that annotators could not judge."""
    async with open_snapshot(engine) as connection:
        row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        state = await load_dashboard_state(connection, PosteriorCache(), IncrementalReplays(), row.criteria[0], now=NOW)
        return state, await unjudged_items.load_items_annotators_could_not_judge(connection, row)


async def test_items_with_their_reasons_and_counts_and_what_is_still_wanted(engine):
    campaign = await asking(engine, items=2, judgments_per_item=4)
    for k, reason in enumerate((BROKEN, "Another reason")):
        me = await create_annotator(engine, campaign, f"ann {k}")
        await answer(engine, me, await try_to_lease_hit(engine, me), [1] if k else [0, 1], reason)
    state, listed = await seen(engine, campaign)
    assert [(line.external_id, line.people, dict(line.reasons), line.gone) for line in listed.lines] == [
        ("v1", 2, {"Another reason": 1, BROKEN: 1}, True),
        ("v0", 1, {BROKEN: 1}, False),
    ]
    assert (listed.found, listed.gone) == (2, 1)
    assert state.figures["cards"]["progress"]["share"] == 1 / 4  # v1 wants none any more
    assert state.figures["cards"]["progress"]["value"] == "1 of 4"
    assert state.figures["words"]["hits"] == "2 tasks"


async def test_of_an_item_who_judged_it_and_who_could_not(engine):
    campaign = await asking(engine, design="ranking", items=3, items_per_hit=3, judgments_per_item=4)
    for k in range(2):
        me = await create_annotator(engine, campaign, f"ann {k}")
        hit = await try_to_lease_hit(engine, me)
        await answer(engine, me, hit, [0] * k)
    async with open_snapshot(engine) as connection:
        answers, unable = await load_item_judgments_and_unable_annotators(connection, campaign.criteria[0], 0)
        others, nobody = await load_item_judgments_and_unable_annotators(connection, campaign.criteria[0], 1)
    assert ([one.annotator for one in answers], [one.annotator for one in unable]) == (["A1"], ["A2"])
    assert [one.reason for one in unable] == [BROKEN]
    assert {one.value for one in others} <= {1.0, 2.0, 3.0}
    assert (len(others), nobody) == (2, [])


async def test_a_campaign_that_does_not_ask_lists_nothing(engine):
    campaign = await asking(engine, cannot_be_judged=False)
    me = await create_annotator(engine, campaign)
    work = await find_or_lease_next_hit(engine, me)
    assert work.hit is not None
    _, listed = await seen(engine, campaign)
    assert (listed.lines, listed.found) == ((), 0)
