"""Decisions about the record, and posteriors without what they leave out, made while people go on answering.

The responses that count are applied again beside the present revision, without a lock, and then those that came
meanwhile, until few are left. One short transaction takes the right to store from everybody, applies the last ones, and
makes the new revision the present one. An answer that waited for that finds its revision gone, and is taken anew.

Of a long campaign all this is done in another process. Decisions that come while a revision is made are acted on
together, by the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.bulk import Numbers
from app.database.campaign import finish_if_complete
from app.database.session import create_engine, sqlstate_of
from app.designs.criteria import criteria_of, number_of
from app.errors import Conflict, NotFound
from app.inference.online.law import Beliefs
from app.inference.online.laws import ONLINE
from app.record import states, stream, unjudged
from app.record.apart import apart
from app.record.folding import fold, lock
from app.record.law import law_of
from app.record.news import Watermark, look
from app.record.replay import applied
from app.record.states import Revision
from app.record.store import begin
from app.record.stream import Response

Kind = Literal["exclude", "include", "withdraw"]

FEW = 20  # answers that may be left to apply while nobody can store one, by a law that takes microseconds for each
FEW_SLOW = 3
LONG, LONG_SLOW = 2_000, 200  # answers that are replayed in about the time in which another process begins

# The switch waits for those who are storing no longer than this, since everybody else waits for it; then it lets them
# go on for three times as long. Each time it waits longer: where storing takes long, its turn would never come.
PATIENCE_MS, MOST_PATIENCE_MS = 100, 3_200
PATIENCE = text("SELECT set_config('lock_timeout', CAST(CAST(:milliseconds AS int) AS text), true)")
LOCK_NOT_AVAILABLE = "55P03"

CAMPAIGN = text("SELECT * FROM campaigns WHERE id = :campaign")

DUE = text("SELECT max(seq) FROM decisions WHERE campaign_id = :campaign")

# Whether a campaign has decisions that its revision does not know, and how many answers, :most at most.
WORK = text("""
    SELECT update_law, coalesce((SELECT max(seq) FROM decisions WHERE campaign_id = :campaign), 0) > decided AS due,
           (SELECT count(*) FROM (SELECT FROM responses WHERE campaign_id = :campaign LIMIT :most) AS few) AS answers
    FROM campaigns WHERE id = :campaign
""")

ALL_DUE = text("""
    SELECT id FROM campaigns c
    WHERE EXISTS (
        SELECT FROM decisions d WHERE d.campaign_id = c.id AND d.seq > c.decided
        AND d.decided_at <= coalesce(CAST(:before AS timestamptz), 'infinity')
    ) ORDER BY id
""")

# Numbers of decisions are taken under this lock, so whoever sees one sees all before it.
LOCK_CAMPAIGN = text("SELECT status FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE")

DECIDE = text("""
    INSERT INTO decisions (campaign_id, kind, annotator_id, response_seq, reason, decided_by, decided_at)
    VALUES (:campaign, :kind, :annotator, :response, :reason, :by, :now) RETURNING seq
""")

ONE_AT_A_TIME = text("SELECT pg_advisory_lock(hashtext('campaign.revision'), CAST(:campaign AS int))")

# Of an attempt that was interrupted, and of revisions before the present one: nobody reads them.
CLEAR = tuple(
    text(f"DELETE FROM {table} WHERE campaign_id = :campaign AND revision <> :revision")  # noqa: S608  (constants)
    for table in ("states", "posteriors")  # in the order in which answers lock them
)

# Whoever writes rows of the campaign without the right to store, as a server of an earlier version does, waits here: a
# foreign key's KEY SHARE does not wait for less.
LOCK_OUT = text("SELECT 1 FROM campaigns WHERE id = :campaign FOR UPDATE")

SWITCH = text("""
    UPDATE campaigns SET revision = :revision, decided = :decided WHERE id = :campaign AND revision = :revision - 1
""")

ONE_IN_A_TRANSACTION = text("SELECT pg_advisory_xact_lock(hashtext('campaign.revision'), CAST(:campaign AS int))")

ABOUT = {
    "annotator": text("SELECT 1 FROM annotators WHERE campaign_id = :campaign AND id = :number"),
    "response": text("SELECT 1 FROM responses WHERE campaign_id = :campaign AND seq = :number"),
}

# One revision at a time in this process, so that they never take all its connections; and one beside it.
TURN, TURN_APART = asyncio.Lock(), asyncio.Lock()

About = Literal["annotator", "response"]


@dataclass
class NextRevision:
    """A revision in the making: it knows the decisions up to the number `decided`, and what was written before the
    watermark. said: by item, who could not judge it. in_vain: how often it came no nearer to being the present one.
    """

    campaign: Row[Any]
    decided: int
    watermark: Watermark
    said: dict[int, set[int]]
    in_vain: int = 0

    @property
    def of(self) -> Revision:
        return following(self.campaign)

    @property
    def few(self) -> int:
        """How many answers may be left to apply at the switch: more each time, or the last ones might never be few."""
        return (FEW if law_of(self.campaign).quick else FEW_SLOW) << self.in_vain

    @property
    def patience(self) -> dict[str, int]:
        """How long it may wait for a lock, as a parameter."""
        return {"milliseconds": min(PATIENCE_MS << self.in_vain, MOST_PATIENCE_MS)}


def following(campaign: Any) -> Revision:
    """The revision after the present one, by the criterion that the campaign is read by."""
    return Revision(campaign.id, campaign.revision + 1, number_of(campaign))


async def decide(
    connection: AsyncConnection,
    campaign: Row[Any],
    kind: Kind,
    about: About,
    number: int,
    *,
    reason: str,
    by: str,
    now: datetime,
) -> int:
    """Note a decision about all answers of an annotator, by their row's id, or about one response, by its number; the
    number of the decision. Posteriors follow with `revise`.

    exclude: it counts no more. withdraw: the annotator took it back. include: it counts again. Whoever is left out is
    still asked: whether they are is not for the record to say.
    Raises `Conflict` (`not_launched`) and `NotFound` (`annotator_not_found`, `response_not_found`).
    """
    status = (await connection.execute(LOCK_CAMPAIGN, {"campaign": campaign.id})).scalar_one()
    if status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no answers yet.", code="not_launched")
    parameters = {"campaign": campaign.id, "kind": kind, "number": number, "annotator": None, "response": None}
    if (await connection.execute(ABOUT[about], parameters)).first() is None:
        raise NotFound(f"“{campaign.name}” has no {about} {number}.", code=f"{about}_not_found")
    noted = parameters | {about: number, "reason": reason, "by": by, "now": now}
    seq: int = (await connection.execute(DECIDE, noted)).scalar_one()
    return seq


async def revise(engine: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Make a revision that knows all decisions, if the present one does not, and make it the present one.

    `now` is noted as the time if it finishes the campaign. Interrupted at any point, it leaves the present revision as
    it is, and can be called again. It takes one connection, and waits for others that are being made.

    Raises what `replay.applied` and `apart` raise.
    """
    _, long = await work_left(engine, campaign_id)
    async with TURN_APART if long else TURN:
        due, _ = await work_left(engine, campaign_id)
        if due and long:
            url = engine.url.render_as_string(hide_password=False)
            await apart(make_on, url, campaign_id, now)
        elif due:
            await make(engine, campaign_id, now=now)


async def work_left(engine: AsyncEngine, campaign_id: int) -> tuple[bool, bool]:
    """Whether there are decisions that the present revision does not know, and whether a replay takes long."""
    async with engine.connect() as connection:
        row = (await connection.execute(WORK, {"campaign": campaign_id, "most": LONG})).one()
    return row.due, row.answers >= (LONG if ONLINE[row.update_law].quick else LONG_SLOW)


async def make_on(url: str, campaign_id: int, now: datetime) -> None:
    """`make`, in a process that has no engine."""
    engine = create_engine(url, pool_size=1)
    try:
        await make(engine, campaign_id, now=now)
    finally:
        await engine.dispose()


async def replay_posteriors(engine: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Make a revision from the same answers and decisions, such as after the arithmetic has changed, beside the work
    of annotators and however long it takes.
    """
    await make(engine, campaign_id, now=now, unchanged=True)


async def make(engine: AsyncEngine, campaign_id: int, *, now: datetime, unchanged: bool = False) -> None:
    """The revision, however long it takes. unchanged: also if no decision asks for it."""
    async with turn(engine, campaign_id) as connection:
        draft = await drafted(connection, campaign_id, unchanged=unchanged)
        if draft is None:
            return
        while not await switched(connection, draft):
            pass
        async with connection.begin():
            await finish_if_complete(connection, campaign_id, now=now)
        while not await in_time(alone(connection, draft), draft):  # who still waits for the old one
            pass
        async with connection.begin():
            await clear(connection, draft.of)


async def switched(connection: AsyncConnection, draft: NextRevision) -> bool:
    """Catch up, then make the draft the present revision, if those who are storing let it come to that."""
    left = await caught_up(connection, draft)
    while left > draft.few:
        before, left = left, await caught_up(connection, draft)
        draft.in_vain += left >= before
    return await in_time(switch(connection, draft), draft)


async def alone(connection: AsyncConnection, draft: NextRevision) -> bool:
    """Whether everybody who was storing has ended."""
    async with connection.begin():
        await connection.execute(PATIENCE, draft.patience)
        await connection.execute(states.LOCK_OUT_HOLDERS, draft.of.parameters)
    return True


async def in_time(locking: Awaitable[bool], draft: NextRevision) -> bool:
    """What it gives; False, after a pause, if others held what it waits for too long."""
    try:
        return await locking
    except DBAPIError as trouble:
        if sqlstate_of(trouble) != LOCK_NOT_AVAILABLE:
            raise
        draft.in_vain += 1
        await asyncio.sleep(3 * draft.patience["milliseconds"] / 1000)
        return False


async def wait_in_line(connection: AsyncConnection, campaign_id: int) -> None:
    """Until the transaction ends, nobody else makes a revision of a campaign."""
    await connection.execute(ONE_IN_A_TRANSACTION, {"campaign": campaign_id})


async def keep_out(connection: AsyncConnection, campaign_id: int) -> None:
    """Until the transaction ends, nobody else stores an answer, leases a HIT or makes a revision of a campaign."""
    for statement in (ONE_IN_A_TRANSACTION, states.LOCK_OUT_HOLDERS, LOCK_OUT):
        await connection.execute(statement, {"campaign": campaign_id})


async def begin_anew(connection: AsyncConnection, campaign_id: int) -> None:
    """Make a revision from the same answers for a campaign that has other items now, and make it the present one: so
    everybody who keeps something of the one before learns of it. Whoever calls this has kept the others out.
    """
    campaign = (await connection.execute(CAMPAIGN, {"campaign": campaign_id})).one()
    views = criteria_of(campaign)
    again = [await applied(connection, view) for view in views]
    await clear(connection, Revision.present(campaign))
    await begin_all(connection, views, again)
    await connection.execute(SWITCH, {**following(campaign).parameters, "decided": campaign.decided})


async def begin_all(
    connection: AsyncConnection, views: Sequence[Any], again: Sequence[tuple[Beliefs, Numbers, int]]
) -> None:
    """Store what `applied` gave by each criterion as the next revision."""
    for view, (beliefs, judgments, _) in zip(views, again, strict=True):
        await begin(connection, following(view), law_of(view), beliefs, judgments)


async def due(engine: AsyncEngine, *, before: datetime | None = None) -> Sequence[int]:
    """Campaigns with decisions that their present revision does not know, as a server that was killed leaves them;
    before: only of those that were made until then.
    """
    async with engine.connect() as connection:
        return (await connection.execute(ALL_DUE, {"before": before})).scalars().all()


@asynccontextmanager
async def turn(engine: AsyncEngine, campaign_id: int) -> AsyncIterator[AsyncConnection]:
    """One revision of a campaign at a time, in all processes: a connection that holds a lock, and breaks to let go of
    it, whatever has happened.
    """
    async with engine.connect() as connection:
        try:
            async with connection.begin():
                await connection.execute(ONE_AT_A_TIME, {"campaign": campaign_id})
            yield connection
        finally:
            await connection.invalidate()


async def drafted(connection: AsyncConnection, campaign_id: int, *, unchanged: bool) -> NextRevision | None:
    """The next revision as of now, stored beside the present one; None if that knows all decisions, unless it is to be
    made with them `unchanged`.
    """
    await connection.execution_options(isolation_level="REPEATABLE READ")
    async with connection.begin():
        campaign = (await connection.execute(CAMPAIGN, {"campaign": campaign_id})).one()
        decided = (await connection.execute(DUE, {"campaign": campaign_id})).scalar_one() or 0
        if decided <= campaign.decided and not unchanged:
            return None
        decided = max(decided, campaign.decided)
        said = await unjudged.who(connection, campaign, decided=decided)
        draft = NextRevision(campaign, decided, (await look(connection, campaign_id)).watermark, said)
        views = criteria_of(campaign)
        again = [await applied(connection, view, decided=decided) for view in views]
    await connection.execution_options(isolation_level="READ COMMITTED")
    async with connection.begin():
        await clear(connection, Revision.present(campaign))
    async with connection.begin():
        await begin_all(connection, views, again)
        await unjudged.put(connection, draft.of, draft.said)
    return draft


async def caught_up(connection: AsyncConnection, draft: NextRevision) -> int:
    """How many answers were written since the last look; the draft has them now."""
    async with connection.begin():
        now, answers = await unseen(connection, draft)
        await follow(connection, draft, answers)
    draft.watermark = now
    return len(answers[0])


async def follow(connection: AsyncConnection, draft: NextRevision, answers: Sequence[Sequence[Response]]) -> None:
    """Apply answers, by each criterion, to the draft's posteriors.

    Of answers that share an item, none is written before the one with the lower number is; of others it does not matter
    which is applied first.
    """
    for view, said in zip(criteria_of(draft.campaign), answers, strict=True):
        await fold(connection, view, said, await lock(connection, following(view), said))
    if answers[0]:
        seqs = [answer.seq for answer in answers[0]]
        more = await unjudged.who(connection, draft.campaign, decided=draft.decided, seqs=seqs)
        for item, people in more.items():
            draft.said.setdefault(item, set()).update(people)
        await unjudged.put(connection, draft.of, {item: draft.said[item] for item in more})


async def unseen(connection: AsyncConnection, draft: NextRevision) -> tuple[Watermark, list[list[Response]]]:
    """The answers that count and that the draft does not know, by each criterion, and up to where it knows them all
    with these.
    """
    since, decided = draft.watermark, draft.decided
    now, first = await stream.news(connection, draft.campaign.id, since, decided=decided)
    read = partial(stream.responses, connection, draft.campaign.id, since=since, until=now, decided=decided)
    after = first[0].seq - 1 if first else 0
    others = criteria_of(draft.campaign)[1:]
    return now, [first, *([await read(after=after, criterion=number_of(view)) if first else [] for view in others])]


async def switch(connection: AsyncConnection, draft: NextRevision) -> bool:
    """Make the draft the present revision, with the answers that came to the last; not if these are many, since nobody
    can store one meanwhile.
    """
    of = draft.of.parameters
    async with connection.begin():
        await connection.execute(PATIENCE, draft.patience)
        await connection.execute(states.LOCK_OUT_HOLDERS, of)
        await connection.execute(LOCK_OUT, of)
        _, answers = await unseen(connection, draft)
        if len(answers[0]) > draft.few:
            draft.in_vain += 1
            return False
        await follow(connection, draft, answers)
        if (await connection.execute(SWITCH, {**of, "decided": draft.decided})).rowcount != 1:
            raise RuntimeError(f"somebody else has made revision {draft.of.revision} of campaign {draft.of.campaign}")
    return True


async def clear(connection: AsyncConnection, present: Revision) -> None:
    """Let go of all revisions but the present one: of earlier ones, and of what an interrupted attempt left."""
    for statement in CLEAR:
        await connection.execute(statement, present.parameters)
