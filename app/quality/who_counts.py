"""Who goes on, and whose answers count: decided by a researcher, or by a rule, with a reason.

Hold: no further HITs, and all answers count. Exclude: no further HITs, and no answer counts. Release and restore take
that back. One answer can be excluded, too, and its annotator goes on. Answers stay in the record, and posteriors follow
with `revisions.revise`, which whoever decides calls after the transaction. `by`: who it is, if neither the request nor
the command says so.

Who decides first is decided by the annotator's row. HITs are locked before it, as everywhere.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import ACTING, Actor, note
from app.errors import Conflict, Invalid, NotFound, shortened
from app.record.revisions import LOCK_CAMPAIGN, decide

Barred = Literal["held", "excluded"]

NAME = re.compile(r"A[1-9][0-9]{0,9}")
LONGEST_REASON = 500  # characters

# Others can have what they hold; who is let in again finds it as it was, if nobody needed it.
RETURN_LEASES = text("""
    UPDATE hits SET expires_at = statement_timestamp()
    WHERE campaign_id = :campaign AND id = ANY(ARRAY(
        SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator
        AND closed_at IS NULL AND expires_at > statement_timestamp() ORDER BY id FOR NO KEY UPDATE))
""")

BAR = text("""
    UPDATE annotators SET barred = :as, barred_reason = :reason, barred_by = :by, barred_at = :now
    WHERE campaign_id = :campaign AND id = :annotator AND coalesce(barred, '') = ANY(CAST(:before AS text[]))
""")

LET_IN = text("""
    UPDATE annotators SET barred = NULL, barred_reason = NULL, barred_by = NULL, barred_at = NULL
    WHERE campaign_id = :campaign AND id = :annotator AND barred = :before
""")

# With their name: A1, A2, ... in the order of their first arrival.
STANDING = text("""
    SELECT a.barred, 'A' || (SELECT count(*) FROM annotators o WHERE o.campaign_id = a.campaign_id AND o.id <= a.id)
           AS name
    FROM annotators a WHERE a.campaign_id = :campaign AND a.id = :annotator
""")

NAMED = text("SELECT id FROM annotators WHERE campaign_id = :campaign ORDER BY id OFFSET :before LIMIT 1")
BY_PSEUDONYM = text("SELECT id FROM annotators WHERE campaign_id = :campaign AND pseudonym = :name")

OF_ANSWER = text("""
    SELECT r.annotator_id AS annotator, a.barred, (
        SELECT kind FROM decisions d WHERE d.campaign_id = r.campaign_id AND d.response_seq = r.seq
        ORDER BY d.seq DESC LIMIT 1) AS last
    FROM responses r JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
    WHERE r.campaign_id = :campaign AND r.seq = :number
""")


async def hold(
    connection: AsyncConnection,
    campaign: Row[Any],
    annotator: int,
    *,
    reason: str,
    now: datetime,
    by: Actor | None = None,
) -> None:
    """No further HITs for an annotator, by their row's id; what they hold goes back. Their answers count.

    Raises `Invalid` (`reason_missing`, `reason_too_long`), `NotFound` (`annotator_not_found`), and `Conflict`
    (`already_held`, `already_excluded`).
    """
    await bar(connection, campaign, annotator, "held", from_=[""], reason=reason, by=by, now=now)
    await noted(connection, "answers.hold", campaign, annotator, reason=reason, by=by)


async def release(
    connection: AsyncConnection,
    campaign: Row[Any],
    annotator: int,
    *,
    reason: str,
    now: datetime,  # noqa: ARG001  (all are called alike)
    by: Actor | None = None,
) -> None:
    """Whom `hold` stopped goes on. Raises the same, and `Conflict` (`not_held`)."""
    await let_in(connection, campaign, annotator, "held", reason)
    await noted(connection, "answers.release", campaign, annotator, reason=reason, by=by)


async def exclude(
    connection: AsyncConnection,
    campaign: Row[Any],
    annotator: int,
    *,
    reason: str,
    now: datetime,
    by: Actor | None = None,
) -> int:
    """No further HITs for an annotator, held or not, and none of their answers counts; the number of the decision.

    Raises what `hold` raises, but no `already_held`.
    """
    await bar(connection, campaign, annotator, "excluded", from_=["", "held"], reason=reason, by=by, now=now)
    seq = await decide(
        connection, campaign, "exclude", "annotator", annotator, reason=reason.strip(), by=name_of(by), now=now
    )
    await noted(connection, "answers.exclude", campaign, annotator, reason=reason, by=by)
    return seq


async def restore(
    connection: AsyncConnection,
    campaign: Row[Any],
    annotator: int,
    *,
    reason: str,
    now: datetime,
    by: Actor | None = None,
) -> int:
    """Whom `exclude` left out goes on, and their answers count again, but those that were excluded one by one; the
    number of the decision. Raises the same, and `Conflict` (`not_excluded`).
    """
    await let_in(connection, campaign, annotator, "excluded", reason)
    seq = await decide(
        connection, campaign, "include", "annotator", annotator, reason=reason.strip(), by=name_of(by), now=now
    )
    await noted(connection, "answers.include", campaign, annotator, reason=reason, by=by)
    return seq


async def exclude_answer(
    connection: AsyncConnection, campaign: Row[Any], answer: int, *, reason: str, now: datetime, by: Actor | None = None
) -> int:
    """One answer, by its number, counts no more; the number of the decision.

    Of somebody who is excluded, it does not count after they are restored either. Raises `Invalid` as `hold` does,
    `NotFound` (`response_not_found`), and `Conflict` (`already_excluded`, `answer_withdrawn`).
    """
    found = await answer_of(connection, campaign, answer, reason)
    if found.last == "exclude":
        raise Conflict(f"Answer {answer} is excluded already. Nothing was changed.", code="already_excluded")
    seq = await decide(
        connection, campaign, "exclude", "response", answer, reason=reason.strip(), by=name_of(by), now=now
    )
    await noted(connection, "answers.exclude", campaign, found.annotator, reason=reason, by=by, answer=answer)
    return seq


async def restore_answer(
    connection: AsyncConnection, campaign: Row[Any], answer: int, *, reason: str, now: datetime, by: Actor | None = None
) -> int:
    """One answer that was excluded counts again, as soon as its annotator does; the number of the decision.

    Raises the same as `exclude_answer`, but `not_excluded` in the place of `already_excluded`.
    """
    found = await answer_of(connection, campaign, answer, reason)
    if found.last != "exclude":
        why = " Its annotator is: restore them instead." if found.barred == "excluded" else ""
        raise Conflict(
            f"Answer {answer} is not excluded by itself.{why} Nothing was changed.", code="not_excluded", answer=answer
        )
    seq = await decide(
        connection, campaign, "include", "response", answer, reason=reason.strip(), by=name_of(by), now=now
    )
    await noted(connection, "answers.include", campaign, found.annotator, reason=reason, by=by, answer=answer)
    return seq


async def annotator_named(connection: AsyncConnection, campaign: Row[Any], name: str) -> int:
    """The row's id of an annotator by their name, such as A7, or by their pseudonym in exports. Raises `NotFound`
    (`annotator_not_found`).
    """
    parameters: dict[str, Any] = {"campaign": campaign.id, "name": name}
    statement = BY_PSEUDONYM
    if NAME.fullmatch(name):
        statement, parameters["before"] = NAMED, int(name[1:]) - 1
    found: int | None = (await connection.execute(statement, parameters)).scalar_one_or_none()
    if found is None:
        raise no_annotator(campaign, shortened(name))
    return found


async def bar(
    connection: AsyncConnection,
    campaign: Row[Any],
    annotator: int,
    as_: Barred,
    *,
    from_: Sequence[str],
    reason: str,
    by: Actor | None,
    now: datetime,
) -> None:
    key = {"campaign": campaign.id, "annotator": annotator}
    why = {"as": as_, "before": from_, "reason": checked(reason), "by": name_of(by), "now": now}
    await connection.execute(RETURN_LEASES, key)
    if (await connection.execute(BAR, key | why)).rowcount == 0:
        found = await standing_of(connection, campaign, annotator)
        raise Conflict(f"{found.name} is {found.barred} already. Nothing was changed.", code=f"already_{found.barred}")


async def let_in(connection: AsyncConnection, campaign: Row[Any], annotator: int, before: Barred, reason: str) -> None:
    checked(reason)
    parameters = {"campaign": campaign.id, "annotator": annotator, "before": before}
    if (await connection.execute(LET_IN, parameters)).rowcount == 0:
        found = await standing_of(connection, campaign, annotator)
        raise Conflict(f"{found.name} is not {before}. Nothing was changed.", code=f"not_{before}")


async def standing_of(connection: AsyncConnection, campaign: Row[Any], annotator: int) -> Row[Any]:
    """How an annotator is barred, if so, and their name. Raises `NotFound` (`annotator_not_found`)."""
    parameters = {"campaign": campaign.id, "annotator": annotator}
    found: Row[Any] | None = (await connection.execute(STANDING, parameters)).one_or_none()
    if found is None:
        raise no_annotator(campaign, str(annotator))
    return found


async def answer_of(connection: AsyncConnection, campaign: Row[Any], answer: int, reason: str) -> Row[Any]:
    """Whose answer it is, and the last decision about it, which stays so until the transaction ends."""
    checked(reason)
    await connection.execute(LOCK_CAMPAIGN, {"campaign": campaign.id})
    parameters = {"campaign": campaign.id, "number": answer}
    found: Row[Any] | None = (await connection.execute(OF_ANSWER, parameters)).one_or_none()
    if found is None:
        raise no_answer(campaign, answer)
    if found.last == "withdraw":
        raise Conflict(
            f"The annotator took answer {answer} back, and another one counts in its place. Nothing was changed.",
            code="answer_withdrawn",
        )
    return found


async def require_answer_of(connection: AsyncConnection, campaign: Row[Any], annotator: int, answer: int) -> None:
    """Raises `NotFound` (`response_not_found`) for an answer of somebody else."""
    parameters = {"campaign": campaign.id, "number": answer}
    found = (await connection.execute(OF_ANSWER, parameters)).one_or_none()
    if found is None or found.annotator != annotator:
        raise no_answer(campaign, answer)


def no_answer(campaign: Row[Any], answer: int) -> NotFound:
    return NotFound(f"“{campaign.name}” has no answer {answer}.", code="response_not_found")


async def noted(
    connection: AsyncConnection,
    action: str,
    campaign: Row[Any],
    annotator: int,
    *,
    reason: str,
    by: Actor | None,
    **about: int,
) -> None:
    """A line in the audit log."""
    name = (await standing_of(connection, campaign, annotator)).name
    await note(connection, action, campaign, about=name, after={**about, "reason": reason.strip()}, by=by)


def name_of(by: Actor | None) -> str:
    """Who decides; None: whoever the request or the command says."""
    return (by or ACTING.get()).name


def checked(reason: str) -> str:
    """Raises `Invalid` (`reason_missing`, `reason_too_long`)."""
    told = reason.strip()
    if not told:
        raise Invalid("Please say why: others will want to know. Nothing was changed.", code="reason_missing")
    if len(told) > LONGEST_REASON:
        raise Invalid(f"A reason has {LONGEST_REASON} characters at most. Nothing was changed.", code="reason_too_long")
    return told


def no_annotator(campaign: Row[Any], name: str) -> NotFound:
    return NotFound(f"“{campaign.name}” has no annotator {name}.", code="annotator_not_found", annotator=name)
