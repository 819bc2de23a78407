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

MAX_FORMULA_CHARACTERS = 2_000  # characters; a longer one is shown as its source
CLOSING_SIGNS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$"}
DISPLAY_SIGNS = ("\\[", "$$")
ESCAPED_DOLLAR = "\\$"
FORMULA_TOKEN = re.compile(r"\\[\s\S]|\$\$?")
MARKDOWN_FORMULA_TOKEN = re.compile(r"\\[\s\S]|\$\$?|`+|~~~+")  # formulas are none in code
FORMULA_PLACEHOLDER = "\ue000{}\ue001"  # stands for a formula while Markdown is drawn
TAG_OR_PLACEHOLDER = re.compile("<[^<>]*>|\ue000([0-9]{1,6})\ue001")  # of sanitised HTML, which has no < in attributes
FORMULA_PLACEHOLDER_PATTERN = re.compile("\ue000([0-9]{1,6})\ue001")
ENCODED_PLACEHOLDER_PATTERN = re.compile("%EE%80%80([0-9]{1,6})%EE%80%81")
ADDRESS_SAFE_CHARACTERS = "$()*+,/:;=?@!'&#%~"  # what Markdown leaves as it is in an address
CODE_TAG = re.compile(r"<(/?)(?:code|pre|kbd|samp)\b")


class Formula(NamedTuple):
    """A formula with its signs at both ends, by its place in a text; `is_displayed` if it has lines of its own."""

    start: int
    end: int
    source: str
    is_displayed: bool


def iterate_formulas(
    text: str, pattern: re.Pattern[str] = FORMULA_TOKEN, *, escaped_dollars: bool = False
) -> Iterator[Formula]:
    r"""Yield the formulas of a text: `$...$`, `$$...$$`, `\(...\)` and `\[...\]`; on demand each `\$` between them.

    A dollar begins a formula only before something else than a space, and ends it only behind something else than a
    space and not before a digit, so that prices are none. A backslash before a dollar makes it a dollar.
    """
    tokens = [*pattern.finditer(text)]
    indices_by_token: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        indices_by_token.setdefault(token[0], []).append(place)
    token_index = 0
    while token_index < len(tokens):
        token = tokens[token_index]
        closing_index = first_index_greater_than_or_none(
            indices_by_token.get(CLOSING_SIGNS.get(token[0], token[0] if token[0][0] in "`~" else ""), []), token_index
        )
        if closing_index is None:
            if escaped_dollars and token[0] == ESCAPED_DOLLAR:
                yield Formula(token.start(), token.end(), token[0], is_displayed=False)
            token_index += 1
        elif token[0] not in CLOSING_SIGNS:  # code
            token_index = closing_index + 1
        elif is_formula_source(text, token.start(), tokens[closing_index].end(), len(token[0])):
            start, end = token.start(), tokens[closing_index].end()
            yield Formula(start, end, text[start:end], token[0] in DISPLAY_SIGNS)
            token_index = closing_index + 1
        else:
            token_index += 1


def first_index_greater_than_or_none(indices: Sequence[int], index: int) -> int | None:
    """Return the first of these places, which ascend, that is greater; None if none is."""
    next_position = bisect_right(indices, index)
    return indices[next_position] if next_position < len(indices) else None


def is_formula_source(text: str, start: int, end: int, sign_length: int) -> bool:
    """Return whether what stands between two signs of this length can be a formula."""
    first, last = start + sign_length, end - sign_length
    if end - start > MAX_FORMULA_CHARACTERS or not text[first:last].strip() or "\n\n" in text[first:last]:
        return False
    return sign_length > 1 or not (text[first].isspace() or text[last - 1].isspace() or text[end : end + 1].isdigit())


def formula_source_markup(formula: Formula) -> Markup:
    r"""Return a formula as the browser finds it, and `\$` as a dollar."""
    if formula.source == ESCAPED_DOLLAR:
        return Markup("$")
    return Markup('<span class="math{}">{}</span>').format(" display" if formula.is_displayed else "", formula.source)


def with_marked_formulas(text: str) -> Markup:
    """Return a text with its formulas marked; of sanitised HTML those in its words, but not in code."""
    if not isinstance(text, Markup):
        return plain_text_with_marked_formulas(text)
    parts: list[Markup] = []
    depth, text_start = 0, 0
    for tag in TAG_OR_PLACEHOLDER.finditer(text):
        words = text[text_start : tag.start()]
        parts += [words if depth else html_text_with_marked_formulas(words), Markup(tag[0])]  # noqa: S704  (of sanitised HTML)
        depth, text_start = count_open_code_elements_after_tag(tag[0], depth), tag.end()
    words = text[text_start:]
    return Markup("").join([*parts, words if depth else html_text_with_marked_formulas(words)])


def html_text_with_marked_formulas(words: Markup) -> Markup:
    """Return words of HTML with their formulas marked."""
    return plain_text_with_marked_formulas(unescape(words)) if "$" in words or "\\" in words else words


def plain_text_with_marked_formulas(text: str) -> Markup:
    formula_list = [*iterate_formulas(text)]
    ends = [0, *(formula.end for formula in formula_list)]
    texts_between = [text[start : formula.start] for start, formula in zip(ends, formula_list, strict=False)]
    parts = [
        part
        for words, formula in zip(texts_between, formula_list, strict=True)
        for part in (words, formula_source_markup(formula))
    ]
    return Markup("").join([*parts, text[ends[-1] :]])


def count_open_code_elements_after_tag(tag: str, depth: int) -> int:
    """Return within how many elements of code one is after a tag."""
    code = CODE_TAG.match(tag)
    return max(0, depth + (-1 if code[1] else 1)) if code else depth


def markdown_with_placeholders_and_formulas(markdown: str) -> tuple[str, list[Formula]]:
    r"""Return Markdown with a place for each formula and each `\$`, which Markdown leaves alone; and what is there."""
    formula_list = [*iterate_formulas(markdown, MARKDOWN_FORMULA_TOKEN, escaped_dollars=True)]
    ends = [0, *(formula.end for formula in formula_list)]
    starts = [*(formula.start for formula in formula_list), len(markdown)]
    words = [markdown[start:end] for start, end in zip(ends, starts, strict=True)]
    return "".join(words[:1] + [FORMULA_PLACEHOLDER.format(k) + rest for k, rest in enumerate(words[1:])]), formula_list


def html_with_formulas_put_back(html: str, formulas: Sequence[Formula]) -> Markup:
    """Return sanitised HTML with the formulas in their places; in code and in attributes their source."""
    depth = 0

    def restore_token(token: re.Match[str]) -> str:
        nonlocal depth
        if token[1] is None:
            depth = count_open_code_elements_after_tag(token[0], depth)
            return ENCODED_PLACEHOLDER_PATTERN.sub(
                quoted_source, FORMULA_PLACEHOLDER_PATTERN.sub(escaped_source, token[0])
            )
        return (
            escaped_source(token)
            if depth or int(token[1]) >= len(formulas)
            else formula_source_markup(formulas[int(token[1])])
        )

    def escaped_source(place: re.Match[str]) -> str:
        return Markup.escape(formulas[int(place[1])].source) if int(place[1]) < len(formulas) else place[0]

    def quoted_source(place: re.Match[str]) -> str:
        is_known = int(place[1]) < len(formulas)
        return (
            Markup.escape(quote(formulas[int(place[1])].source, safe=ADDRESS_SAFE_CHARACTERS)) if is_known else place[0]
        )

    return Markup(TAG_OR_PLACEHOLDER.sub(restore_token, html))  # noqa: S704  (sanitised, and escaped)
