"""YAML as people write settings in it: texts, lists and names, each with its line. Other features of YAML are refused.

All plain words are read as texts, and the setting that gets a text interprets it. So `no` is a label for a setting that
wants a label and False for a switch, and `12:30` or `1_0` do not become other numbers in another version of YAML. Only
in rows of data, which have no settings, are plain words read as in JSON.

It reads PyYAML's events, not its nodes: nodes do not tell what had an anchor or a tag, the composer crashes on hundreds
of thousands of levels, and the nodes of a large file keep Python's garbage collector busy for seconds.
"""

import codecs
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import yaml

from app.errors import Invalid, TooLarge, shorten_echo

YAML_MEDIA_TYPE = "application/yaml"
MAX_CAMPAIGN_FILE_BYTES = 2 * 2**20  # large tables have files of their own
MAX_YAML_NESTING_LEVELS = 20
YAML_NULL_WORDS = ("null", "Null", "NULL", "~")
JSON_NUMBER_PATTERN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
JSON_WORDS = {"true": True, "false": False}
NOTHING_CREATED_SENTENCE = "Nothing was created."

YamlPath = tuple[str | int, ...]


class Mistake(NamedTuple):
    """A mistake at a line of a file; `field` is the name of a setting, with dots."""

    line: int
    field: str
    message: str


@dataclass
class YamlDocument:
    """Content of a file, the line of every name and list element, and the mistakes that do not stop the reading."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[YamlPath, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def line_number_of_value_at(self, path: YamlPath) -> int:
        """Return the line of the value at a path, or of the nearest list or mapping that should contain it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse_yaml(content: bytes, *, data_names: Collection[str] = ()) -> YamlDocument:
    """Return the one document in a file. Under the names in `data_names` plain words are read as in JSON, else as
    texts.

    A name without a value counts as missing; `null` and `~` are None.

    Raises `TooLarge` (`file_too_large`) and `Invalid`: `file_empty`, `not_utf8`, `yaml_unreadable`.
    """
    if len(content) > MAX_CAMPAIGN_FILE_BYTES:
        raise TooLarge(
            f"A campaign file has at most {MAX_CAMPAIGN_FILE_BYTES // 2**20} MB. {NOTHING_CREATED_SENTENCE} Put the "
            "items into a table next to it.",
            code="file_too_large",
        )
    try:
        return YamlReader(decode_yaml_text_or_refuse(content), data_names).read_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise_yaml_refusal_at_line(mark.line + 1 if mark else 1, yaml_error_cause_clause(error, content))
    except yaml.reader.ReaderError as error:
        raise_yaml_refusal_at_line(
            content[: error.position].count(b"\n") + 1, "it contains a character that is not allowed in text files."
        )


def decode_yaml_text_or_refuse(content: bytes) -> str:
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Invalid(
            f"Line {line}: this is not UTF-8 text. Save the file as UTF-8 and try again. {NOTHING_CREATED_SENTENCE}",
            code="not_utf8",
            line=line,
        ) from None
    if not text.strip():
        raise Invalid(f"This file is empty. {NOTHING_CREATED_SENTENCE}", code="file_empty")
    return text


def raise_yaml_refusal_at_line(line: int, problem: str) -> NoReturn:
    raise Invalid(f"Line {line}: {problem} {NOTHING_CREATED_SENTENCE}", code="yaml_unreadable", line=line)


def yaml_error_cause_clause(error: yaml.MarkedYAMLError, content: bytes) -> str:
    if error.problem_mark:
        lines = content.splitlines()
        line = lines[error.problem_mark.line] if error.problem_mark.line < len(lines) else b""
        if b"\t" in line[: len(line) - len(line.lstrip())]:
            return "it begins with a tab. YAML is indented with spaces."
    return (
        f"this is not YAML ({error.problem or 'unreadable'}). Does a text that contains “: ” or “#” need "
        "quotation marks?"
    )


class MissingValue:
    """Sentinel for a YAML key without a value."""


MISSING_VALUE = MissingValue()


class YamlReader:
    """One pass over the events of a file."""

    def __init__(self, text: str, data_names: Collection[str]) -> None:
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self.data_names = data_names
        self.parsed = YamlDocument()

    def read_document(self) -> YamlDocument:
        next(self.events)  # stream start
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise Invalid(f"This file contains only comments. {NOTHING_CREATED_SENTENCE}", code="file_empty")
        if not isinstance(event := next(self.events), yaml.MappingStartEvent):
            raise_yaml_refusal_at_line(
                line_number_of_event(event), "expected names of settings, each followed by a colon and a value."
            )
        self.parsed.values = self.read_value(event, ())
        next(self.events)  # document end
        if not isinstance(event := next(self.events), yaml.StreamEndEvent):
            raise_yaml_refusal_at_line(
                line_number_of_event(event), "a second document begins here. Put each campaign into a file of its own."
            )
        return self.parsed

    def read_value(self, event: yaml.Event, path: YamlPath) -> Any:
        self.refuse_unsupported(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self.read_scalar(event, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self.read_mapping_as_dict(path)
        return [None if element is MISSING_VALUE else element for element in self.iterate_elements_of_sequence(path)]

    def refuse_unsupported(self, event: yaml.Event, path: YamlPath) -> None:
        """Refuse features that no setting needs and that can do harm."""
        line = line_number_of_event(event)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise_yaml_refusal_at_line(line, "aliases (& and *) are not allowed. Write the value out.")
        if (tag := getattr(event, "tag", None)) is not None:
            raise_yaml_refusal_at_line(
                line,
                f"the tag “{shorten_echo(tag)}” is not allowed. If a text begins with !, put it into quotation marks.",
            )
        if len(path) > MAX_YAML_NESTING_LEVELS:
            raise_yaml_refusal_at_line(line, f"more than {MAX_YAML_NESTING_LEVELS} levels of nested lists and names.")

    def read_mapping_as_dict(self, path: YamlPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            self.refuse_unsupported(event, path)
            line = line_number_of_event(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise_yaml_refusal_at_line(line, "a name must be a word.")
            value_path = (*path, event.value)
            first_line = self.parsed.lines.setdefault(value_path, line)
            value = self.read_value(next(self.events), value_path)
            if event.value in values:
                message = f"This name appears twice, first on line {first_line}."
                self.parsed.mistakes.append(Mistake(line, format_yaml_path(value_path), message))
            elif value is not MISSING_VALUE:
                values[event.value] = value
        return values

    def iterate_elements_of_sequence(self, path: YamlPath) -> Iterator[Any]:
        number = 0
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            element_path = (*path, number)
            self.parsed.lines[element_path] = line_number_of_event(event)
            yield self.read_value(event, element_path)
            number += 1

    def read_scalar(self, event: yaml.ScalarEvent, path: YamlPath) -> Any:
        if event.style:  # quoted, or a block of text
            return event.value
        if path[0] in self.data_names:
            return json_value_of_plain_word(event.value)
        return None if event.value in YAML_NULL_WORDS else event.value or MISSING_VALUE


def line_number_of_event(event: yaml.Event) -> int:
    """Return the first line of an event, from 1."""
    return event.start_mark.line + 1 if event.start_mark else 1


def json_value_of_plain_word(word: str) -> Any:
    """Return the value of a plain word in a row of data: a number, true, false or null as in JSON, else a text."""
    if word in JSON_WORDS:
        return JSON_WORDS[word]
    if not word or word in YAML_NULL_WORDS:
        return None
    try:
        return json.loads(word) if JSON_NUMBER_PATTERN.fullmatch(word) else word
    except ValueError:  # more digits than Python reads
        return word


def format_yaml_path(path: YamlPath) -> str:
    """Return a path as text, for example `design_settings.labels`."""
    return ".".join(shorten_echo(str(part)) for part in path)


# Writing


class YamlWriter(yaml.CSafeDumper):
    """Writes texts that any YAML version reads as texts, without aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def yaml_node_of_text(writer: YamlWriter, text: str) -> yaml.ScalarNode:
    style = None
    if not text.replace("\n", "").isprintable():
        style = '"'  # invisible characters and unusual line ends
    elif "\n" in text:
        style = "|"
    elif json_value_of_plain_word(text) is not text:
        style = "'"
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style)


YamlWriter.add_representer(str, yaml_node_of_text)


def format_yaml(values: Any) -> str:
    """Return plain values as YAML, one name a line, in their order."""
    return yaml.dump(
        values, Dumper=YamlWriter, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=None
    )
