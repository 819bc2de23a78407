"""YAML as people write settings in it: texts, lists and names, each with its line. What else YAML can do is refused.

Whoever knows what is wanted reads the texts. So `no` is a label where a label is asked for and a switch that is off
where a switch is, and `12:30` or `1_0` is never another number in another version of YAML. Where nobody knows, in rows
of data, a plain word is what it is in JSON.
"""

import codecs
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import yaml

from app.errors import Invalid, TooLarge, shortened

MEDIA_TYPE = "application/yaml"
LARGEST = 2 * 2**20  # bytes: tables of data have files of their own
MOST_LEVELS = 20  # of lists and names within each other
NULLS = ("null", "Null", "NULL", "~")
JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
JSON_WORDS = {"true": True, "false": False}
NOTHING = "Nothing was created."

Place = tuple[str | int, ...]


class Mistake(NamedTuple):
    """What is wrong at a line of a file; `field` is the name of a setting, with dots."""

    line: int
    field: str
    message: str


@dataclass
class Document:
    """What a file says. lines: of every name and every element of a list. mistakes: those beside which the rest can be
    read.
    """

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Place, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def line_of(self, place: Place) -> int:
        """Of what stands there, or of what it should stand in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read(content: bytes, *, data: Collection[str] = ()) -> Document:
    """The one document in a file. Under the names in `data` a plain word is read as in JSON, elsewhere as a text.

    A name with nothing behind it counts as not there, `null` and `~` are None.
    Raises `TooLarge` (`file_too_large`) and `Invalid`: `file_empty`, `not_utf8`, `yaml_unreadable`.
    """
    if len(content) > LARGEST:
        raise TooLarge(
            f"A campaign file has at most {LARGEST // 2**20} MB. {NOTHING} Put the items into a table beside it.",
            code="file_too_large",
        )
    try:
        return Reader(decoded(content), data).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        refuse(mark.line + 1 if mark else 1, in_words(error, content))
    except yaml.reader.ReaderError as error:
        refuse(content[: error.position].count(b"\n") + 1, "there is a character that no text file has.")


def decoded(content: bytes) -> str:
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Invalid(
            f"Line {line}: this is not UTF-8 text. Save the file as UTF-8 and try again. {NOTHING}",
            code="not_utf8",
            line=line,
        ) from None
    if not text.strip():
        raise Invalid(f"This file is empty. {NOTHING}", code="file_empty")
    return text


def refuse(line: int, problem: str) -> NoReturn:
    raise Invalid(f"Line {line}: {problem} {NOTHING}", code="yaml_unreadable", line=line)


def in_words(error: yaml.MarkedYAMLError, content: bytes) -> str:
    """What keeps the parser from going on."""
    if error.problem_mark:
        lines = content.splitlines()
        line = lines[error.problem_mark.line] if error.problem_mark.line < len(lines) else b""
        if b"\t" in line[: len(line) - len(line.lstrip())]:
            return "a tab stands at its beginning. YAML is indented with spaces."
    return (
        f"this is not YAML ({error.problem or 'unreadable'}). Does a text with “: ” or “#” in it lack quotation marks?"
    )


class Absent:
    """What stands behind a name that nothing stands behind."""


ABSENT = Absent()


class Reader:
    """One pass over the events of a file."""

    def __init__(self, text: str, data: Collection[str]) -> None:
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self.data = data
        self.read = Document()

    def document(self) -> Document:
        next(self.events)  # the stream begins
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise Invalid(f"This file has nothing but comments. {NOTHING}", code="file_empty")
        if not isinstance(event := next(self.events), yaml.MappingStartEvent):
            refuse(line_at(event), "here should be names of settings, each with a colon and a value.")
        self.read.values = self.value(event, ())
        next(self.events)  # the document ends
        if not isinstance(event := next(self.events), yaml.StreamEndEvent):
            refuse(line_at(event), "a second document begins here. Put each campaign into a file of its own.")
        return self.read

    def value(self, event: yaml.Event, place: Place) -> Any:
        self.check(event, place)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, place)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(place)
        return [None if it is ABSENT else it for it in self.elements(place)]

    def check(self, event: yaml.Event, place: Place) -> None:
        """Refuse what no setting needs and what can do harm."""
        line = line_at(event)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            refuse(line, "names for parts of a file (& and *) are not taken. Write out what is meant.")
        if (tag := getattr(event, "tag", None)) is not None:
            refuse(
                line, f"the tag “{shortened(tag)}” is not taken. If a text begins with !, put it into quotation marks."
            )
        if len(place) > MOST_LEVELS:
            refuse(line, f"more than {MOST_LEVELS} lists and names stand within each other.")

    def mapping(self, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            self.check(event, place)
            line = line_at(event)
            if not isinstance(event, yaml.ScalarEvent):
                refuse(line, "a name must be a word.")
            here = (*place, event.value)
            first = self.read.lines.setdefault(here, line)
            value = self.value(next(self.events), here)
            if event.value in values:
                words = f"This stands here twice, the first time on line {first}."
                self.read.mistakes.append(Mistake(line, dotted(here), words))
            elif value is not ABSENT:
                values[event.value] = value
        return values

    def elements(self, place: Place) -> Iterator[Any]:
        number = 0
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            here = (*place, number)
            self.read.lines[here] = line_at(event)
            yield self.value(event, here)
            number += 1

    def scalar(self, event: yaml.ScalarEvent, place: Place) -> Any:
        if event.style:  # quoted, or a block of text
            return event.value
        if place[0] in self.data:
            return as_in_json(event.value)
        return None if event.value in NULLS else event.value or ABSENT


def line_at(event: yaml.Event) -> int:
    """Where it begins, 1 for the first."""
    return event.start_mark.line + 1 if event.start_mark else 1


def as_in_json(word: str) -> Any:
    """A plain word of a row of data: a number, true, false or null as JSON writes them, else a text."""
    if word in JSON_WORDS:
        return JSON_WORDS[word]
    if not word or word in NULLS:
        return None
    try:
        return json.loads(word) if JSON_NUMBER.fullmatch(word) else word
    except ValueError:  # more digits than Python reads
        return word


def dotted(place: Place) -> str:
    """`design_settings.labels`."""
    return ".".join(shortened(str(part)) for part in place)


# The way back


class Writer(yaml.CSafeDumper):
    """Texts that any YAML reads as texts, and no names for parts."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def text_node(writer: Writer, text: str) -> yaml.ScalarNode:
    style = None
    if not text.replace("\n", "").isprintable():
        style = '"'  # what editors do not show, and other ends of lines
    elif "\n" in text:
        style = "|"
    elif as_in_json(text) is not text:
        style = "'"
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style)


Writer.add_representer(str, text_node)


def written(values: Any) -> str:
    """Plain values as YAML, one name a line, in their order."""
    return yaml.dump(values, Dumper=Writer, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=None)
