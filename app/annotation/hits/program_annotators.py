"""HITs for annotators that a researcher's program names, with items by the researcher's ids."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from cachetools import LRUCache
from sqlalchemy import text

from app.accounts.secrets import secret_digest
from app.accounts.tokens import TokenUse, require_token_and_store_its_use
from app.annotation.hits.assignment import AssignmentState
from app.annotation.onboarding import visit_progress
from app.annotation.platforms.assignments import AssignmentId, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.programs import API_PLATFORM
from app.database.campaign import unknown_campaign_slug_error
from app.database.session import Driver, fetch_first_row_or_none, fetch_first_value_or_none
from app.errors import Conflict, Invalid, NotFound, shorten_echo
from app.selection.segments import items_of_hit_with_distinct_outputs

API_PLATFORM_NAME = API_PLATFORM.name
MAX_CACHED_ASSIGNMENTS = 20_000  # in one process

T = TypeVar("T")  # Python 3.11 has no other way

# Programs cannot answer a rehearsal: its annotators are simulated.
SELECT_PROGRAM_CAMPAIGN_ID = text("SELECT id FROM campaigns WHERE slug = :slug AND rehearsal_of IS NULL")

# The user of the token and the HIT that the program answers, in one round trip. No other statement finds a HIT without
# its campaign.
SELECT_PROGRAM_HIT = text("""
    SELECT t.id AS token_id, t.user_id, t.last_used_at, t.scopes, t.campaign_id AS only_campaign, u.role,
           m.role AS member, t.campaign_id IS NULL OR t.campaign_id IS NOT DISTINCT FROM h.campaign_id AS reaches,
           h.worker_id, h.campaign_id, h.assignment_id, h.hit_items, h.shown_as, h.ids
    FROM api_tokens t JOIN users u ON u.id = t.user_id
    LEFT JOIN (
        SELECT h.campaign_id, h.assignment_id, h.items AS hit_items, h.shown_as, a.worker_id,
               ARRAY(SELECT i.external_id FROM items i WHERE i.campaign_id = h.campaign_id AND i.number = ANY(h.items)
                     ORDER BY array_position(h.items, i.number)) AS ids
        FROM hits h
        LEFT JOIN annotators a ON a.campaign_id = h.campaign_id AND a.id = h.annotator_id AND a.platform = :platform
        WHERE h.id = :hit
    ) AS h ON true
    LEFT JOIN campaign_members m ON m.campaign_id = h.campaign_id AND m.user_id = u.id
    WHERE t.token_hash = :token_hash
""")


class ProgramHit(TokenUse):
    """Use of a token for a HIT, if there is one with this number; `worker_id` is the program's name of the annotator.

    It is None if no program named the annotator.
    """

    worker_id: str | None
    campaign_id: int
    assignment_id: int
    hit_items: list[int]
    shown_as: list[int] | None
    ids: list[str]

    @property
    def item_numbers_by_id(self) -> dict[str, int]:
        """Numbers of the items that the program got, in their order, by the researcher's ids."""
        ids = dict(zip(self.hit_items, self.ids, strict=True))
        return {ids[item]: item for item in items_of_hit_with_distinct_outputs(self.hit_items, self.shown_as)}


@dataclass
class ProgramAssignments:
    """Assignments of programs' annotators, remembered by the campaign's slug and the program's name of the annotator.

    A remembered assignment may be gone, for instance after a restore. Then no statement finds it. If its annotator was
    erased, that name is a new annotator's from then on.
    """

    ids: LRUCache[tuple[str, str], AssignmentId] = field(default_factory=lambda: LRUCache(MAX_CACHED_ASSIGNMENTS))

    async def find_or_create_assignment(
        self, connection: Driver, slug: str, annotator_name: str, *, now: datetime
    ) -> AssignmentId:
        """Return the assignment of a program's annotator, created at the first request.

        Raises:
            NotFound: `campaign_not_found`.

        """
        campaign_id: int | None = await fetch_first_value_or_none(
            connection, SELECT_PROGRAM_CAMPAIGN_ID, {"slug": slug}
        )
        if campaign_id is None:
            raise unknown_campaign_slug_error(slug)
        arrival = Arrival(annotator_name, assignment_id=API_PLATFORM_NAME)
        assignment = await find_or_create_assignment(connection, campaign_id, API_PLATFORM_NAME, arrival, now=now)
        self.ids[slug, annotator_name] = assignment
        return assignment


async def load_consent_needed_error(connection: Driver, assignment: AssignmentState) -> Conflict:
    """Return the refusal for a program's annotator without consent, the only onboarding step for such annotators."""
    visit = await visit_progress.load_visit_or_refuse(
        connection, AssignmentId(assignment.campaign_id, assignment.assignment_id)
    )
    return Conflict(
        "This person has not agreed to the campaign's consent, so there is no HIT for them. Show them the text, then "
        "send their answer.",
        code="consent_needed",
        version=visit.visit_version,
        markdown=visit.settings.consent,
    )


async def load_hit_and_store_token_use(
    connection: Driver, token: str, hit_id: int | None, address: str, *, now: datetime
) -> ProgramHit:
    """Return the HIT that a program with this token answers. Raises `Unauthenticated` (`token_invalid`)."""
    key = {"token_hash": secret_digest(token), "hit": hit_id, "platform": API_PLATFORM_NAME}
    return await require_token_and_store_its_use(
        connection, await fetch_first_row_or_none(connection, SELECT_PROGRAM_HIT, key, ProgramHit), address, now=now
    )


def refuse_unless_hit_is_of_annotator(hit: ProgramHit, hit_id: int, annotator_name: str) -> None:
    """Raise `NotFound` (`hit_not_found`) unless this annotator got the HIT through the API, in a visible campaign."""
    if hit.worker_id != annotator_name or not hit.access.can_see_campaign:
        raise NotFound(
            f"There is no HIT {hit_id} of the annotator “{shorten_echo(annotator_name)}”. Nothing was stored.",
            code="hit_not_found",
        )


def values_by_item_number_or_refuse(hit: ProgramHit, values: Mapping[str, T] | Sequence[T]) -> dict[int, T]:
    """Return values by item number, from values by id or in the order of the HIT. Missing ids are refused later.

    Raises:
        Invalid: `scores_unknown`, for items that are not in the HIT, or a wrong number of scores.

    """
    if not isinstance(values, Mapping):
        if len(values) != len(hit.item_numbers_by_id):
            raise Invalid(
                f"This HIT has {len(hit.item_numbers_by_id)} items, but the answer has {len(values)} scores. "
                "Nothing was stored.",
                code="scores_unknown",
            )
        return dict(zip(hit.item_numbers_by_id.values(), values, strict=True))
    return values_by_number_from_values_by_id_or_refuse(hit, values)


def reason_or_empty_by_unjudged_number_or_refuse(
    hit: ProgramHit, reasons: Mapping[str, str], unjudged_numbers: Collection[int]
) -> dict[int, str]:
    """Return the reason of each item without a value, by item number; empty if the program gave none.

    Raises:
        Invalid: `reason_unknown`, for a reason of an item with a value; `scores_unknown`.

    """
    given_reasons = values_by_number_from_values_by_id_or_refuse(hit, reasons)
    if others := given_reasons.keys() - set(unjudged_numbers):
        item_id = shorten_echo(hit.ids[hit.hit_items.index(min(others))])
        raise Invalid(
            f"“{item_id}” has a reason why it cannot be judged, but also a value. Set the value to null or remove the "
            "reason. Nothing was stored.",
            code="reason_unknown",
            item=item_id,
        )
    return {number: given_reasons.get(number, "") for number in unjudged_numbers}


def values_by_number_from_values_by_id_or_refuse(hit: ProgramHit, values_by_id: Mapping[str, T]) -> dict[int, T]:
    """Return values by item number, from values by id. Raises `Invalid` (`scores_unknown`)."""
    numbers = hit.item_numbers_by_id
    unknown = [external_id for external_id in values_by_id if external_id not in numbers]
    if unknown:
        raise Invalid(
            f"“{shorten_echo(unknown[0])}” is not in this HIT. Nothing was stored.",
            code="scores_unknown",
            items=unknown[:20],
        )
    return {numbers[external_id]: value for external_id, value in values_by_id.items()}
