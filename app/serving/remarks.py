"""What an annotator says beside an answer: taken as far as the campaign asks for it, and told to whoever runs it. Who
says nothing costs no statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import text

from app.crowd.programs import API
from app.database.alerts import raise_alert
from app.database.session import Driver, Record, columns, fetch, fetch_one
from app.designs.answer import Answer
from app.designs.item_names import ItemName
from app.designs.remarks import EXTRA, HIT, Remark, RemarkOn, offered, refuse_not_offered
from app.quality.mixed_in import MixedIn
from app.record.remarks import ABOUT, CHECK, ITEM, NOT_TAKEN_BACK, SAID
from app.selection.segments import said_of_all

T = TypeVar("T")  # Python 3.11 has no other way

# Of the items that an answer flags, those that are flagged by so many people; and that they flagged HITs, if it does.
# One person counts once, unless they are excluded or took it back.
FLAGGED = text(f"""
    SELECT said.about, r.segment, {ITEM} || coalesce(' for ' || s.external_id, '') AS item, others.people,
           others.reasons
    FROM responses r {SAID} {ABOUT}
    JOIN campaigns c ON c.id = r.campaign_id
    CROSS JOIN LATERAL (SELECT r.segment) AS mine (segment)
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT o.annotator_id) AS people, array_agg(DISTINCT o.reason) AS reasons FROM (
            SELECT r.annotator_id, r.extra #>> ARRAY['{EXTRA}', said.about, 'flag'] AS reason
            FROM responses r WHERE r.campaign_id = :campaign AND r.extra ? '{EXTRA}'
            AND r.extra -> '{EXTRA}' -> said.about ? 'flag'
            AND (said.about = '{HIT}' OR r.segment IS NOT DISTINCT FROM mine.segment)
            AND {NOT_TAKEN_BACK} AND 'excluded' IS DISTINCT FROM (
                SELECT a.barred FROM annotators a WHERE a.campaign_id = r.campaign_id AND a.id = r.annotator_id)
        ) AS o
    ) AS others
    WHERE r.campaign_id = :campaign AND r.seq = :seq AND told ? 'flag' AND others.people >= c.flag_people
    ORDER BY said.about
""")  # noqa: S608  (made of constants)


class OfferedRemarks(Record):
    """What a campaign lets its annotators say."""

    comment_on: RemarkOn
    flag_on: RemarkOn
    flag_reasons: list[str]


class FlaggedItem(Record):
    """An item that so many people flagged, how the researcher calls it, and what they chose; or HITs."""

    about: str
    segment: int | None
    item: str | None
    people: int
    reasons: list[str]


OFFERED = text(f"SELECT {columns(OfferedRemarks, 'c')} FROM campaigns c WHERE c.id = :campaign")  # noqa: S608  (constants)


async def taken(connection: Driver, campaign: int, answer: Answer, mixed: Sequence[MixedIn]) -> Answer:
    """The answer with what the campaign asks for of its remarks; those on checks under the number of the check.

    Raises `Invalid` for others, from programs alone: somebody's page may be older than the settings.
    """
    if not answer.remarks:
        return answer
    asked = await fetch_one(connection, OFFERED, {"campaign": campaign}, OfferedRemarks)
    if answer.source == API.name:
        refuse_not_offered(asked, answer.remarks)
    checks = {str(one.number): f"{CHECK}{one.check}" for one in mixed}
    kept = offered(asked, answer.remarks)
    return replace(answer, remarks={checks.get(about, about): remark for about, remark in kept.items()})


def of_outputs(said: Mapping[str, Remark], hit: Any) -> dict[str, Remark]:
    """What was said of outputs that several systems have in common, for each of these."""
    of_hit = {HIT: said[HIT]} if HIT in said else {}
    return of_hit | said_of_all(said, map(str, hit.hit_items), map(str, hit.shown_as))


def as_shown(stored: Mapping[str, T], mixed: Sequence[MixedIn], names: Mapping[int, ItemName]) -> dict[str, T]:
    """Return stored remarks by the names that items and checks have on the page. names: by item number."""
    named = {str(item): str(name) for item, name in names.items()}
    named |= {f"{CHECK}{one.check}": str(names[one.number]) for one in mixed}
    named[HIT] = HIT
    return {named[about]: told for about, told in stored.items() if about in named}


async def alert(connection: Driver, campaign: int, seq: int) -> None:
    """Raise an alert for each item that an answer flags, by its number, as the last of so many people; for HITs, which
    are different for everybody, once for all of them.

    The posteriors of its items are locked, so of two people at once the second one sees the first.
    """
    for found in await fetch(connection, FLAGGED, {"campaign": campaign, "seq": seq}, FlaggedItem):
        people = "1 annotator" if found.people == 1 else f"{found.people} annotators"
        reasons = "; ".join(filter(None, found.reasons))
        because = f"{people}: {reasons}" if reasons else people
        about = "HITs" if found.item is None else f"item {found.item}"
        await raise_alert(connection, campaign, "flagged", occasion_of(found), about=about, because=because)


def occasion_of(flagged: FlaggedItem) -> str:
    """What makes an alert one of its own."""
    if flagged.about == HIT:
        return "HITs"
    return f"item {flagged.about}" + (f" of segment {flagged.segment}" if flagged.segment is not None else "")
