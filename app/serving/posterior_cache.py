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

from app.database.bulk import numbers_of
from app.database.session import Driver, Record, fetch
from app.record.news import CHANGES, WATERMARK, News, counted
from app.record.outputs import segments_of
from app.record.store import deciding, present
from app.selection.implied import NotAsked
from app.selection.registry import asking_of, rule_of
from app.selection.rule import Index
from app.selection.segments import Segments
from app.serving.open_hits import OpenHits

MOST_COPIES = 50  # campaigns in memory at once, about 100 bytes for each of their items

LAST = text(f"""
    SELECT revision, releases, segment_count, {WATERMARK},
           coalesce((SELECT max(seq) FROM responses WHERE campaign_id = :campaign), 0) AS last_seq
    FROM campaigns WHERE id = :campaign
""")  # noqa: S608  (made of constants)

PEOPLE = "(SELECT unjudged_people FROM campaigns WHERE id = $1)"
ASKED = "(SELECT asked_criterion FROM campaigns WHERE id = $1)"
POSTERIORS = f"""
    SELECT decides.score, decides.variance, {counted("p", people=PEOPLE)}
    FROM posteriors p, LATERAL ({deciding(ASKED)}) AS decides
    WHERE {present("$1")} ORDER BY p.subject
"""  # noqa: S608  (made of constants)


# All numbers of all items, one after another: of each item, as many as there are classes.
LABELS = f"""
    SELECT number FROM posteriors p, unnest(p.state) WITH ORDINALITY AS counted (number, place)
    WHERE {present("$1")} ORDER BY p.subject, place
"""  # noqa: S608  (made of constants)


class Last(Record):
    """Up to where a campaign is read that is read now, and the number of its last response and of its segments."""

    revision: int
    releases: int
    segment_count: int
    watermark: str
    server_started: datetime
    last_seq: int


class Followed(Record):
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


def ask_more(campaign: Any) -> bool:
    """Whether serving a campaign asks for more than its items' posteriors and who saw which: of systems the segments,
    what annotators could not judge, several criteria. Fixed at its launch.
    """
    unjudged = campaign.cannot_be_judged and campaign.repeat_items
    return bool(campaign.segment_count or unjudged or campaign.asked_criterion != 0)


class Heard(News):
    """News that come with a request, if `since` tells of a copy, and what open HITs hold, if that was asked."""

    id: int
    judgments_per_item: int
    since: str | None
    held: list[int] | None
    leading: list[int] | None
    held_segments: list[int] | None


class PendingLease(NamedTuple):
    """A HIT that this process is about to lease."""

    campaign: int
    leader: int
    items: list[int]
    segment: int | None


@dataclass
class OwnAnswers:
    """What follows from an annotator's answers, of which so many are read, up to this number."""

    not_asked: NotAsked
    answers: int = 0
    seq: int = 0


@dataclass
class Copy:
    """One campaign's posteriors in this process, how many judgments each item wants, of which revision they are and
    after how many releases of settled items, and up to which watermark of which run of the server they were read; where
    its items are systems, their outputs; what its open HITs hold; and what annotators' own answers imply, where that
    matters, that of who asked last at the end.

    Answers may be lost when a server stops, if its operator has not let it wait for its disk.
    """

    index: Index
    rng: np.random.Generator
    wanted: int
    revision: int
    releases: int
    watermark: str
    server_started: datetime
    segments: Segments | None = None
    open_hits: OpenHits | None = None
    own_answers: dict[int, OwnAnswers] = field(default_factory=dict)

    def take(self, news: News) -> None:
        """What `changes` found. Between releases of a revision judgments only grow, so rows with fewer are older.

        Two requests may cross here. The one with the older snapshot overwrites nothing and sets an older watermark, so
        a little is read again next time.
        """
        columns = (news.new_numbers, news.new_scores, news.new_variances, news.new_judgments)
        if (news.revision, news.releases) != (self.revision, self.releases):  # it was asked before this copy was read
            return
        newer = sorted(  # so that a draw depends on what has changed, not on how PostgreSQL found it
            row
            for row in zip(*(column or () for column in columns), strict=True)
            if row[3] > self.index.judgments.item(row[0])
        )
        if newer:
            self.index.update(*zip(*newer, strict=True))
        if self.segments is not None:
            self.segments.learn(news.new_uses or ())
        self.watermark = news.watermark


@dataclass
class PosteriorCache:
    """The copies of this process, one per campaign, loaded at first use, and what it is about to lease.

    former: of an earlier revision, for whoever comes while the first who noticed loads the present one.
    asking_more: the campaigns that `ask_more`, as they are known: by id, or by slug.
    """

    copies: dict[int, Copy] = field(default_factory=dict)
    former: dict[int, Copy] = field(default_factory=dict)
    asking_more: set[int | str] = field(default_factory=set)
    proposals: list[PendingLease] = field(default_factory=list)
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    clock: Callable[[], float] = time.monotonic  # in seconds

    def leases_pending(self, campaign_id: int) -> list[PendingLease]:
        """The HITs of a campaign that this process is about to lease."""
        return [lease for lease in self.proposals if lease.campaign == campaign_id]

    @contextmanager
    def about_to_lease(
        self, campaign_id: int, leader: int, items: list[int], segment: int | None = None
    ) -> Iterator[None]:
        """Meanwhile other requests of this process keep off these items."""
        proposal = PendingLease(campaign_id, leader, items, segment)
        self.proposals.append(proposal)
        try:
            yield
        finally:
            self.proposals.remove(proposal)

    def at_hand(self, campaign_id: int, items: Iterable[int] = ()) -> Copy | None:
        """The copy that can be drawn from at once: while another revision is loaded, that of the one before, if it
        knows these items. Systems and segments may have joined.
        """
        copy, former = self.copies.get(campaign_id), self.former.get(campaign_id)
        if copy is None and former is not None and self.loading.locked() and former.segments is None:
            return former if max(items, default=0) < len(former.index.score) else None
        return copy

    async def posteriors(self, connection: Driver, campaign: Followed | Row[Any]) -> Copy:
        """The campaign's copy as of now. `campaign` has been launched."""
        copy = self.copies.get(campaign.id)
        if copy is None:
            async with self.loading:
                copy = self.copies.get(campaign.id) or await load(connection, campaign)
                self.keep(campaign.id, copy)
        (news,) = await fetch(connection, CHANGES, {"campaign": campaign.id, "since": copy.watermark}, News)
        if self.outlived(campaign, copy, news):
            return await self.posteriors(connection, campaign)
        copy.take(news)
        return copy

    def outlived(self, campaign: Followed | Heard | Row[Any], copy: Copy, news: News) -> bool:
        """Whether a copy is of another run of the server, of an earlier revision, or of a time when other items were
        settled or fewer judgments were wanted; then it is dropped.
        """
        same_run = copy.server_started == news.server_started
        as_new = copy.revision >= news.revision and copy.releases >= news.releases
        if same_run and as_new and copy.wanted >= campaign.judgments_per_item:
            return False
        if self.copies.get(campaign.id) is copy:
            del self.copies[campaign.id]
            if same_run:
                self.former[campaign.id] = copy
        return True

    def hear(self, here: Heard) -> None:
        """What a row says that holds `changes` since the watermark that this process sent, if it had one."""
        copy = self.copies.get(here.id)
        if copy is not None and here.since is not None and not self.outlived(here, copy, here):
            copy.take(here)

    def open_hits(self, here: Heard, copy: Copy) -> OpenHits:
        """What open HITs hold: as the row says, or, if it was not asked, as is remembered; of a copy that was made
        meanwhile nothing is, and the lease finds out.
        """
        if here.held is not None:
            copy.open_hits = OpenHits(
                here.leading or (), here.held, copy.index, read_at=self.clock(), segments=here.held_segments or ()
            )
        return copy.open_hits or OpenHits((), (), copy.index, read_at=self.clock())

    def watermarks(self, campaign: int | str, *, anew: bool = False) -> dict[str, list[Any]]:
        """Up to where the copy of a campaign was read, and whether it remembers what open HITs hold, as parameters; of
        all copies where the campaign is known by its slug.

        anew: have that read in any case.
        """
        copied = [*self.copies] if isinstance(campaign, str) else [campaign] * (campaign in self.copies)
        copies, now = [self.copies[of] for of in copied], self.clock()
        return {
            "copied": copied,
            "watermarks": [copy.watermark for copy in copies],
            "remembered": [not anew and copy.open_hits is not None and copy.open_hits.serves(now) for copy in copies],
        }

    def note_lease(self, campaign_id: int, leader: int, items: list[int], segment: int | None = None) -> None:
        """Remember a HIT that this process has leased."""
        copy = self.copies.get(campaign_id)
        if copy is not None and copy.open_hits is not None and copy.open_hits.many:
            copy.open_hits.add(leader, items, copy.index, segment)

    def keep(self, campaign_id: int, copy: Copy) -> None:
        """In the place of the copy that was loaded first, if there are too many: most likely that campaign is over.

        If not, whoever is at work on the old copy goes on with it, and the next one loads a new copy.
        """
        self.copies[campaign_id] = copy
        self.former.clear()  # nobody else is loading
        if len(self.copies) > MOST_COPIES:
            del self.copies[next(iter(self.copies))]


async def load(connection: Driver, campaign: Followed | Row[Any]) -> Copy:
    """Read all posteriors of a campaign. Building the index of a large one leaves the event loop."""
    # The watermark first: what is written after it is read again, so nothing is missed.
    (last,) = await fetch(connection, LAST, {"campaign": campaign.id}, Last)
    columns = await numbers_of(connection, POSTERIORS, (campaign.id,), score="f8", variance="f8", judgments="i4")
    rule = rule_of(campaign)
    if rule.reads_labels:
        labels = await numbers_of(connection, LABELS, (campaign.id,), number="f8")
        columns["states"] = labels["number"].reshape(len(columns["score"]), -1)
    index = await asyncio.to_thread(rule.index, **columns, asking=asking_of(campaign))
    rng = np.random.default_rng([campaign.seed, last.last_seq])
    size, systems = last.segment_count, len(index.score)
    segments = await segments_of(connection, campaign.id, size, systems) if size else None
    of = campaign.judgments_per_item, last.revision, last.releases, last.watermark, last.server_started
    return Copy(index, rng, *of, segments)
