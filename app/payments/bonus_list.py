"""A list of bonuses as text: a line for each with who, the amount and the reason. Pure."""

import csv
import io
from dataclasses import dataclass

from app.errors import Invalid, pluralize, shorten_echo
from app.payments.money import parse_amount_or_refuse
from app.text.spreadsheets import unprotect_spreadsheet_cell

MAX_BONUSES_PER_LIST = 10_000
MAX_PAYMENT_REASON_CHARACTERS = 500
HEADER_CELLS = ("id", "annotator", "name", "submission", "participant")
# A comma, quote or line break in an id would change the list that the platform reads.
CHARACTERS_OUTSIDE_IDS = {",": "a comma", '"': "a quote", "'": "a quote", ";": "a semicolon"}
MAX_RECIPIENT_CHARACTERS = 200


@dataclass(frozen=True)
class BonusLine:
    """A bonus for one person: a name such as A7, or an id of the platform. `amount` is in hundredths."""

    recipient: str
    amount: int
    reason: str


def parse_bonus_list_or_refuse(text: str) -> list[BonusLine]:
    """Return the bonuses of a list with lines of id, amount and reason; a first line of titles is skipped.

    Raises:
        Invalid: `bonus_line_unreadable`, `recipient_unreadable`, `amount_unreadable`, `bonuses_missing`,
            `too_many_bonuses`, and those of `valid_bonus_line_or_refuse`.

    """
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as problem:
        raise Invalid(
            f"The list cannot be read ({problem}). Nothing was stored.", code="bonus_line_unreadable"
        ) from None
    if rows and rows[0][0].strip().lower() in HEADER_CELLS:
        rows = rows[1:]
    if not rows:
        raise Invalid("Enter a bonus. Nothing was stored.", code="bonuses_missing")
    refuse_too_many_bonuses(len(rows))
    return [parse_bonus_row_or_refuse(row, number) for number, row in enumerate(rows, 1)]


def parse_bonus_row_or_refuse(row: list[str], number: int) -> BonusLine:
    if not 2 <= len(row) <= 3:
        raise Invalid(
            f"Bonus {number} has {pluralize(len(row), 'part')}: “{shorten_echo(','.join(row))}”. Each line has an "
            "id, an amount such as 4.25 and, optionally, a reason, with commas between them. Put a reason with a comma "
            "in quotes. Nothing was stored.",
            code="bonus_line_unreadable",
            bonus=number,
        )
    amount = parse_amount_or_refuse(row[1], where=f"In bonus {number},")
    reason = unprotect_spreadsheet_cell(row[2]).strip() if len(row) == 3 else ""
    return valid_bonus_line_or_refuse(BonusLine(unprotect_spreadsheet_cell(row[0].strip()), amount, reason), number)


def valid_bonus_line_or_refuse(line: BonusLine, number: int) -> BonusLine:
    """Return the line. Raises `Invalid` (`recipient_unreadable`, `payment_reason_long`)."""
    if problem := problem_text_of_recipient_or_none(line.recipient):
        raise Invalid(
            f"The id “{shorten_echo(line.recipient)}” of bonus {number} cannot be used: it {problem}. Nothing was "
            "stored.",
            code="recipient_unreadable",
            bonus=number,
        )
    if len(line.reason) > MAX_PAYMENT_REASON_CHARACTERS or not line.reason.isprintable():
        raise Invalid(
            f"The reason of bonus {number} must be one line of at most {MAX_PAYMENT_REASON_CHARACTERS} characters. "
            "Nothing was stored.",
            code="payment_reason_long",
            bonus=number,
        )
    return line


def problem_text_of_recipient_or_none(recipient: str) -> str | None:
    """Return why this is no name or id, as the end of a sentence; None if it can be one."""
    if not recipient.strip():
        return "is empty"
    if len(recipient) > MAX_RECIPIENT_CHARACTERS:
        return f"has more than {MAX_RECIPIENT_CHARACTERS} characters"
    for character in recipient:
        if character in CHARACTERS_OUTSIDE_IDS or character.isspace():
            return f"has {CHARACTERS_OUTSIDE_IDS.get(character, 'a blank')}, which no id of the platform has"
        if not character.isprintable():
            return f"has an invisible character, U+{ord(character):04X}, which no id of the platform has"
    return None


def refuse_too_many_bonuses(count: int) -> None:
    if count > MAX_BONUSES_PER_LIST:
        raise Invalid(
            f"A list has at most {MAX_BONUSES_PER_LIST:,} bonuses, but this one has {count:,}. Nothing was stored.",
            code="too_many_bonuses",
        )
