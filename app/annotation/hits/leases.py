"""The HITs that annotators get: the one they hold, one from an earlier visit, or a new one.

All annotators of a campaign that wait in a process are served together: one statement reads their assignments, each
draws a HIT in memory, and one statement leases these. One annotator alone is a batch of one.

A HIT is a lease on its items. `lease_sql` decides between concurrent requests for the same items.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from app.annotation.hits import check_placement
from app.annotation.hits.assigned_items import load_items_reserved_for_others
from app.annotation.hits.assignment import (
    AssignmentQuery,
    AssignmentState,
    assignment_not_found_error,
    load_assignment_updating_posteriors_or_refuse,
    load_assignments_updating_posteriors,
    load_changes_updating_posteriors,
)
from app.annotation.hits.campaign_index import ChangesAndOpenHits, PosteriorCache
from app.annotation.hits.condition_blocks import OutdatedRevisionError, set_place_in_blocks_of_assignment
from app.annotation.hits.draw_hit import propose_hit_or_none
from app.annotation.hits.held_hits import move_held_hit_to_this_visit, resume_held_hit_or_close_it_and_return_none
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.hits.lease_functions_sql import LeasedHit, ProposedLease, try_to_lease_hits_and_return_them_by_place
from app.annotation.hits.next_hit import HitOnPage, NextHit
from app.annotation.hits.no_hit_reasons import finish_if_done_returning_no_hit_reason
from app.annotation.hits.no_hit_replies import (
    build_no_hit_reply_completing_assignment,
    no_hit_reply_or_none_after_admitting,
    step_before_draw_or_none,
)
from app.annotation.hits.open_hits import MANY_OPEN_HITS
from app.background.metrics import PROCESS_METRICS
from app.database.session import Driver, is_database_away_for_all_requests, leads_to_citus
from app.quality.check_draws import UnseenCheck

MAX_LEASE_ATTEMPTS = 25  # times a proposal may lose a race before the annotator is asked to wait


@dataclass(frozen=True, slots=True)
class NextHitRequest:
    """Request for the next HIT of an assignment.

    Args:
        query: The assignment.
        now: Time to store. The database's clock decides how long a HIT is held.

    """

    query: AssignmentQuery
    now: datetime


async def find_or_lease_next_hit(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, now: datetime
) -> NextHit:
    """Return the HIT that this assignment holds, else a new one, else the reason why there is none.

    Args:
        connection: In no transaction: every step commits.
        cache: Posteriors of this process.
        query: The assignment.
        now: As in `NextHitRequest`.

    Raises:
        NotFound: `assignment_not_found`.

    """
    request = NextHitRequest(query, now)
    (outcome,) = await find_or_lease_next_hits(connection, query.assignment.campaign_id, [request], cache=cache)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def find_or_lease_next_hits(
    connection: Driver, campaign_id: int, requests: Sequence[NextHitRequest], *, cache: PosteriorCache
) -> list[NextHit | Exception]:
    """Return for each request what `find_or_lease_next_hit` returns or raises. All are for the same campaign."""
    batch = LeaseBatch(connection, cache, campaign_id, [PendingRequest(request) for request in requests])
    return await batch.serve_all_requests()


@dataclass
class PendingRequest:
    """A request until it is served.

    Attributes:
        request: The request.
        assignment: State of the assignment; None if it must be read, for the first time or again.
        has_looked_elsewhere: True if the HIT of another visit was moved to this one, or could not be.
        has_redrawn: True if the last lost race was followed by a draw for the same state of the assignment.
        outcome: What the request gets; None if it is not served yet.

    """

    request: NextHitRequest
    assignment: AssignmentState | None = None
    has_looked_elsewhere: bool = False
    has_redrawn: bool = False
    outcome: NextHit | Exception | None = None

    def prepare_redraw_after_lost_race(self) -> None:
        """Draw again at once, and the time after that for the present state, which may be why the race was lost."""
        self.has_redrawn = not self.has_redrawn
        if not self.has_redrawn or (self.assignment is not None and self.assignment.selection != "streaming"):
            self.assignment = None


@dataclass
class LeaseBatch:
    """Requests of a campaign for HITs, served together on a connection in no transaction."""

    connection: Driver
    cache: PosteriorCache
    campaign_id: int
    requests: list[PendingRequest]
    attempts: int = field(default=0, init=False)

    async def serve_all_requests(self) -> list[NextHit | Exception]:
        """Return the outcome of each request."""
        while self.attempts < MAX_LEASE_ATTEMPTS and (
            pending := [request for request in self.requests if request.outcome is None]
        ):
            await self.try_to_serve_each_request_once(pending)
            self.attempts += 1
        return [pending.outcome or await self.load_wait_reply(pending.request) for pending in self.requests]

    async def load_wait_reply(self, request: NextHitRequest) -> NextHit:
        assignment = await load_assignment_updating_posteriors_or_refuse(self.connection, self.cache, request.query)
        return NextHit(assignment, reason="wait")

    async def try_to_serve_each_request_once(self, pending: Sequence[PendingRequest]) -> None:
        """Serve each request as far as it goes: a request that must begin again has no outcome afterwards."""
        open_hits_row = await self.load_assignments_returning_open_hits_or_none(pending)
        drawing: dict[int, PendingRequest] = {}
        annotators: set[int] = set()
        for request in pending:
            await self.set_reply_if_no_lease_is_needed(request)
            if request.outcome is None and (assignment := request.assignment) is not None:
                # A second request of the same visit waits for the HIT that the first one gets. A second visit of the
                # same annotator waits, so that its draw sees the checks of the first, which may be copies of items.
                if assignment.assignment_id in drawing or (
                    assignment.has_checks and assignment.annotator_id in annotators
                ):
                    request.assignment = None
                else:
                    drawing[assignment.assignment_id] = request
                    annotators.add(assignment.annotator_id)
        if drawing and open_hits_row is not None:
            # Two batches of other processes that lease to the same assignments wait for each other in this order.
            await self.draw_and_lease_hits_for_all(
                [drawing[assignment_id] for assignment_id in sorted(drawing)], open_hits_row
            )

    async def load_assignments_returning_open_hits_or_none(
        self, pending: Sequence[PendingRequest]
    ) -> ChangesAndOpenHits | None:
        """Read the assignments that are not known, and what open HITs hold; None if no assignment exists."""
        unread = [request for request in pending if request.assignment is None]
        if not unread:
            return await load_changes_updating_posteriors(self.connection, self.cache, self.campaign_id)
        queries = {request.request.query.assignment.assignment_id: request.request.query for request in unread}
        rows = await load_assignments_updating_posteriors(
            self.connection, self.cache, self.campaign_id, list(queries.values()), refresh=self.attempts > 0
        )
        for request in unread:
            request.assignment = rows.get(request.request.query.assignment.assignment_id)
            if request.assignment is None:
                request.outcome = assignment_not_found_error()
        return next(iter(rows.values()), None)

    async def set_reply_if_no_lease_is_needed(self, pending: PendingRequest) -> None:
        """Set the outcome if it needs no new HIT. Clear the assignment if it has changed and must be read again."""
        if pending.outcome is not None or pending.assignment is None:
            return
        try:
            pending.outcome = await self.find_reply_without_lease_or_none(pending, pending.assignment)
        except OutdatedRevisionError:
            pending.assignment = None
        except Exception as problem:
            if is_database_away_for_all_requests(problem):
                raise
            pending.outcome = problem

    async def find_reply_without_lease_or_none(
        self, pending: PendingRequest, assignment: AssignmentState
    ) -> NextHit | None:
        """Return the HIT that the annotator holds or the reason why there is none, as
        `set_reply_if_no_lease_is_needed` does.
        """
        connection, visitor, now = self.connection, pending.request.query.visitor, pending.request.now
        step = step_before_draw_or_none(assignment, visitor, has_looked_elsewhere=pending.has_looked_elsewhere)
        if step is None:
            return None
        if step == "admit":
            pending.assignment = None
            return await no_hit_reply_or_none_after_admitting(connection, assignment, now=now)
        if step == "resume_held_hit":
            pending.assignment = None
            reply = await resume_held_hit_or_close_it_and_return_none(connection, assignment, visitor, now=now)
            # What a loaded index needs to tell whether this is the last HIT.
            campaign_index = self.cache.loaded_index_or_none(assignment.campaign_id, assignment.seen)
            if campaign_index is not None and assignment.has_checks and reply is not None and reply.hit is not None:
                await check_placement.set_items_met_as_checks_and_return_index(connection, assignment, self.cache)
            if campaign_index is not None and assignment.assigned_column:
                assignment.items_of_others = await load_items_reserved_for_others(
                    connection, assignment, campaign_index
                )
            elif assignment.condition_column and reply is not None and reply.hit is not None:
                campaign_index = campaign_index or await self.cache.load_current_index(connection, assignment)
                await set_place_in_blocks_of_assignment(connection, assignment, campaign_index, now=now)
            return reply
        if step == "take_over_hit":
            pending.assignment, pending.has_looked_elsewhere = None, True
            await move_held_hit_to_this_visit(connection, assignment)
            return None
        return await build_no_hit_reply_completing_assignment(connection, assignment, step, now=now)

    async def draw_and_lease_hits_for_all(
        self, drawing: Sequence[PendingRequest], open_hits_row: ChangesAndOpenHits
    ) -> None:
        """Draw a HIT for each of these annotators, who hold none, and lease all of them at once."""
        leases: list[tuple[PendingRequest, ProposedLease]] = []
        with ExitStack() as reservations:
            for pending in drawing:
                if (lease := await self.propose_lease_or_set_reply_and_return_none(pending, open_hits_row)) is None:
                    continue
                leases.append((pending, lease))
                reservations.enter_context(reserve_items_of_lease(self.cache, self.campaign_id, lease))
            if not leases:
                return
            leased_hits = await try_to_lease_hits_and_return_them_by_place(
                self.connection,
                self.campaign_id,
                [lease for _, lease in leases],
                few_open=has_few_open_hits(self.connection, open_hits_row),
            )
        for place, (pending, lease) in enumerate(leases, start=1):
            if (leased_hit := leased_hits.get(place)) is None:
                pending.prepare_redraw_after_lost_race()
                continue
            set_leased_hit_as_outcome(self.cache, pending, lease, leased_hit)

    async def propose_lease_or_set_reply_and_return_none(
        self, pending: PendingRequest, open_hits_row: ChangesAndOpenHits
    ) -> ProposedLease | None:
        """Return the HIT to lease. If there is none, set the outcome, or leave it to the next attempt."""
        assert pending.assignment is not None  # noqa: S101  (the caller checked)
        assignment, request = pending.assignment, pending.request
        try:
            checks: Sequence[UnseenCheck] = (
                await check_placement.draw_next_checks_and_set_items_met_as_checks(
                    self.connection, assignment, self.cache
                )
                if assignment.has_checks
                else ()
            )
            check_count = check_placement.count_check_slots(assignment, checks)
            with PROCESS_METRICS.timing("easel_selection_seconds"):
                proposal = await propose_hit_or_none(
                    self.connection,
                    assignment,
                    self.cache,
                    open_hits_row,
                    now=request.now,
                    check_count=check_count,
                    segment=check_placement.segment_of_next_hit_or_none(assignment, checks),
                )
                if proposal is None and check_placement.may_get_hit_without_checks(assignment, self.cache, checks):
                    checks, check_count = (), 0
                    proposal = await propose_hit_or_none(
                        self.connection, assignment, self.cache, open_hits_row, now=request.now
                    )
            is_remembered = assignment.selection == "streaming" and open_hits_row.held is None
            if is_remembered and should_retry_with_fresh_open_hits(assignment, proposal, check_count):
                return None
            if proposal is None:
                reason = await finish_if_done_returning_no_hit_reason(
                    self.connection, assignment, self.cache, now=request.now
                )
                pending.outcome = await build_no_hit_reply_completing_assignment(
                    self.connection, assignment, reason, now=request.now
                )
                return None
            if checks:
                proposal = check_placement.proposal_with_checks_or_none(assignment, self.cache, proposal, checks)
        except OutdatedRevisionError:
            pending.assignment = None
            return None
        except Exception as problem:
            if is_database_away_for_all_requests(problem):
                raise
            pending.outcome = problem
            return None
        if proposal is None:
            pending.assignment = None
            return None
        return ProposedLease(assignment, proposal, request.query.visitor, request.now, checks)


def reserve_items_of_lease(
    cache: PosteriorCache, campaign_id: int, lease: ProposedLease
) -> AbstractContextManager[None]:
    """Keep other requests of this process away from the items of a HIT; a HIT of checks reserves none."""
    proposal = lease.proposal
    if proposal.leader is None:
        return nullcontext()
    return cache.reserve_items_during_context(campaign_id, proposal.leader, proposal.items, proposal.segment)


def has_few_open_hits(connection: Driver, open_hits_row: ChangesAndOpenHits) -> bool:
    """Return whether open HITs are known to be few. On Citus they always count as few."""
    leading = open_hits_row.leading
    return leads_to_citus(connection) or (leading is not None and len(leading) < MANY_OPEN_HITS)


def set_leased_hit_as_outcome(
    cache: PosteriorCache, pending: PendingRequest, lease: ProposedLease, leased_hit: LeasedHit
) -> None:
    """Give a request the HIT that was leased for it, and remember its items."""
    proposal = lease.proposal
    if proposal.leader is not None:
        campaign_id = lease.assignment.campaign_id
        cache.remember_leased_hit(campaign_id, proposal.leader, proposal.items, proposal.segment)
    PROCESS_METRICS.count("easel_hits_leased_total", lease.assignment.design_name)
    pending.outcome = NextHit(lease.assignment, build_hit_on_page(lease, leased_hit))


def should_retry_with_fresh_open_hits(
    assignment: AssignmentState, proposal: HitProposal | None, check_count: int = 0
) -> bool:
    """Return whether a fresh read of open HITs may allow a better HIT than this small or shared one.

    We do not refresh for annotators who have to wait: there may be many of them, and each polls again soon.
    """
    return proposal is not None and (
        len(proposal.items) + check_count < assignment.items_per_hit or proposal.shared_leader
    )


def build_hit_on_page(lease: ProposedLease, leased_hit: LeasedHit) -> HitOnPage:
    """Return the leased HIT as its annotator sees it."""
    proposal = lease.proposal
    shown, ids, texts = proposal.visible_items, leased_hit.ids, leased_hit.texts
    if proposal.checks:
        check_by_number = {check.number: check for check in lease.checks}
        shown, ids, texts = check_placement.presented_numbers_ids_and_texts(
            shown, ids, texts, proposal.checks, check_by_number
        )
    return HitOnPage(
        id=leased_hit.id,
        items=shown,
        ids=ids,
        texts=texts,
        draft={},
        expires_at=leased_hit.expires_at,
        segment=proposal.segment,
        source_and_reference=leased_hit.source_and_reference,
        items_without_checks=proposal.visible_items,
    )
