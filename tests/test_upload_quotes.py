"""Quotation marks in tables: around cells, or part of the text; rows are never merged without a word."""

import io
from typing import Any

import pytest

from app.errors import Invalid
from app.uploads import ReadOptions, UploadedTable, read_table


def table(
    content: str, name: str = "items.tsv", *, quotes: str | None = None
) -> tuple[UploadedTable, list[dict[str, Any]]]:
    upload = read_table(io.BytesIO(content.encode()), name, max_mb=1, read_options=ReadOptions(quotes=quotes))
    return upload, [record.values for record in upload.rows]


def texts(content: str, name: str = "items.tsv", column: str = "text") -> list[str]:
    return [row[column] for row in table(content, name)[1]]


def refused(content: str, name: str = "items.csv") -> Invalid:
    with pytest.raises(Invalid) as problem:
        table(content, name)
    return problem.value


def lines(*texts: str, separator: str = "\t", end: str = "\n") -> str:
    """Return a table of unquoted IDs and texts."""
    rows = ["id" + separator + "text", *(f"s{k}{separator}{text}" for k, text in enumerate(texts, start=1))]
    return end.join(rows) + end


OPENS_AND_ENDS = ('"Well begun', "Plain.", "Plain too.", 'Ends here"', "ok", "fine")
MIXED = ('"Hello," she said.', '"Never closed', "Plain.", '5" screen', '""', "ok")


def test_a_table_with_tabs_that_encloses_nothing_is_read_line_by_line(subtests):
    for own in (OPENS_AND_ENDS, MIXED, ('"a', 'b"'), ('"a" b', "c"), ('a "b"', "c"), ("c", '"')):
        for end in ("\n", "\r\n"):
            with subtests.test(own=own, end=end):
                upload, rows = table(lines(*own, end=end))
                assert [row["text"] for row in rows] == [*own]
                assert (upload.row_count, upload.line_count, upload.quotes) == (len(own), len(own) + 1, "text")
                assert "Quotation marks are part of the text" in " ".join(upload.notes)


def test_no_output_of_a_system_is_swallowed_by_another():
    content = "system\tsegment\toutput\n" + "".join(
        f"{system}\t{segment}\t{text}\n"
        for system, text in (("a", '"Hallo Welt.'), ("b", 'Hallo, Welt."'))
        for segment in (1, 2, 3)
    )
    _, rows = table(content)
    assert [(row["system"], row["segment"], row["output"]) for row in rows] == [
        *(("a", str(k), '"Hallo Welt.') for k in (1, 2, 3)),
        *(("b", str(k), 'Hallo, Welt."') for k in (1, 2, 3)),
    ]


def test_texts_in_quotation_marks_among_others_keep_them():
    assert texts(lines('"Stop."', "He went on.", "She did not.")) == ['"Stop."', "He went on.", "She did not."]


def test_a_table_with_tabs_that_encloses_cells_is_read_so(subtests):
    for content, expected in (
        ('id\ttext\ns1\t"two\nlines"\ns2\tplain\n', ["two\nlines", "plain"]),
        ('id\ttext\r\ns1\t"two\r\nlines"\r\ns2\tplain\r\n', ["two\r\nlines", "plain"]),
        ('id\ttext\ns1\t"He said ""no"" twice"\ns2\tplain\n', ['He said "no" twice', "plain"]),
        ('id\ttext\ns1\t"a\tb"\ns2\tplain\n', ["a\tb", "plain"]),
        ('id\ttext\ns1\t"Yes, as Excel writes it"\ns2\tplain\n', ["Yes, as Excel writes it", "plain"]),
        ('id\ttext\n"s1"\t"all"\n"s2"\t"of them"\n', ["all", "of them"]),
        ('"id"\t"text"\n1\t"all"\n2\tnot\n', ["all", "not"]),
        ('id\ttext\nc1\t"if a:\n\tb()"\nc2\tx\n', ["if a:\n\tb()", "x"]),
        ('id\ttext\nc1\t"if a:\n\tb()\n\tc()"\nc2\t"d:\n\te"\n', ["if a:\n\tb()\n\tc()", "d:\n\te"]),
    ):
        with subtests.test(content=content, expected=expected):
            assert texts(content) == expected
            assert "Quotation marks enclose cells" in " ".join(table(content)[0].notes)


def test_cells_over_several_lines_between_commas_stay_one_cell(subtests):
    for content, expected in (
        ('id,text\n1,"one\ntwo\nthree"\n2,b\n', ["one\ntwo\nthree", "b"]),
        ('id,text\n1,"first line\nsecond, with a comma"\n2,b\n', ["first line\nsecond, with a comma", "b"]),
        ('id,text\n1,"In all\n1,000 people"\n2,b\n', ["In all\n1,000 people", "b"]),
        ('id,text\n1,"a ""b"" c"\n2,b\n', ['a "b" c', "b"]),
        ('"id","text"\n"1","x\n3,y"\n"2","z"\n', ["x\n3,y", "z"]),
        ('id;text\n1;"eins; zwei\ndrei"\n2;b\n', ["eins; zwei\ndrei", "b"]),
        ('text,id\n"a\n\nb",s1\nc,s2\n', ["a\n\nb", "c"]),
    ):
        with subtests.test(content=content, expected=expected):
            assert texts(content, "items.csv") == expected


@pytest.mark.parametrize("separator", [",", ";"])
def test_between_commas_a_stray_mark_that_takes_in_rows_is_refused_with_the_lines(separator):
    problem = refused(lines(*OPENS_AND_ENDS, separator=separator))
    assert (problem.code, problem.details["line"], problem.details["last_line"]) == ("quotes_unclear", 2, 5)
    assert "Line 2:" in problem.message
    assert "line 5" in problem.message
    assert "--quotes text" in problem.message


def test_swallowed_rows_are_seen_wherever_the_mark_is(subtests):
    for content, line in (
        ('text,id\n"Well begun,s1\nPlain,s2\nEnds here",s3\nok,s4\n', 2),
        ('system,segment,output\na,1,"x\na,2,y\nb,1,z"\nb,2,w\n', 2),
        ('id,text\ns1,"x\ns2,""\ns3,y"\ns4,z\n', 2),
        ('id,text\ns1,a\ns2,"b\ns3,c"\n', 3),
        ('id,text\r\ns1,a\r\ns2,"b\r\ns3,c"\r\n', 3),
        ('id,text\ns1,"x\ns2,y, and more\ns3,z"\ns4,w\n', 2),
        ('id,text\ns1,"x, y\ns2,y\n\ns3,z"\ns4,w\n', 2),
        ('text,id\n"Well, begun,s1\nPlain,s2\nEnds, all in all, here",s3\nok,s4\n', 2),
    ):
        with subtests.test(content=content, line=line):
            problem = refused(content)
            assert (problem.code, problem.details["line"]) == ("quotes_unclear", line)


def test_texts_over_several_lines_may_have_commas():
    assert texts('id,text\n1,"Roses are red,\nviolets, blue"\n2,"a, b\n\nc, d"\n', "a.csv") == [
        "Roses are red,\nviolets, blue",
        "a, b\n\nc, d",
    ]


def test_a_row_over_several_lines_in_a_table_without_marks_is_refused_with_its_line():
    problem = refused("id\ttext\ns1\tone\ntwo\ns2\tthree\n", "items.tsv")
    assert (problem.code, problem.details["line"]) == ("ragged_row", 3)
    assert "spans several lines" in problem.message


def test_such_a_row_is_refused_among_texts_that_begin_with_marks():
    problem = refused(lines('"Hello," she said.', "a\nb", "c"), "items.tsv")
    assert (problem.code, problem.details["line"]) == ("ragged_row", 4)


def test_the_uploader_can_say_what_marks_are_for():
    content = lines(*OPENS_AND_ENDS, separator=",")
    assert [row["text"] for row in table(content, "a.csv", quotes="text")[1]] == [*OPENS_AND_ENDS]
    upload, rows = table(content, "a.csv", quotes="cells")
    assert (upload.quotes, upload.row_count, upload.line_count) == ("cells", 3, 7)
    assert rows[0]["text"].splitlines() == ["Well begun", "s2,Plain.", "s3,Plain too.", "s4,Ends here"]
    with pytest.raises(Invalid) as problem:
        table(content, quotes="perhaps")
    assert problem.value.code == "quotes_unknown"


def test_where_programs_enclosed_most_a_cell_that_breaks_the_rule_is_refused():
    problem = refused(lines('"a ""b"""', '"c ""d"""', '"e" f'), "items.tsv")
    assert (problem.code, problem.details["line"]) == ("csv_unreadable", 4)


def test_the_names_of_a_header_may_hold_the_other_separators():
    content = '"id";"text, as it was, in all, of it"\n1;a\n'
    assert table(content, "a.csv")[0].columns == ("id", "text, as it was, in all, of it")


def test_the_line_in_which_excel_names_the_separator_is_no_header():
    upload, rows = table('sep=;\nid;text\n1;"a;b"\n', "a.csv")
    assert (upload.columns, rows) == (("id", "text"), [{"id": "1", "text": "a;b"}])
