"""Log of all posteriors that were ever in force, kept by PostgreSQL itself, and its comparison with a replay.

`easel verify` compares what is stored in the end. Later answers may round a wrong bit away, and a revision replaces it:
the log has it nevertheless.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import open_snapshot
from app.database.session import DATABASE_ERRORS, create_engine
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.campaign_law import convert_judging_responses_to_hits_of_law
from app.record.replay import load_initial_beliefs
from app.record.responses import iterate_batches_of_responses
from tests.chaos.crowd import LaunchedCampaign
from tests.chaos.history import History

RESPONSES_PER_BATCH = 1000
SECONDS_BETWEEN_CHECKS = 15  # a replay takes the time of many answers

# `decided` is the last decision that the revision includes. Rows of a revision in the making are logged when it comes
# into force.
CREATE_LOG = """
    CREATE TABLE chaos_posteriors (
        campaign_id bigint, decided bigint, criterion smallint, subject int, state float8[]
    );
    CREATE FUNCTION chaos_log_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO chaos_posteriors SELECT c.id, c.decided, NEW.criterion, NEW.subject, NEW.state
        FROM campaigns c WHERE c.id = NEW.campaign_id AND c.revision = NEW.revision;
        RETURN NULL;
    END $$;
    CREATE FUNCTION chaos_log_switch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO chaos_posteriors SELECT NEW.id, NEW.decided, p.criterion, p.subject, p.state
        FROM posteriors p WHERE p.campaign_id = NEW.id AND p.revision = NEW.revision;
        RETURN NULL;
    END $$;
    CREATE TRIGGER chaos_log AFTER UPDATE OF state ON posteriors FOR EACH ROW EXECUTE FUNCTION chaos_log_update();
    CREATE TRIGGER chaos_log AFTER UPDATE OF revision ON campaigns FOR EACH ROW EXECUTE FUNCTION chaos_log_switch();
"""

FIND_LOGGED_POSTERIORS = text("""
    SELECT DISTINCT decided, criterion, subject, state FROM chaos_posteriors WHERE campaign_id = :campaign
    ORDER BY 1, 2, 3
""")
EMPTY_LOG = text("TRUNCATE chaos_posteriors")

# Of a database that is away for a while.
PASSING_PROBLEMS = (SQLAlchemyError, *DATABASE_ERRORS)

ItemState = tuple[int, bytes]
"""An item and the bits of its posterior."""


async def watch_posteriors(
    database_url: str,
    campaigns: Sequence[LaunchedCampaign],
    history: History,
    is_over: asyncio.Event,
    seconds_between_checks: float,
) -> None:
    """Check the logged posteriors of all campaigns now and then."""
    engine = create_engine(database_url, pool_size=1)
    while not is_over.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(is_over.wait(), seconds_between_checks)
            break
        with suppress(*PASSING_PROBLEMS):
            async with open_snapshot(engine) as connection:
                for campaign in [*campaigns]:
                    history.note_violations(await find_posterior_violations(connection, campaign.slug))
                    await asyncio.sleep(0)  # annotators take their turns
    await engine.dispose()


async def find_posterior_violations_and_empty_log(database_url: str, slugs: Sequence[str]) -> list[str]:
    """Check all logged posteriors of a round once its faults are over."""
    engine = create_engine(database_url, pool_size=1)
    async with open_snapshot(engine) as connection:
        found = [problem for slug in slugs for problem in await find_posterior_violations(connection, slug)]
    async with engine.begin() as connection:
        await connection.execute(EMPTY_LOG)
    await engine.dispose()
    return found


async def find_posterior_violations(connection: AsyncConnection, slug: str) -> list[str]:
    """Return the logged posteriors of a campaign that no moment of a replay has, bit for bit."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    rows = (await connection.execute(FIND_LOGGED_POSTERIORS, {"campaign": campaign.id})).all()
    replayed = {
        (decided, number): await replay_to_item_states(connection, campaign.criteria[number], decided)
        for decided, number in {(row.decided, row.criterion) for row in rows}
    }
    return [
        f"{slug}: the posterior {row.state} of item {row.subject} was in force, and no moment of a replay has it"
        for row in rows
        if item_state(row.subject, row.state) not in replayed[row.decided, row.criterion]
    ]


async def replay_to_item_states(
    connection: AsyncConnection, criterion: Criterion[Campaign], last_decision: int
) -> set[ItemState]:
    """Return all posteriors that a replay goes through, with the decisions up to this one."""
    beliefs = await load_initial_beliefs(connection, criterion)
    states = {item_state(item, state) for item, state in enumerate(beliefs.state.T)}
    batches = iterate_batches_of_responses(
        connection,
        criterion.campaign.id,
        RESPONSES_PER_BATCH,
        last_decision=last_decision,
        criterion=criterion.number,
    )
    async for responses in batches:
        hits = convert_judging_responses_to_hits_of_law(criterion, responses)
        for change in beliefs.apply_hits_and_iterate_changes(hits):
            states.update(iterate_item_states(change.items, change.state))
    return states


def iterate_item_states(items: Sequence[int], columns: Sequence[Sequence[float]]) -> Iterator[ItemState]:
    for item, *state in zip(items, *columns, strict=True):
        yield item_state(item, state)


def item_state(item: int, state: "Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> ItemState:
    return item, np.asarray(state, np.float64).tobytes()
