"""Tables with a figure for each label: one column on pages where there are many labels, all columns in exports."""

import pytest

from app.analysis.label_tables import LABEL_ANNOTATOR_TABLE, LABEL_ITEM_TABLE
from app.analysis.result_types import Column, ResultTable
from app.analysis.table_page_part import build_table_part
from app.analysis.view import AnalysisView

MANY = [f"topic {k}" for k in range(15)]


def item_table(labels):
    """Return a table of one item that is probably the last label, perhaps the first, and hardly the second."""
    shares = [0.2, 0.05, *[0.0] * (len(labels) - 3), 0.75]
    columns = [Column("id", "Id", "text"), Column("text", "Item", "text"), Column("confidence", "Confidence")]
    columns += [Column(f"probability_{k}", f"Probability of {label}") for k, label in enumerate(labels)]
    return ResultTable(tuple(columns), [("v1", "verb 1", 0.75, *shares)])


def test_fifteen_labels_are_one_column_with_the_most_probable_ones_and_all_figures_below():
    part = build_table_part("label_items", LABEL_ITEM_TABLE, item_table(MANY), AnalysisView())
    assert [column.title for column in part.columns] == ["Item", "Confidence", "Most probable labels"]
    cell = part.rows[0].cells[-1]
    assert cell.words == "topic 14 0.75, topic 0 0.20, topic 1 0.05"
    assert [figures.label for figures in cell.figures_by_label] == MANY
    assert [figures.words for figures in cell.figures_by_label][:3] == [("0.200",), ("0.050",), ("0.000",)]


def test_labels_that_would_read_zero_are_only_among_all_figures():
    table = item_table(MANY)
    certain = ResultTable(table.columns, [("v1", "verb 1", 1.0, 0.996, 0.004, *[0.0] * 13)])
    (row,) = build_table_part("label_items", LABEL_ITEM_TABLE, certain, AnalysisView()).rows
    assert row.cells[-1].words == "topic 0 1.00"
    assert len(row.cells[-1].figures_by_label) == 15


@pytest.mark.parametrize("count", [3, 5])
def test_a_few_labels_keep_a_column_each(count):
    part = build_table_part("label_items", LABEL_ITEM_TABLE, item_table(MANY[:count]), AnalysisView())
    assert len(part.columns) == 2 + count
    assert not any(cell.figures_by_label for cell in part.rows[0].cells)


def test_an_annotators_accuracy_and_evidence_stand_beside_each_other_for_each_label():
    columns = [Column("annotator", "Pseudonym", "text"), Column("name", "Annotator", "text")]
    columns += [Column("accuracy", "Accuracy")]
    columns += [Column(f"accuracy_{k}", f"Accuracy for items of {label}") for k, label in enumerate(MANY)]
    columns += [Column(f"evidence_{k}", f"Expected labels of items of {label}") for k, label in enumerate(MANY)]
    table = ResultTable(tuple(columns), [("p", "A1", 0.5, *[0.9] * 15, *[2.5] * 15)])
    part = build_table_part("label_annotators", LABEL_ANNOTATOR_TABLE, table, AnalysisView())
    assert [column.title for column in part.columns] == ["Annotator", "Accuracy", "By label"]
    cell = part.rows[0].cells[-1]
    assert cell.words == "15 labels"
    assert cell.figures_by_label[14].words == ("0.900", "2.50")
