"""States of assignments, read for several at once, and what a process remembers of them."""

from app.annotation.hits import submission
from app.annotation.hits.assignment import (
    AssignmentQuery,
    load_assignments_updating_posteriors,
    load_changes_updating_posteriors,
)
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import create_campaign_of_systems


async def load_states(engine, cache, campaign, *assignments, refresh=False):
    queries = [AssignmentQuery(assignment) for assignment in assignments]
    async with borrow_autocommit_driver(engine) as connection:
        return await load_assignments_updating_posteriors(connection, cache, campaign.id, queries, refresh=refresh)


async def test_assignments_that_do_not_exist_are_left_out_and_the_first_one_has_what_open_hits_hold(engine):
    campaign = await create_running_campaign(engine)
    first, second = [await create_annotator(engine, campaign, name) for name in ("first", "second")]
    gone = AssignmentId(campaign.id, 2**40)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "holder"))
    states = await load_states(engine, PosteriorCache(), campaign, second, gone, first)
    assert [*states] == [second.assignment_id, first.assignment_id]
    held = [states[one.assignment_id].held for one in (second, first)]
    assert (sorted(held[0] or ()), held[1]) == (sorted(hit.items), None)
    assert {state.question for state in states.values()} == {"How frequent?"}
    assert await load_states(engine, PosteriorCache(), campaign, gone) == {}


async def test_the_history_of_an_assignment_is_selected_once_and_then_remembered_with_new_answers(engine):
    campaign, cache = await create_running_campaign(engine, judgments_per_item=50), PosteriorCache()
    me = await create_annotator(engine, campaign)
    first = await try_to_lease_hit(engine, me, cache=cache)
    await submit_scores(engine, me, first)
    states = [(await load_states(engine, cache, campaign, me))[me.assignment_id] for _ in range(2)]
    assert [state.history.answered_hits for state in states] == [{first.id}] * 2
    assert [state.seen for state in states] == [{*first.items}] * 2
    assert states[1].own_hits is None
    second = await try_to_lease_hit(engine, me, cache=cache)
    await submit_scores(engine, me, second)
    state = (await load_states(engine, cache, campaign, me))[me.assignment_id]
    assert (state.own_hits, state.hits_answered, state.seen) == (None, 2, {*first.items, *second.items})
    await execute_sql(engine, "UPDATE posteriors SET revision = 1")
    await execute_sql(engine, "UPDATE campaigns SET revision = 1")
    state = (await load_states(engine, cache, campaign, me))[me.assignment_id]
    assert (state.hits_answered, state.seen) == (2, {*first.items, *second.items})
    assert state.own_hits is not None  # the copy of the former revision went, and what it remembered


async def test_extended_assignments_are_selected_with_unjudged_segments_whether_the_cache_knows_the_campaign_or_not(
    engine,
):
    campaign, cache = await create_campaign_of_systems(engine, cannot_be_judged=True), PosteriorCache()
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me, cache=cache)
    answer = Answer({}, unjudged=dict.fromkeys(hit.items, campaign.unjudged_reasons[0]))
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    other = await try_to_lease_hit(engine, await create_annotator(engine, campaign, "other"), cache=cache)
    for known in (PosteriorCache(), cache, cache):
        state = (await load_states(engine, known, campaign, me))[me.assignment_id]
        assert (state.not_judged, state.seen) == ([hit.segment], {hit.segment})
        assert state.held_segments == [other.segment]
        assert known.extended_campaigns == {campaign.id}
        async with borrow_autocommit_driver(engine) as connection:
            changes = await load_changes_updating_posteriors(connection, known, campaign.id)
        assert changes.held_segments == [other.segment]


async def test_assignments_of_a_usual_campaign_are_selected_without_segments_and_unjudged_items(engine):
    campaign, cache = await create_running_campaign(engine), PosteriorCache()
    me = await create_annotator(engine, campaign)
    for _ in range(2):
        state = (await load_states(engine, cache, campaign, me))[me.assignment_id]
        assert (state.not_judged, state.held_segments, cache.extended_campaigns) == (None, None, set())
        async with borrow_autocommit_driver(engine) as connection:
            changes = await load_changes_updating_posteriors(connection, cache, campaign.id)
        assert (changes.held, changes.held_segments) == ([], None)


async def test_a_campaign_is_selected_again_when_its_settings_have_changed(engine):
    campaign, cache = await create_running_campaign(engine), PosteriorCache()
    me = await create_annotator(engine, campaign)
    first = (await load_states(engine, cache, campaign, me))[me.assignment_id]
    again = (await load_states(engine, cache, campaign, me))[me.assignment_id]
    assert again.campaign is first.campaign is cache.campaigns[campaign.id]
    await execute_sql(engine, "UPDATE campaigns SET question = 'How rare?'")
    changed = (await load_states(engine, cache, campaign, me))[me.assignment_id]
    assert (first.question, changed.question) == ("How frequent?", "How rare?")
