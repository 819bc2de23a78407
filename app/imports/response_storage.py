"""Storage of the answers of one import, a few in each transaction, with the file until all of them are stored."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.platform import Platform
from app.background.collection_pause import collect_garbage_rarely
from app.background.progress_stream import ReportRowCount
from app.database import tables
from app.database.audit_log import log_change
from app.database.campaign import try_to_finish_complete_campaign, unknown_campaign_slug_error
from app.database.exclusive_work import WorkClaim
from app.database.statistics import analyze_tables_with_many_new_rows, flush_table_statistics_at_commit
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.imports.imported_hits import ImportedHit
from app.imports.imported_hits_store import (
    ARE_ANNOTATORS_AT_WORK,
    store_closed_hits_and_return_new_ones,
    store_responses_returning_judgments_by_item,
)
from app.imports.response_receipt import ResponseImportReceipt
from app.imports.stored_hit_lines import StoredImportedHit
from app.imports.unfinished_imports import AnswerFile, delete_unfinished_import, store_unfinished_import
from app.privacy.erasures import reopen_erasures_since
from app.record.bulk_update import lock_and_load_posteriors_of_each_criterion, take_shared_lock_to_store_answers

MIN_HITS_PER_TRANSACTION, MAX_HITS_PER_TRANSACTION = 5, 50_000
MAX_GROWTH, MAX_QUIET_GROWTH = 2, 8  # of the next transaction; in a quiet campaign it is no harm if it takes longer
TARGET_TRANSACTION_SECONDS = 0.1  # how long annotators of the campaign may have to wait
TARGET_QUIET_TRANSACTION_SECONDS = 1.0  # while none has a HIT: one who comes then may have to wait so long, once
FIND_LAUNCH_TIME = text("SELECT launched_at FROM campaigns WHERE id = :campaign")
TABLES_OF_ANSWERS = (tables.assignments, tables.hits, tables.responses)


@dataclass
class ResponseStorage:
    """Storage of the HITs of one import, while it holds the imports of the campaign.

    Attributes:
        engine: The database.
        campaign: The campaign.
        platform: Platform of the annotators.
        claim: Right to import answers into the campaign.
        answer_file: The file, which is kept until all of its HITs are stored.
        has_begun: Whether an earlier process has stored the first HITs, and the file.

    """

    engine: AsyncEngine
    campaign: Campaign
    platform: Platform
    claim: WorkClaim
    answer_file: AnswerFile
    has_begun: bool = False

    async def store_all_hits_and_finish_if_complete(
        self, hits: list[ImportedHit], receipt: ResponseImportReceipt, progress: ReportRowCount
    ) -> None:
        """Store the HITs, finish the campaign if it is complete, and count in the receipt what was stored."""
        stored_count, judgments_by_item = 0, dict[int, int]()
        async for batch, counts in self.store_hits_yielding_batches_with_counts(hits):
            stored_count += len(batch)
            response_count = sum(hit.has_response for hit in batch)
            receipt.responses += response_count
            receipt.not_applicable += sum(hit.item_scores.count(None) + len(hit.unjudged) for hit in batch)
            receipt.without_score += len(batch) - response_count
            receipt.without_worker += sum(hit.is_anonymous for hit in batch)
            judgments_by_item |= counts
            progress(stored_count)
        async with self.engine.begin() as connection:
            await analyze_tables_with_many_new_rows(connection, TABLES_OF_ANSWERS, added_count=0)
        now = self.answer_file.started_at
        async with self.engine.begin() as connection:
            receipt.finished = await try_to_finish_complete_campaign(connection, self.campaign.id, now=now)
        receipt.items, receipt.known = len(judgments_by_item), receipt.known - stored_count
        receipt.over_wanted = await asyncio.to_thread(
            count_items_over_wanted_judgments, self.campaign, judgments_by_item
        )

    async def store_hits_yielding_batches_with_counts(
        self, hits: list[ImportedHit]
    ) -> AsyncIterator[tuple[list[ImportedHit], dict[int, int]]]:
        """Store HITs in batches, and yield each batch with the number of judgments that its items have then.

        The batch size is adapted so that a transaction takes `TARGET_TRANSACTION_SECONDS` while annotators have HITs,
        and `TARGET_QUIET_TRANSACTION_SECONDS` while none has. Between two batches annotators get as much time, so that
        those who waited need not wait again. Takes the HITs from `hits`: freeing a million at once would block this
        process. The transaction of the first batch stores the file, and that of the last one deletes it.
        """
        hits.reverse()
        batch_size, fixed_seconds, hit_count = MIN_HITS_PER_TRANSACTION, math.inf, len(hits)
        is_first = True
        while is_first or hits:
            batch = [hits.pop() for _ in range(min(batch_size, len(hits)))]
            async with self.engine.begin() as connection:
                await self.claim.hold_until_transaction_ends_or_raise(connection)
                # First, as a deletion of the campaign does: each would wait for the other otherwise.
                await take_shared_lock_to_store_answers(connection, self.campaign)
                await self.refuse_if_campaign_was_deleted_or_became_draft(connection)
                if is_first:
                    await self.log_import_and_store_file_if_in_batches(
                        connection, hit_count=hit_count, is_stored_at_once=not hits
                    )
                with collect_garbage_rarely():  # a batch makes many objects, and frees them at its end
                    stored_hits, counts, held_seconds = await self.store_batch_returning_hits_counts_and_seconds(
                        connection, batch
                    )
                if not hits and (self.has_begun or not is_first):
                    await delete_unfinished_import(connection, self.campaign.id)
                await flush_table_statistics_at_commit(connection)
                has_annotators = await connection.scalar(ARE_ANNOTATORS_AT_WORK, {"campaign": self.campaign.id})
            is_first = False
            yield [stored.imported for stored in stored_hits], counts
            target_seconds = TARGET_TRANSACTION_SECONDS if has_annotators else TARGET_QUIET_TRANSACTION_SECONDS
            # The time that any batch takes, such as the commit, is no reason to store fewer.
            fixed_seconds = min(fixed_seconds, held_seconds)
            row_seconds = max(held_seconds - fixed_seconds, 0.01 * target_seconds)
            batch_size = min(
                max(round(batch_size * target_seconds / row_seconds), MIN_HITS_PER_TRANSACTION),
                (MAX_GROWTH if has_annotators else MAX_QUIET_GROWTH) * batch_size,
                MAX_HITS_PER_TRANSACTION,
            )
            if has_annotators:
                await asyncio.sleep(held_seconds)

    async def log_import_and_store_file_if_in_batches(
        self, connection: AsyncConnection, *, hit_count: int, is_stored_at_once: bool
    ) -> None:
        """Log the import, and store its file unless its HITs are stored in this transaction."""
        if self.has_begun:
            return
        await log_change(connection, "answers.imported", self.campaign, new_values={"hits": hit_count})
        if not is_stored_at_once:
            await store_unfinished_import(connection, self.campaign.id, self.answer_file, hit_count=hit_count)
            await reopen_erasures_since(connection, self.campaign.id, since=self.answer_file.started_at)

    async def refuse_if_campaign_was_deleted_or_became_draft(self, connection: AsyncConnection) -> None:
        """Raise a refusal if the campaign was deleted or became a draft again, even if it was launched since then.

        The numbers of items may have another meaning then. Waits for nothing: the caller has the right to store.

        Raises:
            NotFound: `campaign_not_found`.
            Conflict: `not_launched`.

        """
        launch_times = (await connection.scalars(FIND_LAUNCH_TIME, {"campaign": self.campaign.id})).all()
        if not launch_times:
            raise unknown_campaign_slug_error(self.campaign.slug)
        if launch_times[0] != self.campaign.launched_at:
            raise Conflict(
                f"“{self.campaign.name}” became a draft again meanwhile. Nothing more was imported.",
                code="not_launched",
                status="draft",
            )

    async def store_batch_returning_hits_counts_and_seconds(
        self, connection: AsyncConnection, batch: list[ImportedHit]
    ) -> tuple[list[StoredImportedHit], dict[int, int], float]:
        """Store some HITs; return those that are new, the judgments of their items, and how long annotators waited."""
        campaign, now = self.campaign, self.answer_file.started_at
        stored_hits, answers = await store_closed_hits_and_return_new_ones(
            connection, campaign, self.platform, batch, now=now
        )
        locked_posteriors = await lock_and_load_posteriors_of_each_criterion(
            connection, campaign, answers.by_criterion[0]
        )
        start_time = time.monotonic()  # excludes the wait for locks, which is no reason to store fewer
        counts = (
            await store_responses_returning_judgments_by_item(connection, campaign, answers, locked_posteriors)
            if answers.lines
            else {}
        )
        return stored_hits, counts, time.monotonic() - start_time


def count_items_over_wanted_judgments(campaign: Campaign, judgments_by_item: Mapping[int, int]) -> int:
    drawn_items = judgments_by_item.keys() - set(campaign.always_shown)
    return sum(judgments_by_item[item] > campaign.judgments_per_item for item in drawn_items)
