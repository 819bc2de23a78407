"""In-process copy of a campaign's posteriors, updated from the database before each use.

The copy only decides what to ask and what a dashboard draws: it may be stale, never wrong. `record.changes` finds what
other processes wrote. If a campaign has many open HITs, the items that they hold stay cached for a second
(`open_hits`).
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from cachetools import LRUCache
from sqlalchemy import text

from app.annotation.hits.index_settings import IndexSettings
from app.annotation.hits.item_audiences import ItemAudiences
from app.annotation.hits.item_conditions import ItemConditions, LeaversByRow
from app.annotation.hits.open_hits import OpenHits
from app.database.bulk import fetch_array_by_column_on_driver
from app.database.session import Driver, Record, fetch_rows, integers_of_array
from app.designs.campaign import Campaign
from app.record.changes import (
    FIND_POSTERIOR_CHANGES,
    PosteriorChanges,
    item_status_flags_sql,
    sort_key_of_watermark,
    watermark_columns_sql,
)
from app.record.outputs import load_segment_index
from app.record.posterior_storage import deciding_score_and_variance_sql, present_posteriors_condition_sql
from app.selection.implied_pairs import ImpliedPairFilter
from app.selection.index import INDEX_BYTES_PER_ITEM
from app.selection.rule import Index, ItemValues
from app.selection.segments import SegmentIndex

MB = 2**20
DEFAULT_CAMPAIGN_MEMORY_MB = 500  # of all indexes of a process
MAX_SHARE_OF_ONE_CAMPAIGN = 0.8  # that a campaign counts, however large it is, so that small ones fit beside it
INDEX_BYTES_PER_CAMPAIGN = MB  # histories of the annotators at work and all else that grows with them
MAX_CAMPAIGN_SETTINGS = 2_000  # campaigns whose settings are remembered, some kB each
MAX_ANNOTATOR_HISTORIES = 500  # annotators of a campaign whose answers are remembered, 16 kB each after 30 HITs of 5
MAX_HISTORY_BYTES = 100_000_000  # own answers of all annotators of a campaign

SELECT_LOAD_POSITION = text(f"""
    SELECT revision, releases, segment_count, {watermark_columns_sql(":campaign")},
           coalesce((SELECT max(seq) FROM responses WHERE campaign_id = :campaign), 0) AS last_seq
    FROM campaigns WHERE id = :campaign
""")

UNJUDGED_PEOPLE_SQL = "(SELECT unjudged_people FROM campaigns WHERE id = $1)"
ASKED_CRITERION_SQL = "(SELECT asked_criterion FROM campaigns WHERE id = $1)"
SELECT_DECIDING_POSTERIORS = f"""
    SELECT decides.score, decides.variance, p.judgments,
           {item_status_flags_sql("p", unjudged_limit=UNJUDGED_PEOPLE_SQL)}
    FROM posteriors p, LATERAL ({deciding_score_and_variance_sql("$1", ASKED_CRITERION_SQL)}) AS decides
    WHERE {present_posteriors_condition_sql("$1")} ORDER BY p.subject
"""


# The label counts of all items in one column: for each item as many rows as there are classes.
SELECT_ALL_LABELS = f"""
    SELECT number FROM posteriors p, unnest(p.state) WITH ORDINALITY AS counted (number, place)
    WHERE {present_posteriors_condition_sql("$1")} ORDER BY p.subject, place
"""


class LoadPosition(Record):
    """Position of this read: revision, releases, watermark, last response number and segment count."""

    revision: int
    releases: int
    segment_count: int
    watermark: str
    server_started: datetime
    last_seq: int


class ChangesAndOpenHits(PosteriorChanges):
    """Changes since the watermark `since`, if this process has a copy, and what open HITs hold, if it was queried."""

    id: int
    judgments_per_item: int
    since: str | None
    held: list[int] | None
    leading: list[int] | None
    held_segments: list[int] | None


class PendingLease(NamedTuple):
    """A HIT that this process is about to lease."""

    campaign_id: int
    leader: int
    items: list[int]
    segment: int | None


@dataclass
class OwnAnswerHistory:
    """Pairs that an annotator's answers imply, how many of these answers were read, and the number of the last one."""

    implied_pairs: ImpliedPairFilter
    answer_count: int = 0
    last_seq: int = 0


@dataclass
class AnnotatorHistory:
    """HITs that an annotator answered, and the items in them (for systems: the segments)."""

    answered_hits: set[int]
    seen: set[int]


@dataclass
class CampaignIndex:
    """Posteriors of one campaign in this process.

    Attributes:
        index: Posteriors, as the campaign's rule draws from them.
        rng: Source of all random choices of this process for this campaign.
        wanted_judgments: Judgments that each item needs.
        revision: Revision of the posteriors.
        releases: Number of releases of settled items in that revision.
        watermark: Position in the database up to which posteriors were read.
        server_started: Start of the database server run that the watermark belongs to. A server whose operator does
            not let it wait for its disk may lose answers when it stops, so a copy of an earlier run is dropped.
        bytes_per_item: Memory that the index takes for an item, at most.
        segments: Outputs, if the items are systems.
        open_hits: Items of open HITs, as last read.
        batches_in_turn: Number of the next batches of answers that take turns with those of other processes.
        own_answers: Implied pairs by annotator id.
        histories: Histories of annotators up to the watermark, by annotator id; none if they are read for each request.
        annotator_ids: Annotators with a history, by assignment id.
        comparisons_watermark: Position in the database up to which comparisons were read, for rules that read them.
        audiences: Items that are only for some people; None if they were not read.
        conditions: Conditions and contents of the items; None if they were not read.
        leavers_by_row: Annotators who left early, by their row of the square of conditions; None if not counted.
        item_by_copy: Items that checks copy, by the number of the check; None if they were not read.
        copies_version: Version of the campaign for which they were read.
        audiences_lock: Held while audiences or conditions are read: no campaign has both.

    """

    index: Index
    rng: np.random.Generator
    wanted_judgments: int
    revision: int
    releases: int
    watermark: str
    server_started: datetime
    bytes_per_item: int = INDEX_BYTES_PER_ITEM
    segments: SegmentIndex | None = None
    open_hits: OpenHits | None = None
    batches_in_turn: int = 0
    comparisons_watermark: str | None = None
    audiences: ItemAudiences | None = None
    conditions: ItemConditions | None = None
    leavers_by_row: LeaversByRow | None = None
    item_by_copy: Mapping[int, int] | None = None
    copies_version: str = ""
    audiences_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    histories: LRUCache[int, AnnotatorHistory] = field(default_factory=lambda: LRUCache(MAX_ANNOTATOR_HISTORIES))
    annotator_ids: LRUCache[int, int] = field(default_factory=lambda: LRUCache(MAX_ANNOTATOR_HISTORIES))
    own_answers: LRUCache[int, OwnAnswerHistory] = field(
        default_factory=lambda: LRUCache(
            MAX_HISTORY_BYTES, lambda own: min(own.implied_pairs.implications.nbytes, MAX_HISTORY_BYTES)
        )
    )

    @property
    def approximate_bytes(self) -> int:
        """Memory that this copy takes, or will take once annotators are at work."""
        return INDEX_BYTES_PER_CAMPAIGN + self.bytes_per_item * len(self.index.score)

    def remembered_history_or_none(self, assignment_id: int) -> AnnotatorHistory | None:
        """Return the history of the annotator of an assignment, if this process remembers it."""
        annotator_id = self.annotator_ids.get(assignment_id)
        return None if annotator_id is None else self.histories.get(annotator_id)

    def remember_history(self, assignment_id: int, annotator_id: int, history: AnnotatorHistory) -> None:
        """Remember a history that was read together with this copy's watermark."""
        self.annotator_ids[assignment_id] = annotator_id
        self.histories[annotator_id] = history

    def merge_changes(self, changes: PosteriorChanges) -> None:
        """Update the copy with `changes`, which were read since its watermark or an earlier one.

        Two requests may cross here; the one with the older snapshot brings nothing new. Between releases counts only
        grow and items only leave: a row with less is older.
        """
        columns = (
            changes.new_numbers,
            changes.new_scores,
            changes.new_variances,
            changes.new_judgments,
            changes.new_status,
        )
        # The request may have queried its changes before this copy was read.
        if (changes.revision, changes.releases) != (self.revision, self.releases):
            return
        if sort_key_of_watermark(changes.watermark) < sort_key_of_watermark(self.watermark):
            return
        newer = sorted(  # so that a draw depends on what has changed, not on how PostgreSQL found it
            row
            for row in zip(*(column or () for column in columns), strict=True)
            if (row[4], row[3]) > (self.index.status.item(row[0]), self.index.judgments.item(row[0]))
        )
        if newer:
            self.index.update(*zip(*newer, strict=True))
        if self.segments is not None:
            self.segments.update_output_judgment_counts(changes.new_uses or ())
        self.add_answers_to_histories(changes)
        self.watermark = changes.watermark

    @contextmanager
    def assume_posteriors(
        self,
        numbers: Sequence[int],
        scores: Sequence[float],
        variances: Sequence[float],
        judgments: Sequence[int],
    ) -> Iterator[None]:
        """Draw from posteriors that are about to be committed. If the context raises, restore the earlier ones.

        What others have changed since is then read again.
        """
        index, watermark = self.index, self.watermark
        earlier_scores = [index.score.item(number) for number in numbers]
        earlier_variances = [index.variance.item(number) for number in numbers]
        earlier_judgments = [index.judgments.item(number) for number in numbers]
        index.update(numbers, scores, variances, judgments)
        try:
            yield
        except BaseException:
            index.update(numbers, earlier_scores, earlier_variances, earlier_judgments)
            self.watermark = watermark
            raise

    def add_answers_to_histories(self, changes: PosteriorChanges) -> None:
        """Add new answers to the histories that this process remembers."""
        for hit_id, annotator_id, items in zip(
            changes.new_hits or (), changes.new_annotators or (), changes.new_items or (), strict=True
        ):
            if (history := self.histories.get(annotator_id)) is not None:
                history.answered_hits.add(hit_id)
                history.seen.update(integers_of_array(items))


@dataclass
class PosteriorCache:
    """Campaign indexes of this process, loaded at first use, and the leases that it is about to make.

    Attributes:
        max_bytes: Approximate memory of all copies. The copy that was used least recently is dropped for another one;
            a single copy is kept however large it is, with others that fit into a fifth of the memory.
        draw_seed: Decides, with the seeds of the campaigns, which HITs are drawn. Processes with the same seed draw the
            same HITs at the same time, and lose them to each other.
        indexes: Current copies by campaign id.
        previous_indexes: Copies of the previous revision, for requests that arrive while the current one is loading.
        extended_campaigns: Ids of the campaigns that satisfy `needs_extended_query`.
        campaigns: Settings of campaigns, as they were last read.
        reserved_leases: HITs that requests of this process are about to lease.
        load_lock: Held while an index is loading.
        clock: Monotonic clock, in seconds.

    """

    max_bytes: int = DEFAULT_CAMPAIGN_MEMORY_MB * MB
    draw_seed: int = 0
    indexes: LRUCache[int, CampaignIndex] = field(init=False)
    previous_indexes: dict[int, CampaignIndex] = field(default_factory=dict)
    extended_campaigns: set[int] = field(default_factory=set)
    campaigns: LRUCache[int, Any] = field(default_factory=lambda: LRUCache(MAX_CAMPAIGN_SETTINGS))
    reserved_leases: list[PendingLease] = field(default_factory=list)
    load_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        largest = math.ceil(MAX_SHARE_OF_ONE_CAMPAIGN * self.max_bytes)
        self.indexes = LRUCache(self.max_bytes, lambda index: min(index.approximate_bytes, largest))

    def pending_leases(self, campaign_id: int) -> list[PendingLease]:
        return [lease for lease in self.reserved_leases if lease.campaign_id == campaign_id]

    @contextmanager
    def reserve_items_during_context(
        self, campaign_id: int, leader: int, items: list[int], segment: int | None = None
    ) -> Iterator[None]:
        """Keep other requests of this process away from these items while the context is open."""
        proposal = PendingLease(campaign_id, leader, items, segment)
        self.reserved_leases.append(proposal)
        try:
            yield
        finally:
            self.reserved_leases.remove(proposal)

    def loaded_index_or_none(self, campaign_id: int, items: Iterable[int] = ()) -> CampaignIndex | None:
        """Return the copy that can be drawn from at once, or None if it must be loaded first.

        While another request loads a new revision, this is the copy of the previous one, if that has all of `items`.
        It is not used if items are systems: systems and segments may have joined.
        """
        campaign_index, previous_index = self.indexes.get(campaign_id), self.previous_indexes.get(campaign_id)
        if (
            campaign_index is None
            and previous_index is not None
            and self.load_lock.locked()
            and previous_index.segments is None
        ):
            return previous_index if max(items, default=0) < len(previous_index.index.score) else None
        return campaign_index

    async def load_current_index(self, connection: Driver, campaign: IndexSettings | Campaign) -> CampaignIndex:
        """Return the copy of a launched campaign, with all changes up to now."""
        campaign_index = self.indexes.get(campaign.id)
        if campaign_index is None:
            async with self.load_lock:
                campaign_index = self.indexes.get(campaign.id) or await load_campaign_index(
                    connection, campaign, self.draw_seed
                )
                self.cache_index(campaign.id, campaign_index)
        (changes,) = await fetch_rows(
            connection,
            FIND_POSTERIOR_CHANGES,
            {"campaign": campaign.id, "since": campaign_index.watermark},
            PosteriorChanges,
        )
        if self.drop_index_if_stale_and_return_whether_stale(campaign, campaign_index, changes):
            return await self.load_current_index(connection, campaign)
        campaign_index.merge_changes(changes)
        return campaign_index

    def drop_index_if_stale_and_return_whether_stale(
        self,
        campaign: IndexSettings | ChangesAndOpenHits | Campaign,
        campaign_index: CampaignIndex,
        changes: PosteriorChanges,
    ) -> bool:
        """Drop the copy if it is stale, and return whether it is.

        It is stale if it belongs to another run of the server, an earlier revision, or a time when other items were
        settled or fewer judgments were wanted.
        """
        same_run = campaign_index.server_started == changes.server_started
        is_current = campaign_index.revision >= changes.revision and campaign_index.releases >= changes.releases
        if same_run and is_current and campaign_index.wanted_judgments >= campaign.judgments_per_item:
            return False
        if self.indexes.get(campaign.id) is campaign_index:
            del self.indexes[campaign.id]
            if same_run:
                self.previous_indexes[campaign.id] = campaign_index
        return True

    def merge_changes_of_row_unless_stale(self, row: ChangesAndOpenHits) -> None:
        """Merge the changes in `row` into the index, which is dropped instead if it is stale.

        `row` was queried since the watermark of this process, if it had one.
        """
        campaign_index = self.indexes.get(row.id)
        if (
            campaign_index is not None
            and row.since is not None
            and not self.drop_index_if_stale_and_return_whether_stale(row, campaign_index, row)
        ):
            campaign_index.merge_changes(row)

    def open_hits_of_row_or_remembered(self, row: ChangesAndOpenHits, campaign_index: CampaignIndex) -> OpenHits:
        """Return what open HITs hold: from the row if it was queried, else as remembered. A row is counted once.

        A copy that was loaded meanwhile remembers nothing; then only the lease finds out that items are taken.
        """
        open_hits = campaign_index.open_hits
        if row.held is not None and (open_hits is None or open_hits.source is not row):
            open_hits = campaign_index.open_hits = OpenHits(
                row.leading or (),
                row.held,
                campaign_index.index,
                read_at=self.clock(),
                segments=row.held_segments or (),
                source=row,
            )
        return open_hits or OpenHits((), (), campaign_index.index, read_at=self.clock())

    def watermark_query_parameters(self, campaign_id: int, *, refresh: bool = False) -> dict[str, Any]:
        """Return query parameters: the watermark of the campaign's copy, and whether it remembers its open HITs.

        Args:
            campaign_id: Id of the campaign.
            refresh: Read what open HITs hold, even if it is remembered.

        """
        index = self.indexes.get(campaign_id)
        is_remembered = index is not None and index.open_hits is not None and index.open_hits.is_fresh(self.clock())
        return {"since": index and index.watermark, "remembered": is_remembered and not refresh}

    def remember_leased_hit(self, campaign_id: int, leader: int, items: list[int], segment: int | None = None) -> None:
        """Remember a HIT that this process has leased."""
        campaign_index = self.indexes.get(campaign_id)
        if campaign_index is not None and campaign_index.open_hits is not None and campaign_index.open_hits.many:
            campaign_index.open_hits.add_hit(leader, items, campaign_index.index, segment)

    def cache_index(self, campaign_id: int, campaign_index: CampaignIndex) -> None:
        """Keep a copy. If another is dropped for it, running requests continue with that one."""
        self.indexes[campaign_id] = campaign_index
        self.previous_indexes.clear()  # no other request is loading: the caller holds the lock


async def load_campaign_index(
    connection: Driver, campaign: IndexSettings | Campaign, draw_seed: int = 0
) -> CampaignIndex:
    """Read all posteriors of a campaign. Building the index of a large one leaves the event loop."""
    # The watermark first: what is written after it is read again, so nothing is missed.
    (load_position,) = await fetch_rows(connection, SELECT_LOAD_POSITION, {"campaign": campaign.id}, LoadPosition)
    columns = await fetch_array_by_column_on_driver(
        connection, SELECT_DECIDING_POSTERIORS, (campaign.id,), score="f8", variance="f8", judgments="i4", status="i2"
    )
    rule = campaign.rule
    states: dict[str, Any] = {}
    if rule.reads_labels:
        labels = await fetch_array_by_column_on_driver(connection, SELECT_ALL_LABELS, (campaign.id,), number="f8")
        states["states"] = labels["number"].reshape(len(columns["score"]), -1)
    index = await asyncio.to_thread(
        rule.make_selection_index, ItemValues(**columns), campaign.selection_settings, **states
    )
    rng = np.random.default_rng([campaign.seed, load_position.last_seq, draw_seed])
    size, systems = load_position.segment_count, len(index.score)
    segments = await load_segment_index(connection, campaign.id, size, systems) if size else None
    return CampaignIndex(
        index=index,
        rng=rng,
        wanted_judgments=campaign.judgments_per_item,
        revision=load_position.revision,
        releases=load_position.releases,
        watermark=load_position.watermark,
        server_started=load_position.server_started,
        bytes_per_item=rule.index_bytes_per_item,
        segments=segments,
    )
