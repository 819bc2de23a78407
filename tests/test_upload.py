"""Tables as people upload them: what is read, and at which line what is wrong."""

import io
from typing import Any

import pytest

from app.errors import Refusal, TooLarge
from app.uploads import MAX_UPLOAD_ROWS, MAX_UPLOADED_CELL_CHARACTERS, iterate_rows_up_to_limit, read_table


def table(content: str | bytes, name: str = "items.csv", *, max_mb: int = 1) -> tuple[Any, list[Any]]:
    raw = content.encode() if isinstance(content, str) else content
    upload = read_table(io.BytesIO(raw), name, max_mb=max_mb)
    return upload, list(upload.rows)


def values(content: str | bytes, name: str = "items.csv") -> list[dict[str, Any]]:
    return [record.values for record in table(content, name)[1]]


def refusal(content: str | bytes, name: str = "items.csv") -> tuple[str, int | None]:
    """Return the code and line of a refused file."""
    with pytest.raises(Refusal) as problem:
        table(content, name)
    line = problem.value.details.get("line")
    assert line is None or f"Line {line}:" in problem.value.message
    return problem.value.code, line


ROWS = [{"id": "1", "text": "abide"}, {"id": "2", "text": "größer, als"}]


def test_the_same_rows_come_out_of_every_format(subtests):
    for name, content, format_ in (
        ("a.csv", 'id,text\n1,abide\n2,"größer, als"\n', "csv"),
        ("a.csv", 'id,text\r\n1,abide\r\n2,"größer, als"\r\n', "csv"),
        ("a.csv", '\n\nid,text\n\n1,abide\n2,"größer, als"', "csv"),
        ("a.csv", "id;text\n1;abide\n2;größer, als\n", "csv"),
        ("a.tsv", "id\ttext\n1\tabide\n2\tgrößer, als\n", "tsv"),
        ("a.txt", "id\ttext\n1\tabide\n2\tgrößer, als\n", "tsv"),
        ("a.csv", ' id , text \n1,abide\n2,"größer, als"\n', "csv"),
        ("a.jsonl", '{"id": "1", "text": "abide"}\n\n{"id": "2", "text": "größer, als"}', "jsonl"),
        ("a.txt", '\n{"id": "1", "text": "abide"}\n{"id": "2", "text": "gr\\u00f6\\u00dfer, als"}\n', "jsonl"),
    ):
        with subtests.test(name=name, content=content, format_=format_):
            upload, records = table(content, name)
            assert upload.format == format_
            assert upload.columns == ("id", "text")
            assert [record.values for record in records] == ROWS


def test_a_byte_order_mark_is_no_part_of_the_first_column():
    assert values(b"\xef\xbb\xbfid,text\n1,a\n") == [{"id": "1", "text": "a"}]


def test_a_header_with_as_many_tabs_as_commas_is_read_as_its_extension_says():
    assert table("id,text\tmore\n", "a.csv")[0].columns == ("id", "text\tmore")
    assert table("id\ttext,more\n", "a.tsv")[0].columns == ("id", "text,more")


def test_lines_are_those_of_an_editor_also_after_a_cell_over_several_lines():
    _, records = table('id,text\n1,"one\ntwo\nthree"\n2,b\n')
    assert [(record.line, record.values["text"]) for record in records] == [(2, "one\ntwo\nthree"), (5, "b")]


def test_values_of_json_keep_their_kind():
    assert values('{"id": 7, "n": 1.5, "tags": ["a"], "none": null}', "a.jsonl") == [
        {"id": 7, "n": 1.5, "tags": ["a"], "none": None}
    ]


def test_what_is_wrong_with_csv_is_said_with_its_line(subtests):
    for content, code, line in (
        (b"", "file_empty", None),
        (b"\n  \n", "file_empty", None),
        (b"id,text\n1,a\n2,gr\xf6\xdfer\n", "not_utf8", 3),
        ("id,text\n1,a\n2,b\0\n", "nul_byte", 3),
        ('id,text\n1,"one\ntwo"\n2\n', "ragged_row", 4),
        ("id,text\n1,a,b\n", "ragged_row", 2),
        ('id,text\n1,a\n2,"b\n3,c\n', "csv_unreadable", 3),
        ('id,text\n1,"a" b\n', "csv_unreadable", 2),
        ("id,,text\n1,2,3\n", "column_unnamed", 1),
        ("id,text,text\n1,2,3\n", "column_twice", 1),
        ("id," * 500 + "id\n", "too_many_columns", 1),
        ("id,text\n1," + "x" * (MAX_UPLOADED_CELL_CHARACTERS + 1) + "\n", "cell_too_long", 2),
        ("id,text\n1," + "x" * 140_000 + "\n", "cell_too_long", 2),
        ('id,text\n1,"' + "x" * 140_000 + '"\n', "csv_unreadable", 2),
    ):
        with subtests.test(content=content, code=code, line=line):
            assert refusal(content) == (code, line)


def test_what_is_wrong_with_json_lines_is_said_with_its_line(subtests):
    for content, code, line in (
        ('{"id": 1}\n{"id": 2', "json_unreadable", 2),
        ('{"id": 1}\n[1, 2]', "json_unreadable", 2),
        ('{"id": 1}\n\n{"id": NaN}', "json_unreadable", 3),
        ('{"id": 1e999}', "json_unreadable", 1),
        ('{"id": 1, "id": 2}', "json_unreadable", 1),
        ('{"id": "\\ud800"}', "json_unreadable", 1),
        ('{"id": ' + "[" * 100_000 + "]" * 100_000 + "}", "json_unreadable", 1),
        ('{"id": 1, "deep": ' + "[" * 100 + "]" * 100 + "}", "json_unreadable", 1),
        ('{"id": {"a": ["\\u0000"]}}', "nul_byte", 1),
        ('{"id": "' + "x" * (MAX_UPLOADED_CELL_CHARACTERS + 1) + '"}', "cell_too_long", 1),
        ('{"": 1}', "column_unnamed", 1),
        (b'{"id": "\xff"}', "not_utf8", 1),
    ):
        with subtests.test(content=content, code=code, line=line):
            assert refusal(content, "a.jsonl") == (code, line)


def test_the_size_is_looked_at_first():
    with pytest.raises(TooLarge, match="EASEL_MAX_UPLOAD_MB") as problem:
        table(b"\xff" * (2**20 + 1))
    assert problem.value.code == "file_too_large"


def test_more_rows_than_may_be_held_in_memory_are_refused_while_reading():
    record = table("id\n1\n")[1][0]
    endless = iterate_rows_up_to_limit((record for _ in range(MAX_UPLOAD_ROWS + 1)), MAX_UPLOAD_ROWS)
    with pytest.raises(TooLarge) as problem:
        for _ in endless:
            pass
    assert problem.value.code == "too_many_rows"
