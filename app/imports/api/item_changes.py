"""API of changes of single items: retire, restore, delete, correct, and use as gold or attention items."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from app.accounts.guards import program_router
from app.campaigns.api.campaigns import CAMPAIGN_NOT_FOUND
from app.campaigns.known_answers import KnownAnswersChoice
from app.designs.criteria_settings import MAX_CRITERIA
from app.designs.field_flags import RequestBody
from app.http.dependencies import Now, Transaction, openapi_description_of_refusals
from app.imports import item_changes, mark_checks, text_corrections
from app.imports.item_changes import MAX_ITEMS_PER_CHANGE, ItemAction
from app.imports.mark_checks import CheckToMark
from app.quality.check_expectations import SET_COLUMN, expected_and_tolerance_column_names
from app.uploads import MAX_ID_CHARACTERS, MAX_SHOWN_CHARACTERS

router = program_router(
    "/api/v1/campaigns", "Campaigns", refusals={422: "`invalid`; `details.fields` names each field"}
)

ItemId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARACTERS)]
CHANGE_REFUSALS = {
    404: "`campaign_not_found`, `item_not_found`",
    409: "`not_a_draft`, `not_launched`, `item_always_shown`, `not_for_systems`",
}


class ItemsChange(RequestBody):
    """A change of some items: all of them or none."""

    action: ItemAction = Field(
        description="`retire` and `restore` after the launch: no new HIT asks about a retired item, and its answers "
        "and its score stay. `delete` before it."
    )
    ids: list[ItemId] = Field(min_length=1, max_length=MAX_ITEMS_PER_CHANGE, description="Ids of the items.")


class ItemsChanged(BaseModel):
    changed: int = Field(description="Items that the request changed. An item that was retired already does not count.")


@router.post("/{slug}/items/changes", responses=openapi_description_of_refusals(CAMPAIGN_NOT_FOUND | CHANGE_REFUSALS))
async def retire_restore_or_delete_items_by_program(
    connection: Transaction, slug: str, change: ItemsChange, now: Now
) -> ItemsChanged:
    """Retire, restore or delete items."""
    ids = list(dict.fromkeys(change.ids))
    return ItemsChanged(
        changed=await item_changes.retire_restore_or_delete_items_and_count(
            connection, slug, change.action, ids, now=now
        )
    )


class ExpectedCells(RequestBody):
    """An expected answer and its tolerance."""

    expected: str = Field("", max_length=1000, description="As in the column `expected` of a table of items.")
    tolerance: str = Field("", max_length=100, description="As in the column `tolerance`.")


class CheckRequest(ExpectedCells):
    """An item that becomes a gold or attention item, or a gold or attention item with its changes."""

    id: ItemId
    criteria: dict[Annotated[str, StringConstraints(max_length=80)], ExpectedCells] = Field(
        default={}, max_length=MAX_CRITERIA, description="In a campaign with several criteria: the same, by criterion."
    )

    check_set: str = Field(
        "", max_length=200, description="In comparisons and rankings: checks of the same set are shown together."
    )
    text: str | None = Field(None, description="Of a gold or attention item: its new text.")
    explanation: str | None = Field(None, description="Of a gold or attention item: why the answer is expected.")

    def cells_as_in_item_table(self) -> dict[str, str]:
        """Return the cells of a table of items that say the same."""
        by_criterion = {"": self, **self.criteria}
        return {SET_COLUMN: self.check_set} | {
            column: cell
            for name, about in by_criterion.items()
            for column, cell in zip(
                expected_and_tolerance_column_names(name), (about.expected, about.tolerance), strict=True
            )
        }


class ChecksRequest(RequestBody):
    """Items of a draft that become checks: all of them or none."""

    kind: Literal["gold", "attention"]
    checks: list[CheckRequest] = Field(min_length=1, max_length=MAX_ITEMS_PER_CHANGE)
    keep: bool = Field(
        default=False, description="Keep the items in the study, too. The checks are copies with ids of their own."
    )


@router.post(
    "/{slug}/items/checks",
    responses=openapi_description_of_refusals(
        CAMPAIGN_NOT_FOUND
        | {
            404: "`campaign_not_found`, `item_not_found`",
            409: "`not_a_draft`, `no_checks_here`, `not_for_systems`, `id_taken`",
            422: "`expected_missing`, `expected_unreadable`, `expected_impossible`, `expected_misplaced`, "
            "`too_many_checks`, `shown_empty`, `shown_too_long`",
        }
    ),
)
async def mark_items_as_checks_by_program(
    connection: Transaction, slug: str, new_checks: ChecksRequest
) -> ItemsChanged:
    """Use items as gold or attention items, or change those that are."""
    checks = [
        CheckToMark(check.id, check.cells_as_in_item_table(), check.text, check.explanation)
        for check in new_checks.checks
    ]
    await mark_checks.turn_draft_items_into_checks_or_refuse(
        connection, slug, checks, kind=new_checks.kind, keeps_items=new_checks.keep
    )
    return ItemsChanged(changed=len(checks))


class GoldItemsMade(BaseModel):
    ids: list[str] = Field(description="Ids of the items that became gold items.")


@router.post(
    "/{slug}/items/known-answers",
    responses=openapi_description_of_refusals(
        CAMPAIGN_NOT_FOUND
        | {
            409: "`not_a_draft`, `no_checks_here`, `not_for_systems`, `known_answers_by_criteria`, `id_taken`",
            422: "`known_answers_missing`, `known_answers_too_few`, `known_answers_other_scale`, "
            "`expected_impossible`, `too_many_checks`",
        }
    ),
)
async def mark_gold_by_known_answers_by_program(
    connection: Transaction, slug: str, choice: KnownAnswersChoice
) -> GoldItemsMade:
    """Use items as gold items by the known answers in a column of their table."""
    return GoldItemsMade(ids=await mark_checks.mark_gold_by_known_answers_returning_ids(connection, slug, choice))


class CorrectedText(RequestBody):
    """The corrected text of an item, or of a system's output for a segment."""

    id: ItemId = Field(description="Id of the item, or name of the system.")
    segment: ItemId | None = Field(default=None, description="For systems: the segment of the output.")
    text: str = Field(max_length=MAX_SHOWN_CHARACTERS)


class ItemVersion(BaseModel):
    id: str
    version: int = Field(description="Number of this version of the text, from 1; in a draft it stays 1.")


@router.put(
    "/{slug}/items/text",
    responses=openapi_description_of_refusals(
        CAMPAIGN_NOT_FOUND
        | {
            404: "`campaign_not_found`, `item_not_found`, `output_not_found`",
            409: "`for_systems_only`, `output_taken`, `revision_running`",
            422: "`segment_missing`, `shown_empty`, `shown_too_long`, `text_unchanged`, `media_missing`, "
            "`media_wrong_kind`, `media_link_refused`",
        }
    ),
)
async def correct_text_by_program(
    connection: Transaction, slug: str, corrected: CorrectedText, now: Now
) -> ItemVersion:
    """Correct the text of an item, or of a system's output.

    HITs that are open already show the former text; exports say which was judged. After the launch, systems with
    the same output for the segment get the correction, too.
    """
    version = await text_corrections.store_corrected_text_returning_version(
        connection, slug, corrected.id, corrected.text, now=now, segment_id=corrected.segment
    )
    return ItemVersion(id=corrected.id, version=version)
