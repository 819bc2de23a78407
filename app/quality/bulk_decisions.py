"""Decisions about several annotators at once, and their undoing.

A decision moves an annotator to a state: active, held or excluded. Undoing moves each back to the state before, by the
opposite decision: the record only grows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast, get_args

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.errors import Conflict, Invalid, shorten_echo
from app.quality import actions, decisions
from app.record.campaign import load_campaign_by_slug_or_refuse

AnnotatorState = Literal["active", "held", "excluded", "erased"]
BulkAction = Literal["hold", "release", "exclude", "restore", "undo"]

MAX_ANNOTATORS_AT_ONCE = 200

# Old state, new state: the decisions that lead from one to the other.
DECISIONS_BETWEEN: dict[tuple[str, str], Sequence[str]] = {
    ("active", "held"): ("hold",),
    ("active", "excluded"): ("exclude",),
    ("held", "active"): ("release",),
    ("held", "excluded"): ("exclude",),
    ("excluded", "active"): ("restore",),
    ("excluded", "held"): ("restore", "hold"),
}

# Action: the states that it changes, and the state that it leads to.
STATES_BY_ACTION: dict[BulkAction, tuple[Sequence[AnnotatorState], AnnotatorState]] = {
    "hold": (("active",), "held"),
    "release": (("held",), "active"),
    "exclude": (("active", "held"), "excluded"),
    "restore": (("excluded",), "active"),
}

LOAD_STATES = text("""
    SELECT n.name, a.pseudonym, coalesce(a.barred, 'active') AS state, (
        SELECT f.said FROM findings f WHERE f.campaign_id = :campaign AND f.annotator_id = a.id
        ORDER BY f.id DESC LIMIT 1) AS finding
    FROM named_annotators n JOIN annotators a ON a.campaign_id = n.campaign_id AND a.id = n.id
    WHERE n.campaign_id = :campaign
    AND (n.name = ANY(CAST(:names AS text[])) OR a.pseudonym = ANY(CAST(:names AS text[])))
    ORDER BY a.id
""")


@dataclass(frozen=True)
class BulkOutcome:
    """Changes by a decision about several annotators.

    Attributes:
        campaign_id: The campaign, whose posteriors may be due for a revision.
        states_before: State of each changed annotator before, by name.
        unchanged: Names of the annotators whom the decision left as they were.

    """

    campaign_id: int
    states_before: Mapping[str, str]
    unchanged: Sequence[str]


async def apply_bulk_decision_and_return_outcome(
    engine: AsyncEngine,
    slug: str,
    names: Sequence[str],
    action: BulkAction,
    *,
    reason: str,
    now: datetime,
    states_to_restore: Mapping[str, str] | None = None,
    fallback_reason: str = "",
) -> BulkOutcome:
    """Apply a decision to several annotators, each in a transaction of its own.

    Without a reason, each annotator's newest finding is the reason. Annotators in another state are left as they are,
    including those whom someone else changes at the same moment.

    Args:
        engine: The engine.
        slug: The campaign's slug.
        names: Names on pages, such as A7, or pseudonyms in exports.
        action: The decision; `undo` moves each annotator to its state in `states_to_restore`.
        reason: The reason, may be empty if every annotator has a finding.
        now: The time of the decision.
        states_to_restore: State by name, for `undo`.
        fallback_reason: The reason for annotators without a finding, if no reason is given.

    Raises:
        Invalid: `nobody_chosen`, `too_many_annotators`, `reason_missing`, `reason_too_long`, `reason_invalid`.
        NotFound: `campaign_not_found`, `annotator_not_found`.

    """
    refuse_none_or_too_many_annotators(names)
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        found = (await connection.execute(LOAD_STATES, {"campaign": campaign.id, "names": [*names]})).all()
    known_names = {name for row in found for name in (row.name, row.pseudonym)}
    for name in names:
        if name not in known_names:
            raise decisions.annotator_not_found_error(campaign, shorten_echo(name))
    rows = {row.name: row for row in found}
    reasons = {
        name: decisions.strip_reason_or_refuse(
            reason or (row.finding or fallback_reason)[: decisions.MAX_REASON_CHARACTERS]
        )
        for name, row in rows.items()
    }
    states_before: dict[str, str] = {}
    for name, row in rows.items():
        steps = decisions_that_bulk_action_needs(action, row.state, (states_to_restore or {}).get(name))
        if steps and await try_to_apply_decisions_to_unchanged_state(
            engine, slug, name, steps, reason=reasons[name], now=now
        ):
            states_before[name] = row.state
    return BulkOutcome(int(campaign.id), states_before, [name for name in rows if name not in states_before])


def parse_bulk_action_or_refuse(value: str) -> BulkAction:
    """Return the action. Raises `Invalid` (`decision_unknown`)."""
    if value not in get_args(BulkAction):
        raise Invalid("There is no such decision. Nothing was changed.", code="decision_unknown")
    return cast("BulkAction", value)


def decisions_that_bulk_action_needs(
    action: BulkAction, annotator_state: str, state_to_restore: str | None
) -> Sequence[str]:
    """Return the decisions about an annotator in this state; none if the action does not apply to them."""
    if action == "undo":
        return DECISIONS_BETWEEN.get((annotator_state, state_to_restore), ()) if state_to_restore else ()
    old_states, new_state = STATES_BY_ACTION[action]
    return DECISIONS_BETWEEN[annotator_state, new_state] if annotator_state in old_states else ()


async def try_to_apply_decisions_to_unchanged_state(
    engine: AsyncEngine, slug: str, name: str, decisions: Sequence[str], *, reason: str, now: datetime
) -> bool:
    """Apply decisions to an annotator; return False if somebody else has changed their state meanwhile."""
    for step in decisions:
        try:
            await actions.apply_annotator_decision_and_return_campaign_id(
                engine, slug, name, step, reason=reason, now=now
            )
        except Conflict as conflict:
            if conflict.code not in CODES_OF_OTHER_STATE:
                raise
            return False
    return True


CODES_OF_OTHER_STATE = frozenset(("already_held", "already_excluded", "already_erased", "not_held", "not_excluded"))


def refuse_none_or_too_many_annotators(names: Sequence[str]) -> None:
    """Raise `Invalid` without any annotator, or with too many."""
    if not names:
        raise Invalid("Choose at least one annotator. Nothing was changed.", code="nobody_chosen")
    if len(names) > MAX_ANNOTATORS_AT_ONCE:
        raise Invalid(
            f"Choose at most {MAX_ANNOTATORS_AT_ONCE} annotators at once. Nothing was changed.",
            code="too_many_annotators",
        )
