"""The audit log: who changed what, when, from what to what, in the transaction of the change.

Call `log_change` where the change is made. The table only grows: the database refuses to change or delete a line.
Passwords, tokens and secret settings are never logged, and annotators only by their names A1, A2.
"""

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

ActorWay = Literal["page", "api", "command", "server"]

# action -> words before the subject. The part of the action before the dot is its kind.
ACTION_PHRASES = {
    "campaign.created": "created the campaign",
    "campaign.copied": "created the campaign as a copy",
    "campaign.deleted": "deleted the campaign",
    "campaign.revert": "made the campaign a draft again",
    "campaign.launch": "launched the campaign",
    "campaign.pause": "paused the campaign",
    "campaign.resume": "resumed the campaign",
    "campaign.finish": "finished the campaign",
    "campaign.reopen": "reopened the campaign",
    "campaign.archive": "archived the campaign",
    "campaign.restore": "restored the campaign",
    "campaign.rehearsal_removed": "removed the rehearsal",
    "settings.changed": "changed settings",
    "items.imported": "imported items",
    "items.marked": "turned an item into a check",
    "items.check_changed": "changed a check",
    "items.copied": "copied an item as a check",
    "items.deleted": "deleted items",
    "items.retired": "retired items",
    "items.restored": "restored retired items",
    "items.corrected": "corrected the text of the item",
    "items.unmarked": "turned a check back into an item",
    "items.outputs_imported": "imported outputs of systems",
    "answers.imported": "imported answers",
    "answers.simulated": "let simulated annotators answer",
    "answers.replayed": "recomputed all posteriors from the same answers",
    "answers.recomputed": "recomputed all posteriors under the newest edition of the update law",
    "answers.exclude": "excluded",
    "answers.include": "restored",
    "answers.hold": "held",
    "answers.release": "released",
    "labels.settled": "settled the label of the item",
    "labels.reopened": "reopened the label of the item",
    "people.added": "added people with personal links",
    "people.listed": "changed who may take part: list",
    "people.seen": "read data about people:",
    "people.downloaded": "downloaded data about people:",
    "people.searched": "searched for a person",
    "people.exported": "downloaded the data of one person:",
    "people.erased": "erased a person: receipt",
    "people.withdrew": "withdrew and asked to have the answers removed: receipt",
    "people.withdrawal_undone": "took back a withdrawal: receipt",
    "people.retention": "erased data after its retention period:",
    "calls.decided": "decided about the call to the platform",
    "calls.repeated": "repeated calls to the platform:",
    "calls.prepared": "prepared calls to the platform for people who completed earlier:",
    "payments.connected": "set how the campaign pays",
    "payments.disconnected": "removed the token for payments",
    "payments.added": "added bonuses:",
    "payments.send": "asked Easel to send bonuses:",
    "payments.by_hand": "downloaded bonuses to pay by hand:",
    "payments.retried": "asked Easel to send failed bonuses again:",
    "payments.decided": "decided about the payment",
    "payments.reviewing": "set how submissions are compared",
    "payments.notices_begun": "subscribed to the platform’s notices",
    "payments.notices_ended": "ended the platform’s notices",
    "payments.test_study": "made a test study of",
    "payments.study_drafted": "drafted the study",
    "payments.study_changed": "changed the study",
    "payments.approved": "approved the submission of",
    "payments.approve_tried": "tried without a reply to approve the submission of",
    "payments.reject_tried": "tried without a reply to reject the submission of",
    "payments.rejected": "rejected the submission of",
    "payments.return_requested": "asked for the return of the submission of",
    "payments.request_return_tried": "tried without a reply to ask for the return of the submission of",
    "alert.seen": "marked an alert as seen:",
    "user.added": "added the researcher",
    "user.joined": "created their account",
    "user.removed": "removed the researcher",
    "user.role": "changed the role of the researcher",
    "user.password": "set the password",
    "member.added": "shared the campaign with",
    "member.joined": "joined the campaign",
    "member.role": "changed the role in the campaign of",
    "member.removed": "removed from the campaign:",
    "invitation.made": "created an invitation",
    "invitation.withdrawn": "withdrew an invitation",
    "login.connected": "connected a login with the provider",
    "login.disconnected": "disconnected the login with the provider",
    "invitation.accepted": "accepted the invitation by",
    "link.made": "created a read-only link",
    "link.withdrawn": "withdrew a read-only link",
    "login.in": "logged in",
    "login.failed": "failed to log in",
    "login.out": "logged out",
    "login.out_everywhere": "logged out everywhere",
    "login.link_made": "created a login link for",
    "token.created": "created the API token",
    "token.revoked": "revoked the API token",
}
ACTION_KIND_TITLES = {
    "campaign": "Campaigns",
    "settings": "Settings",
    "items": "Items",
    "answers": "Answers",
    "labels": "Labels",
    "people": "People",
    "payments": "Payments",
    "calls": "Calls to platforms",
    "alert": "Alerts",
    "user": "Researchers",
    "member": "Members",
    "invitation": "Invitations",
    "link": "Read-only links",
    "login": "Logins",
    "token": "API tokens",
}


@dataclass(frozen=True)
class Actor:
    """The person who makes a change, or the server itself.

    `name` is a login name on pages and in the API, and the operating system's user on the command line. It stays in the
    log when the researcher is removed. `user_id` is that of a researcher, and `only_campaign_id` that of a token which
    is for one campaign.
    """

    name: str
    way: ActorWay
    user_id: int | None = None
    only_campaign_id: int | None = None


SERVER_ACTOR = Actor("Easel", "server")

# Set by guards and commands for a whole request or command, so that functions need not pass it on.
CURRENT_ACTOR: ContextVar[Actor] = ContextVar("acting", default=SERVER_ACTOR)

MAX_LOGGED_VALUE_CHARACTERS = 200  # shown on pages; an export has all
CAMPAIGN_COURSE_KINDS = ("campaign", "settings", "items")  # kinds that a campaign's history shows

INSERT_AUDIT_LINE = text("""
    INSERT INTO audit_log (who, way, campaign_id, campaign, action, about, before, after, answers)
    SELECT CAST(:who AS text), CAST(:way AS text), CAST(:campaign AS bigint), CAST(:slug AS text),
           CAST(:action AS text), CAST(:about AS text), CAST(:before AS jsonb), CAST(:after AS jsonb),
           CASE WHEN :of_course THEN counted.answers END
    FROM (SELECT count(*) AS answers FROM responses r WHERE :of_course AND r.campaign_id = CAST(:campaign AS bigint))
        AS counted
""")

FIND_CHANGES_SINCE_LAUNCH = text("""
    SELECT * FROM audit_log WHERE campaign_id = :campaign AND split_part(action, '.', 1) = ANY(CAST(:kinds AS text[]))
    AND id > (SELECT coalesce(max(id), 0) FROM audit_log WHERE campaign_id = :campaign AND action = 'campaign.launch')
    ORDER BY id
""")


class LoggedFacts(NamedTuple):
    """Old and new values of a log line, by name."""

    before: dict[str, Any]
    after: dict[str, Any]


class NamedCampaign(Protocol):
    """A campaign by its id and its name in addresses."""

    @property
    def id(self) -> int: ...
    @property
    def slug(self) -> str: ...


async def log_change(
    connection: AsyncConnection,
    action: str,
    campaign: NamedCampaign | None = None,
    *,
    about: str = "",
    old_values: Mapping[str, Any] | None = None,
    new_values: Mapping[str, Any] | None = None,
    actor: Actor | None = None,
) -> None:
    """Log a change in the transaction that makes it.

    Example: `await log_change(connection, "answers.exclude", campaign, about="A7", new_values={"reason": reason})`.
        Call it
    once, next to the statement that makes the change, after all checks that may refuse it. Add a new action to
    `ACTION_PHRASES`, and a new route to tests/accounts/test_every_route_is_noted.py.

    Args:
        connection: A connection in the change's transaction.
        action: A key of `ACTION_PHRASES`.
        campaign: The campaign, if the change concerns a campaign.
        about: The subject, such as A7 or a login name.
        old_values: Old values by name.
        new_values: New values by name.
        actor: Who made the change; by default `CURRENT_ACTOR`, which guards and commands set.

    """
    if action not in ACTION_PHRASES:
        raise KeyError(action)
    acting = actor or CURRENT_ACTOR.get()
    parameters = {
        "who": acting.name,
        "way": acting.way,
        "campaign": campaign and campaign.id,
        "slug": campaign and campaign.slug,
        "action": action,
        "about": about,
        "before": old_values and json_of_audit_facts(old_values),
        "after": new_values and json_of_audit_facts(new_values),
        "of_course": campaign is not None and action.partition(".")[0] in CAMPAIGN_COURSE_KINDS,
    }
    await connection.execute(INSERT_AUDIT_LINE, parameters)


def json_of_audit_facts(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, default=str)


def old_and_new_values_that_differ(
    old_values: Mapping[str, Any], new_values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the old and the new values of the names whose values differ."""
    differing = [name for name in new_values if old_values.get(name) != new_values[name]]
    return {name: old_values.get(name) for name in differing}, {name: new_values[name] for name in differing}


async def load_log_lines_since_launch(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return the log lines of a campaign since its launch, oldest first, with its number of `answers` at each."""
    rows = await connection.execute(
        FIND_CHANGES_SINCE_LAUNCH, {"campaign": campaign_id, "kinds": list(CAMPAIGN_COURSE_KINDS)}
    )
    return rows.all()


def describe_log_line(line: Row[Any]) -> str:
    """Return a log line in words; for an action unknown to this version, its name."""
    words = ACTION_PHRASES.get(line.action, line.action)
    return f"{words} {line.about}" if line.about else words


def names_with_old_and_new_value_texts(line: LoggedFacts | Row[Any]) -> list[tuple[str, str | None, str | None]]:
    """Return (name, old value, new value) for each value of a log line, as text; None if the line has no such value."""
    before, after = line.before or {}, line.after or {}
    names = dict.fromkeys((*before, *after))
    return [
        (name.replace("_", " "), shortened_fact_text_or_none(before, name), shortened_fact_text_or_none(after, name))
        for name in names
    ]


def join_values_as_one_text(values: Sequence[Any]) -> str:
    """Return the values of a list as one text: sentences joined by spaces, other values by semicolons."""
    words = [text_of_fact(value) for value in values]
    return (" " if all(word.endswith(".") for word in words) else "; ").join(words)


def shortened_fact_text_or_none(facts: Mapping[str, Any], name: str) -> str | None:
    if name not in facts:
        return None
    text = text_of_fact(facts[name])
    return text if len(text) <= MAX_LOGGED_VALUE_CHARACTERS else text[: MAX_LOGGED_VALUE_CHARACTERS - 1] + "…"


def text_of_fact(value: Any) -> str:
    """Return a value of a log line in words; settings within a setting are listed with their names."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in (None, "", [], {}):
        return "nothing"
    if isinstance(value, list):
        return join_values_as_one_text(value)
    if isinstance(value, dict):
        return "; ".join(f"{name.replace('_', ' ')}: {text_of_fact(inner)}" for name, inner in value.items())
    return str(value)
