"""A campaign's `Answers` out of the database: every judgment from one snapshot, as arrays."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.findings import Answers, Values
from app.database.bulk import Numbers
from app.designs.criteria import criteria_of, number_of
from app.designs.registry import design_of
from app.designs.unjudged import EXTRA
from app.inference.ground.arrays import Array
from app.record.law import law_of, parameters_of
from app.record.news import Watermark
from app.record.stream import COUNTING, judgments
from app.visit.asked_once import questions_with_choices
from app.visit.groups import load_entry_answers

ROWS_AT_ONCE = 5_000
HITS_AT_ONCE = 50_000  # about 20 MB of numbers

ITEM_COUNT = text("SELECT count(*) FROM items WHERE campaign_id = :campaign")

ITEMS = text("""
    SELECT i.external_id, i.shown, i.fields->>'system' AS system, i.fields->>'segment' AS segment,
           priors.state AS prior, p.state
    FROM items i JOIN priors USING (campaign_id, number) LEFT JOIN current_posteriors p
    ON p.campaign_id = i.campaign_id AND p.number = i.number AND p.criterion = :criterion
    WHERE i.campaign_id = :campaign ORDER BY i.number
""")

UPLOADED = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign
                   AND (SELECT bool_and(fields->>name IS NOT NULL) FROM unnest(CAST(:columns AS text[])) AS name))
""")

# Items are numbered from 0 without gaps. Annotators are counted no further than anybody looks at once.
SIZE = text("""
    SELECT (SELECT coalesce(max(number) + 1, 0) FROM items WHERE campaign_id = :campaign) AS items,
           (SELECT count(*) FROM (SELECT FROM annotators WHERE campaign_id = :campaign LIMIT :most) AS some_of_them)
           AS annotators
""")

ANNOTATORS = text("SELECT id, pseudonym, name FROM named_annotators WHERE campaign_id = :campaign")


# Of how many items each annotator said that they cannot be judged, in the answers that count.
UNJUDGED = text(f"""
    SELECT annotator_id, CAST(count(*) AS int) AS items FROM responses, jsonb_object_keys(extra -> '{EXTRA}')
    WHERE campaign_id = :campaign AND extra ? '{EXTRA}' AND {COUNTING} GROUP BY 1 ORDER BY 1
""")  # noqa: S608  (made of constants)


async def has_answers(connection: AsyncConnection, campaign: Row[Any]) -> bool:
    """Whether anybody has answered."""
    statement = text("SELECT EXISTS (SELECT FROM responses WHERE campaign_id = :campaign)")
    return bool(await connection.scalar(statement, {"campaign": campaign.id}))


async def item_count(connection: AsyncConnection, campaign_id: int) -> int:
    return int((await connection.execute(ITEM_COUNT, {"campaign": campaign_id})).scalar_one())


async def size(connection: AsyncConnection, campaign: Row[Any], most: int) -> Row[Any]:
    """How many items there are, and how many annotators have come, if they are no more than `most`."""
    return (await connection.execute(SIZE, {"campaign": campaign.id, "most": most})).one()


async def has_uploaded(connection: AsyncConnection, campaign: Row[Any], columns: Sequence[str]) -> bool:
    """Whether an item came with all of these columns."""
    return bool(await connection.scalar(UPLOADED, {"campaign": campaign.id, "columns": [*columns]}))


async def read(connection: AsyncConnection, campaign: Any) -> Answers:
    """All of it, by the criterion by which the campaign is read; give it a `snapshot`. Memory: 32 bytes a judgment, 8
    more for each of several criteria, and the items' texts.
    """
    of = {"campaign": campaign.id}
    items: list[Row[Any]] = []
    found = await connection.stream(ITEMS, of | {"criterion": number_of(campaign)})
    async for rows in found.partitions(ROWS_AT_ONCE):
        items += rows
    annotators = {row.id: row for row in await connection.execute(ANNOTATORS, of)}
    unjudged = None
    if campaign.cannot_be_judged:
        unjudged = {row.annotator_id: row.items for row in await connection.execute(UNJUDGED, of)}
    pieces = [piece async for piece in in_pieces(connection, campaign)]
    answers = await asyncio.to_thread(assembled, campaign, items, annotators, pieces, unjudged)
    said = await load_entry_answers(connection, campaign.id) if campaign.questions else {}
    by_pseudonym = {annotators[number].pseudonym: told for number, told in said.items()}
    asked = {
        one.name: [by_pseudonym.get(who, {}).get(one.name) for who in answers.annotators]
        for one in questions_with_choices(campaign.questions)
    }
    return replace(answers, criteria=await by_criterion(connection, campaign, answers), asked=asked)


async def by_criterion(connection: AsyncConnection, campaign: Any, answers: Answers) -> dict[str, Array]:
    """The scores of the same judgments by each criterion, by name: who cannot judge an item cannot by any of them."""
    found: dict[str, Array] = {}
    for one in criteria_of(campaign) if campaign.criteria else ():
        if one.criterion == number_of(campaign):
            found[one.criterion_name] = answers.score
            continue
        values = [piece["value"] async for piece in in_pieces(connection, one)]
        found[one.criterion_name] = await asyncio.to_thread(points_of, one, values, answers)
    return found


def points_of(campaign: Any, values: Sequence[Array], answers: Answers) -> Array:
    """The values of all judgments, in pieces, by another criterion in points."""
    return design_of(campaign).points(np.concatenate([answers.score[:0], *values]), answers.hit)


async def in_pieces(
    connection: AsyncConnection, campaign: Any, *, after: int = 0, since: Watermark | None = None
) -> AsyncIterator[dict[str, Numbers]]:
    """The judgments of the responses with numbers above `after`, written since a watermark, as `judgments` has them, by
    the criterion by which the campaign is read.
    """
    of: dict[str, Any] = {"since": since, "limit": HITS_AT_ONCE, "criterion": number_of(campaign)}
    while len((piece := await judgments(connection, campaign.id, after=after, **of))["seq"]):
        yield piece
        after = int(piece["seq"][-1])


def assembled(
    campaign: Any,
    items: Sequence[Row[Any]],
    annotators: Mapping[int, Row[Any]],
    pieces: Sequence[Mapping[str, Values]],
    unjudged: Mapping[int, int] | None = None,
) -> Answers:
    """From rows of items and judgments in long form; annotators: their names and pseudonyms by their row ids; unjudged:
    of how many items each said that they cannot be judged, likewise.
    """
    nothing: dict[str, Values] = {
        name: np.zeros(0, np.float64 if name == "value" else np.intp) for name in ("seq", "annotator", "item", "value")
    }
    columns = {name: np.concatenate([none, *(piece[name] for piece in pieces)]) for name, none in nothing.items()}
    seq, hit = np.unique(columns["seq"], return_inverse=True)
    numbers, annotator = np.unique(columns["annotator"], return_inverse=True)
    design = design_of(campaign)
    family, launched = law_of(campaign).family, bool(items) and items[0].state is not None
    return Answers(
        seq=seq,
        hit=hit,
        item=columns["item"].astype(np.intp),
        annotator=annotator,
        score=design.points(columns["value"], hit),
        value=columns["value"],
        yields=design.yields,
        classes=design.classes,
        always_shown=campaign.always_shown,
        compares_pairs=design.compares_pairs,
        ids=[row.external_id for row in items],
        shown=[row.shown for row in items],
        systems=[row.system for row in items],
        segments=[row.segment for row in items],
        annotators=[annotators[number].pseudonym for number in numbers.tolist()],
        names=[annotators[number].name for number in numbers.tolist()],
        law=campaign.update_law,
        prior=family.columns([row.prior or family.default_prior for row in items]),
        state=family.columns([row.state for row in items]) if launched else None,
        parameters=parameters_of(campaign),
        seed=campaign.seed,
        unjudged=None if unjudged is None else np.array([unjudged.get(one, 0) for one in numbers.tolist()], np.intp),
        judged_nothing=[annotators[one].name for one in unjudged or () if one not in numbers],
    )
