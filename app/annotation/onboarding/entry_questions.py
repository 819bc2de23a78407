"""Entry questions, asked once per annotator: a choice among several, a number, or free text.

A researcher writes each on one line. Without choices the answer is free text. A question mark after the name makes the
answer optional. `screen out:` marks the choices and numbers of people who cannot take part. `only if:` names an earlier
question and an answer to it; the question is then asked only of people who gave this answer:

    native_language: What is your native language? | English | German | screen out: another
    age: How old are you? | number from 0 to 120 | screen out: under 18 | screen out: over 65
    dialect: Which dialect do you speak? | only if: native_language = German
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.designs.field_flags import is_blank
from app.designs.number_parsing import parse_strict_decimal
from app.errors import shorten_echo

QUESTION_FIELD_PREFIX = "question-"  # of form field names
QUESTION_LINE_PATTERN = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]{0,39})(?P<open>\?)?:\s+(?P<rest>\S.*)")
NUMBER_PATTERN = re.compile(r"number(?: from (?P<minimum>\S+))?(?: to (?P<maximum>\S+))?")
SCREENED_NUMBERS_PATTERN = re.compile(r"(?P<side>under|over) (?P<limit>\S+)")
SCREENING_PREFIX = "screen out:"
CONDITION_PREFIX = "only if:"
CONDITION_PATTERN = re.compile(r"(?P<question>[A-Za-z][A-Za-z0-9_]{0,39})\s*=\s*(?P<answer>\S.*)")
MAX_NUMBER = 1e9
MAX_QUESTION_CHARACTERS = 500
MAX_ENTRY_ANSWER_CHARACTERS = 500
MAX_QUESTION_CHOICES = 50
MAX_RADIO_CHOICES = 7  # more choices are shown as a drop-down list


class NumberLimits(NamedTuple):
    """Limits of the answer to a question about a number; None where there is no limit.

    Attributes:
        minimum: Least possible answer.
        maximum: Greatest possible answer.
        screened_under: People with a smaller number are screened out.
        screened_over: People with a greater number are screened out.

    """

    minimum: float | None = None
    maximum: float | None = None
    screened_under: float | None = None
    screened_over: float | None = None

    def contains(self, number: float) -> bool:
        """Return whether the number is a possible answer."""
        return not (is_number_below_limit(number, self.minimum) or is_number_above_limit(number, self.maximum))

    def screens_out(self, number: float) -> bool:
        """Return whether people with this number cannot take part."""
        return is_number_below_limit(number, self.screened_under) or is_number_above_limit(number, self.screened_over)


def is_number_below_limit(number: float, limit: float | None) -> bool:
    return limit is not None and number < limit


def is_number_above_limit(number: float, limit: float | None) -> bool:
    return limit is not None and number > limit


class AskingCondition(NamedTuple):
    """A question is asked only of people who answered the question with this name in one of these ways."""

    question: str
    answers: tuple[str, ...]


class EntryQuestion(NamedTuple):
    """Question asked once per annotator.

    Attributes:
        name: Name in files and exports.
        choices: Possible answers; empty for free text and numbers.
        optional: True if the answer may be empty.
        screening_choices: Choices of people who cannot take part.
        number: Limits of the answer if it is a number, else None.
        only_if: When it is asked; None if always.

    """

    name: str
    question: str
    choices: tuple[str, ...]
    optional: bool
    screening_choices: tuple[str, ...] = ()
    number: NumberLimits | None = None
    only_if: AskingCondition | None = None

    @property
    def field_name(self) -> str:
        return QUESTION_FIELD_PREFIX + self.name

    @property
    def condition_field_name(self) -> str:
        """Return the name of the form field on which the question depends; empty if it is asked of everyone."""
        return QUESTION_FIELD_PREFIX + self.only_if.question if self.only_if else ""

    @property
    def has_radio_buttons(self) -> bool:
        return 0 < len(self.choices) <= MAX_RADIO_CHOICES

    @property
    def has_screening_answer(self) -> bool:
        """Return whether some answer screens people out."""
        return bool(self.screening_choices or (self.number and self.number[2:] != (None, None)))

    def is_asked_after(self, answers: Mapping[str, str]) -> bool:
        """Return whether the question is asked of people who gave these answers, by name, to the questions before."""
        return self.only_if is None or answers.get(self.only_if.question) in self.only_if.answers

    def screens_out(self, answer: str) -> bool:
        """Return whether people with this answer cannot take part. An empty answer screens nobody out."""
        if self.number is not None:
            return bool(answer) and self.number.screens_out(float(answer))
        return answer in self.screening_choices


def parse_question_line(line: str) -> EntryQuestion:
    """Return the question that a line defines. Raises ValueError."""
    match = QUESTION_LINE_PATTERN.fullmatch(line.strip())
    if match is None:
        raise ValueError(
            f"“{shorten_echo(line)}” must be a name (letters, digits, _), a colon, a space and the question"
        )
    question, *all_parts = [part.strip() for part in match["rest"].split("|")]
    if is_blank(question) or len(question) > MAX_QUESTION_CHARACTERS:
        raise ValueError(f"{match['name']}: the question needs 1 to {MAX_QUESTION_CHARACTERS} characters")
    condition = parse_condition_or_none(match["name"], [part for part in all_parts if is_condition_part(part)])
    parts = [part for part in all_parts if not is_condition_part(part)]
    asked = EntryQuestion(match["name"], question, (), bool(match["open"]), only_if=condition)
    if parts and NUMBER_PATTERN.fullmatch(parts[0]) and all(map(is_screening_part, parts[1:])):
        return asked._replace(number=parse_number_limits(asked.name, parts))
    return question_with_choices(asked, parts)


def is_screening_part(part: str) -> bool:
    return part.startswith(SCREENING_PREFIX)


def is_condition_part(part: str) -> bool:
    return part.startswith(CONDITION_PREFIX)


def parse_condition_or_none(name: str, parts: Sequence[str]) -> AskingCondition | None:
    """Return the condition that the parts of a question with this name define; None if there are none.

    Raises ValueError.
    """
    if not parts:
        return None
    matches = [CONDITION_PATTERN.fullmatch(part.removeprefix(CONDITION_PREFIX).strip()) for part in parts]
    named_answers = [(match["question"], match["answer"]) for match in matches if match is not None]
    earlier_names = {earlier_name for earlier_name, _ in named_answers}
    if len(named_answers) < len(parts) or len(earlier_names) > 1:
        raise ValueError(f"{name}: write “only if: language = German”, always with the same earlier question")
    return AskingCondition(earlier_names.pop(), tuple(answer for _, answer in named_answers))


def condition_error_or_none(question: EntryQuestion, earlier_questions: Iterable[EntryQuestion]) -> str | None:
    """Return why a question can be asked of nobody after the questions before it; None if it can."""
    if question.only_if is None:
        return None
    choices = {earlier.name: earlier.choices for earlier in earlier_questions if earlier.choices}
    earlier_name, answers = question.only_if
    if earlier_name not in choices:
        return f"{question.name}: no question with choices before it has the name “{shorten_echo(earlier_name)}”"
    unknown = [answer for answer in answers if answer not in choices[earlier_name]]
    if unknown:
        return f"{question.name}: {earlier_name} has no choice “{shorten_echo(unknown[0])}”"
    return None


def question_with_choices(question: EntryQuestion, choice_parts: Sequence[str]) -> EntryQuestion:
    """Return the question with these choices, none for free text. Raises ValueError."""
    choices = [part.removeprefix(SCREENING_PREFIX).strip() for part in choice_parts]
    screening = tuple(choice for choice, part in zip(choices, choice_parts, strict=True) if is_screening_part(part))
    if (
        len(choices) == 1
        or len(choices) > MAX_QUESTION_CHOICES
        or any(is_blank(choice) or len(choice) > MAX_ENTRY_ANSWER_CHARACTERS for choice in choices)
    ):
        raise ValueError(f"{question.name}: give 2 to {MAX_QUESTION_CHOICES} choices, or none for free text")
    if len(set(choices)) < len(choices):
        raise ValueError(f"{question.name}: give each choice only once")
    if choices and len(screening) == len(choices):
        raise ValueError(f"{question.name}: at least one choice must let people take part")
    return question._replace(choices=tuple(choices), screening_choices=screening)


def parse_number_limits(name: str, parts: Sequence[str]) -> NumberLimits:
    """Return the limits that the parts of a question about a number define. Raises ValueError."""
    limits: dict[str, str | None] = {}
    if match := NUMBER_PATTERN.fullmatch(parts[0]):
        limits |= match.groupdict()
    for part in parts[1:]:
        match = SCREENED_NUMBERS_PATTERN.fullmatch(part.removeprefix(SCREENING_PREFIX).strip())
        if match is None or f"screened_{match['side']}" in limits:
            raise ValueError(f"{name}: write “screen out: under 18” or “screen out: over 65”, each once at most")
        limits[f"screened_{match['side']}"] = match["limit"]
    try:
        numbers = NumberLimits(**{key: parse_number_limit(limit) for key, limit in limits.items() if limit is not None})
    except ValueError as error:
        raise ValueError(f"{name}: “{shorten_echo(str(error))}” is no number from -1e9 to 1e9") from None
    least = max(limit for limit in (-MAX_NUMBER, numbers.minimum, numbers.screened_under) if limit is not None)
    greatest = min(limit for limit in (MAX_NUMBER, numbers.maximum, numbers.screened_over) if limit is not None)
    if least > greatest:
        raise ValueError(f"{name}: at least one number must let people take part")
    return numbers


def parse_number_limit(limit_text: str) -> float:
    """Return a limit that a researcher wrote. Raises ValueError with the text."""
    number = parse_strict_decimal(limit_text)
    if abs(number) > MAX_NUMBER:
        raise ValueError(limit_text)
    return number


def parse_only_questions_with_choices(lines: Sequence[str]) -> list[EntryQuestion]:
    """Return the questions whose answers form groups of annotators. Free text is left out: it may identify people."""
    return [question for question in parse_question_lines(lines) if question.choices]


def parse_question_lines(lines: Sequence[str]) -> list[EntryQuestion]:
    """Return the questions that the lines define.

    Raises ValueError, also if two have the same name, or if one depends on what is no earlier question.
    """
    questions = [parse_question_line(line) for line in lines]
    names = [question.name.casefold() for question in questions]
    if len(set(names)) < len(names):
        raise ValueError("each question needs a different name")
    for place, question in enumerate(questions):
        if error := condition_error_or_none(question, questions[:place]):
            raise ValueError(error)
    return questions


def format_question_line(question: EntryQuestion) -> str:
    """Return the line that defines a question; `parse_question_line` reads it back."""
    mark = "?" if question.optional else ""
    parts = format_number_parts(question.number) if question.number else format_choice_parts(question)
    return f"{question.name}{mark}: {' | '.join((question.question, *parts, *format_condition_parts(question)))}"


def format_choice_parts(question: EntryQuestion) -> list[str]:
    return [
        f"{SCREENING_PREFIX} {choice}" if choice in question.screening_choices else choice
        for choice in question.choices
    ]


def format_condition_parts(question: EntryQuestion) -> list[str]:
    """Return the parts of a line that say when a question is asked."""
    if question.only_if is None:
        return []
    return [f"{CONDITION_PREFIX} {question.only_if.question} = {answer}" for answer in question.only_if.answers]


def format_number_parts(number: NumberLimits) -> list[str]:
    """Return the parts of a line that define the limits of a number."""
    minimum = "" if number.minimum is None else f" from {format_number(number.minimum)}"
    maximum = "" if number.maximum is None else f" to {format_number(number.maximum)}"
    screened = {"under": number.screened_under, "over": number.screened_over}
    return [f"number{minimum}{maximum}"] + [
        f"{SCREENING_PREFIX} {side} {format_number(limit)}" for side, limit in screened.items() if limit is not None
    ]


def format_number(number: float) -> str:
    """Return a number without superfluous digits: 18, 2.5."""
    return f"{number:.15g}"


def error_by_wrong_question_line(text: str) -> dict[str, str]:
    """Return the error of each wrong line of a text, by the line; a repeated name is an error of the later line."""
    return {line: error for line, error in iterate_question_lines_with_error(text.splitlines()) if error is not None}


def iterate_question_lines_with_error(lines: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each line that is not blank, with its error, or None if it defines a question."""
    earlier_questions: list[EntryQuestion] = []
    for line in filter(None, map(str.strip, lines)):
        try:
            question = parse_question_line(line)
        except ValueError as error:
            yield line, str(error)
            continue
        if any(question.name.casefold() == earlier.name.casefold() for earlier in earlier_questions):
            yield line, f"{question.name}: another question has this name already"
        else:
            yield line, condition_error_or_none(question, earlier_questions)
        earlier_questions.append(question)
