"""Catalogues of translations, `LANGUAGE.po` in this folder, keyed by the English words.

Messages are written in English in the code: in templates as `_("…")`, `{% trans %}…{% endtrans %}` or `ngettext(…)`, in
Python as `message_marked_for_translation("…")` or `Message("…")`, in scripts as `words("…")`. `make words` collects
them; a test fails if a catalogue lacks one.
"""

import re
from collections.abc import Collection
from functools import cache, lru_cache
from gettext import NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Self

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal, get_currency_precision
from babel.support import Translations

CATALOGUE_FOLDER = Path(__file__).parent
ENGLISH = "en"
# Code, as in HTML's `lang` -> name in the language itself.
LANGUAGES = {
    ENGLISH: "English",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "ja": "日本語",
    "zh": "中文",
    "ar": "العربية",
}
MONEY_TOLERANCE = 1e-6  # an amount in money that is a multiple of a rounded pay of a task differs by less
MAX_MONEY_DECIMALS = 4  # of the pay of a task that follows from the reward of a person
BROWSER_LANGUAGE = "browser"  # setting of a campaign: the language that each annotator's browser asks for
MAX_ACCEPT_LANGUAGE_CHARACTERS = 500  # the rest of Accept-Language is ignored
ACCEPTED_LANGUAGE_PATTERN = re.compile(
    r"\s*([A-Za-z]{2,3})(?:-[A-Za-z0-9-]+)?\s*(?:;\s*q\s*=\s*(0(?:\.\d+)?|1(?:\.0+)?)\s*)?"
)


class Message(str):
    """An English sentence that can be translated, made of a pattern and values: `Message("%(n)d left", n=3)`."""

    __slots__ = ("pattern", "values")
    pattern: str
    values: dict[str, object]

    def __new__(cls, pattern: str, **values: object) -> Self:
        """Make a message from a pattern for `%` and its values."""
        message = super().__new__(cls, pattern % values)
        message.pattern, message.values = pattern, values
        return message


def message_marked_for_translation(message: str) -> str:
    """Return the message unchanged; `make words` collects it for the catalogues."""
    return message


@cache
def text_direction(language: str) -> str:
    """Return `ltr` or `rtl`, for HTML's `dir`."""
    return Locale(language).text_direction


@lru_cache(maxsize=1024)
def negotiate_language(accept_language: str) -> str:
    """Return the supported language that `Accept-Language` prefers; English if it accepts none."""
    quality_by_language: dict[str, float] = {}
    for offered in accept_language[:MAX_ACCEPT_LANGUAGE_CHARACTERS].split(","):
        if (match := ACCEPTED_LANGUAGE_PATTERN.fullmatch(offered)) and (language := match[1].lower()) in LANGUAGES:
            quality_by_language.setdefault(language, float(match[2] or 1))
    best = max(quality_by_language, key=quality_by_language.__getitem__, default=ENGLISH)  # the first of equals
    return best if quality_by_language.get(best) else ENGLISH


def read_messages_of_language(language: str) -> Catalog:
    """Return all messages of a language with their locations. Raises `PoFileError` for an invalid file."""
    with (CATALOGUE_FOLDER / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


@cache
def compile_translations_of_language(language: str) -> NullTranslations:
    """Return the translations into a language; English returns the messages themselves."""
    if language == ENGLISH:
        return NullTranslations()
    file = BytesIO()
    write_mo(file, read_messages_of_language(language))
    file.seek(0)
    return Translations(file)


def translate(language: str, message: str) -> str:
    """Return a `Message` or a marked text in a language."""
    if isinstance(message, Message):
        return compile_translations_of_language(language).gettext(message.pattern) % message.values
    # For an empty text, gettext would return the catalogue's header.
    return compile_translations_of_language(language).gettext(message) if message else ""


def translate_plural(language: str, singular: str, plural: str, count: int, **values: object) -> str:
    """Return the form of a message for a number, in a language.

    Example: `translate_plural("de", "%(num)s set", "%(num)s sets", 3)`.
    """
    return compile_translations_of_language(language).ngettext(singular, plural, count) % {
        "num": format_localized_number(count, language),
        **values,
    }


@lru_cache(maxsize=4096)  # each HIT shows several numbers, and Babel is slow
def format_localized_number(number: float, language: str) -> str:
    """Return a number with a language's separators, with at most two decimals."""
    return format_decimal(number, "#,##0.##", locale=language, numbering_system="latn")


@lru_cache(maxsize=4096)
def format_money(amount: float, currency: str, language: str, *, exact: bool = False) -> str:
    """Return an amount of money as a language writes it, such as `4,20 €`.

    An exact amount has up to four decimals if it is not whole in the currency's smallest unit, such as `0,125 €`. One
    that has more decimals, such as a third of a reward, is rounded to that unit unless it would be nothing.
    """
    rounded, whole = round(amount, MAX_MONEY_DECIMALS), round(amount, get_currency_precision(currency))
    has_more_decimals = abs(rounded - amount) > MONEY_TOLERANCE
    is_whole = not exact or rounded == whole or (has_more_decimals and whole != 0)
    rounded = amount if not exact else whole if is_whole else rounded
    return format_currency(rounded, currency, locale=language, numbering_system="latn", decimal_quantization=is_whole)


def script_translation_by_english_words(language: str, script_paths: Collection[str]) -> dict[str, str]:
    """Return the translations of the messages in scripts, by the English words; empty for English.

    Args:
        language: Code of the language.
        script_paths: Paths such as `static/hit.js`.

    """
    if language == ENGLISH:
        return {}
    return {
        str(message.id): str(message.string)
        for message in read_messages_of_language(language)
        if any(place in script_paths for place, _ in message.locations)
    }
