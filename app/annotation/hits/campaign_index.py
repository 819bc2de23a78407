"""Each process's copy of a campaign's posteriors, brought up to date from the database before it is used.

The copy decides what to ask and what a dashboard draws, nothing else: it may be stale, never wrong. `record.news` finds
what other processes wrote. What open HITs hold stays with the copy for a second, where there are many (`open_hits`).
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, text

from app.annotation.hits.open_hits import OpenHits
from app.database.bulk import fetch_arrays_on_driver
from app.database.session import Driver, Record, fetch_rows
from app.record.changes import FIND_POSTERIOR_CHANGES, WATERMARK_COLUMNS, PosteriorChanges, judgments_with_flags_sql
from app.record.outputs import load_segments
from app.record.posterior_storage import deciding_estimates_sql, present_posteriors_condition
from app.selection.implied_pairs import ImpliedPairFilter
from app.selection.registry import selection_rule, selection_settings
from app.selection.rule import Index
from app.selection.segments import SegmentIndex

MAX_CAMPAIGN_INDEXES = 50  # campaigns in memory at once, about 100 bytes for each of their items

SELECT_LOAD_POSITION = text(f"""
    SELECT revision, releases, segment_count, {WATERMARK_COLUMNS},
           coalesce((SELECT max(seq) FROM responses WHERE campaign_id = :campaign), 0) AS last_seq
    FROM campaigns WHERE id = :campaign
""")  # noqa: S608  (made of constants)

UNJUDGED_PEOPLE_SQL = "(SELECT unjudged_people FROM campaigns WHERE id = $1)"
ASKED_CRITERION_SQL = "(SELECT asked_criterion FROM campaigns WHERE id = $1)"
SELECT_DECIDING_POSTERIORS = f"""
    SELECT decides.score, decides.variance, {judgments_with_flags_sql("p", unjudged_limit=UNJUDGED_PEOPLE_SQL)}
    FROM posteriors p, LATERAL ({deciding_estimates_sql(ASKED_CRITERION_SQL)}) AS decides
    WHERE {present_posteriors_condition("$1")} ORDER BY p.subject
"""  # noqa: S608  (made of constants)


# All numbers of all items, one after another: of each item, as many as there are classes.
SELECT_ALL_LABELS = f"""
    SELECT number FROM posteriors p, unnest(p.state) WITH ORDINALITY AS counted (number, place)
    WHERE {present_posteriors_condition("$1")} ORDER BY p.subject, place
"""  # noqa: S608  (made of constants)


class LoadPosition(Record):
    """Up to where a campaign is read that is read now, and the number of its last response and of its segments."""

    revision: int
    releases: int
    segment_count: int
    watermark: str
    server_started: datetime
    last_seq: int


class IndexSettings(Record):
    """What a campaign's row says of how it asks."""

    id: int
    releases: int
    rule: str
    judgments_per_item: int
    items_per_hit: int
    fewest_items: int
    always_shown: list[int]
    segment_count: int
    gamma: float
    hits_per_iteration: int | None
    leaders_as_companions: bool
    best_items: int
    threshold: float
    seed: int


def needs_extended_query(campaign: Any) -> bool:
    """Whether serving a campaign asks for more than its items' posteriors and who saw which: of systems the segments,
    what annotators could not judge, several criteria. Fixed at its launch.
    """
    unjudged = campaign.cannot_be_judged and campaign.repeat_items
    return bool(campaign.segment_count or unjudged or campaign.asked_criterion != 0)


class ChangesAndOpenHits(PosteriorChanges):
    """News that come with a request, if `since` tells of a copy, and what open HITs hold, if that was asked."""

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
    """What follows from an annotator's answers, of which so many are read, up to this number."""

    implied_pairs: ImpliedPairFilter
    answer_count: int = 0
    last_seq: int = 0


@dataclass
class CampaignIndex:
    """One campaign's posteriors in this process, how many judgments each item wants, of which revision they are and
    after how many releases of settled items, and up to which watermark of which run of the server they were read; where
    its items are systems, their outputs; what its open HITs hold; and what annotators' own answers imply, where that
    matters, that of who asked last at the end.

    Answers may be lost when a server stops, if its operator has not let it wait for its disk.
    """

    index: Index
    rng: np.random.Generator
    wanted_judgments: int
    revision: int
    releases: int
    watermark: str
    server_started: datetime
    segments: SegmentIndex | None = None
    open_hits: OpenHits | None = None
    own_answers: dict[int, OwnAnswerHistory] = field(default_factory=dict)

    def merge_changes(self, changes: PosteriorChanges) -> None:
        """What `changes` found. Between releases of a revision judgments only grow, so rows with fewer are older.

        Two requests may cross here. The one with the older snapshot overwrites nothing and sets an older watermark, so
        a little is read again next time.
        """
        columns = (changes.new_numbers, changes.new_scores, changes.new_variances, changes.new_judgments)
        if (changes.revision, changes.releases) != (
            self.revision,
            self.releases,
        ):  # it was asked before this copy was read
            return
        newer = sorted(  # so that a draw depends on what has changed, not on how PostgreSQL found it
            row
            for row in zip(*(column or () for column in columns), strict=True)
            if row[3] > self.index.judgments.item(row[0])
        )
        if newer:
            self.index.update(*zip(*newer, strict=True))
        if self.segments is not None:
            self.segments.update_uses(changes.new_uses or ())
        self.watermark = changes.watermark


@dataclass
class PosteriorCache:
    """The copies of this process, one per campaign, loaded at first use, and what it is about to lease.

    former: of an earlier revision, for whoever comes while the first who noticed loads the present one.
    asking_more: the campaigns that `ask_more`, as they are known: by id, or by slug.
    """

    indexes: dict[int, CampaignIndex] = field(default_factory=dict)
    previous_indexes: dict[int, CampaignIndex] = field(default_factory=dict)
    extended_campaigns: set[int | str] = field(default_factory=set)
    reserved_leases: list[PendingLease] = field(default_factory=list)
    load_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    clock: Callable[[], float] = time.monotonic  # in seconds

    def pending_leases(self, campaign_id: int) -> list[PendingLease]:
        """The HITs of a campaign that this process is about to lease."""
        return [lease for lease in self.reserved_leases if lease.campaign_id == campaign_id]

    @contextmanager
    def reserve_items(
        self, campaign_id: int, leader: int, items: list[int], segment: int | None = None
    ) -> Iterator[None]:
        """Meanwhile other requests of this process keep off these items."""
        proposal = PendingLease(campaign_id, leader, items, segment)
        self.reserved_leases.append(proposal)
        try:
            yield
        finally:
            self.reserved_leases.remove(proposal)

    def index_if_loaded(self, campaign_id: int, items: Iterable[int] = ()) -> CampaignIndex | None:
        """The copy that can be drawn from at once: while another revision is loaded, that of the one before, if it
        knows these items. Systems and segments may have joined.
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

    async def load_current_index(self, connection: Driver, campaign: IndexSettings | Row[Any]) -> CampaignIndex:
        """The campaign's copy as of now. `campaign` has been launched."""
        campaign_index = self.indexes.get(campaign.id)
        if campaign_index is None:
            async with self.load_lock:
                campaign_index = self.indexes.get(campaign.id) or await load_campaign_index(connection, campaign)
                self.cache_index(campaign.id, campaign_index)
        (changes,) = await fetch_rows(
            connection,
            FIND_POSTERIOR_CHANGES,
            {"campaign": campaign.id, "since": campaign_index.watermark},
            PosteriorChanges,
        )
        if self.drop_if_stale(campaign, campaign_index, changes):
            return await self.load_current_index(connection, campaign)
        campaign_index.merge_changes(changes)
        return campaign_index

    def drop_if_stale(
        self,
        campaign: IndexSettings | ChangesAndOpenHits | Row[Any],
        campaign_index: CampaignIndex,
        changes: PosteriorChanges,
    ) -> bool:
        """Whether a copy is of another run of the server, of an earlier revision, or of a time when other items were
        settled or fewer judgments were wanted; then it is dropped.
        """
        same_run = campaign_index.server_started == changes.server_started
        as_new = campaign_index.revision >= changes.revision and campaign_index.releases >= changes.releases
        if same_run and as_new and campaign_index.wanted_judgments >= campaign.judgments_per_item:
            return False
        if self.indexes.get(campaign.id) is campaign_index:
            del self.indexes[campaign.id]
            if same_run:
                self.previous_indexes[campaign.id] = campaign_index
        return True

    def apply_changes(self, row: ChangesAndOpenHits) -> None:
        """What a row says that holds `changes` since the watermark that this process sent, if it had one."""
        campaign_index = self.indexes.get(row.id)
        if campaign_index is not None and row.since is not None and not self.drop_if_stale(row, campaign_index, row):
            campaign_index.merge_changes(row)

    def current_open_hits(self, row: ChangesAndOpenHits, campaign_index: CampaignIndex) -> OpenHits:
        """What open HITs hold: as the row says, or, if it was not asked, as is remembered; of a copy that was made
        meanwhile nothing is, and the lease finds out.
        """
        if row.held is not None:
            campaign_index.open_hits = OpenHits(
                row.leading or (),
                row.held,
                campaign_index.index,
                read_at=self.clock(),
                segments=row.held_segments or (),
            )
        return campaign_index.open_hits or OpenHits((), (), campaign_index.index, read_at=self.clock())

    def watermark_parameters(self, campaign: int | str, *, refresh: bool = False) -> dict[str, list[Any]]:
        """Up to where the copy of a campaign was read, and whether it remembers what open HITs hold, as parameters; of
        all copies where the campaign is known by its slug.

        anew: have that read in any case.
        """
        campaign_ids = [*self.indexes] if isinstance(campaign, str) else [campaign] * (campaign in self.indexes)
        indexes, now = [self.indexes[of] for of in campaign_ids], self.clock()
        return {
            "copied": campaign_ids,
            "watermarks": [copy.watermark for copy in indexes],
            "remembered": [
                not refresh and copy.open_hits is not None and copy.open_hits.is_fresh(now) for copy in indexes
            ],
        }

    def record_lease(self, campaign_id: int, leader: int, items: list[int], segment: int | None = None) -> None:
        """Remember a HIT that this process has leased."""
        campaign_index = self.indexes.get(campaign_id)
        if campaign_index is not None and campaign_index.open_hits is not None and campaign_index.open_hits.many:
            campaign_index.open_hits.add_hit(leader, items, campaign_index.index, segment)

    def cache_index(self, campaign_id: int, campaign_index: CampaignIndex) -> None:
        """In the place of the copy that was loaded first, if there are too many: most likely that campaign is over.

        If not, whoever is at work on the old copy goes on with it, and the next one loads a new copy.
        """
        self.indexes[campaign_id] = campaign_index
        self.previous_indexes.clear()  # nobody else is loading
        if len(self.indexes) > MAX_CAMPAIGN_INDEXES:
            del self.indexes[next(iter(self.indexes))]


async def load_campaign_index(connection: Driver, campaign: IndexSettings | Row[Any]) -> CampaignIndex:
    """Read all posteriors of a campaign. Building the index of a large one leaves the event loop."""
    # The watermark first: what is written after it is read again, so nothing is missed.
    (load_position,) = await fetch_rows(connection, SELECT_LOAD_POSITION, {"campaign": campaign.id}, LoadPosition)
    columns = await fetch_arrays_on_driver(
        connection, SELECT_DECIDING_POSTERIORS, (campaign.id,), score="f8", variance="f8", judgments="i4"
    )
    rule = selection_rule(campaign)
    if rule.reads_labels:
        labels = await fetch_arrays_on_driver(connection, SELECT_ALL_LABELS, (campaign.id,), number="f8")
        columns["states"] = labels["number"].reshape(len(columns["score"]), -1)
    index = await asyncio.to_thread(rule.make_index, **columns, settings=selection_settings(campaign))
    rng = np.random.default_rng([campaign.seed, load_position.last_seq])
    size, systems = load_position.segment_count, len(index.score)
    segments = await load_segments(connection, campaign.id, size, systems) if size else None
    index_position = (
        campaign.judgments_per_item,
        load_position.revision,
        load_position.releases,
        load_position.watermark,
        load_position.server_started,
    )
    return CampaignIndex(index, rng, *index_position, segments)
