"""What a draw must know besides scores, for campaigns that ask by it: the labels of items, and what the annotator's own
answers imply.

What is new is read, nothing else: items that were answered, and answers of one annotator. As the copy of the
posteriors, it decides what to ask, nothing else: it may be stale, never wrong.
"""

import asyncio
from collections.abc import Sequence

from sqlalchemy import text

from app.database.session import Driver, Record, fetch
from app.designs.design import Design
from app.designs.registry import design_of
from app.inference.preferences.implied import Implications
from app.record.store import PRESENT
from app.record.stream import COUNTING, Response
from app.selection.implied import NotAsked
from app.selection.labels import LabelIndex
from app.serving.posterior_cache import Copy, OwnAnswers
from app.serving.standing import Standing

MOST_BYTES = 100_000_000  # in a copy; of who was asked longest ago, the answers are read again
AT_ONCE = 200  # answers; more are followed in a thread

LABELS = text(f"""
    SELECT p.subject AS number, p.state AS labels FROM posteriors p
    WHERE {PRESENT} AND p.subject = ANY(CAST(:numbers AS int[]))
""")  # noqa: S608  (made of constants)

OWN = text(f"""
    SELECT seq, r.items AS hit_items, r.values AS hit_values, {COUNTING} AS counts FROM responses r
    WHERE campaign_id = :campaign AND annotator_id = :annotator AND seq > :after ORDER BY seq
""")  # noqa: S608  (made of constants)


class ItemLabels(Record):
    """An item's posterior, which counts labels."""

    number: int
    labels: list[float]


class OwnAnswer(Record):
    """One of an annotator's answers, and whether no decision leaves it out."""

    seq: int
    hit_items: list[int]
    hit_values: list[float]
    counts: bool


async def tell_labels(connection: Driver, here: Standing, copy: Copy) -> None:
    """What labels items have by now, where the rule reads them."""
    index = copy.index
    if isinstance(index, LabelIndex) and index.untold:
        rows = await fetch(connection, LABELS, {"campaign": here.id, "numbers": [*index.untold]}, ItemLabels)
        index.tell([row.number for row in rows], [row.labels for row in rows])


async def not_asked(connection: Driver, here: Standing, copy: Copy) -> NotAsked | None:
    """The pairs that this annotator is not asked; None where all may be asked, whatever is implied."""
    if here.implied_asked_percent is None:
        return None
    known = copy.own_answers.pop(here.annotator_id, None) or begun(here)
    if not await follow(connection, here, known):
        known = begun(here)
        await follow(connection, here, known)
    known.not_asked.left_out = here.not_judged or ()
    keep(copy, here.annotator_id, known)
    return known.not_asked


def begun(here: Standing) -> OwnAnswers:
    """Before the first answer."""
    return OwnAnswers(NotAsked(Implications(), here.seed, here.annotator_id, here.implied_asked_percent or 0))


async def follow(connection: Driver, here: Standing, known: OwnAnswers) -> bool:
    """Read on. False if an answer was missed: it was written after one with a higher number, by somebody who answers in
    two places at once.
    """
    parameters = {"campaign": here.id, "annotator": here.annotator_id, "after": known.seq}
    rows = await fetch(connection, OWN, parameters, OwnAnswer)
    if len(rows) > AT_ONCE:
        await asyncio.to_thread(take, known, rows, design_of(here))
    else:
        take(known, rows, design_of(here))
    return known.answers >= here.hits_answered


def take(known: OwnAnswers, rows: Sequence[OwnAnswer], design: Design) -> None:
    """Of answers that another request has read meanwhile, none counts twice."""
    for row in rows:
        if row.seq > known.seq:
            known.seq, known.answers = row.seq, known.answers + 1
            if row.counts:
                said = Response.of(row.seq, known.not_asked.annotator, row.hit_items, row.hit_values)
                known.not_asked.known.hear(said.items, design.shares(said.values))


def keep(copy: Copy, annotator: int, known: OwnAnswers) -> None:
    """As the one that was asked for last."""
    copy.own_answers[annotator] = known
    room = MOST_BYTES - sum(one.not_asked.known.nbytes for one in copy.own_answers.values())
    while room < 0 and len(copy.own_answers) > 1:
        room += copy.own_answers.pop(next(iter(copy.own_answers))).not_asked.known.nbytes
