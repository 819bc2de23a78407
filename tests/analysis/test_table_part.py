"""A section of tables on the analysis page."""

from typing import Any

import pytest

from app.analysis.findings import Column, ResultTable
from app.analysis.table_part import tables_of
from app.analysis.view import AnalysisView
from app.errors import Conflict

ONE_ROW = ResultTable((Column("annotator", "Annotator", "text"), Column("sensitivity", "Sensitivity")), [("A", 1.5)])


class Fits:
    """Answers with what each table is, or why there is none."""

    def __init__(self, **tables: ResultTable | str) -> None:
        self.tables = tables

    async def table(self, _engine: Any, _slug: str, name: str, _options: Any) -> ResultTable:
        found = self.tables[name]
        if isinstance(found, str):
            raise Conflict(found, code="not_estimable")
        return found


async def shown(*tables: ResultTable | str) -> list[str]:
    names = ("graded_response", "graded_response_annotators", "graded_response_segments")
    fits: Any = Fits(**dict(zip(names, tables, strict=True)))
    parts = await tables_of(fits, None, "c", "graded_response", AnalysisView())  # type: ignore[arg-type]  # stand-ins
    return [part.refusal for part in parts]


async def test_one_reason_for_all_is_said_once() -> None:
    assert await shown("No systems.", "No systems.", "No systems.") == ["No systems."]


@pytest.mark.parametrize("tables", [("No systems.", ONE_ROW, "No systems."), ("No systems.", "One segment.", "Few.")])
async def test_other_reasons_stand_with_their_tables(tables: Any) -> None:
    assert await shown(*tables) == [table if isinstance(table, str) else "" for table in tables]
