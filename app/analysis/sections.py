"""The parts of the analysis page, in the order in which they stand."""

from app.analysis.methods import TABLES
from app.analysis.view import ROWS

SECTIONS = {
    "agreement": "Agreement",
    "annotators": "Annotators",
    "consistency": "Consistency",
    "labels": "Labels",
    "graded_response": "Graded response",
}

TITLES = {"scores": "Scores"} | {
    name: title for name, title in SECTIONS.items() if name in {method.section for method in TABLES.values()}
}

READS = {"scores": ("one", "other")} | {
    section: tuple({name: None for method in TABLES.values() if method.section == section for name in method.reads})
    for section in SECTIONS
}
"""What of the address each part is made from, besides what is of one table."""


def rows_to_come(*, items: int, annotators: int, classes: int) -> dict[str, int]:
    """About how many rows of tables each part will have: the page keeps room for them until they are there."""
    items, annotators = min(items, ROWS), min(annotators, ROWS)
    return {
        "scores": items,
        "agreement": 14,
        "annotators": annotators,
        "consistency": 6,
        "labels": classes + annotators + items,
        "graded_response": 0,
    }
