"""CSV is written as Python's own module writes it."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.text.table_formats import format_csv_rows

TEXTS = st.text(st.sampled_from(list("ab ,;'\"\t\r\n\u2028é=")), max_size=6)
CELLS = st.one_of(TEXTS, st.none(), st.integers(), st.floats(), st.sampled_from([0.0, -0.0, 1e300, 1e-300]))


def by_module(rows: list[tuple[Any, ...]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    return file.getvalue()


@given(st.integers(1, 4).flatmap(lambda columns: st.lists(st.tuples(*[CELLS] * columns), max_size=6)))
def test_text_and_numbers_are_written_as_the_csv_module_writes_them(rows):
    assert format_csv_rows((), rows) == by_module(rows)


@given(st.lists(st.tuples(st.one_of(st.none(), st.floats()), TEXTS), max_size=20))
def test_columns_of_numbers_are_written_as_the_csv_module_writes_them(rows):
    assert format_csv_rows((), rows) == by_module(rows)


def test_a_column_of_booleans_is_written_as_each_of_them_alone():
    assert format_csv_rows((), [(True, 1), (None, 1), (False, 1)]) == "true,1\r\n,1\r\nfalse,1\r\n"


def test_other_values_are_written_as_json_or_iso_8601(subtests):
    for cell, written in (
        ([True, None, "a"], '"[true, null, ""a""]"'),
        (True, "true"),
        ({"a": [1, "b"]}, '"{""a"": [1, ""b""]}"'),
        (["é"], '"[""é""]"'),
        (datetime(2026, 1, 5, 9, tzinfo=UTC), "2026-01-05T09:00:00+00:00"),
    ):
        with subtests.test(cell=cell, written=written):
            assert format_csv_rows((), [(cell, 1)]) == written + ",1\r\n"
