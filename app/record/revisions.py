"""Decisions about the record, and posteriors without what they leave out, made while people go on answering.

The responses that count are applied again beside the present revision, without a lock, and then those that came
meanwhile, until few are left. One short transaction locks the campaign's row, which whoever stores an answer holds too,
applies the last ones, and makes the new revision the present one. An answer that waited for that finds its revision
gone, and is taken anew.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from weakref import WeakValueDictionary

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.bulk import snapshot
from app.database.campaign import finish_if_complete
from app.errors import Conflict
from app.record import stream
from app.record.folding import fold, lock
from app.record.law import law_of
from app.record.news import watermark
from app.record.replay import applied
from app.record.states import Revision
from app.record.store import begin
from app.record.stream import Response

Kind = Literal["exclude", "include", "withdraw"]

FEW = 20  # answers that may be left to apply while nobody can store one

CAMPAIGN = text("SELECT * FROM campaigns WHERE id = :campaign")

DUE = text("SELECT max(seq) FROM decisions WHERE campaign_id = :campaign")

ALL_DUE = text("""
    SELECT id FROM campaigns c
    WHERE EXISTS (SELECT FROM decisions d WHERE d.campaign_id = c.id AND d.seq > c.decided) ORDER BY id
""")

# Numbers of decisions are taken under this lock, so whoever sees one sees all before it.
LOCK_CAMPAIGN = text("SELECT status FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE")

DECIDE = text("""
    INSERT INTO decisions (campaign_id, kind, annotator_id, response_seq, reason, decided_by, decided_at)
    VALUES (:campaign, :kind, :annotator, :response, :reason, :by, :now) RETURNING seq
""")

ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtext('campaign.revision'), CAST(:campaign AS int))")

# Of an attempt that was interrupted, and of revisions before the present one: nobody reads them.
CLEAR = tuple(
    text(f"DELETE FROM {table} WHERE campaign_id = :campaign AND revision <> :revision")  # noqa: S608  (constants)
    for table in ("posteriors", "states")
)

# A foreign key's KEY SHARE does not wait for less.
LOCK_OUT = text("SELECT 1 FROM campaigns WHERE id = :campaign FOR UPDATE")

SWITCH = text("UPDATE campaigns SET revision = :revision, decided = :decided WHERE id = :campaign")

TURNS: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()  # those of this process hold one connection


@dataclass
class NextRevision:
    """A revision in the making. It knows the decisions up to the number `decided`, all responses that were written
    before the watermark, and of later ones those with the numbers `known`.
    """

    campaign: Row[Any]
    decided: int
    watermark: int
    known: list[int] = field(default_factory=list)

    @property
    def of(self) -> Revision:
        return Revision(self.campaign.id, self.campaign.revision + 1)


async def decide(
    connection: AsyncConnection,
    campaign: Row[Any],
    kind: Kind,
    *,
    annotator: int | None = None,
    response: int | None = None,
    reason: str,
    by: str,
    now: datetime,
) -> int:
    """Note a decision about all answers of an annotator, by their row's id, or about one response, by its number; the
    number of the decision. Posteriors follow with `revise`.

    exclude: it counts no more. withdraw: the annotator took it back. include: it counts again.
    Raises `Conflict` (`not_launched`).
    """
    status = (await connection.execute(LOCK_CAMPAIGN, {"campaign": campaign.id})).scalar_one()
    if status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no answers yet.", code="not_launched")
    parameters = {"campaign": campaign.id, "kind": kind, "annotator": annotator, "response": response}
    seq: int = (await connection.execute(DECIDE, parameters | {"reason": reason, "by": by, "now": now})).scalar_one()
    return seq


async def revise(engine: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Make a revision that knows all decisions, if the present one does not, and make it the present one.

    `now` is noted as the time if it finishes the campaign. Interrupted at any point, it leaves the present revision as
    it is, and can be called again.
    """
    async with turn(engine, campaign_id):
        draft = await drafted(engine, campaign_id)
        if draft is None:
            return
        while await caught_up(engine, draft) > FEW:
            pass
        await switch(engine, draft, now=now)
        async with engine.begin() as connection:
            await clear(connection, draft.of)


async def revise_all(engine: AsyncEngine, *, now: datetime) -> None:
    """`revise` where decisions were left without it, as a server that was killed leaves them."""
    async with engine.connect() as connection:
        due = (await connection.execute(ALL_DUE)).scalars().all()
    for campaign_id in due:
        await revise(engine, campaign_id, now=now)


@asynccontextmanager
async def turn(engine: AsyncEngine, campaign_id: int) -> AsyncIterator[None]:
    """One revision of a campaign at a time, in all processes."""
    lock = TURNS.setdefault(campaign_id, asyncio.Lock())
    async with lock, engine.connect() as connection:
        await connection.execute(ONE_AT_A_TIME, {"campaign": campaign_id})
        yield


async def drafted(engine: AsyncEngine, campaign_id: int) -> NextRevision | None:
    """The next revision as of now, stored beside the present one; None if that knows all decisions."""
    async with snapshot(engine) as connection:
        campaign = (await connection.execute(CAMPAIGN, {"campaign": campaign_id})).one()
        decided = (await connection.execute(DUE, {"campaign": campaign_id})).scalar_one()
        if decided is None or decided <= campaign.decided:
            return None
        draft = NextRevision(campaign, decided, await watermark(connection))
        draft.known = [answer.seq for answer in await unseen(connection, draft)]
        beliefs, judgments, _ = await applied(connection, campaign, decided=decided)
    async with engine.begin() as connection:
        await clear(connection, Revision.present(campaign))
        await begin(connection, draft.of, law_of(campaign), beliefs, judgments)
    return draft


async def caught_up(engine: AsyncEngine, draft: NextRevision) -> int:
    """How many answers were written since the last look; the draft has them now."""
    async with engine.begin() as connection:
        answers = await follow(connection, draft)
    draft.known += answers
    return len(answers)


async def follow(connection: AsyncConnection, draft: NextRevision) -> list[int]:
    """Apply the answers that the draft does not know to its posteriors; their numbers.

    Of answers that share an item, none is written before the one with the lower number is; of others it does not matter
    which is applied first.
    """
    answers = await unseen(connection, draft)
    await fold(connection, draft.campaign, answers, await lock(connection, draft.of, answers))
    return [answer.seq for answer in answers]


async def unseen(connection: AsyncConnection, draft: NextRevision) -> list[Response]:
    """The answers that count and that the draft does not know."""
    return await stream.since(
        connection, draft.campaign.id, draft.watermark, without=draft.known, decided=draft.decided
    )


async def switch(engine: AsyncEngine, draft: NextRevision, *, now: datetime) -> None:
    """Make the draft the present revision, with the answers that came to the last."""
    of = draft.of.parameters
    async with engine.begin() as connection:
        await connection.execute(LOCK_OUT, of)
        await follow(connection, draft)
        await connection.execute(SWITCH, {**of, "decided": draft.decided})
        await finish_if_complete(connection, draft.of.campaign, now=now)


async def clear(connection: AsyncConnection, present: Revision) -> None:
    """Let go of all revisions but the present one: of earlier ones, and of what an interrupted attempt left."""
    for statement in CLEAR:
        await connection.execute(statement, present.parameters)
