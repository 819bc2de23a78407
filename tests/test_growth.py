"""No text that somebody uploads, types or sends makes the server work much longer than its length says."""

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from app.campaigns import yaml_lines
from app.designs.content import Content, ItemTexts
from app.designs.number_parsing import parse_strict_decimal
from app.designs.word_differences import mark_differing_words_or_none_if_slow
from app.errors import Refusal
from app.http.templating import markdown_to_safe_html, markdown_with_formulas_to_html
from app.imports.item_text import build_text_maker_of_template
from app.text.latex import with_marked_formulas
from app.uploads import parse_finite_number_or_none, read_table
from tests.growth import grows_too_fast, hostile

ROOT = Path(__file__).resolve().parents[1]
SMALL, LARGE = 2_000, 16_000
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "split", "sub")
Work = Callable[[str], object]


def modules() -> Iterator[tuple[dict[str, object], ast.Module]]:
    """Return the name and source of each module of the application."""
    for path in sorted((ROOT / "app").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.stem not in ("__init__", "__main__"):
            yield vars(importlib.import_module(name)), ast.parse(path.read_text())


def uses_of_patterns() -> set[tuple[re.Pattern[str], str]]:
    """Return each regular expression of the application with the method that uses it."""
    found: set[tuple[re.Pattern[str], str]] = set()
    for names, tree in modules():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
                found |= {(pattern, call.func.attr) for pattern in patterns_of(call, names)}
        for kept in [kept for kept in names.values() if isinstance(kept, dict)]:
            found |= {(pattern, "fullmatch") for pattern in kept.values() if isinstance(pattern, re.Pattern)}
    return found


def patterns_of(call: ast.Call, names: dict[str, object]) -> Iterator[re.Pattern[str]]:
    """The pattern of a call of one of its methods, or of a function of `re`; none where only the caller knows it."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    known = names.get(owner.id) if isinstance(owner, ast.Name) else None
    if isinstance(known, re.Pattern):
        yield known
    elif known is re:
        flags = {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg == "flags"}
        try:
            source = eval(ast.unparse(call.args[0]), dict(names))
        except NameError:
            return  # made of what is given to a function
        yield re.compile(source, eval(flags["flags"], dict(names)) if flags else 0)


def used(pattern: re.Pattern[Any], method: str) -> Work:
    """Use a pattern on a text completely."""
    if isinstance(pattern.pattern, bytes):
        pattern = re.compile(pattern.pattern.decode(), pattern.flags | re.ASCII)
    if method == "sub":
        return lambda text: pattern.sub("", text)
    if method == "finditer":
        return lambda text: [*pattern.finditer(text)]
    by: Work = getattr(pattern, method)
    return by


def slow_on(work: Work) -> list[str]:
    """Return the kinds of hostile texts on which work grows faster than they do."""
    small, large = hostile(SMALL), hostile(LARGE)
    return [name for name in small if grows_too_fast(work, small[name], large[name])]


def test_no_regular_expression_grows_faster_than_its_text():
    uses = uses_of_patterns()
    assert len(uses) > 30
    slow = {f"{pattern.pattern[:100]} {method}": slow_on(used(pattern, method)) for pattern, method in uses}
    assert {name: texts for name, texts in slow.items() if texts} == {}


def item_in(kind: str) -> Work:
    """Draws a text as an item and as its source, with all that a page asks of them."""
    content = Content(kind, source="s")

    def draw(text: str) -> object:
        drawn = content.render_items([ItemTexts(text, text)], {})
        return drawn.beginning_text_at(0), drawn.is_wide, [beside.length for beside in drawn.shared_context]

    return draw


def uploaded(name: str) -> Work:
    """Reads a text as a file of this name."""

    def rows(text: str) -> object:
        return [*read_table(BytesIO(text.encode()), name, max_mb=1).rows]

    return refusing(rows)


def refusing(work: Work) -> Work:
    """Return the same work, with refusals of the text allowed."""

    def tried(text: str) -> object:
        try:
            return work(text)
        except (Refusal, ValueError):
            return None

    return tried


WORK: dict[str, Work] = {
    "text": item_in("text"),
    "Markdown": item_in("markdown"),
    "HTML": item_in("html"),
    "an image": item_in("image"),
    "formulas": with_marked_formulas,
    "formulas in Markdown": markdown_with_formulas_to_html,
    "instructions": markdown_to_safe_html,
    "differences": lambda text: mark_differing_words_or_none_if_slow(
        text, text[: len(text) // 2] + "x" + text[len(text) // 2 :], show_deletions=True
    ),
    "differences from little": lambda text: mark_differing_words_or_none_if_slow(text, "other", show_deletions=True),
    "a number": refusing(parse_strict_decimal),
    "a number of a table": parse_finite_number_or_none,
    "a template": refusing(lambda text: build_text_maker_of_template(["a", "text"], text)({"a": "x", "text": "y"})),
    "a table": uploaded("a.csv"),
    "a table of tabs": uploaded("a.tsv"),
    "JSON lines": uploaded("a.jsonl"),
    "a campaign file": refusing(lambda text: yaml_lines.parse_yaml(text.encode())),
}


def test_nothing_that_reads_or_draws_grows_faster_than_its_text(subtests):
    for name, work in WORK.items():
        with subtests.test(work=name):
            assert slow_on(work) == []
