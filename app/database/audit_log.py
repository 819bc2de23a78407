"""The audit log: who changed what, when, from what to what, in the transaction of the change.

`note` is called in the place that makes the change. Its table only grows: the database refuses to change a line or to
take one out. Passwords, tokens and the secrets of settings never get into it, and of annotators only the names A1, A2.
"""

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

ActorWay = Literal["page", "api", "command", "server"]

# action -> what somebody did, in words that stand before what it is about. What stands before the dot is its kind.
ACTION_PHRASES = {
    "campaign.created": "created the campaign",
    "campaign.copied": "created the campaign as a copy",
    "campaign.deleted": "deleted the draft",
    "campaign.launch": "launched the campaign",
    "campaign.pause": "paused the campaign",
    "campaign.resume": "resumed the campaign",
    "campaign.finish": "finished the campaign",
    "campaign.reopen": "reopened the campaign",
    "campaign.archive": "archived the campaign",
    "campaign.restore": "brought the campaign back",
    "campaign.rehearsal_removed": "removed the rehearsal",
    "settings.changed": "changed settings",
    "items.imported": "imported items",
    "items.marked": "made an item a check",
    "items.unmarked": "made a check an item again",
    "items.outputs_imported": "imported outputs of systems",
    "answers.imported": "imported answers",
    "answers.simulated": "let made-up annotators answer",
    "answers.replayed": "stored all posteriors again from the same answers",
    "answers.exclude": "excluded",
    "answers.include": "restored",
    "answers.hold": "held",
    "answers.release": "let go on",
    "people.added": "added people with links of their own",
    "people.downloaded": "downloaded data about people:",
    "alert.seen": "saw an alert:",
    "user.added": "added the researcher",
    "user.joined": "created their account",
    "user.removed": "removed the researcher",
    "user.role": "changed the role of the researcher",
    "user.password": "set the password",
    "member.added": "shared the campaign with",
    "member.joined": "joined the campaign",
    "member.role": "changed the role in the campaign of",
    "member.removed": "ended the role in the campaign of",
    "invitation.made": "made an invitation",
    "invitation.withdrawn": "withdrew an invitation",
    "login.connected": "connected a login by the provider",
    "login.disconnected": "disconnected the login by the provider",
    "invitation.accepted": "accepted the invitation by",
    "link.made": "made a read-only link",
    "link.withdrawn": "withdrew a read-only link",
    "login.in": "logged in",
    "login.failed": "failed to log in",
    "login.out": "logged out",
    "login.out_everywhere": "logged out everywhere",
    "login.link_made": "made a login link for",
    "token.created": "created the API token",
    "token.revoked": "revoked the API token",
}
ACTION_KIND_TITLES = {
    "campaign": "Campaigns",
    "settings": "Settings",
    "items": "Items",
    "answers": "Answers",
    "people": "People",
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
    """Who acts: by their login name on a page or by the API, by that of the machine on the command line; or the server
    by itself. The name stays in the log when the researcher is removed.
    """

    name: str
    way: ActorWay
    user_id: int | None = None  # of a researcher, whose campaigns are theirs


SERVER_ACTOR = Actor("Easel", "server")

# It belongs to a request or a command as a whole: guards and commands set it, and nobody between has to pass it on.
CURRENT_ACTOR: ContextVar[Actor] = ContextVar("acting", default=SERVER_ACTOR)

MAX_LOGGED_VALUE_CHARACTERS = 200  # characters of what was or is; an export has all
CAMPAIGN_COURSE_KINDS = ("campaign", "settings", "items")  # kinds of changes that are of a campaign's course

INSERT_AUDIT_LINE = text("""
    INSERT INTO audit_log (who, way, campaign_id, campaign, action, about, before, after, answers)
    VALUES (:who, :way, :campaign, :slug, :action, :about, CAST(:before AS jsonb), CAST(:after AS jsonb),
            CASE WHEN :of_course THEN
                (SELECT count(*) FROM responses r WHERE r.campaign_id = CAST(:campaign AS bigint)) END)
""")

FIND_CHANGES_SINCE_LAUNCH = text("""
    SELECT * FROM audit_log WHERE campaign_id = :campaign AND split_part(action, '.', 1) = ANY(CAST(:kinds AS text[]))
    AND id > (SELECT coalesce(max(id), 0) FROM audit_log WHERE campaign_id = :campaign AND action = 'campaign.launch')
    ORDER BY id
""")


async def log_change(
    connection: AsyncConnection,
    action: str,
    campaign: Any = None,
    *,
    about: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    actor: Actor | None = None,
) -> None:
    """Write down a change in the transaction that makes it.

    As `await note(connection, "answers.exclude", campaign, about="A7", after={"reason": reason})`: once, beside the
    statement that changes something, after whatever refuses. A new action gets its words in `ACTIONS`, and a new route
    its request in tests/audit/test_every_route_is_noted.py. Who acts is known: guards and commands have said it.

    action: one of `ACTIONS`. campaign: a row with `id` and `slug`, if the change is of one. about: what else it is
    about, such as A7 or a login name. before, after: what was and what is, by name. by: who did it, if the request or
    the command does not say so.
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
        "before": before and facts_as_json(before),
        "after": after and facts_as_json(after),
        "of_course": campaign is not None and action.partition(".")[0] in CAMPAIGN_COURSE_KINDS,
    }
    await connection.execute(INSERT_AUDIT_LINE, parameters)


def facts_as_json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, default=str)


def changed_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was, and what is, of all that differs."""
    differing = [name for name in after if before.get(name) != after[name]]
    return {name: before.get(name) for name in differing}, {name: after[name] for name in differing}


async def load_changes_since_launch(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """What was changed of a campaign since its launch, oldest first: lines with `answers`, how many it had then."""
    rows = await connection.execute(
        FIND_CHANGES_SINCE_LAUNCH, {"campaign": campaign_id, "kinds": list(CAMPAIGN_COURSE_KINDS)}
    )
    return rows.all()


def describe_log_line(line: Row[Any]) -> str:
    """What somebody did, in words; of an action that this version does not know, its name."""
    words = ACTION_PHRASES.get(line.action, line.action)
    return f"{words} {line.about}" if line.about else words


def displayed_changes(line: Row[Any]) -> list[tuple[str, str | None, str | None]]:
    """(name, what was, what is) of a line, for people; None where nothing is said of it."""
    before, after = line.before or {}, line.after or {}
    names = dict.fromkeys((*before, *after))
    return [
        (name.replace("_", " "), format_logged_fact(before, name), format_logged_fact(after, name)) for name in names
    ]


def list_in_words(values: Sequence[Any]) -> str:
    """Return the values of a list one after another: sentences as they are, others with semicolons between them."""
    words = [str(value) for value in values]
    return (" " if all(word.endswith(".") for word in words) else "; ").join(words)


def format_logged_fact(facts: Mapping[str, Any], name: str) -> str | None:
    if name not in facts:
        return None
    value = facts[name]
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = "nothing" if value in (None, "", [], {}) else list_in_words(value) if isinstance(value, list) else str(value)
    return text if len(text) <= MAX_LOGGED_VALUE_CHARACTERS else text[: MAX_LOGGED_VALUE_CHARACTERS - 1] + "…"
