"""Finished work whose pay is lost from sight once the ids of its annotator are erased."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.registry import PLATFORMS, platform_with_title
from app.designs.campaign import Campaign
from app.designs.person_work import work_of_one_person
from app.http.languages.catalogue import ENGLISH, format_money
from app.privacy.inventory_types import ERASED_PREFIX
from app.privacy.person_search import Person

HUNDREDTHS = 100

# The platform said that it pays or paid nothing more for the others.
LIST_UNPAID_SUBMISSIONS = text(f"""
    SELECT s.annotator_id AS annotator, s.external_id AS submission FROM assignments s
    WHERE s.campaign_id = :campaign AND s.annotator_id = ANY(CAST(:annotators AS bigint[]))
      AND s.completed_at IS NOT NULL AND NOT starts_with(s.external_id, '{ERASED_PREFIX}')
      AND NOT EXISTS (
          SELECT FROM payments p WHERE p.campaign_id = :campaign AND p.submission = s.external_id
          AND p.kind = 'reward' AND p.state = 'sent')
      AND NOT EXISTS (
          SELECT FROM submissions u WHERE u.campaign_id = :campaign AND u.external_id = s.external_id
          AND u.status IN ('approved', 'partially_approved', 'screened_out', 'rejected', 'returned'))
    ORDER BY s.id
""")
SUM_UNSENT_BONUSES = text("""
    SELECT annotator_id AS annotator, min(currency) AS currency, sum(amount) AS amount FROM payments
    WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:annotators AS bigint[]))
      AND kind = 'bonus' AND state IN ('prepared', 'failed')
    GROUP BY 1
""")


@dataclass(frozen=True)
class UnpaidWork:
    """Pay that an annotator may still be due.

    Attributes:
        platform: Title of the platform.
        submissions: The platform's ids of finished submissions that Easel has not seen paid.
        amount_due: Pay of these, such as "£1.50"; empty if the settings do not say it.
        bonuses_due: Bonuses that are not sent, such as "£2.00"; empty if there are none.
        is_on_approval_list: Whether the list of submissions to approve has these ids.

    """

    platform: str
    submissions: Sequence[str]
    amount_due: str
    bonuses_due: str
    is_on_approval_list: bool


async def load_unpaid_work_by_annotator(
    connection: AsyncConnection, campaign: Campaign, people: Sequence[Person]
) -> dict[int, UnpaidWork]:
    """Return what is not paid, as far as Easel knows, of the people who are paid by an id that an erasure removes."""
    payable = {person.id: person for person in people if person.id and is_paid_by_id(campaign, person.platform)}
    parameters = {"campaign": campaign.id, "annotators": [*payable]}
    submissions: dict[int, list[str]] = {}
    for row in await connection.execute(LIST_UNPAID_SUBMISSIONS, parameters):
        submissions.setdefault(row.annotator, []).append(row.submission)
    bonuses = {
        row.annotator: format_money(row.amount / HUNDREDTHS, row.currency, ENGLISH)
        for row in await connection.execute(SUM_UNSENT_BONUSES, parameters)
    }
    return {
        annotator: UnpaidWork(
            platform_with_title(person.platform, campaign.panel_title).title,
            submissions.get(annotator, []),
            text_of_amount_due(campaign, person, len(submissions.get(annotator, []))),
            bonuses.get(annotator, ""),
            PLATFORMS[person.platform].approves_by_list,
        )
        for annotator, person in payable.items()
        if annotator in submissions or annotator in bonuses
    }


def is_paid_by_id(campaign: Campaign, platform_name: str) -> bool:
    """Return whether people of a platform are paid by the id that brought them; visitors of an open link have none."""
    platform = PLATFORMS.get(platform_name)
    if platform is None or not platform.has_page or platform.has_start_button:
        return False
    return platform.has_return_page or bool(campaign.pay or campaign.pay_per_hit)


def text_of_amount_due(campaign: Campaign, person: Person, submission_count: int) -> str:
    """Return the pay of a person's finished submissions in words; empty if there are none, or it is not known."""
    if not submission_count:
        return ""
    platform, pay_per_task = PLATFORMS[person.platform], campaign.pay_per_hit or 0.0
    tasks = submission_count if platform.one_hit_per_assignment else person.answers
    amount = work_of_one_person(campaign, platform).pay_in_all if platform.pays_per_person else pay_per_task * tasks
    return campaign.pay or (format_money(amount, campaign.currency, ENGLISH, exact=True) if amount else "")
