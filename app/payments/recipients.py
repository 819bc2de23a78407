"""Recipients of bonuses: the submission of the person with a name or an id."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.errors import Invalid, shorten_echo
from app.payments.bonus_list import BonusLine

# The person's last submission by each name that people use for one: A7, a pseudonym, the platform's ids. An id of the
# platform comes from a link, so a visitor may bring another person's name as theirs.
FIND_RECIPIENTS = text("""
    WITH given AS (SELECT DISTINCT unnest(CAST(:recipients AS text[])) AS recipient),
    person AS (
        SELECT given.recipient, n.id, CAST(NULL AS text) AS external_id FROM given
        JOIN named_annotators n ON n.campaign_id = :campaign AND n.name = given.recipient
        UNION ALL
        SELECT given.recipient, n.id, NULL FROM given
        JOIN named_annotators n ON n.campaign_id = :campaign AND n.pseudonym = given.recipient
        UNION ALL
        SELECT given.recipient, a.id, NULL FROM given
        JOIN annotators a ON a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.recipient
        UNION ALL
        SELECT given.recipient, s.annotator_id, s.external_id FROM given
        JOIN assignments s ON s.campaign_id = :campaign AND s.external_id = given.recipient
    )
    SELECT DISTINCT ON (person.recipient) person.recipient, s.annotator_id, s.external_id, s.arrival, a.platform,
        (SELECT count(DISTINCT p.id) FROM person p WHERE p.recipient = person.recipient) > 1 AS is_ambiguous
    FROM person
    JOIN assignments s ON s.campaign_id = :campaign AND s.annotator_id = person.id
        AND s.external_id = coalesce(person.external_id, s.external_id)
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    ORDER BY person.recipient, s.completed_at DESC NULLS LAST, s.id DESC
""")

# The last completed submission of each.
LIST_COMPLETED_PEOPLE = text("""
    SELECT DISTINCT ON (a.id) a.id AS annotator_id, s.external_id, s.arrival FROM annotators a
    JOIN assignments s ON s.campaign_id = a.campaign_id AND s.annotator_id = a.id
    WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.barred IS NULL AND s.completed_at IS NOT NULL
    AND NOT starts_with(s.external_id, 'erased:')
    ORDER BY a.id, s.completed_at DESC, s.id DESC
""")


async def find_submissions_of_recipients_or_refuse(
    connection: AsyncConnection, campaign: Campaign, account: Row[Any], lines: Sequence[BonusLine]
) -> list[Row[Any]]:
    """Return the submission of each line's person.

    Raises:
        Invalid: `recipient_unknown`, `recipient_ambiguous`, `recipient_erased`, `recipient_elsewhere`.

    """
    names = [line.recipient for line in lines]
    parameters = {"campaign": campaign.id, "platform": account.platform, "recipients": names}
    found = {row.recipient: row for row in await connection.execute(FIND_RECIPIENTS, parameters)}
    for number, name in enumerate(names, 1):
        refuse_unpayable_recipient(found.get(name), f"Bonus {number} is for “{shorten_echo(name)}”", number, account)
    return [found[name] for name in names]


def refuse_unpayable_recipient(row: Row[Any] | None, beginning: str, number: int, account: Row[Any]) -> None:
    """Raise `Invalid` unless the person was found, is one person, and can be paid on the platform."""
    if row is None:
        raise Invalid(
            f"{beginning}, but no annotator of this campaign has this name or id. Nothing was stored.",
            code="recipient_unknown",
            bonus=number,
        )
    if row.is_ambiguous:
        raise Invalid(
            f"{beginning}, but this is a name or id of more than one annotator. Name the submission instead. Nothing "
            "was stored.",
            code="recipient_ambiguous",
            bonus=number,
        )
    if row.platform != account.platform:
        raise Invalid(
            f"{beginning}, who did not come from this platform and cannot be paid there. Nothing was stored.",
            code="recipient_elsewhere",
            bonus=number,
        )
    if row.external_id.startswith("erased:"):
        raise Invalid(f"{beginning}, whose ids were erased. Nothing was stored.", code="recipient_erased", bonus=number)


async def list_last_submissions_of_completed_people(
    connection: AsyncConnection, campaign: Campaign, account: Row[Any]
) -> Sequence[Row[Any]]:
    """Return the last submission of each annotator from the platform who finished and is neither held nor excluded."""
    parameters = {"campaign": campaign.id, "platform": account.platform}
    return (await connection.execute(LIST_COMPLETED_PEOPLE, parameters)).all()
