"""Decisions on annotators and answers, made by a researcher or a rule, with a reason.

Hold: the annotator gets no further HITs, and their answers count. Exclude: no further HITs, and none of their answers
counts. Release and restore undo these. A single answer can be excluded too; its annotator continues. Answers stay in
the record. Posteriors follow with the next revision (`record.due_revisions`), after the transaction. `actor`
names the decider where neither the request nor the command does.

The annotator's row decides between concurrent decisions. HITs are locked before it, as everywhere.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import CURRENT_ACTOR, Actor, log_change
from app.designs.campaign import Campaign
from app.designs.design import CONTROL_CHARACTER
from app.designs.field_flags import is_blank
from app.errors import Conflict, Invalid, NotFound, shorten_echo
from app.record.revisions import (
    LOCK_CAMPAIGN_FOR_DECISION,
    DecisionKind,
    DecisionTarget,
    store_decision_and_return_number,
)

BlockedState = Literal["held", "excluded", "erased"]

ANNOTATOR_NAME_PATTERN = re.compile(r"A[1-9][0-9]{0,9}")
MAX_REASON_CHARACTERS = 500
NO_REASON = "no reason given"

# Others can get these HITs. A released annotator gets a HIT back as it was if nobody took it.
RELEASE_LEASES_OF_ANNOTATOR = text("""
    UPDATE hits SET expires_at = statement_timestamp()
    WHERE campaign_id = :campaign AND id = ANY(ARRAY(
        SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator
        AND closed_at IS NULL AND expires_at > statement_timestamp() ORDER BY id FOR NO KEY UPDATE))
""")

BLOCK_ANNOTATOR = text("""
    UPDATE annotators SET barred = :as, barred_reason = :reason, barred_by = :by, barred_at = :now
    WHERE campaign_id = :campaign AND id = :annotator AND coalesce(barred, '') = ANY(CAST(:before AS text[]))
""")

UNBLOCK_ANNOTATOR = text("""
    UPDATE annotators SET barred = NULL, barred_reason = NULL, barred_by = NULL, barred_at = NULL
    WHERE campaign_id = :campaign AND id = :annotator AND barred = :before
""")

# Names are A1, A2, ... in the order of first arrival.
LOAD_BLOCKED_STATE = text("""
    SELECT a.barred, 'A' || (SELECT count(*) FROM annotators o WHERE o.campaign_id = :campaign AND o.id <= a.id)
           AS name
    FROM annotators a WHERE a.campaign_id = :campaign AND a.id = :annotator
""")

FIND_ANNOTATOR_BY_NUMBER = text(
    "SELECT id FROM annotators WHERE campaign_id = :campaign ORDER BY id OFFSET :before LIMIT 1"
)
FIND_ANNOTATOR_BY_PSEUDONYM = text("SELECT id FROM annotators WHERE campaign_id = :campaign AND pseudonym = :name")

FIND_NEWEST_FINDING = text("""
    SELECT said FROM findings WHERE campaign_id = :campaign AND annotator_id = :annotator ORDER BY id DESC LIMIT 1
""")

LOAD_ANSWER_STATE = text("""
    SELECT r.annotator_id AS annotator, a.barred, (
        SELECT kind FROM decisions d WHERE d.campaign_id = :campaign AND d.response_seq = r.seq
        ORDER BY d.seq DESC LIMIT 1) AS last
    FROM responses r JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    WHERE r.campaign_id = :campaign AND r.seq = :number
""")


async def hold_annotator(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    reason: str,
    now: datetime,
    actor: Actor | None = None,
) -> None:
    """Stop giving HITs to an annotator and return their open HITs to others. Their answers still count.

    Raises:
        Invalid: `reason_missing`, `reason_too_long`, `reason_invalid`.
        NotFound: `annotator_not_found`.
        Conflict: `already_held`, `already_excluded`.

    """
    await set_annotator_blocked_state_or_refuse(
        connection, campaign, annotator_id, "held", allowed_states=[""], reason=reason, actor=actor, now=now
    )
    await log_decision(connection, "answers.hold", campaign, annotator_id, reason=reason, actor=actor)


async def release_held_annotator(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    reason: str,
    now: datetime,  # noqa: ARG001  (all decision functions take it)
    actor: Actor | None = None,
) -> None:
    """Let a held annotator continue. Raises as `hold_annotator` does, plus `Conflict` (`not_held`)."""
    await clear_annotator_blocked_state_or_refuse(connection, campaign, annotator_id, "held", reason)
    await log_decision(connection, "answers.release", campaign, annotator_id, reason=reason, actor=actor)


async def exclude_annotator(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    reason: str,
    now: datetime,
    actor: Actor | None = None,
) -> int:
    """Stop giving HITs to an annotator, held or not, and make their answers count no more. Return the decision's
    number.

    Raises as `hold_annotator` does, except `already_held`.
    """
    await set_annotator_blocked_state_or_refuse(
        connection, campaign, annotator_id, "excluded", allowed_states=["", "held"], reason=reason, actor=actor, now=now
    )
    return await store_and_log_decision_returning_number(
        connection, campaign, "exclude", annotator_id, reason=reason, now=now, actor=actor
    )


async def restore_excluded_annotator(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    reason: str,
    now: datetime,
    actor: Actor | None = None,
) -> int:
    """Let an excluded annotator continue, and make their answers count again, except answers that were excluded one by
    one. Return the decision's number. Raises as `exclude_annotator` does, plus `Conflict` (`not_excluded`).
    """
    await clear_annotator_blocked_state_or_refuse(connection, campaign, annotator_id, "excluded", reason)
    return await store_and_log_decision_returning_number(
        connection, campaign, "include", annotator_id, reason=reason, now=now, actor=actor
    )


async def exclude_answer(
    connection: AsyncConnection,
    campaign: Campaign,
    answer_number: int,
    *,
    reason: str,
    now: datetime,
    actor: Actor | None = None,
) -> int:
    """Make one answer, given by its number, count no more. Return the decision's number.

    If its annotator is excluded, the answer stays excluded after they are restored.

    Raises:
        Invalid: As `hold_annotator` does.
        NotFound: `response_not_found`.
        Conflict: `already_excluded`, `answer_withdrawn`.

    """
    answer_state = await lock_and_load_answer_state_or_refuse(connection, campaign, answer_number, reason)
    if answer_state.last == "exclude":
        raise Conflict(f"Answer {answer_number} is already excluded. Nothing was changed.", code="already_excluded")
    return await store_and_log_decision_returning_number(
        connection, campaign, "exclude", answer_state.annotator, answer_number, reason=reason, now=now, actor=actor
    )


async def restore_answer(
    connection: AsyncConnection,
    campaign: Campaign,
    answer_number: int,
    *,
    reason: str,
    now: datetime,
    actor: Actor | None = None,
) -> int:
    """Make an excluded answer count again, as soon as its annotator's answers do. Return the decision's number.

    Raises as `exclude_answer` does, with `not_excluded` instead of `already_excluded`.
    """
    answer_state = await lock_and_load_answer_state_or_refuse(connection, campaign, answer_number, reason)
    if answer_state.last != "exclude":
        hint = " Its annotator is excluded: restore them instead." if answer_state.barred == "excluded" else ""
        raise Conflict(
            f"Answer {answer_number} is not excluded by itself.{hint} Nothing was changed.",
            code="not_excluded",
            answer=answer_number,
        )
    return await store_and_log_decision_returning_number(
        connection, campaign, "include", answer_state.annotator, answer_number, reason=reason, now=now, actor=actor
    )


async def find_annotator_id_or_refuse(connection: AsyncConnection, campaign: Campaign, name_or_pseudonym: str) -> int:
    """Return the id of an annotator, given by their name on pages, such as A7, or by their pseudonym in exports. Raises
    `NotFound` (`annotator_not_found`).
    """
    parameters: dict[str, Any] = {"campaign": campaign.id, "name": name_or_pseudonym}
    statement = FIND_ANNOTATOR_BY_PSEUDONYM
    if ANNOTATOR_NAME_PATTERN.fullmatch(name_or_pseudonym):
        statement, parameters["before"] = FIND_ANNOTATOR_BY_NUMBER, int(name_or_pseudonym[1:]) - 1
    annotator_id: int | None = (await connection.execute(statement, parameters)).scalar_one_or_none()
    if annotator_id is None:
        raise annotator_not_found_error(campaign, shorten_echo(name_or_pseudonym))
    return annotator_id


async def set_annotator_blocked_state_or_refuse(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    new_state: BlockedState,
    *,
    allowed_states: Sequence[str],
    reason: str,
    actor: Actor | None,
    now: datetime,
) -> None:
    key = {"campaign": campaign.id, "annotator": annotator_id}
    block_parameters = {
        "as": new_state,
        "before": allowed_states,
        "reason": strip_reason_or_refuse(reason),
        "by": name_of_actor_or_current_user(actor),
        "now": now,
    }
    await connection.execute(RELEASE_LEASES_OF_ANNOTATOR, key)
    if (await connection.execute(BLOCK_ANNOTATOR, key | block_parameters)).rowcount == 0:
        blocked_state = await load_annotator_name_and_blocked_state_or_refuse(connection, campaign, annotator_id)
        raise Conflict(
            f"{blocked_state.name} is already {blocked_state.barred}. Nothing was changed.",
            code=f"already_{blocked_state.barred}",
        )
    # Also a HIT that was leased or renewed before the annotator's row was locked.
    await connection.execute(RELEASE_LEASES_OF_ANNOTATOR, key)


async def clear_annotator_blocked_state_or_refuse(
    connection: AsyncConnection, campaign: Campaign, annotator_id: int, expected_state: BlockedState, reason: str
) -> None:
    strip_reason_or_refuse(reason)
    parameters = {"campaign": campaign.id, "annotator": annotator_id, "before": expected_state}
    if (await connection.execute(UNBLOCK_ANNOTATOR, parameters)).rowcount == 0:
        blocked_state = await load_annotator_name_and_blocked_state_or_refuse(connection, campaign, annotator_id)
        raise Conflict(
            f"{blocked_state.name} is not {expected_state}. Nothing was changed.", code=f"not_{expected_state}"
        )


async def load_annotator_name_and_blocked_state_or_refuse(
    connection: AsyncConnection, campaign: Campaign, annotator_id: int
) -> Row[Any]:
    """Return how an annotator is blocked, if they are, and their name. Raises `NotFound` (`annotator_not_found`)."""
    parameters = {"campaign": campaign.id, "annotator": annotator_id}
    blocked_state: Row[Any] | None = (await connection.execute(LOAD_BLOCKED_STATE, parameters)).one_or_none()
    if blocked_state is None:
        raise annotator_not_found_error(campaign, str(annotator_id))
    return blocked_state


async def lock_and_load_answer_state_or_refuse(
    connection: AsyncConnection, campaign: Campaign, answer_number: int, reason: str
) -> Row[Any]:
    """Return an answer's annotator and the last decision about it, locked until the transaction ends."""
    strip_reason_or_refuse(reason)
    await connection.execute(LOCK_CAMPAIGN_FOR_DECISION, {"campaign": campaign.id})
    parameters = {"campaign": campaign.id, "number": answer_number}
    answer_state: Row[Any] | None = (await connection.execute(LOAD_ANSWER_STATE, parameters)).one_or_none()
    if answer_state is None:
        raise answer_not_found_error(campaign, answer_number)
    if answer_state.last == "withdraw":
        raise Conflict(
            f"The annotator replaced answer {answer_number}, and the new answer counts. Nothing was changed.",
            code="answer_withdrawn",
        )
    return answer_state


async def require_answer_is_by_annotator(
    connection: AsyncConnection, campaign: Campaign, annotator_id: int, answer_number: int
) -> None:
    """Raise `NotFound` (`response_not_found`) unless the answer is this annotator's."""
    parameters = {"campaign": campaign.id, "number": answer_number}
    answer_state = (await connection.execute(LOAD_ANSWER_STATE, parameters)).one_or_none()
    if answer_state is None or answer_state.annotator != annotator_id:
        raise answer_not_found_error(campaign, answer_number)


def answer_not_found_error(campaign: Campaign, answer_number: int) -> NotFound:
    return NotFound(f"“{campaign.name}” has no answer {answer_number}.", code="response_not_found")


async def store_and_log_decision_returning_number(
    connection: AsyncConnection,
    campaign: Campaign,
    kind: DecisionKind,
    annotator_id: int,
    answer_number: int | None = None,
    *,
    reason: str,
    now: datetime,
    actor: Actor | None,
) -> int:
    """Record a decision about all answers of an annotator, or about one of them, and return its number."""
    target: DecisionTarget = "annotator"
    number, details = annotator_id, dict[str, int]()
    if answer_number is not None:
        target, number, details = "response", answer_number, {"answer": answer_number}
    seq = await store_decision_and_return_number(
        connection,
        campaign,
        kind,
        target,
        number,
        reason=reason.strip(),
        actor=name_of_actor_or_current_user(actor),
        now=now,
    )
    await log_decision(connection, f"answers.{kind}", campaign, annotator_id, reason=reason, actor=actor, **details)
    return seq


async def log_decision(
    connection: AsyncConnection,
    action: str,
    campaign: Campaign,
    annotator_id: int,
    *,
    reason: str,
    actor: Actor | None,
    **details: int,
) -> None:
    name = (await load_annotator_name_and_blocked_state_or_refuse(connection, campaign, annotator_id)).name
    await log_change(
        connection, action, campaign, about=name, new_values={**details, "reason": reason.strip()}, actor=actor
    )


def name_of_actor_or_current_user(actor: Actor | None) -> str:
    """Return the decider's name; without `actor`, the person behind the request or command."""
    return (actor or CURRENT_ACTOR.get()).name


def reason_or_note_that_none_was_given(entered_reason: str) -> str:
    """Return a reason that a page's form has, which may be left empty there."""
    return NO_REASON if is_blank(entered_reason) else entered_reason


async def default_reason_for_annotator(
    connection: AsyncConnection, campaign: Campaign, annotator_id: int, action: str
) -> str:
    """Return the reason of a decision that has none: the newest finding, if there is one and it speaks for it."""
    if action not in ("hold", "exclude"):
        return NO_REASON
    finding = await connection.scalar(FIND_NEWEST_FINDING, {"campaign": campaign.id, "annotator": annotator_id})
    return (finding or NO_REASON)[:MAX_REASON_CHARACTERS]


def strip_reason_or_refuse(reason: str) -> str:
    """Return the reason without surrounding blanks.

    Raises:
        Invalid: `reason_missing`, `reason_too_long`, `reason_invalid`.

    """
    stripped = reason.strip()
    if is_blank(stripped):
        raise Invalid("Please give a reason. Nothing was changed.", code="reason_missing")
    if len(stripped) > MAX_REASON_CHARACTERS:
        raise Invalid(
            f"Shorten the reason to at most {MAX_REASON_CHARACTERS} characters. Nothing was changed.",
            code="reason_too_long",
        )
    if CONTROL_CHARACTER.search(stripped):
        raise Invalid(
            "The reason must not contain control characters. Delete them and try again. Nothing was changed.",
            code="reason_invalid",
        )
    return stripped


def annotator_not_found_error(campaign: Campaign, name: str) -> NotFound:
    return NotFound(f"“{campaign.name}” has no annotator {name}.", code="annotator_not_found", annotator=name)
