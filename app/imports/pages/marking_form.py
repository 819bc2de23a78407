"""Fields of the form that turns items into checks, and changes checks."""

from starlette.datastructures import FormData

from app.imports.checks_import import EXPLANATION_COLUMN
from app.imports.mark_checks import CheckToMark
from app.quality.check_expectations import (
    EXPECTED_COLUMN,
    TOLERANCE_COLUMN,
    cells_of_expected_choice,
)

BETTER_ITEM_FIELD = "better"  # and the name of a criterion: the item of a pair that is expected to be chosen


def parse_checks_to_mark(form_data: FormData) -> list[CheckToMark]:
    """Return the items of a form with the cells of their expected answers, which have one entry for each item; of a
    pair, the form may name the item that is expected to be chosen.
    """
    item_ids = [str(item) for item in form_data.getlist("item")]
    prefix = BETTER_ITEM_FIELD
    better = {name.removeprefix(prefix).strip(): str(form_data[name]) for name in form_data if name.startswith(prefix)}
    if better:
        cells_by_item = cells_of_expected_choice(item_ids, better)
        return [CheckToMark(item_id, cells) for item_id, cells in cells_by_item.items()]
    columns = [name for name in form_data if name.startswith((EXPECTED_COLUMN, TOLERANCE_COLUMN))]
    entries = {name: form_data.getlist(name) for name in columns}
    texts, explanations = (
        dict(zip(item_ids, (str(entry).replace("\r\n", "\n") for entry in form_data.getlist(name)), strict=False))
        for name in ("text", EXPLANATION_COLUMN)
    )
    return [
        CheckToMark(
            item_id,
            {name: str(cells[at]) for name, cells in entries.items() if at < len(cells)},
            texts.get(item_id),
            explanations.get(item_id),
        )
        for at, item_id in enumerate(item_ids)
    ]
