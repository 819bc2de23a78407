"""The ids of a large table: found again with the line of each, in little memory."""

import tracemalloc

from app.imports.id_lines import LINE_OF_STORED_ID, IdLines

MANY = 50_000


def test_an_id_is_found_with_the_line_that_it_was_added_with():
    id_lines = IdLines()
    assert [id_lines.add_id_or_return_its_first_line(f"id {k}", k + 2) for k in range(MANY)] == [None] * MANY
    assert [id_lines.add_id_or_return_its_first_line(f"id {k}", 1) for k in range(MANY)] == [*range(2, MANY + 2)]
    assert len(id_lines) == MANY
    assert "id 7" in id_lines
    assert "another" not in id_lines


def test_ids_of_the_campaign_have_no_line():
    id_lines = IdLines(["a", "b", ""])
    assert id_lines.add_id_or_return_its_first_line("b", 5) == LINE_OF_STORED_ID
    assert id_lines.add_id_or_return_its_first_line("", 5) == LINE_OF_STORED_ID
    assert id_lines.add_id_or_return_its_first_line("c", 6) is None
    assert id_lines.add_id_or_return_its_first_line("c", 7) == 6


def test_an_id_takes_a_few_bytes_however_long_it_is():
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        id_lines = IdLines("a long id, as that of a whole sentence may be: " + str(k) for k in range(MANY))
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(id_lines) == MANY
    assert after - before <= 40 * MANY
    assert peak - before <= 60 * MANY
