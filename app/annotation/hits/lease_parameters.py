"""Parameters of the statements that hold, renew and lease a HIT."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.database.session import SharedParameters


@dataclass(slots=True, kw_only=True)
class HoldParameters(SharedParameters):
    """Parameters of `ANNOTATOR_MAY_HOLD_HIT` and `HAS_ROOM_IN_EVERY_ITEM`, and of the locks that they need.

    Args:
        campaign: Id of the campaign.
        hit: Id of the HIT; 0 for one that is not stored yet.
        annotator: Id of the annotator.
        assignment: Id of the assignment.
        segment: Segment of the HIT, if its items are systems.
        capped: Items of the HIT that have a limit on judgments.
        few_open: True if open HITs are known to be few.
        repeat_items: True if annotators may judge an item again.
        hits_per_annotator: Limit of HITs, if there is one.
        one_hit: True if an assignment is one HIT.
        wanted: Judgments wanted per item.

    """

    campaign: int
    hit: int | None
    annotator: int
    assignment: int
    segment: int | None
    capped: Sequence[int]
    few_open: bool
    repeat_items: bool
    hits_per_annotator: int | None
    one_hit: bool
    wanted: int


@dataclass(slots=True, kw_only=True)
class RenewalParameters(HoldParameters):
    """Parameters of `RENEW_LEASE`.

    Args:
        people: Annotators who cannot judge an item until it leaves the pool.
        iteration: Iteration of the HIT, if it is planned.
        ordinal: Place of the HIT in that iteration.
        lease_minutes: Length of the lease.

    """

    people: int
    iteration: int | None
    ordinal: int | None
    lease_minutes: int
