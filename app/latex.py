"""Formulas in LaTeX: where they are in a text, and how they are kept out of the way of Markdown. Pure.

The server marks them, and the browser typesets what is marked (`static/latex.js`). Without scripts their source is
read.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from html import unescape
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup

LONGEST_FORMULA = 2_000  # characters; a longer one is shown as its source
CLOSES = {"\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$"}
DISPLAYED = ("\\[", "$$")
ESCAPED_DOLLAR = "\\$"
TOKEN = re.compile(r"\\[\s\S]|\$\$?")
MARKDOWN_TOKEN = re.compile(r"\\[\s\S]|\$\$?|`+|~~~+")  # formulas are none in code
PLACE = "\ue000{}\ue001"  # stands for a formula while Markdown is drawn
TAG_OR_PLACE = re.compile("<[^<>]*>|\ue000([0-9]{1,6})\ue001")  # of sanitised HTML, which has no < in attributes
PLACES = re.compile("\ue000([0-9]{1,6})\ue001")
PLACES_IN_ADDRESS = re.compile("%EE%80%80([0-9]{1,6})%EE%80%81")
IN_ADDRESSES = "$()*+,/:;=?@!'&#%~"  # what Markdown leaves as it is in an address
CODE = re.compile(r"<(/?)(?:code|pre|kbd|samp)\b")


class Formula(NamedTuple):
    """A formula with its signs at both ends, by its place in a text; `is_displayed` if it has lines of its own."""

    start: int
    end: int
    source: str
    is_displayed: bool


def formulas(text: str, pattern: re.Pattern[str] = TOKEN, *, escaped_dollars: bool = False) -> Iterator[Formula]:
    r"""Return the formulas of a text: `$...$`, `$$...$$`, `\(...\)` and `\[...\]`; on demand each `\$` between them.

    A dollar begins a formula only before something else than a space, and ends it only behind something else than a
    space and not before a digit, so that prices are none. A backslash before a dollar makes it a dollar.
    """
    tokens = [*pattern.finditer(text)]
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token[0], []).append(place)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        closing = following(places.get(CLOSES.get(token[0], token[0] if token[0][0] in "`~" else ""), []), at)
        if closing is None:
            if escaped_dollars and token[0] == ESCAPED_DOLLAR:
                yield Formula(token.start(), token.end(), token[0], is_displayed=False)
            at += 1
        elif token[0] not in CLOSES:  # code
            at = closing + 1
        elif is_formula(text, token.start(), tokens[closing].end(), len(token[0])):
            start, end = token.start(), tokens[closing].end()
            yield Formula(start, end, text[start:end], token[0] in DISPLAYED)
            at = closing + 1
        else:
            at += 1


def following(places: Sequence[int], place: int) -> int | None:
    """Return the first of these places, which ascend, that is greater; None if none is."""
    found = bisect_right(places, place)
    return places[found] if found < len(places) else None


def is_formula(text: str, start: int, end: int, sign: int) -> bool:
    """Return whether what stands between two signs of this length can be a formula."""
    first, last = start + sign, end - sign
    if end - start > LONGEST_FORMULA or not text[first:last].strip() or "\n\n" in text[first:last]:
        return False
    return sign > 1 or not (text[first].isspace() or text[last - 1].isspace() or text[end : end + 1].isdigit())


def marked(formula: Formula) -> Markup:
    r"""Return a formula as the browser finds it, and `\$` as a dollar."""
    if formula.source == ESCAPED_DOLLAR:
        return Markup("$")
    return Markup('<span class="math{}">{}</span>').format(" display" if formula.is_displayed else "", formula.source)


def mark_formulas(text: str) -> Markup:
    """Return a text with its formulas marked; of sanitised HTML those in its words, but not in code."""
    if not isinstance(text, Markup):
        return marked_text(text)
    parts: list[Markup] = []
    depth, at = 0, 0
    for tag in TAG_OR_PLACE.finditer(text):
        words = text[at : tag.start()]
        parts += [words if depth else marked_words(words), Markup(tag[0])]  # noqa: S704  (of sanitised HTML)
        depth, at = depth_after(tag[0], depth), tag.end()
    words = text[at:]
    return Markup("").join([*parts, words if depth else marked_words(words)])


def marked_words(words: Markup) -> Markup:
    """Return words of HTML with their formulas marked."""
    return marked_text(unescape(words)) if "$" in words or "\\" in words else words


def marked_text(text: str) -> Markup:
    found = [*formulas(text)]
    ends = [0, *(formula.end for formula in found)]
    between = [text[start : formula.start] for start, formula in zip(ends, found, strict=False)]
    parts = [part for words, formula in zip(between, found, strict=True) for part in (words, marked(formula))]
    return Markup("").join([*parts, text[ends[-1] :]])


def depth_after(tag: str, depth: int) -> int:
    """Return within how many elements of code one is after a tag."""
    code = CODE.match(tag)
    return max(0, depth + (-1 if code[1] else 1)) if code else depth


def hide_formulas(markdown: str) -> tuple[str, list[Formula]]:
    r"""Return Markdown with a place for each formula and each `\$`, which Markdown leaves alone; and what is there."""
    found = [*formulas(markdown, MARKDOWN_TOKEN, escaped_dollars=True)]
    ends = [0, *(formula.end for formula in found)]
    starts = [*(formula.start for formula in found), len(markdown)]
    words = [markdown[start:end] for start, end in zip(ends, starts, strict=True)]
    return "".join(words[:1] + [PLACE.format(k) + rest for k, rest in enumerate(words[1:])]), found


def show_formulas(html: str, found: Sequence[Formula]) -> Markup:
    """Return sanitised HTML with the formulas in their places; in code and in attributes their source."""
    depth = 0

    def put_back(token: re.Match[str]) -> str:
        nonlocal depth
        if token[1] is None:
            depth = depth_after(token[0], depth)
            return PLACES_IN_ADDRESS.sub(address_of, PLACES.sub(source_of, token[0]))
        return source_of(token) if depth or int(token[1]) >= len(found) else marked(found[int(token[1])])

    def source_of(place: re.Match[str]) -> str:
        return Markup.escape(found[int(place[1])].source) if int(place[1]) < len(found) else place[0]

    def address_of(place: re.Match[str]) -> str:
        known = int(place[1]) < len(found)
        return Markup.escape(quote(found[int(place[1])].source, safe=IN_ADDRESSES)) if known else place[0]

    return Markup(TAG_OR_PLACE.sub(put_back, html))  # noqa: S704  (sanitised, and escaped)
