"""Tables as programs and people save them: encodings, line ends, empty columns and rows, JSON, and what is packed."""

import bz2
import gzip
import io
import json
import lzma
import struct
import zipfile
from typing import Any

import pytest

from app.errors import Refusal, TooLarge
from app.uploads import ReadOptions, UploadedTable, read_table

TEXTS = ["Der Hund schläft.", "Die Katze läuft über die Straße.", "Ein schöner Tag.", "Grüße aus Köln.", "Naïve café."]
ROWS = [{"id": f"s{k}", "text": text} for k, text in enumerate(TEXTS, start=1)]
CSV = "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in ROWS)
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


def table(
    content: str | bytes, name: str = "items.csv", *, max_mb: int = 1, encoding: str | None = None
) -> tuple[UploadedTable, list[dict[str, Any]]]:
    raw = content.encode() if isinstance(content, str) else content
    upload = read_table(io.BytesIO(raw), name, max_mb=max_mb, read_options=ReadOptions(encoding))
    return upload, [record.values for record in upload.rows]


def rows(content: str | bytes, name: str = "items.csv", **more: Any) -> list[dict[str, Any]]:
    return table(content, name, **more)[1]


def refused(content: str | bytes, name: str = "items.csv", **more: Any) -> Refusal:
    with pytest.raises(Refusal) as problem:
        table(content, name, **more)
    return problem.value


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zipped(**files: Any) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


# Encodings


def test_every_kind_of_unicode_is_recognised(subtests):
    for end in ("\n", "\r\n"):
        for content, name in ((CSV, "a.csv"), (CSV.replace(",", "\t"), "a.txt"), (JSONL, "a.jsonl")):
            for codec, mark in (
                ("utf-8", b"\xef\xbb\xbf"),
                ("utf-16-le", b"\xff\xfe"),
                ("utf-16-be", b"\xfe\xff"),
                ("utf-16-le", b""),
                ("utf-16-be", b""),
                ("utf-32-le", b"\xff\xfe\0\0"),
                ("utf-32-be", b"\0\0\xfe\xff"),
            ):
                with subtests.test(end=end, content=content, name=name, codec=codec, mark=mark):
                    upload, found = table(mark + content.replace("\n", end).encode(codec), name)
                    assert found == ROWS
                    assert any("UTF-" in note for note in upload.notes) == (codec != "utf-8")


def test_unicode_of_two_bytes_without_a_mark_is_recognised_where_no_name_is_in_latin_letters():
    content = "编号\t文本\n甲\t你好世界\n乙\t再见\n"
    assert rows(content.encode("utf-16-le"), "a.tsv") == [
        {"编号": "甲", "文本": "你好世界"},
        {"编号": "乙", "文本": "再见"},
    ]


def test_an_older_encoding_is_offered_with_a_sample_and_read_when_it_is_chosen(subtests):
    for text, encoding, title in (
        (CSV, "windows-1252", "Windows-1252"),
        (CSV, "macintosh", "Mac OS Roman"),
        ("id,text\n1,Zażółć gęślą jaźń\n2,Łódź i Kraków\n", "windows-1250", "Windows-1250"),
        ("id,text\n1,Привет, мир\n".replace(", м", " м"), "windows-1251", "Windows-1251"),
        ("id,text\n1,こんにちは世界\n2,さようなら\n", "cp932", "Shift JIS"),
        ("id,text\n1,你好，世界。这是一个句子。\n", "gb18030", "GB 18030"),
    ):
        with subtests.test(text=text, encoding=encoding, title=title):
            problem = refused(text.encode(encoding))
            assert problem.code == "not_utf8"
            assert problem.details["line"] == 2
            first = problem.details["encodings"][0]
            assert (first["name"], first["title"]) == (encoding, title)
            assert first["sample"].rstrip("…") in text
            assert f"It looks like {title}: “{first['sample']}”" in problem.message
            assert f"--encoding {encoding}" in problem.message
            upload, found = table(text.encode(encoding), encoding=encoding)
            assert found == rows(text)
            assert f"Read as {title}." in upload.notes


def test_the_sample_has_the_letters_that_tell():
    assert refused(CSV.encode("cp1252")).details["encodings"][0]["sample"] == "Die Katze läuft über die Straße."


def test_an_encoding_may_be_called_by_its_other_names(subtests):
    for name in ("cp1252", "Windows-1252", "latin-1", "ISO-8859-1", " latin1 "):
        with subtests.test(name=name):
            assert rows(CSV.encode("cp1252"), encoding=name) == ROWS


def test_another_encoding_is_refused_with_those_there_are(subtests):
    for name in ("klingon", "rot13", "hex", "idna", "utf-7", ""):
        with subtests.test(name=name):
            problem = refused(CSV, encoding=name)
            assert problem.code == "encoding_unknown"
            assert "windows-1252" in problem.message


def test_a_byte_order_mark_counts_more_than_the_encoding_that_was_chosen():
    assert rows(b"\xef\xbb\xbf" + CSV.encode(), encoding="windows-1252") == ROWS


def test_a_file_of_utf_8_with_one_broken_line_is_not_offered_as_something_else():
    problem = refused(CSV.encode() + b"s9,caf\xe9\n")
    assert (problem.code, problem.details["line"], problem.details["encodings"]) == ("not_utf8", 7, [])
    assert "most of this file is UTF-8" in problem.message


@pytest.mark.parametrize(
    "content", [CSV.encode("utf-16")[:-1], b"\xff\xfe" + "id,text\n1,".encode("utf-16-le") + b"\0\xd8"]
)
def test_a_file_that_is_cut_off_within_a_character_is_refused_in_plain_words(content):
    problem = refused(content)
    assert problem.code == "encoding_unsuited"
    assert "codec" not in problem.message


def test_the_encoding_that_was_chosen_has_to_suit():
    problem = refused(b"id,text\n1,a\n2," + b"\x81\n", encoding="windows-1252")
    assert (problem.code, problem.details["line"]) == ("encoding_unsuited", 3)


# Line ends


@pytest.mark.parametrize("quote", ["", '"'])
def test_lines_may_end_with_carriage_returns_alone(quote):
    content = "id,text\r" + "".join(f"{row['id']},{quote}{row['text']}{quote}\r" for row in ROWS)
    upload, found = table(content)
    assert found == ROWS
    assert (upload.row_count, upload.line_count) == (5, 6)
    assert rows(JSONL.replace("\n", "\r"), "a.jsonl") == ROWS


def test_a_carriage_return_within_a_row_of_other_ends_is_refused_in_plain_words(subtests):
    for content, line in (
        ('id,text\n1,"x"\n2,a\rb\n', 3),
        ("text\nx\na\rb\nc\n", 3),
        ("id\ttext\n1\tx\n2\ta\rb\n", 3),
        ("id,text\r1,x\r2,a\n", 1),
    ):
        with subtests.test(content=content, line=line):
            problem = refused(content)
            assert (problem.code, problem.details["line"]) == ("csv_unreadable", line)
            assert "mixes different line endings" in problem.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_byte_order_marks_are_left_out_however_many_there_are(encoding):
    assert rows(("\ufeff\ufeff" + CSV).encode(encoding)) == ROWS
    assert rows(("\ufeff\ufeff" + JSONL).encode(encoding), "a.jsonl") == ROWS


def test_no_encoding_is_offered_for_a_file_that_is_no_text():
    problem = refused(b"id,text\n1,\xe9\n2,\0\1\2\xff\n")
    assert problem.code == "nul_byte"
    assert "not a text file" in problem.message


# Empty columns and rows, and columns without a name


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_empty_columns_and_rows_of_a_sheet_are_left_out_and_told(separator):
    content = CSV.replace("\n", f"{separator}{separator}\r\n").replace(",", separator)
    content += f"{separator}{separator}{separator}\r\n{separator}\r\n"
    upload, found = table(content)
    assert found == ROWS
    assert upload.columns == ("id", "text")
    assert (upload.row_count, upload.line_count) == (5, 8)
    assert "Skipped 2 columns without a name or content." in upload.notes
    assert "Skipped 2 rows without any content." in upload.notes


def test_rows_may_have_empty_cells_beyond_the_header_and_columns_may_lie_apart():
    assert rows("id,,text\n1,,a,,\n2, ,b,\n") == [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]
    assert rows(",,\nid,text,\n1,a,\n") == [{"id": "1", "text": "a"}]


def test_a_column_without_a_name_that_holds_something_is_refused_with_the_line_of_it():
    problem = refused("id,text,\n1,a,\n2,b,see below\n")
    assert (problem.code, problem.details["line"]) == ("column_unnamed", 1)
    assert "line 3" in problem.message


def test_the_index_that_pandas_writes_gets_a_name_and_is_told():
    upload, found = table("," + CSV.replace("\n", "\n0,", 5).replace("\n0,", "\n7,", 1))
    assert upload.columns == ("index", "id", "text")
    assert [{"id": row["id"], "text": row["text"]} for row in found] == ROWS
    assert "The first column has no name and is called “index”." in " ".join(upload.notes)
    assert table(",index\n0,a\n")[0].columns == ("index-2", "index")


# JSON


LIST = json.dumps(ROWS, ensure_ascii=False)


def test_rows_come_out_of_every_form_of_json(subtests):
    for name in ("a.json", "a.txt"):
        for content in (
            LIST,
            json.dumps(ROWS, indent=2),
            "[\n" + ",\n".join(json.dumps(row) for row in ROWS) + "\n]\n",
            "\n".join(json.dumps(row, indent=1) for row in ROWS),
            json.dumps({"data": ROWS}),
            json.dumps({"version": "1", "n": 5, "tags": ["a", "b"], "data": ROWS, "more": {"a": [{}]}}, indent=1),
            JSONL,
            json.dumps([{"data": row, "predictions": []} for row in ROWS]).replace(', "predictions": []', ""),
        ):
            with subtests.test(name=name, content=content):
                upload, found = table(content, name)
                assert found == ROWS
                assert (upload.columns, upload.row_count) == (("id", "text"), 5)


def test_a_list_may_be_in_a_file_named_for_lines_and_lines_in_one_named_for_a_list():
    assert rows(LIST, "a.jsonl") == ROWS
    assert rows(json.dumps(ROWS, indent=2), "a.jsonl") == ROWS
    assert rows(JSONL, "a.json") == ROWS


def test_the_rows_of_a_list_have_the_lines_of_an_editor():
    upload = read_table(io.BytesIO(json.dumps(ROWS, indent=2).encode()), "a.json", max_mb=1)
    assert [record.line for record in upload.rows] == [2, 6, 10, 14, 18]


def test_several_lists_of_objects_are_refused_with_their_names():
    problem = refused(json.dumps({"train": ROWS, "test": ROWS, "classes": ["a"]}), "a.json")
    assert (problem.code, problem.details["lists"]) == ("json_several_lists", ["train", "test"])
    assert "train, test" in problem.message


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"id": {"0": "s1"}, "text": {"0": "a"}}),
        json.dumps({"columns": ["id"], "index": [0], "data": [["s1"]]}),
        json.dumps({"s1": {"text": "a"}, "s2": {"text": "b"}}, indent=1),
    ],
)
def test_an_object_without_a_list_of_rows_is_refused_with_what_to_save(content):
    problem = refused(content, "a.json")
    assert problem.code == "json_no_rows"
    assert "records" in problem.message


def test_what_is_wrong_within_a_list_is_said_with_its_line(subtests):
    for content, line in (
        ('[{"id": 1},\n[1]]', 2),
        ('[\n "a",\n "b"]', 2),
        ('[{"id": 1}\n{"id": 2}]', 2),
        ('[{"id": 1},\n {"id": 2}', 2),
        ('[{"id": 1}]\n[{"id": 2}]', 2),
        ('{"data": [{"id": 1},\n {"id" 2}]}', 2),
        ('{"data": [{"id": 1}, {"id": 2}]\n', 2),
        ('[\n {"id": NaN}]', 2),
        ('[{"id": 1, "id": 2}]', 1),
        ('[{"a": ' + "[" * 100_000, 1),
        ('{"data": [{"id": ' + '{"a":' * 100_000, 1),
        ('[{"id": 1' + "0" * 10_000 + "}]", 1),
        ('[{"id": 1e999}]', 1),
    ):
        with subtests.test(content=content, line=line):
            problem = refused(content, "a.json")
            assert (problem.code, problem.details["line"]) == ("json_unreadable", line)


def test_the_columns_are_those_of_all_rows():
    content = '{"id": 1, "text": "a"}\n{"id": 2, "text": "b", "reference": "c"}\n{"note": "d"}\n'
    upload, found = table(content, "a.jsonl")
    assert upload.columns == ("id", "text", "reference", "note")
    assert found == [{"id": 1, "text": "a"}, {"id": 2, "text": "b", "reference": "c"}, {"note": "d"}]
    assert table("[" + content.strip().replace("\n", ",") + "]", "a.json")[0].columns == upload.columns


def test_more_columns_than_a_table_may_have_are_refused_where_they_come():
    content = "".join(f'{{"c{k}": 1}}\n' for k in range(600))
    problem = refused(content, "a.jsonl")
    assert (problem.code, problem.details["line"]) == ("too_many_columns", 501)


def test_half_of_an_emoji_is_refused_in_plain_words():
    problem = refused('{"id": "t1", "text": "cut off tweet \\ud83d"}\n', "a.jsonl")
    assert (problem.code, problem.details["line"]) == ("json_unreadable", 1)
    assert "half of a character" in problem.message
    assert "codec" not in problem.message
    assert rows('{"id": "t2", "text": "\\ud83d\\ude00"}\n', "a.jsonl") == [{"id": "t2", "text": "😀"}]


def test_nan_is_refused_with_what_to_write_instead():
    problem = refused('{"id": 1}\n{"id": NaN}\n', "a.jsonl")
    assert problem.details["line"] == 2
    assert "NaN is not a number in JSON" in problem.message
    assert "null" in problem.message


def test_tasks_of_label_studio_become_rows_of_their_texts():
    tasks = [
        {"id": 7, "data": {"text": "a", "id": "x"}, "annotations": [{"result": []}]},
        {"id": 8, "data": {"text": "b"}},
    ]
    upload, found = table(json.dumps(tasks), "a.json")
    assert found == [
        {"id": 7, "text": "a", "data.id": "x", "annotations": [{"result": []}]},
        {"id": 8, "text": "b"},
    ]
    assert upload.columns == ("id", "text", "data.id", "annotations")
    assert "“data”" in " ".join(upload.notes)


def test_an_object_called_data_beside_other_columns_stays_a_value():
    assert rows('{"id": 1, "data": {"text": "a"}, "genre": "news"}\n{"id": 2}\n', "a.jsonl")[0]["data"] == {"text": "a"}


# What is packed, and what is no table


@pytest.mark.parametrize(("content", "name"), [(CSV, "items.csv"), (JSONL, "items.jsonl"), (LIST, "items.json")])
def test_a_table_may_be_packed(content, name):
    gz, found = table(gzipped(content.encode()), name + ".gz")
    assert found == ROWS
    assert any("gzip" in note for note in gz.notes)
    by_mac: dict[str, str | bytes] = {name: content, "__MACOSX/._" + name: b"\0", "folder/.DS_Store": b"\0"}
    upload, found = table(zipped(**by_mac), name + ".zip")
    assert found == ROWS
    assert f"“{name}” was unpacked from the zip." in upload.notes
    assert table(zipped(**{f"folder/{name}": content.encode("utf-16")}), "a.zip")[1] == ROWS


def test_a_zip_of_several_files_is_refused_with_their_names():
    problem = refused(zipped(**{"a.csv": CSV, "b.png": b"x"}), "a.zip")
    assert (problem.code, problem.details["files"]) == ("zip_not_one_table", ["a.csv", "b.png"])
    assert refused(zipped(), "a.zip").code == "zip_not_one_table"


def test_what_is_unpacked_counts_for_the_limit():
    bomb = b"id,text\n" + b"1,a\n" * 300_000
    for packed in (gzipped(bomb), zipped(**{"a.csv": bomb}), gzipped(b" " * 2**21)):
        problem = refused(packed, "a.csv.gz")
        assert isinstance(problem, TooLarge)
        assert problem.code == "file_too_large"


@pytest.mark.parametrize("pack", [gzipped, lambda content: zipped(**{"a.csv": content})])
def test_what_is_packed_more_densely_than_tables_are_is_refused_while_it_is_unpacked(pack):
    empty_lines = (b" " * 255 + b"\n") * 2**13
    small = pack(b"id,text\n1,a\n" + empty_lines)  # may be packed as densely as it likes
    assert rows(small, "a.csv.gz", max_mb=100) == [{"id": "1", "text": "a"}]
    kind = "gzip" if pack is gzipped else "zip"
    problem = refused(pack(b"id,text\n" + 8 * empty_lines), "a.csv.gz", max_mb=100)
    assert (problem.status, problem.code) == (413, f"{kind}_too_dense")
    assert "more than 200 times as large as its packed form" in str(problem)


CUT_OFF = {
    "gzip cut off": (gzipped(CSV.encode() * 50)[:-20], "gzip_unreadable"),
    "gzip of nothing": (b"\x1f\x8bnothing", "gzip_unreadable"),
    "zip cut off": (zipped(**{"a.csv": CSV})[:60], "zip_unreadable"),
    "zip of nothing": (b"PK\x03\x04nothing", "zip_unreadable"),
    "zip with wrong bytes": (
        zipped(**{"a.csv": CSV})[:40] + b"\xff" * 60 + zipped(**{"a.csv": CSV})[100:],
        "zip_unreadable",
    ),
}


def test_a_damaged_archive_is_refused_in_plain_words(subtests):
    for kind, (content, code) in CUT_OFF.items():
        with subtests.test(kind=kind):
            problem = refused(content)
            assert problem.code == code
            assert "damaged or was cut off" in problem.message


OLE = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    + b"\0" * 22
    + struct.pack("<H", 9)
    + b"\0" * 16
    + struct.pack("<I", 0)
    + b"\0" * 460
)


NO_TABLES = [
    (zipped(**{"[Content_Types].xml": "", "xl/workbook.bin": ""}), "an Excel workbook of another", "excel_workbook"),
    (OLE + "Workbook".encode("utf-16-le"), "an old Excel workbook", "excel_workbook"),
    (OLE + "WordDocument".encode("utf-16-le"), "an old Word document", "not_a_table"),
    (OLE, "a document of Microsoft Office", "not_a_table"),
    (zipped(**{"word/document.xml": ""}), "a Word document", "not_a_table"),
    (zipped(**{"ppt/slides.xml": ""}), "a PowerPoint presentation", "not_a_table"),
    (zipped(mimetype="application/vnd.oasis.opendocument.spreadsheet"), "OpenDocument spreadsheet", "not_a_table"),
    (zipped(mimetype="application/vnd.oasis.opendocument.text"), "an OpenDocument text", "not_a_table"),
    (zipped(**{"Index/Document.iwa": "", "Index/Tables/DataList.iwa": ""}), "Apple Numbers", "not_a_table"),
    (b"PAR1\x15\x04\x15", "a Parquet file", "not_a_table"),
    (b"ARROW1\0\0", "an Arrow or Feather file", "not_a_table"),
    (b"%PDF-1.7\n", "a PDF document", "not_a_table"),
    (b"{\\rtf1\\ansi", "an RTF document", "not_a_table"),
    (b"SQLite format 3\0", "an SQLite database", "not_a_table"),
    (b"\x89PNG\r\n\x1a\n", "an image", "not_a_table"),
    (bz2.compress(b"id"), "a bzip2 archive", "not_a_table"),
    (lzma.compress(b"id"), "an xz archive", "not_a_table"),
    (b"7z\xbc\xaf\x27\x1c\0\4", "a 7-Zip archive", "not_a_table"),
    (gzipped(b"\0" * 257 + b"ustar\0"), "a tar archive", "not_a_table"),
    (gzipped(gzipped(b"id")), "an archive in an archive", "not_a_table"),
    (b"<!DOCTYPE html><html>", "a web page", "not_a_table"),
    ("\ufeff<?xml version='1.0'?>".encode(), "an XML file", "not_a_table"),
]


@pytest.mark.parametrize("name", ["items.csv", "items"])
@pytest.mark.parametrize(("content", "words", "code"), NO_TABLES, ids=[words for _, words, _ in NO_TABLES])
def test_what_is_no_table_is_called_by_its_name(content, words, code, name):
    problem = refused(content, name)
    assert problem.code == code
    assert f"This is {words}" in problem.message or words in problem.message


def test_a_table_whose_header_begins_like_another_kind_is_a_table(subtests):
    for header in ("PAR1,text", "ORCID,text", "BZh,text", "Rar,text", "X,text", "%PDF,text"):
        with subtests.test(header=header):
            assert table(header + "\n1,a\n")[0].columns == tuple(header.split(","))
