"""JSON values: checked before they become rows, and read one after another from a text of any length."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from app.uploads.rows import MAX_ROW_CHARACTERS, MAX_UPLOADED_CELL_CHARACTERS, raise_upload_refusal_at_line

MAX_NESTING_LEVELS = 50  # some readers of exports allow no more than a few hundred levels
JSON_WHITE_SPACE = " \t\r\n"


class DuplicateNameError(ValueError):
    """An object has two values of one name."""


class NonFiniteNumberError(ValueError):
    """NaN or infinity."""


def dict_of_pairs_refusing_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise DuplicateNameError
    return values


def raise_non_finite_number_refusal(name: str) -> NoReturn:
    raise NonFiniteNumberError(name)


STRICT_JSON_DECODER = json.JSONDecoder(
    object_pairs_hook=dict_of_pairs_refusing_duplicates, parse_constant=raise_non_finite_number_refusal
)


def reason_json_is_unreadable(problem: Exception) -> str:
    """Return why a JSON value cannot be read."""
    if isinstance(problem, json.JSONDecodeError):
        return f"this is not JSON ({problem.msg}, character {problem.colno})."
    if isinstance(problem, DuplicateNameError):
        return "this is not one JSON object (a name occurs twice)."
    if isinstance(problem, NonFiniteNumberError):
        return f"{problem} is not a number in JSON. Leave the value out, or write null or a text in quotation marks."
    if isinstance(problem, RecursionError):
        return f"there are more than {MAX_NESTING_LEVELS} nested lists and objects."
    return "a number is too long or too large."


def row_from_object_or_refuse(line_number: int, value: Any) -> dict[str, Any]:
    """Return an object that can be a row. Refuses texts that PostgreSQL cannot store.

    Raises `Invalid` (`json_unreadable`, `nul_byte`, `cell_too_long`).
    """
    if not isinstance(value, dict):
        raise_upload_refusal_at_line(
            "json_unreadable",
            line_number,
            f"this is {json_type_with_article(value)}, but every row must be a JSON object.",
        )
    refuse_too_deep_nesting(line_number, value)
    for text in iterate_texts_in_json_value(value):
        if "\0" in text:
            raise_upload_refusal_at_line("nul_byte", line_number, "there is a NUL character in a value.")
        if len(text) > MAX_UPLOADED_CELL_CHARACTERS:
            raise_upload_refusal_at_line(
                "cell_too_long", line_number, f"a value has more than {MAX_UPLOADED_CELL_CHARACTERS:,} characters."
            )
        if not text.isascii():
            refuse_lone_surrogates(line_number, text)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as problem:
        raise_upload_refusal_at_line("json_unreadable", line_number, reason_json_is_unreadable(problem))
    return value


def json_type_with_article(value: Any) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def refuse_too_deep_nesting(line_number: int, value: Any, levels_left: int = MAX_NESTING_LEVELS) -> None:
    if isinstance(value, dict | list):
        if levels_left == 0:
            raise_upload_refusal_at_line("json_unreadable", line_number, reason_json_is_unreadable(RecursionError()))
        for inner in value.values() if isinstance(value, dict) else value:
            refuse_too_deep_nesting(line_number, inner, levels_left - 1)


def refuse_lone_surrogates(line_number: int, text: str) -> None:
    """Refuse half of a character, for example from a text that was cut within an emoji: no file can hold it."""
    for character in text:
        if "\ud800" <= character <= "\udfff":
            raise_upload_refusal_at_line(
                "json_unreadable",
                line_number,
                f"a text has half of a character (\\u{ord(character):04x}), perhaps because it was cut inside an "
                "emoji. Fix the text, or leave it out.",
            )


def iterate_texts_in_json_value(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, including names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from iterate_texts_in_json_value(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iterate_texts_in_json_value(inner)


class JsonValueReader:
    """A text that is read value by value; keeps only the part that it needs.

    Attributes:
        line: The line of the next character.

    """

    def __init__(self, chunks: Iterator[str]) -> None:
        self.remaining_chunks, self.buffer, self.position, self.line = chunks, "", 0, 1

    def read_next_chunk_if_any(self) -> bool:
        """Read the next chunk; return False at the end."""
        chunk = next(self.remaining_chunks, "")
        self.buffer, self.position = self.buffer[self.position :] + chunk, 0
        return bool(chunk)

    def move_to_position_in_buffer(self, position: int) -> None:
        self.line += self.buffer.count("\n", self.position, position)
        self.position = position

    def skip_white_space_and_peek(self) -> str:
        """Return the next character that is no white space, without consuming it; empty at the end."""
        while True:
            rest = self.buffer[self.position : self.position + 2**12]
            if stripped := rest.lstrip(JSON_WHITE_SPACE):
                self.move_to_position_in_buffer(self.position + len(rest) - len(stripped))
                return stripped[0]
            if rest:
                self.move_to_position_in_buffer(self.position + len(rest))
            elif not self.read_next_chunk_if_any():
                return ""

    def is_followed_by(self, characters: str) -> bool:
        """Return whether these characters come next, perhaps with white space between them."""
        while len(self.buffer) - self.position < 2**12 and self.read_next_chunk_if_any():
            pass
        return "".join(self.buffer[self.position : self.position + 2**12].split()).startswith(characters)

    def skip_character_if_next(self, character: str) -> bool:
        """Skip a character if it comes next."""
        if self.skip_white_space_and_peek() != character:
            return False
        self.move_to_position_in_buffer(self.position + 1)
        return True

    def skip_required_character_or_refuse(self, character: str, previous_part: str) -> None:
        """Skip a character. Raises `Invalid` (`json_unreadable`) if another one comes next."""
        if not self.skip_character_if_next(character):
            next_character = self.skip_white_space_and_peek()
            subject = f"“{next_character}” follows" if next_character else "the file ends after"
            message = (
                f"{subject} {previous_part}, where “{character}” should be."
                if next_character
                else f"the file ends after {previous_part}."
            )
            raise_upload_refusal_at_line("json_unreadable", self.line, message)

    def read_value(self) -> Any:
        """Return the next value, at most as long as a row. Raises `Invalid` (`json_unreadable`, `row_too_long`)."""
        self.skip_white_space_and_peek()
        while True:
            try:
                value, end = STRICT_JSON_DECODER.raw_decode(self.buffer, self.position)
            except json.JSONDecodeError as problem:
                if self.double_buffered_part_and_tell_if_possible():
                    continue
                line = self.line + self.buffer.count("\n", self.position, problem.pos)
                raise_upload_refusal_at_line("json_unreadable", line, reason_json_is_unreadable(problem))
            except (ValueError, RecursionError) as problem:
                raise_upload_refusal_at_line("json_unreadable", self.line, reason_json_is_unreadable(problem))
            if (
                end == len(self.buffer)
                and not isinstance(value, dict | list | str)
                and self.double_buffered_part_and_tell_if_possible()
            ):
                continue  # a number may continue in the next chunk
            self.move_to_position_in_buffer(end)
            return value

    def double_buffered_part_and_tell_if_possible(self) -> bool:
        """Double the part of the value in memory; return False at the end. Raises `Invalid` (`row_too_long`)."""
        buffered_characters = len(self.buffer) - self.position
        if buffered_characters > MAX_ROW_CHARACTERS:
            raise_upload_refusal_at_line(
                "row_too_long", self.line, f"this value has more than {MAX_ROW_CHARACTERS:,} characters."
            )
        has_read_more = False
        while len(self.buffer) - self.position < 2 * buffered_characters + 1 and self.read_next_chunk_if_any():
            has_read_more = True
        return has_read_more
