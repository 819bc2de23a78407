"""The HIT that an annotator gets, or the reason why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.no_hit_reasons import NoHitReason, has_hit_left_after_answering
from app.designs.content import SourceAndReference


@dataclass(frozen=True)
class HitOnPage:
    """A HIT as an annotator sees it.

    Attributes:
        items: Numbers of items and checks, in presentation order.
        ids: The researcher's ids, in the same order.
        texts: Texts, in the same order.
        draft: Values entered so far.
        expires_at: End of the lease.
        segment: Segment of the outputs, each shown once, if the items are systems.
        source_and_reference: Texts shown above the outputs, if the items are systems.
        items_without_checks: Numbers of the items alone.

    """

    id: int
    items: list[int]
    ids: list[str]
    texts: list[str]
    draft: Mapping[str, Any]
    expires_at: datetime
    segment: int | None = None
    source_and_reference: SourceAndReference | None = None
    items_without_checks: Sequence[int] = ()


@dataclass(frozen=True)
class NextHit:
    """A HIT to answer, or the reason why there is none, with the state of the assignment.

    Reasons: `not_open` (draft), `paused`, `all_done`, `limit` (HITs per annotator), `assignment_done` (the platform's
    assignment is answered), `seen_all` (nothing left for this annotator), `wait` (others hold the remaining items),
    `crowded` (too many people hold HITs that they have not touched), `stopped` (the annotator ended the visit), `visit`
    (an onboarding step is open), `held` (the annotator gets no more HITs unless the campaign owner releases them),
    `withdrawn` (their answers will be removed, unless they take that back), `erased` (nothing names them any more).

    `was_finished` is true if the visit was over before the annotator withdrew.
    """

    assignment: AssignmentState
    hit: HitOnPage | None = None
    reason: NoHitReason | None = None
    was_finished: bool = False

    @property
    def should_check_goal(self) -> bool:
        """True if a check of the campaign's goal may end the campaign or make it ask about more items.

        Answers already request this check. They may have missed it: the server was killed before it, the goal was
        changed since, or the campaign ended during a request for a HIT.
        """
        return self.reason in {"seen_all", "wait", "all_done"}

    @property
    def block_notice(self) -> str:
        """Text above the first task of a block of conditions that follows another one; else empty."""
        is_first = self.hit is not None and self.assignment.place_in_blocks.is_first_task
        return (self.assignment.block_pause or "") if is_first else ""

    @property
    def is_finished(self) -> bool:
        """True if this annotator can return to the platform."""
        return self.reason in ("all_done", "limit", "assignment_done", "held", "seen_all", "stopped")


def is_last_hit_as_far_as_known(cache: PosteriorCache, next_hit: NextHit) -> bool:
    """Return whether this annotator gets no HIT after the present one, as far as this process knows."""
    assignment, campaign_index = next_hit.assignment, cache.indexes.get(next_hit.assignment.campaign_id)
    if assignment.one_hit or assignment.hits_answered + 1 == assignment.hits_per_annotator:
        return True
    if next_hit.hit is None or campaign_index is None:
        return False
    return not has_hit_left_after_answering(
        assignment, campaign_index, next_hit.hit.items_without_checks, next_hit.hit.segment
    )
