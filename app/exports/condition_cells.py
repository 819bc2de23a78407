"""Cells of the export of responses about conditions: that of the item, its block, and the annotator's list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.condition_counts import square_of_campaign
from app.annotation.hits.item_conditions import condition_cell_sql
from app.designs.campaign import Campaign
from app.selection.condition_squares import BLOCKS_KEY, LIST_KEY, SQUARE_PLACE_KEY, ConditionSquare
from app.text.table_formats import RowCells

CONDITION_COLUMNS = ("condition", "block", "condition_list")  # blocks and lists count from 1

SELECT_CONDITION_BY_ITEM = text(f"""
    SELECT external_id, {condition_cell_sql("column")} AS condition FROM items
    WHERE campaign_id = :campaign AND {condition_cell_sql("column")} <> '' ORDER BY number
""")

# Without items that every task shows, as `item_conditions` numbers them.
SELECT_CONDITIONS_IN_ORDER = text(f"""
    SELECT {condition_cell_sql("column")} AS condition FROM items i JOIN campaigns c ON c.id = i.campaign_id
    WHERE i.campaign_id = :campaign AND i.number <> ALL(c.always_shown)
      AND {condition_cell_sql("column")} <> ''
    GROUP BY 1 ORDER BY min(i.number)
""")

SELECT_ROW_BY_ANNOTATOR = text(
    "SELECT id, square_row FROM annotators WHERE campaign_id = :campaign AND square_row IS NOT NULL"
)


@dataclass(frozen=True)
class ConditionCells:
    """Conditions of items and rows of annotators, for the cells of an export.

    Attributes:
        square: The rows.
        seed: Seed of the campaign.
        condition_by_item: Condition of each item by the item's id.
        names: Conditions in the order that numbers them.
        row_by_annotator: Row of the square by the annotator's id.
        remembered_blocks: Blocks of conditions that were computed before, by the annotator's id.

    """

    square: ConditionSquare
    seed: int
    condition_by_item: Mapping[str, str]
    names: Sequence[str]
    row_by_annotator: Mapping[int, int]
    remembered_blocks: dict[int, Mapping[str, int]] = field(default_factory=dict, compare=False)

    def cells_of_judgment(
        self, annotator_id: int, item_id: str, position: int, extra: Mapping[str, Any] | None
    ) -> RowCells:
        """Return the cells of `CONDITION_COLUMNS`; None where the campaign has no blocks, no lists or no condition.

        Args:
            annotator_id: The annotator.
            item_id: The item's id.
            position: Position of the item in the task, from 1.
            extra: `responses.extra` of the answer; an imported one keeps its block and list of the other campaign.

        """
        condition, row = self.condition_by_item.get(item_id), self.row_by_annotator.get(annotator_id)
        if imported := (extra or {}).get(SQUARE_PLACE_KEY):
            blocks = imported[BLOCKS_KEY]
            return condition, blocks[position - 1] if blocks else None, imported[LIST_KEY]
        block = place_in_list = None
        if row is not None and condition is not None and self.square.block_order != "none":
            block = self.block_by_condition_of_annotator(annotator_id, row).get(condition)
        if row is not None and self.square.has_contents:
            place_in_list = 1 + self.square.index_of_list_of_square_row(row)
        return condition, block, place_in_list

    def block_by_condition_of_annotator(self, annotator_id: int, row: int) -> Mapping[str, int]:
        """Return the block of each condition, computed once per annotator."""
        if annotator_id not in self.remembered_blocks:
            order = self.square.block_order_of_row(row, (self.seed, annotator_id))
            self.remembered_blocks[annotator_id] = {self.names[number]: 1 + place for place, number in enumerate(order)}
        return self.remembered_blocks[annotator_id]


async def load_condition_cells_or_none(connection: AsyncConnection, campaign: Campaign) -> ConditionCells | None:
    """Return what the cells need, for a campaign whose items have conditions; None for another one."""
    if campaign.condition_column is None or campaign.status == "draft":
        return None
    key = {"campaign": campaign.id, "column": campaign.condition_column}
    condition_by_item = {
        row.external_id: row.condition for row in await connection.execute(SELECT_CONDITION_BY_ITEM, key)
    }
    names = (await connection.scalars(SELECT_CONDITIONS_IN_ORDER, key)).all()
    rows = await connection.execute(SELECT_ROW_BY_ANNOTATOR, {"campaign": campaign.id})
    return ConditionCells(
        square_of_campaign(campaign, len(names)),
        campaign.seed,
        condition_by_item,
        names,
        {row.id: row.square_row for row in rows},
    )
