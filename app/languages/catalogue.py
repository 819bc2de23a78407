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

HERE = Path(__file__).parent
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
BROWSER = "browser"  # instead of a language: the one that each annotator's browser asks for
LONGEST_HEADER = 500  # characters of Accept-Language that are looked at
OFFERED = re.compile(r"\s*([A-Za-z]{2,3})(?:-[A-Za-z0-9-]+)?\s*(?:;\s*q\s*=\s*(0(?:\.\d+)?|1(?:\.0+)?)\s*)?")


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


def mark(message: str) -> str:
    """The message itself; what stands in it is collected for the catalogues."""
    return message


@cache
def direction(language: str) -> str:
    """`ltr` or `rtl`, as HTML's `dir` has it."""
    return Locale(language).text_direction


@lru_cache(maxsize=1024)
def spoken(accepted: str) -> str:
    """The language that a browser's `Accept-Language` likes best of ours; English where it likes none."""
    liked: dict[str, float] = {}
    for offered in accepted[:LONGEST_HEADER].split(","):
        if (found := OFFERED.fullmatch(offered)) and (language := found[1].lower()) in LANGUAGES:
            liked.setdefault(language, float(found[2] or 1))
    best = max(liked, key=liked.__getitem__, default=ENGLISH)  # the first of equals
    return best if liked.get(best) else ENGLISH


def catalogue(language: str) -> Catalog:
    """All messages in a language, with where they are said. Raises `PoFileError` where the file is not one."""
    with (HERE / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


@cache
def words(language: str) -> NullTranslations:
    """What translates into a language; into English, the messages themselves."""
    if language == ENGLISH:
        return NullTranslations()
    file = BytesIO()
    write_mo(file, catalogue(language))
    file.seek(0)
    return Translations(file)


def said(language: str, message: str) -> str:
    """A message, or one that stands in the code marked, in a language."""
    if isinstance(message, Message):
        return words(language).gettext(message.pattern) % message.values
    return words(language).gettext(message) if message else ""  # of nothing, gettext gives the catalogue's header


def counted(language: str, singular: str, plural: str, count: int, **values: object) -> str:
    """The form of a message that fits a number, its `%(num)s`: `counted("de", "%(num)s set", "%(num)s sets", 3)`."""
    return words(language).ngettext(singular, plural, count) % {"num": decimal(count, language), **values}


@lru_cache(maxsize=4096)  # each HIT says some, and Babel takes long
def decimal(number: float, language: str) -> str:
    """A number in a language's digits and separators, with at most two places."""
    return format_decimal(number, "#,##0.##", locale=language, numbering_system="latn")


@lru_cache(maxsize=4096)
def money(amount: float, currency: str, language: str) -> str:
    """An amount as the language writes it, such as `4,20 €`."""
    return format_currency(amount, currency, locale=language, numbering_system="latn")


def for_scripts(language: str, files: Collection[str]) -> dict[str, str]:
    """What scripts say, by its English words; nothing for English. files: by their paths, such as `static/hit.js`."""
    if language == ENGLISH:
        return {}
    return {
        str(message.id): str(message.string)
        for message in catalogue(language)
        if any(place in files for place, _ in message.locations)
    }
