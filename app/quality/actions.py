"""Decisions of researchers about annotators and answers, by their names in URLs and commands.

A stored decision is due until a revision of the posteriors includes it: `record.due_revisions` makes that revision,
even if this process ends before it has.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.designs.field_flags import is_blank
from app.quality import decisions
from app.record.campaign import load_campaign_by_slug_or_refuse

DecisionFunction = Callable[..., Awaitable[Any]]

ANNOTATOR_ACTIONS: dict[str, DecisionFunction] = {
    "hold": decisions.hold_annotator,
    "release": decisions.release_held_annotator,
    "exclude": decisions.exclude_annotator,
    "restore": decisions.restore_excluded_annotator,
}
ANSWER_ACTIONS: dict[str, DecisionFunction] = {
    "exclude": decisions.exclude_answer,
    "restore": decisions.restore_answer,
}


async def apply_annotator_decision_and_return_campaign_id(
    engine: AsyncEngine,
    slug: str,
    annotator_name: str,
    action: str,
    *,
    reason: str,
    now: datetime,
    is_reason_optional: bool = False,
) -> int:
    """Apply a decision to the annotator whose name on pages is, for example, A7.

    Args:
        engine: The engine; the decision gets a transaction of its own.
        slug: The campaign's slug.
        annotator_name: The name on pages, or the pseudonym in exports.
        action: A key of `ANNOTATOR_ACTIONS`.
        reason: The reason, kept with the decision and in the audit log.
        now: The time of the decision.
        is_reason_optional: Whether the reason may be empty. The newest finding is then the reason to hold or exclude.

    Returns:
        The campaign's id. Its posteriors are due for a revision if the decision is about answers.

    Raises:
        NotFound: `campaign_not_found`, and what the decision functions raise.

    """
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        annotator_id = await decisions.find_annotator_id_or_refuse(connection, campaign, annotator_name)
        if is_reason_optional and is_blank(reason):
            reason = await decisions.default_reason_for_annotator(connection, campaign, annotator_id, action)
        await ANNOTATOR_ACTIONS[action](connection, campaign, annotator_id, reason=reason, now=now)
    return int(campaign.id)


async def apply_answer_decision_and_return_campaign_id(
    engine: AsyncEngine,
    slug: str,
    answer_number: int,
    action: str,
    *,
    reason: str,
    now: datetime,
    annotator_name: str = "",
) -> int:
    """Apply a decision to an answer, given by its number, as `apply_annotator_decision_and_return_campaign_id` does. If
    `annotator_name` is given, the answer must be this annotator's.
    """
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if annotator_name:
            annotator_id = await decisions.find_annotator_id_or_refuse(connection, campaign, annotator_name)
            await decisions.require_answer_is_by_annotator(connection, campaign, annotator_id, answer_number)
        await ANSWER_ACTIONS[action](connection, campaign, answer_number, reason=reason, now=now)
    return int(campaign.id)
