"""Adjudications: final labels of items, which researchers choose where annotators disagree.

An adjudication is a decision on an item, not an answer: responses and posteriors stay as they are. Rows are only added.
A later one names the one that it replaces, so a researcher who has not seen the latest one is refused. A row without a
label takes the label back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import Actor, log_change
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.field_flags import is_blank
from app.errors import Conflict, Invalid, NotFound, shorten_echo
from app.quality.decisions import name_of_actor_or_current_user, strip_reason_or_refuse
from app.record.revisions import LOCK_CAMPAIGN_FOR_DECISION

FIND_ITEM_NUMBER = text("SELECT number FROM items WHERE campaign_id = :campaign AND external_id = :item")

# The latest adjudication of each item is the one that no other replaces.
LATEST_ADJUDICATIONS_SQL = """
    SELECT a.id, a.criterion, a.item, a.label, a.reason, a.decided_by, a.decided_at FROM adjudications a
    WHERE a.campaign_id = :campaign AND NOT EXISTS (
        SELECT FROM adjudications later WHERE later.campaign_id = :campaign AND later.criterion = a.criterion
        AND later.item = a.item AND coalesce(later.replaces, 0) = a.id)
    AND a.criterion = CAST(:criterion AS smallint)"""
FIND_LATEST_ADJUDICATIONS = text(LATEST_ADJUDICATIONS_SQL)
FIND_LATEST_ADJUDICATION_OF_ITEM = text(f"{LATEST_ADJUDICATIONS_SQL} AND a.item = CAST(:item AS int)")

STORE_ADJUDICATION = text("""
    INSERT INTO adjudications (campaign_id, criterion, item, label, reason, decided_by, decided_at, replaces)
    VALUES (:campaign, :criterion, :item, :label, :reason, :by, :now, :replaces) RETURNING id
""")
HAS_ANY_ADJUDICATION = text("SELECT EXISTS (SELECT FROM adjudications WHERE campaign_id = :campaign)")

Decision = TypeVar("Decision")


@dataclass(frozen=True)
class Adjudication:
    """The latest adjudication of an item.

    Attributes:
        id: Number of the row.
        item: Number of the item.
        label: The final label; None if it was taken back.

    """

    id: int
    item: int
    label: str | None
    reason: str
    decided_by: str
    decided_at: datetime


def refuse_criterion_that_cannot_be_adjudicated(criterion: Criterion[Campaign]) -> None:
    """Raise `Conflict` (`no_labels`, `not_launched`) if no label of its items can be chosen."""
    campaign = criterion.campaign
    if campaign.segment_count or not criterion.design.classes:
        raise no_item_labels_error(campaign)
    refuse_draft(campaign, campaign.status)


def no_item_labels_error(campaign: Campaign) -> Conflict:
    return Conflict(
        f"Annotators of “{campaign.name}” do not choose labels for items, so none can be settled.", code="no_labels"
    )


def refuse_draft(campaign: Campaign, status: str) -> None:
    """Raise `Conflict` (`not_launched`) if this is the status of a draft."""
    if status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: nothing is labelled yet.", code="not_launched")


async def load_latest_adjudications_by_item(
    connection: AsyncConnection, criterion: Criterion[Campaign]
) -> dict[int, Adjudication]:
    """Return the latest adjudication of each item by its number, also of items whose label was taken back."""
    parameters = {"campaign": criterion.campaign.id, "criterion": criterion.number}
    return adjudications_by_item(await connection.execute(FIND_LATEST_ADJUDICATIONS, parameters))


def adjudications_by_item(rows: Any) -> dict[int, Adjudication]:
    return {
        row.item: Adjudication(row.id, row.item, row.label, row.reason, row.decided_by, row.decided_at) for row in rows
    }


def drop_items_after(adjudication_by_item: Mapping[int, Decision], item_count: int) -> dict[int, Decision]:
    """Return what is about the first items: answers that were read before may not have the others yet."""
    return {item: decision for item, decision in adjudication_by_item.items() if item < item_count}


async def load_adjudicated_label_by_item(connection: AsyncConnection, criterion: Criterion[Campaign]) -> dict[int, str]:
    """Return the final label of each adjudicated item by the item's number."""
    return labels_in_force(await load_latest_adjudications_by_item(connection, criterion))


def labels_in_force(adjudication_by_item: Mapping[int, Adjudication]) -> dict[int, str]:
    """Return the labels that were not taken back, by the item's number."""
    return {item: latest.label for item, latest in adjudication_by_item.items() if latest.label is not None}


async def has_any_adjudication(connection: AsyncConnection, campaign: Campaign) -> bool:
    return bool(await connection.scalar(HAS_ANY_ADJUDICATION, {"campaign": campaign.id}))


async def find_item_number_or_refuse(connection: AsyncConnection, campaign: Campaign, item_id: str) -> int:
    """Return the number of an item. Raises `NotFound` (`item_not_found`)."""
    number = await connection.scalar(FIND_ITEM_NUMBER, {"campaign": campaign.id, "item": item_id})
    if number is None:
        shown_id = shorten_echo(item_id)
        raise NotFound(f"“{campaign.name}” has no item “{shown_id}”.", code="item_not_found", item=shown_id)
    return int(number)


async def load_latest_adjudication_or_none(
    connection: AsyncConnection, criterion: Criterion[Campaign], item_number: int
) -> Adjudication | None:
    """Return the latest adjudication of an item, None if there was none."""
    parameters = {"campaign": criterion.campaign.id, "criterion": criterion.number, "item": item_number}
    found = adjudications_by_item(await connection.execute(FIND_LATEST_ADJUDICATION_OF_ITEM, parameters))
    return found.get(item_number)


async def adjudicate_item_or_refuse(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    item_id: str,
    label: str | None,
    *,
    reason: str = "",
    replaces: int = 0,
    now: datetime,
    actor: Actor | None = None,
) -> Adjudication:
    """Store the final label of an item, or take the present one back, and log it.

    Args:
        connection: The connection, in the transaction of the decision.
        criterion: The criterion whose label it is.
        item_id: Id of the item.
        label: One of the design's labels; None takes the present one back.
        reason: A reason; may be empty.
        replaces: Id of the latest adjudication that the researcher has seen, 0 if they saw none.
        now: Time of the decision.
        actor: The researcher; without it, the person behind the request or command.

    Raises:
        Conflict: `no_labels`, `not_launched`, `adjudication_changed`, `not_adjudicated`.
        NotFound: `campaign_not_found`, `item_not_found`.
        Invalid: `label_unknown`, `reason_too_long`, `reason_invalid`.

    """
    refuse_criterion_that_cannot_be_adjudicated(criterion)
    refuse_unknown_label(criterion, label)
    stripped_reason = "" if is_blank(reason) else strip_reason_or_refuse(reason)
    # The later of two researchers waits here, and then sees the decision of the first.
    status = await connection.scalar(LOCK_CAMPAIGN_FOR_DECISION, {"campaign": criterion.campaign.id})
    if status is None:
        raise NotFound(f"“{criterion.campaign.name}” was deleted meanwhile.", code="campaign_not_found")
    refuse_draft(criterion.campaign, status)
    number = await find_item_number_or_refuse(connection, criterion.campaign, item_id)
    latest = await load_latest_adjudication_or_none(connection, criterion, number)
    if (latest.id if latest else 0) != replaces:
        raise adjudication_changed_error(item_id, latest)
    former_label = latest.label if latest else None
    if label is None and former_label is None:
        raise Conflict(
            f"No label of “{shorten_echo(item_id)}” was chosen, so none is taken back.", code="not_adjudicated"
        )
    decided_by = name_of_actor_or_current_user(actor)
    values: dict[str, Any] = {"campaign": criterion.campaign.id, "criterion": criterion.number, "item": number}
    values |= {"label": label, "reason": stripped_reason, "by": decided_by, "now": now, "replaces": replaces or None}
    row_id = (await connection.execute(STORE_ADJUDICATION, values)).scalar_one()
    await log_adjudication(connection, criterion, item_id, former_label, label, actor=actor)
    return Adjudication(row_id, number, label, stripped_reason, decided_by, now)


async def log_adjudication(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    item_id: str,
    former_label: str | None,
    label: str | None,
    *,
    actor: Actor | None,
) -> None:
    """Log the change without its reason, which may name people: it can be erased from the adjudication alone."""
    names = {"criterion": criterion.name} if criterion.name else {}
    await log_change(
        connection,
        "labels.reopened" if label is None else "labels.settled",
        criterion.campaign,
        about=item_id,
        old_values=None if former_label is None else names | {"label": former_label},
        new_values=None if label is None else names | {"label": label},
        actor=actor,
    )


def refuse_unknown_label(criterion: Criterion[Campaign], label: str | None) -> None:
    """Raise `Invalid` (`label_unknown`) for a label that annotators could not choose."""
    if label is not None and label not in criterion.design.classes:
        raise Invalid(
            f"“{shorten_echo(label)}” is not one of the labels. Nothing was changed.",
            code="label_unknown",
            labels=[*criterion.design.classes],
        )


def adjudication_changed_error(item_id: str, latest: Adjudication | None) -> Conflict:
    """Return the refusal of a decision whose maker has not seen the latest one."""
    if latest is None:
        state = "has no chosen label any more"
    elif latest.label is None:
        state = f"was reopened by {latest.decided_by}"
    else:
        state = f"was settled as “{latest.label}” by {latest.decided_by}"
    return Conflict(
        f"“{shorten_echo(item_id)}” {state} meanwhile. Nothing was changed. Look at that decision, then choose again.",
        code="adjudication_changed",
        latest=latest.id if latest else 0,
    )
