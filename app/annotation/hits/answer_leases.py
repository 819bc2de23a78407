"""Next HITs that are leased in the transaction of the answers before them, by the statement that stores these.

The statement that locks the answers also reads the state of the assignments, as if the answers were stored. The HITs
are drawn in memory from the posteriors that the answers lead to. A HIT that needs more than that (the first one of a
process, checks, conditions, a reason why there is none) is left to `LeaseBatch`, after the commit. So is one that was
lost in a race: a lost race is a HIT that is missing, and never an error.

If the transaction fails, the answers are stored without next HITs, and this process forgets what it has assumed.

Processes that draw at the same time may draw the same leaders, above all if no two items are equally uncertain. So a
process that has lost a HIT takes turns for its next batches: it draws when no other process that takes turns does.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text

from app.annotation.hits import assignment_sql
from app.annotation.hits.assignment import (
    AssignmentState,
    assignments_query_parameters,
    remembered_histories_by_assignment,
    remembered_or_loaded_campaign_of_version,
    set_or_remember_history_of_each_row,
)
from app.annotation.hits.campaign_index import AnnotatorHistory, CampaignIndex, PosteriorCache
from app.annotation.hits.draw_hit import draw_reads_database, draw_streaming_hit_or_none
from app.annotation.hits.index_settings import needs_extended_query
from app.annotation.hits.lease_functions_sql import LeasedHit, ProposedLease, lease_query_parameters
from app.annotation.hits.leases import (
    PendingRequest,
    has_few_open_hits,
    reserve_items_of_lease,
    set_leased_hit_as_outcome,
    should_retry_with_fresh_open_hits,
)
from app.annotation.hits.locked_answers import (
    LOCK_ANSWERS_SOURCE,
    LockedAnswers,
    LockedHit,
    LockRow,
    SubmittedAnswer,
    lock_query_parameters,
)
from app.annotation.hits.no_hit_replies import step_before_draw_or_none
from app.annotation.hits.served_campaign import ServedCampaign
from app.annotation.hits.store_answers_sql import STORE_ANSWERS_AND_LEASE, StoredAnswers, StoredAnswersAndLeasedHit
from app.background.metrics import PROCESS_METRICS
from app.database.session import Driver, execute_statement, fetch_rows, leads_to_citus

log = logging.getLogger(__name__)

# A transaction that takes this lock takes it before all others, so it cannot be part of a deadlock.
TAKE_TURN = text("SELECT pg_advisory_xact_lock(hashtext('campaign.turn'), CAST(:campaign AS int))")
# The batch after them, without a turn, shows whether others still draw at the same time.
BATCHES_IN_TURN_PER_LOST_HIT = 4
MAX_BATCHES_IN_TURN = 20

NAMES_IN_FUNCTION = {"lock_version": "campaign_version"}
LOCK_COLUMNS = ", ".join(
    f"CASE WHEN assigned.watermark IS NOT NULL OR assigned.place IS NULL THEN "
    f"locked.{NAMES_IN_FUNCTION.get(name, name)} END AS {name}"
    for name in LockRow.__annotations__
)

# A row for each assignment, one row at least. The first one has the locked answers and the changes. Before this
# statement its transaction may only take a turn, which gives it no number. So the watermark does not contain the
# answers to come.
LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS = text(f"""
    SELECT {LOCK_COLUMNS}, assigned.* FROM {LOCK_ANSWERS_SOURCE}
    LEFT JOIN ({assignment_sql.SELECT_ASSIGNMENTS.text}) AS assigned ON true
""")


class LockedAssignmentRow(AssignmentState, LockRow):
    """State of an assignment, and in the first row the locked answers; no assignment has the place None."""


def can_draw_in_memory(campaign: ServedCampaign) -> bool:
    """Return whether the HITs of a campaign are drawn from nothing but posteriors, open HITs and own answers."""
    needs_database = campaign.has_checks or draw_reads_database(campaign) or needs_extended_query(campaign)
    return campaign.status == "running" and not needs_database


def can_lease_with_answers(connection: Driver, cache: PosteriorCache, campaign_id: int) -> bool:
    """Return whether this process knows all that it needs to draw HITs of a campaign before answers are stored.

    Citus neither locks answers and reads assignments in one statement, nor stores and leases in one.
    """
    if leads_to_citus(connection) or campaign_id not in cache.indexes or campaign_id not in cache.campaigns:
        return False
    return can_draw_in_memory(cache.campaigns[campaign_id])


@dataclass
class AnswerLeases:
    """Next HITs of a batch of answers.

    Attributes:
        cache: Posteriors of this process.
        requests: Requests for HITs by assignment.
        assumed: What this process assumes until the transaction is committed.
        answering: Assignments with an answer in the batch.
        states: States of the assignments, by id; empty if no HIT can be drawn in memory.
        proposed: HITs to lease, each with its request.
        leased_hits: HITs that were leased, by their place in `proposed`, from 1.
        waits_for_turn: True while the transaction waits for its turn.

    """

    cache: PosteriorCache
    requests: Mapping[int, PendingRequest]
    assumed: ExitStack = field(default_factory=ExitStack, init=False)
    answering: set[int] = field(default_factory=set, init=False)
    states: dict[int, AssignmentState] = field(default_factory=dict, init=False)
    proposed: list[tuple[PendingRequest, ProposedLease]] = field(default_factory=list, init=False)
    leased_hits: dict[int, LeasedHit] = field(default_factory=dict, init=False)
    waits_for_turn: bool = field(default=False, init=False)

    @property
    def may_fail_because_of_leases(self) -> bool:
        """True if the answers alone may be stored although the transaction failed."""
        return bool(self.proposed) or self.waits_for_turn

    async def lock_answers_and_load_states(
        self, connection: Driver, campaign_id: int, answers: Sequence[SubmittedAnswer]
    ) -> LockedAnswers:
        """Lock the answers as `lock_hits_of_answers_and_return_locked_answers` does, and read the assignments."""
        self.answering = {answer.assignment.assignment_id for answer in answers}
        cache, queries = self.cache, [request.request.query for request in self.requests.values()]
        has_turn = await self.wait_for_turn_if_hits_were_lost(connection, campaign_id)
        campaign_index = cache.indexes.get(campaign_id)  # after the wait, in which it may have been replaced
        histories = remembered_histories_by_assignment(campaign_index, queries)
        # In turn, open HITs are read even if they are remembered: otherwise the next draw takes the same leaders again.
        parameters = assignments_query_parameters(cache, campaign_id, queries, histories, refresh=has_turn)
        parameters |= lock_query_parameters(campaign_id, answers)
        rows = await fetch_rows(connection, LOCK_ANSWERS_AND_SELECT_ASSIGNMENTS, parameters, LockedAssignmentRow)
        rows.sort(key=lambda row: row["place"] or 0)
        version = rows[0].lock_version
        campaign = await remembered_or_loaded_campaign_of_version(connection, cache, campaign_id, version)
        if rows[0]["place"] is not None and rows[0].campaign_version == version == campaign.campaign_version:
            for row in rows:
                row.campaign = campaign
            cache.merge_changes_of_row_unless_stale(rows[0])
            if campaign_index is not None and cache.indexes.get(campaign_id) is campaign_index:
                set_or_remember_history_of_each_row(rows, histories, campaign_index)
                self.states = {row.assignment_id: row for row in rows} if can_draw_in_memory(campaign) else {}
        return LockedAnswers.from_row(campaign, rows[0])

    async def wait_for_turn_if_hits_were_lost(self, connection: Driver, campaign_id: int) -> bool:
        """Wait until no other process leases HITs in turn, and return True; return False if this process takes no turn.

        The next statement sees all that the others have leased. If the turn does not come in time, the next batches
        take none: the process that has it may hang.
        """
        campaign_index = self.cache.indexes.get(campaign_id)
        if campaign_index is None or campaign_index.batches_in_turn == 0:
            return False
        batches_left, campaign_index.batches_in_turn = campaign_index.batches_in_turn - 1, 0
        self.waits_for_turn = True
        await execute_statement(connection, TAKE_TURN, {"campaign": campaign_id})
        self.waits_for_turn = False
        campaign_index.batches_in_turn = batches_left
        return True

    def propose_leases(
        self, locked: LockedAnswers, accepted: Sequence[tuple[int, LockedHit]], posteriors: Mapping[str, Any]
    ) -> None:
        """Draw the HITs that can be drawn in memory, from the posteriors that the answers lead to.

        Args:
            locked: The locked answers.
            accepted: HITs whose answers are about to be stored, each with the assignment that answers.
            posteriors: Parameters of `UPDATE_POSTERIORS` for the first criterion.

        """
        campaign_index = self.cache.indexes.get(locked.campaign.id)
        if not self.states or campaign_index is None or campaign_index.revision != locked.campaign.revision:
            return
        self.assume_posteriors(campaign_index, locked, posteriors)
        self.add_answers_to_histories([hit for _, hit in accepted])
        refused = self.answering - {assignment_id for assignment_id, _ in accepted}
        open_hits_row = next(iter(self.states.values()))
        for assignment_id, state in sorted(self.states.items()):
            if assignment_id in refused:
                continue
            request = self.requests[assignment_id]
            lease = self.draw_lease_or_none(state, request, campaign_index, open_hits_row)
            if lease is not None:
                self.proposed.append((request, lease))
                self.assumed.enter_context(reserve_items_of_lease(self.cache, locked.campaign.id, lease))

    def assume_posteriors(
        self, campaign_index: CampaignIndex, locked: LockedAnswers, posteriors: Mapping[str, Any]
    ) -> None:
        """Draw from the posteriors after the answers, as long as the transaction does not fail."""
        numbers, index = posteriors["numbers"], campaign_index.index
        judgments = [
            locked.judgments.get(number, index.judgments.item(number)) + added
            for number, added in zip(numbers, posteriors["more"], strict=True)
        ]
        self.assumed.enter_context(
            campaign_index.assume_posteriors(numbers, posteriors["score"], posteriors["variance"], judgments)
        )

    def add_answers_to_histories(self, accepted_hits: Sequence[LockedHit]) -> None:
        """Give the states of the annotators who answer a history with these answers; others share the earlier one."""
        for hit in accepted_hits:
            for state in self.states.values():
                if state.annotator_id == hit.annotator_id:
                    history = state.history
                    state.history = AnnotatorHistory({*history.answered_hits, hit.id}, {*history.seen, *hit.hit_items})

    def draw_lease_or_none(
        self,
        state: AssignmentState,
        pending: PendingRequest,
        campaign_index: CampaignIndex,
        open_hits_row: AssignmentState,
    ) -> ProposedLease | None:
        """Return the HIT to lease; None if the request is to be served after the commit."""
        request = pending.request
        if step_before_draw_or_none(state, request.query.visitor) is not None:
            return None
        try:
            with PROCESS_METRICS.timing("easel_selection_seconds"):
                proposal = draw_streaming_hit_or_none(
                    state, campaign_index, self.cache, open_hits_row, pair_filter=None
                )
        except Exception:  # the answers are stored, whatever it is
            log.exception("campaign %s: a HIT could not be drawn with the answers before it", state.campaign_id)
            return None
        if proposal is None or (open_hits_row.held is None and should_retry_with_fresh_open_hits(state, proposal)):
            return None
        return ProposedLease(state, proposal, request.query.visitor, request.now)

    async def store_answers_and_lease(self, connection: Driver, answers: Mapping[str, Any]) -> StoredAnswers:
        """Store the answers and lease the proposed HITs.

        Args:
            connection: The connection whose transaction has the locks.
            answers: Parameters of `easel_store_answers`.

        """
        campaign_id, leases = answers["campaign"], [lease for _, lease in self.proposed]
        few_open = has_few_open_hits(connection, next(iter(self.states.values())))
        parameters = lease_query_parameters(campaign_id, leases, few_open=few_open, waits=False)
        parameters |= {f"stored_{name}": value for name, value in answers.items()}
        rows = await fetch_rows(connection, STORE_ANSWERS_AND_LEASE, parameters, StoredAnswersAndLeasedHit)
        self.leased_hits = {row.number: row for row in rows if row["number"] is not None}
        return rows[0]

    def set_outcomes_after_commit(self) -> None:
        """Give the requests their HITs. After a lost one, which is served later, the next answers wait for a turn."""
        if lost_count := len(self.proposed) - len(self.leased_hits):
            campaign_index = self.cache.indexes.get(self.proposed[0][1].assignment.campaign_id)
            if campaign_index is not None:
                batches = min(BATCHES_IN_TURN_PER_LOST_HIT * lost_count, MAX_BATCHES_IN_TURN)
                campaign_index.batches_in_turn = max(campaign_index.batches_in_turn, batches)
        for place, (pending, lease) in enumerate(self.proposed, start=1):
            if (leased_hit := self.leased_hits.get(place)) is not None:
                set_leased_hit_as_outcome(self.cache, pending, lease, leased_hit)
