"""What is said in a language: the catalogues, `LANGUAGE.po` in this folder, keyed by the English words.

A message stands in the code in English: in templates as `_("…")`, `{% trans %}…{% endtrans %}` or `ngettext(…)`, in
Python as `mark("…")` or `Message("…")`, in scripts as `words("…")`. `make words` collects them; a test fails where a
catalogue lacks one.
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
from babel.numbers import format_currency, format_decimal
from babel.support import Translations

CATALOGUE_FOLDER = Path(__file__).parent
ENGLISH = "en"
# By their code, as HTML's `lang` has it: their names in themselves.
LANGUAGES = {
    ENGLISH: "English",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "ja": "日本語",
    "zh": "中文",
    "ar": "العربية",
}
BROWSER_LANGUAGE = "browser"  # instead of a language: the one that each annotator's browser asks for
MAX_ACCEPT_LANGUAGE_CHARACTERS = 500  # characters of Accept-Language that are looked at
ACCEPTED_LANGUAGE_PATTERN = re.compile(
    r"\s*([A-Za-z]{2,3})(?:-[A-Za-z0-9-]+)?\s*(?:;\s*q\s*=\s*(0(?:\.\d+)?|1(?:\.0+)?)\s*)?"
)


class Message(str):
    """A sentence in English that other languages can say too, of a pattern and values: `Message("%(n)d left", n=3)`."""

    __slots__ = ("pattern", "values")
    pattern: str
    values: dict[str, object]

    def __new__(cls, pattern: str, **values: object) -> Self:
        """Of a pattern as `%` fills it in."""
        made = super().__new__(cls, pattern % values)
        made.pattern, made.values = pattern, values
        return made


def mark_message(message: str) -> str:
    """The message itself; what stands in it is collected for the catalogues."""
    return message


@cache
def text_direction(language: str) -> str:
    """`ltr` or `rtl`, as HTML's `dir` has it."""
    return Locale(language).text_direction


@lru_cache(maxsize=1024)
def negotiate_language(accept_language: str) -> str:
    """The language that a browser's `Accept-Language` likes best of ours; English where it likes none."""
    quality_by_language: dict[str, float] = {}
    for offered in accept_language[:MAX_ACCEPT_LANGUAGE_CHARACTERS].split(","):
        if (match := ACCEPTED_LANGUAGE_PATTERN.fullmatch(offered)) and (language := match[1].lower()) in LANGUAGES:
            quality_by_language.setdefault(language, float(match[2] or 1))
    best = max(quality_by_language, key=quality_by_language.__getitem__, default=ENGLISH)  # the first of equals
    return best if quality_by_language.get(best) else ENGLISH


def read_catalogue(language: str) -> Catalog:
    """All messages in a language, with where they are said. Raises `PoFileError` where the file is not one."""
    with (CATALOGUE_FOLDER / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


@cache
def translations_for(language: str) -> NullTranslations:
    """What translates into a language; into English, the messages themselves."""
    if language == ENGLISH:
        return NullTranslations()
    file = BytesIO()
    write_mo(file, read_catalogue(language))
    file.seek(0)
    return Translations(file)


def translate(language: str, message: str) -> str:
    """A message, or one that stands in the code marked, in a language."""
    if isinstance(message, Message):
        return translations_for(language).gettext(message.pattern) % message.values
    return (
        translations_for(language).gettext(message) if message else ""
    )  # of nothing, gettext gives the catalogue's header


def translate_plural(language: str, singular: str, plural: str, count: int, **values: object) -> str:
    """The form of a message that fits a number, its `%(num)s`: `counted("de", "%(num)s set", "%(num)s sets", 3)`."""
    return translations_for(language).ngettext(singular, plural, count) % {
        "num": format_localized_number(count, language),
        **values,
    }


@lru_cache(maxsize=4096)  # each HIT says some, and Babel takes long
def format_localized_number(number: float, language: str) -> str:
    """A number in a language's digits and separators, with at most two places."""
    return format_decimal(number, "#,##0.##", locale=language, numbering_system="latn")


@lru_cache(maxsize=4096)
def format_money(amount: float, currency: str, language: str) -> str:
    """An amount as the language writes it, such as `4,20 €`."""
    return format_currency(amount, currency, locale=language, numbering_system="latn")


def translations_for_scripts(language: str, script_paths: Collection[str]) -> dict[str, str]:
    """What scripts say, by its English words; nothing for English. files: by their paths, such as `static/hit.js`."""
    if language == ENGLISH:
        return {}
    return {
        str(message.id): str(message.string)
        for message in read_catalogue(language)
        if any(place in script_paths for place, _ in message.locations)
    }
