"""The parts of the analysis page, in the order in which they stand."""

from app.analysis.methods import TABLES

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
