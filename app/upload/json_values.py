"""Values in JSON, checked before they are rows, and read out of a text of any length one after another."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from app.upload.rows import LONGEST_CELL, LONGEST_ROW, refuse

MOST_LEVELS = 50  # of lists and objects within each other; some readers of an export go no deeper than a few hundred
SPACE = " \t\r\n"


class TwiceNamedError(ValueError):
    """An object has two values of one name."""


class NoNumberError(ValueError):
    """NaN or infinity."""


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise TwiceNamedError
    return values


def no_such_number(name: str) -> NoReturn:
    raise NoNumberError(name)


DECODER = json.JSONDecoder(object_pairs_hook=without_doubles, parse_constant=no_such_number)


def in_words(problem: Exception) -> str:
    """Why a JSON value cannot be read."""
    if isinstance(problem, json.JSONDecodeError):
        return f"this is not JSON ({problem.msg}, character {problem.colno})."
    if isinstance(problem, TwiceNamedError):
        return "this is not one JSON object (a name stands there twice)."
    if isinstance(problem, NoNumberError):
        return f"{problem} is not a number in JSON. Leave the value out, or write null or a text in quotation marks."
    if isinstance(problem, RecursionError):
        return f"there are more than {MOST_LEVELS} lists and objects within each other."
    return "a number is too long or too large."


def check_object(line: int, value: Any) -> dict[str, Any]:
    """An object that can be a row. What PostgreSQL cannot keep as text is refused.

    Raises `Invalid` (`json_unreadable`, `nul_byte`, `cell_too_long`).
    """
    if not isinstance(value, dict):
        refuse("json_unreadable", line, f"this is {named_kind(value)}, and every row is a JSON object.")
    check_levels(line, value)
    for text in strings(value):
        if "\0" in text:
            refuse("nul_byte", line, "there is a NUL character in a value.")
        if len(text) > LONGEST_CELL:
            refuse("cell_too_long", line, f"a value has more than {LONGEST_CELL:,} characters.")
        if not text.isascii():
            check_characters(line, text)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as problem:
        refuse("json_unreadable", line, in_words(problem))
    return value


def named_kind(value: Any) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def check_levels(line: int, value: Any, left: int = MOST_LEVELS) -> None:
    if isinstance(value, dict | list):
        if left == 0:
            refuse("json_unreadable", line, in_words(RecursionError()))
        for inner in value.values() if isinstance(value, dict) else value:
            check_levels(line, inner, left - 1)


def check_characters(line: int, text: str) -> None:
    """Refuse half of a character, as where a text was cut within an emoji: no file can hold it."""
    for character in text:
        if "\ud800" <= character <= "\udfff":
            refuse(
                "json_unreadable",
                line,
                f"a text has half of a character (\\u{ord(character):04x}), as where it was cut within an emoji. Mend "
                "the text, or leave it out.",
            )


def strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


class JsonText:
    """A text that is read value by value; only the part that is needed is kept.

    Attributes:
        line: The line of the next character.

    """

    def __init__(self, chunks: Iterator[str]) -> None:
        self.chunks, self.buffer, self.place, self.line = chunks, "", 0, 1

    def read_on(self) -> bool:
        """Read on; False at the end."""
        chunk = next(self.chunks, "")
        self.buffer, self.place = self.buffer[self.place :] + chunk, 0
        return bool(chunk)

    def advance(self, place: int) -> None:
        self.line += self.buffer.count("\n", self.place, place)
        self.place = place

    def peek(self) -> str:
        """The next character that is no white space, which stays; empty at the end."""
        while True:
            rest = self.buffer[self.place : self.place + 2**12]
            if kept := rest.lstrip(SPACE):
                self.advance(self.place + len(rest) - len(kept))
                return kept[0]
            if rest:
                self.advance(self.place + len(rest))
            elif not self.read_on():
                return ""

    def begins(self, signs: str) -> bool:
        """Whether these signs come next, with white space between them or not."""
        while len(self.buffer) - self.place < 2**12 and self.read_on():
            pass
        return "".join(self.buffer[self.place : self.place + 2**12].split()).startswith(signs)

    def take(self, character: str) -> bool:
        """Go over a character if it comes next."""
        if self.peek() != character:
            return False
        self.advance(self.place + 1)
        return True

    def expect(self, character: str, after: str) -> None:
        """Raises `Invalid` (`json_unreadable`)."""
        if not self.take(character):
            found = self.peek()
            what = f"“{found}” follows" if found else "the file ends after"
            words = f"{what} {after}, where “{character}” should." if found else f"the file ends after {after}."
            refuse("json_unreadable", self.line, words)

    def value(self) -> Any:
        """The next value, which may have as many characters as a row. Raises `Invalid` (`json_unreadable`,
        `row_too_long`).
        """
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self.buffer, self.place)
            except json.JSONDecodeError as problem:
                if self.longer():
                    continue
                line = self.line + self.buffer.count("\n", self.place, problem.pos)
                refuse("json_unreadable", line, in_words(problem))
            except (ValueError, RecursionError) as problem:
                refuse("json_unreadable", self.line, in_words(problem))
            if end == len(self.buffer) and not isinstance(value, dict | list | str) and self.longer():
                continue  # a number may go on
            self.advance(end)
            return value

    def longer(self) -> bool:
        """Read on within a value, each time twice as much; False at the end. Raises `Invalid` (`row_too_long`)."""
        had = len(self.buffer) - self.place
        if had > LONGEST_ROW:
            refuse("row_too_long", self.line, f"this value has more than {LONGEST_ROW:,} characters.")
        went_on = False
        while len(self.buffer) - self.place < 2 * had + 1 and self.read_on():
            went_on = True
        return went_on
