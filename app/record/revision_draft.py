"""A revision in the making: rows of posteriors next to the present ones, and how far they have come."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.exclusive_work import WorkClaim
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.record import responses, unjudged
from app.record.bulk_update import apply_answers_and_count_by_item, lock_and_load_posteriors_of_items
from app.record.changes import Watermark
from app.record.law_storage import Revision
from app.record.responses import Response

# Answers that the switch may still have to apply, while no other can be stored. A quick law takes microseconds each.
MAX_ANSWERS_LEFT_AT_SWITCH, MAX_ANSWERS_LEFT_AT_SLOW_SWITCH = 20, 3

# The switch waits this long at most for transactions that are storing, since all others wait for it; then it lets them
# continue for three times as long. Each attempt waits longer: if storing is slow, its turn would never come otherwise.
MIN_SWITCH_WAIT_MS, MAX_SWITCH_WAIT_MS = 100, 3_200
SET_LOCK_TIMEOUT = text("SELECT set_config('lock_timeout', CAST(CAST(:milliseconds AS int) AS text), true)")


@dataclass
class RevisionDraft:
    """A revision in the making.

    Args:
        claim: The right to make revisions of the campaign.
        campaign: The campaign's row when the draft was created.
        decided: Number of the last decision that the draft includes.
        watermark: The draft includes all responses written before it.
        unjudged_by: Annotators who could not judge each item, by item.
        failed_attempts: Number of switch attempts that made no progress.

    """

    claim: WorkClaim
    campaign: Campaign
    decided: int
    watermark: Watermark
    unjudged_by: dict[int, set[int]]
    failed_attempts: int = 0

    @property
    def revision(self) -> Revision:
        return key_of_next_revision(self.campaign.criteria[0])

    @property
    def max_answers_left(self) -> int:
        """Number of answers that the switch may still apply. It doubles each time: else a busy campaign never ends."""
        is_quick = self.campaign.law.quick
        return (MAX_ANSWERS_LEFT_AT_SWITCH if is_quick else MAX_ANSWERS_LEFT_AT_SLOW_SWITCH) << self.failed_attempts

    @property
    def lock_timeout_parameters(self) -> dict[str, int]:
        """Parameters of `SET_LOCK_TIMEOUT` for this attempt."""
        return {"milliseconds": min(MIN_SWITCH_WAIT_MS << self.failed_attempts, MAX_SWITCH_WAIT_MS)}


def key_of_next_revision(criterion: Criterion[Campaign]) -> Revision:
    """Return the revision after the present one."""
    return Revision(criterion.campaign.id, criterion.campaign.revision + 1, criterion.number)


async def apply_new_answers_to_draft_and_count(connection: AsyncConnection, draft: RevisionDraft) -> int:
    """Add the answers written since the draft's watermark, and return how many they are."""
    async with connection.begin():
        await draft.claim.hold_until_transaction_ends_or_raise(connection)
        now, answers = await load_watermark_and_answers_missing_in_draft(connection, draft)
        await apply_answers_to_draft(connection, draft, answers)
    draft.watermark = now
    return len(answers[0])


async def apply_answers_to_draft(
    connection: AsyncConnection, draft: RevisionDraft, answers: Sequence[Sequence[Response]]
) -> None:
    """Apply answers, by each criterion, to the draft's posteriors.

    If answers share an item, the one with the lower number was written first; the order of others does not matter.
    """
    for criterion, criterion_answers in zip(draft.campaign.criteria, answers, strict=True):
        await apply_answers_and_count_by_item(
            connection,
            criterion,
            criterion_answers,
            await lock_and_load_posteriors_of_items(connection, key_of_next_revision(criterion), criterion_answers),
        )
    if answers[0]:
        seqs = [answer.seq for answer in answers[0]]
        unjudged_by = await unjudged.load_unable_annotators_by_item(
            connection, draft.campaign, last_decision=draft.decided, seqs=seqs
        )
        for item, people in unjudged_by.items():
            draft.unjudged_by.setdefault(item, set()).update(people)
        await unjudged.store_unjudged_counts(
            connection, draft.revision, {item: draft.unjudged_by[item] for item in unjudged_by}
        )


async def load_watermark_and_answers_missing_in_draft(
    connection: AsyncConnection, draft: RevisionDraft
) -> tuple[Watermark, list[list[Response]]]:
    """Return the answers that the draft misses, by each criterion, and the watermark that it reaches with them."""
    campaign_id, since, decided = draft.campaign.id, draft.watermark, draft.decided
    watermark, first_criterion_answers = await responses.load_watermark_and_new_responses(
        connection, campaign_id, since, last_decision=decided
    )
    other_criteria = draft.campaign.criteria[1:]
    if not first_criterion_answers:
        return watermark, [[], *([] for _ in other_criteria)]
    load_since = partial(responses.load_counted_responses, connection, campaign_id, since=since, last_decision=decided)
    after = first_criterion_answers[0].seq - 1
    return watermark, [
        first_criterion_answers,
        *([await load_since(until=watermark, after=after, criterion=criterion.number) for criterion in other_criteria]),
    ]
