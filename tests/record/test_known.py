"""HITs applied to what PostgreSQL holds, a transaction after another: the bits of a replay in memory."""

import numpy as np
import pytest

from app.database.session import driver_of
from app.errors import Conflict
from app.inference.online.annotator_aware_editions import INITIAL_CAMPAIGN_STATE
from app.inference.online.annotator_aware_law import LAW as EASL_AWARE
from app.inference.online.law import (
    LawState,
)
from app.inference.online.state_queries import (
    run_law_steps,
)
from app.record import bulk_update, law_storage
from app.record.campaign_law import convert_response_to_hit_of_law
from app.record.law_runner import LawRunner
from app.record.law_storage import Revision
from app.record.responses import Response
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    submit_scores,
)
from tests.annotation.hits.campaigns import try_to_lease_hit as shown_to
from tests.inference.beliefs import StoredCampaign, initial_beliefs, law_state_json
from tests.laws import SCORE_LAWS

ITEMS, FEW = 12, 3


def answers(count: int, *, items: int = ITEMS, size: int = 5, seed: int = 1) -> list[Response]:
    """Return answers of five annotators in turn; the first one answers at random."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        shown = rng.permutation(items)[:size]
        points = rng.integers(0, 101, size) if k % 5 == 0 else np.clip(8 * shown + rng.integers(0, 12, size), 0, 100)
        made.append(Response(k + 1, k % 5, shown.tolist(), points.astype(float).tolist()))
    return made


async def folded(engine, campaign, responses, at_once: int) -> None:
    """Apply responses to the stored state, some of them per transaction."""
    for start in range(0, len(responses), at_once):
        some = responses[start : start + at_once]
        async with engine.begin() as connection:
            (locked,) = await bulk_update.lock_and_load_posteriors_of_each_criterion(connection, campaign, some)
            await bulk_update.apply_answers_and_count_by_item(connection, campaign.criteria[0], some, locked)


def in_memory(campaign, responses, *, items: int = ITEMS, kept: LawState | None = None):
    beliefs = initial_beliefs(campaign.law, items, campaign.criteria[0].law_parameters, kept)
    beliefs.apply_hits([convert_response_to_hit_of_law(campaign.criteria[0], response) for response in responses])
    return beliefs


async def posteriors(engine, revision: int = 0):
    """Return the numbers of the posteriors, item by item."""
    stored = "SELECT state FROM posteriors WHERE revision = :revision ORDER BY subject"
    return [state for (state,) in await fetch_rows(engine, stored, revision=revision)]


async def kept_of(engine, of: Revision):
    async with engine.connect() as connection:
        return law_state_json(await law_storage.load_whole_law_state(await driver_of(connection), of))


async def under_the_first_rule(engine) -> LawState:
    """Empty the stored state, as before the first answer under the first rule, and return it."""
    await execute_sql(engine, "UPDATE states SET state = ''")
    return LawState([])


@pytest.mark.parametrize("at_once", [1, 3, 40])
@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_what_is_stored_has_the_bits_of_what_is_known_in_memory_however_many_hits_come_at_once(
    engine, law, at_once
):
    campaign = await create_running_campaign(
        engine, update_law=law, items=ITEMS, judgments_per_item=500, tie_margin_points=3
    )
    await folded(engine, campaign, answers(40), at_once)
    beliefs = in_memory(campaign, answers(40))
    assert await posteriors(engine) == beliefs.state.T.tolist()
    assert await kept_of(engine, Revision(campaign.id, 0)) == law_state_json(beliefs.law_state_besides_posteriors())


@pytest.mark.parametrize("at_once", [1, 7])
@pytest.mark.parametrize("rule", ["first", "present"])
async def test_of_items_with_many_judgments_only_what_is_looked_at_is_read_and_the_bits_stay_the_same(
    engine, monkeypatch, rule, at_once
):
    campaign = await create_running_campaign(
        engine, update_law="easl-aware", items=FEW, items_per_hit=2, judgments_per_item=500
    )
    kept = await under_the_first_rule(engine) if rule == "first" else None
    read, long_of_items = [], law_storage.load_item_tail_by_number

    async def noted(driver, of, numbers):
        read.extend(numbers)
        return await long_of_items(driver, of, numbers)

    monkeypatch.setattr(law_storage, "load_item_tail_by_number", noted)
    responses = answers(140, items=FEW, size=2)
    await folded(engine, campaign, responses, at_once)
    beliefs = in_memory(campaign, responses, items=FEW, kept=kept)
    assert await posteriors(engine) == beliefs.state.T.tolist()
    assert await kept_of(engine, Revision(campaign.id, 0)) == law_state_json(beliefs.law_state_besides_posteriors())
    if at_once == 1:
        looked = StoredCampaign(EASL_AWARE, initial_beliefs(EASL_AWARE, FEW, law_state=kept))
        changes = [
            looked.apply_hit_and_return_change(convert_response_to_hit_of_law(campaign.criteria[0], response))
            for response in responses
        ]
        assert read == [k for one in changes for k, (_, long) in one.law_state.items.items() if long is not None]
    else:
        assert len(read) <= FEW * (140 // at_once)  # once in a transaction, then it is remembered


async def test_what_judgments_count_for_is_told_from_what_is_stored(engine):
    campaign = await create_running_campaign(engine, update_law="easl-aware", items=ITEMS, judgments_per_item=500)
    await folded(engine, campaign, answers(30), 30)
    stored = StoredCampaign(EASL_AWARE, initial_beliefs(EASL_AWARE, ITEMS))
    for response in answers(30):
        stored.apply_hit_and_return_change(convert_response_to_hit_of_law(campaign.criteria[0], response))
    for item in range(ITEMS):
        asking, again = (
            EASL_AWARE.judgment_weights_querying_state_or_none(item),
            EASL_AWARE.judgment_weights_querying_state_or_none(item),
        )
        async with engine.connect() as connection:
            known = LawRunner(await driver_of(connection), Revision(campaign.id, 0), EASL_AWARE, {})
            assert await known.run_law_steps_answering_their_queries(asking) == run_law_steps(
                again, stored.answer_state_query
            )


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_a_revision_beside_the_present_one_is_changed_alone(engine, law):
    campaign = await create_running_campaign(engine, update_law=law, items=ITEMS, judgments_per_item=500)
    await folded(engine, campaign, answers(10), 10)
    for table in ("posteriors", "states"):
        columns = ", ".join(name for (name,) in await fetch_rows(engine, COLUMNS, name=table))
        await execute_sql(engine, f"INSERT INTO {table} ({columns}, revision) SELECT {columns}, 1 FROM {table}")
    before, draft = await kept_of(engine, Revision(campaign.id, 0)), Revision(campaign.id, 1)
    for some in (answers(25)[10:20], answers(25)[20:]):
        async with engine.begin() as connection:
            await bulk_update.apply_answers_and_count_by_item(
                connection,
                campaign.criteria[0],
                some,
                await bulk_update.lock_and_load_posteriors_of_items(connection, draft, some),
            )
    beliefs = in_memory(campaign, answers(25))
    assert await posteriors(engine, 1) == beliefs.state.T.tolist()
    assert await kept_of(engine, draft) == law_state_json(beliefs.law_state_besides_posteriors())
    assert await kept_of(engine, Revision(campaign.id, 0)) == before
    assert await posteriors(engine) == in_memory(campaign, answers(10)).state.T.tolist()


COLUMNS = """
    SELECT column_name FROM information_schema.columns WHERE table_name = :name AND column_name <> 'revision'
"""


async def test_states_of_another_version_are_refused_and_stay_as_they_are(engine):
    campaign = await create_running_campaign(engine, update_law="easl-aware", items=ITEMS)
    await execute_sql(engine, "UPDATE states SET layout = 2")
    me = await create_annotator(engine, campaign)
    hit = await shown_to(engine, me)
    with pytest.raises(Conflict, match="stored as version 2, but this Easel reads version 1") as refusal:
        await submit_scores(engine, me, hit)
    assert refusal.value.code == "states_of_another_version"
    assert await fetch_rows(engine, "SELECT layout, kind FROM states") == [(2, "campaign")]
    assert await fetch_rows(engine, "SELECT count(*) FROM responses") == [(0,)]


async def test_a_law_begins_with_what_it_keeps_under_the_present_rule(engine):
    campaign = await create_running_campaign(engine, update_law="easl-aware", items=ITEMS)
    assert await kept_of(engine, Revision(campaign.id, 0)) == {
        "campaign": INITIAL_CAMPAIGN_STATE,
        "annotators": {},
        "items": {},
    }


def test_a_state_of_many_items_is_split_so_that_each_item_is_stored_once_and_the_campaign_with_the_first(monkeypatch):
    monkeypatch.setattr(law_storage, "ITEM_STATES_PER_WRITE", 2)
    items = {number: ([float(number)], None) for number in range(5)}
    parts = [*law_storage.iterate_law_state_in_item_batches(LawState([1.0], {7: [2.0]}, items))]
    assert [[*part.items] for part in parts] == [[0, 1], [2, 3], [4]]
    assert [(part.campaign, dict(part.annotators)) for part in parts] == [([1.0], {7: [2.0]}), (None, {}), (None, {})]
    assert {number: state for part in parts for number, state in part.items.items()} == items


async def test_the_state_of_a_campaign_is_stored_under_one_number_by_every_release(engine):
    await create_running_campaign(engine, update_law="easl-aware", items=ITEMS)
    assert await fetch_rows(engine, "SELECT number FROM states WHERE kind = 'campaign'") == [(0,)]
