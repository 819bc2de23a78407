"""YAML as far as settings need it; the rest is refused at its line."""

import codecs

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.campaigns.yaml_lines import MAX_CAMPAIGN_FILE_BYTES, MAX_YAML_NESTING_LEVELS, format_yaml, parse_yaml
from app.errors import Invalid, TooLarge

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
ROWS = st.dictionaries(
    TEXTS,
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    min_size=1,
)


def values(text, **how):
    return parse_yaml(text.encode(), **how).values


def refused(content):
    with pytest.raises(Invalid) as refusal:
        parse_yaml(content if isinstance(content, bytes) else content.encode())
    assert "Nothing was created." in refusal.value.message
    return refusal.value.code, refusal.value.details.get("line")


def test_a_plain_word_is_the_text_that_stands_there(subtests):
    for word in ("no", "on", "Yes", "12:30", "1_0", "0x10", "012", "1e3", ".inf", "2026-01-05", "=", "true", "1.50"):
        with subtests.test(word=word):
            assert values(f"label: {word}\n") == {"label": word}


def test_null_is_none_unless_it_is_quoted(subtests):
    for word in ("null", "~", "Null", "NULL"):
        with subtests.test(word=word):
            assert values(f"label: {word}\nother: '{word}'\n") == {"label": None, "other": word}


def test_a_name_with_nothing_behind_it_is_not_there_but_an_empty_text_is():
    assert values('a:\nb: ""\nc: # later\nd: x\n') == {"b": "", "d": "x"}


def test_rows_of_data_are_read_as_in_json():
    row = "{n: 1, f: -2.5e3, yes: true, none: null, empty: , no: no, old: 012, time: 12:30, part: 1_0, quoted: '1'}"
    assert values(f"rows: [{row}]\n", data_names=["rows"])["rows"] == [
        {"n": 1, "f": -2500.0, "yes": True, "none": None, "empty": None, "no": "no", "old": "012"}
        | {"time": "12:30", "part": "1_0", "quoted": "1"}
    ]


def test_blocks_of_text_keep_their_lines():
    assert values("a: |-\n  one\n\n  two\nb: >-\n  one\n  two\n") == {"a": "one\n\ntwo", "b": "one two"}


def test_every_name_and_every_element_has_its_line():
    document = parse_yaml(b"# first\na: 1\nb:\n  c:\n  - x\n  - y\n")
    assert document.lines == {("a",): 2, ("b",): 3, ("b", "c"): 4, ("b", "c", 0): 5, ("b", "c", 1): 6}
    assert document.line_number_of_value_at(("b", "missing")) == 3
    assert document.line_number_of_value_at(("missing",)) == 1


def test_a_name_that_stands_twice_is_a_mistake_and_the_rest_is_read():
    document = parse_yaml(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\nd: 4\n")
    assert document.values == {"a": "1", "b": {"c": "1"}, "d": "4"}
    assert [(mistake.line, mistake.field) for mistake in document.mistakes] == [(4, "b.c"), (5, "a")]
    assert "first on line 1" in document.mistakes[1].message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("a: 1\nb: &x 2\n", 2, id="an anchor"),
        pytest.param("a: 1\nb: *x\n", 2, id="an alias"),
        pytest.param("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", 1, id="a bomb of aliases"),
        pytest.param("<<: &x {a: 1}\n", 1, id="a merge"),
        pytest.param("\na: !!python/object/apply:os.system [x]\n", 2, id="a tag of Python"),
        pytest.param("a: !!int 3\n", 1, id="a tag of YAML"),
        pytest.param("a: ! b\n", 1, id="a tag without a name"),
        pytest.param("&x a: b\n", 1, id="an anchor of a name"),
        pytest.param("a: 1\n---\nb: 2\n", 2, id="two documents"),
        pytest.param("a:\n\tb: 1\n", 2, id="a tab"),
        pytest.param("a: b: c\n", 1, id="a colon in a plain text"),
        pytest.param("a: [1\nb: 2\n", 2, id="a list that does not end"),
        pytest.param("- a\n", 1, id="a list"),
        pytest.param("a\n", 1, id="a text"),
        pytest.param("? [a]\n: b\n", 1, id="a list as a name"),
        pytest.param("a: b\nc: \x07\n", 2, id="a control character"),
        pytest.param("a: " + "[" * (MAX_YAML_NESTING_LEVELS + 1), 1, id="levels"),
        pytest.param("[" * 500_000, 1, id="half a million levels"),
    ],
)
def test_what_no_setting_needs_is_refused_at_its_line(content, line):
    assert refused(content) == ("yaml_unreadable", line)


def test_a_tab_is_called_one():
    with pytest.raises(Invalid, match="Line 2: it begins with a tab"):
        parse_yaml(b"a:\n\tb: 1\n")


def test_an_empty_file_is_refused(subtests):
    for content in ("", " \n", "# only words\n", codecs.BOM_UTF8):
        with subtests.test(content=content):
            assert refused(content)[0] == "file_empty"


def test_a_file_is_utf_8_with_or_without_a_mark():
    assert parse_yaml(codecs.BOM_UTF8 + "a: ü\n".encode()).values == {"a": "ü"}
    assert refused(b"a: 1\nb: \xfc\n") == ("not_utf8", 2)
    assert refused("a: 1\n".encode("utf-16")) == ("not_utf8", 1)


def test_a_large_file_is_refused_before_it_is_read():
    with pytest.raises(TooLarge) as refusal:
        parse_yaml(b"a: 1\n" * (MAX_CAMPAIGN_FILE_BYTES // 5 + 1))
    assert refusal.value.code == "file_too_large"


@given(ROWS)
def test_rows_that_were_written_are_read_again(row):
    assert parse_yaml(format_yaml({"rows": [row]}).encode(), data_names=["rows"]).values == {"rows": [row]}


@given(TEXTS.filter(lambda text: text.strip() == text))
def test_texts_that_were_written_are_texts_to_every_reader(text):
    assert yaml.safe_load(format_yaml({"a": text, "b": [text]})) == {"a": text, "b": [text]}
    assert values(format_yaml({"a": text, "b": [text]})) == {"a": text, "b": [text]}


def test_what_is_written_twice_is_written_out():
    labels = ["a", "b"]
    assert "&" not in format_yaml({"one": labels, "other": labels})
