"""Formulas are found where people mean them, and what stands around them stays as it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from app.designs.content import Content, ItemTexts
from app.text.latex import iterate_formulas, with_marked_formulas

SPAN = re.compile(r'<span class="math(?: display)?">(.*?)</span>', re.DOTALL)
PATHS = {"a.png": "/media/1"}


def formula_sources(text):
    return [text[formula.start : formula.end] for formula in iterate_formulas(text)]


def marked_in(html):
    return [
        Markup(source).unescape()
        for source in re.findall(r'<span class="math(?: display)?">(.*?)</span>', html, re.DOTALL)
    ]


def render(kind, text, **how):
    (item,) = Content(kind, latex=True, **how).render_items([ItemTexts(text)], PATHS).items
    return str(item)


def test_formulas_are_what_stands_between_their_signs(subtests):
    for text, expected in (
        (r"$e^{i\pi}+1=0$ and \(a_0\)", [r"$e^{i\pi}+1=0$", r"\(a_0\)"]),
        ("$$\\int_0^1\nx$$ \\[y\n= 2\\]", ["$$\\int_0^1\nx$$", "\\[y\n= 2\\]"]),
        ("It costs $5 and $10, or $5-$10.", []),
        (r"\$x$ and $y\$", []),
        (r"$a\$b$", [r"$a\$b$"]),
        ("$ x$ $x $ $$ $$ $", []),
        ("$a\n\nb$ $$a\n\nb$$", []),
        (r"C:\temp\(x86) \, \[", []),
        (f"${'x' * 2_000}$ $y$", ["$y$"]),
    ):
        with subtests.test(text=text, expected=expected):
            assert formula_sources(text) == expected


def test_formulas_on_lines_of_their_own_are_told_from_others():
    assert [formula.is_displayed for formula in iterate_formulas(r"$a$ $$b$$ \(c\) \[d\]")] == [
        False,
        True,
        False,
        True,
    ]


@given(st.text(alphabet="$\\()[]ab <>&`\n", max_size=40))
def test_marking_formulas_changes_no_character(text):
    html = with_marked_formulas(text)
    assert Markup(re.sub(r'<span class="math(?: display)?">|</span>', "", html)).unescape() == text


def test_what_a_formula_holds_is_text():
    assert with_marked_formulas("$a<b$ <i>") == '<span class="math">$a&lt;b$</span> &lt;i&gt;'


def test_markdown_leaves_formulas_alone():
    html = render("markdown", "By $a_0 * b_0$ and *c*:\n\n$$\nx\n- y\\,\\\\\n= z\n$$\n\nso \\(d\\_e\\) \\[f\\].")
    assert marked_in(html) == ["$a_0 * b_0$", "$$\nx\n- y\\,\\\\\n= z\n$$", "\\(d\\_e\\)", "\\[f\\]"]
    assert "<em>c</em>" in html


def test_code_in_markdown_has_no_formulas_and_keeps_its_signs():
    html = render("markdown", "`$HOME` and `$PATH`\n\n```\n$a$ \\(b\\)\n```\n\n    $c$ and $d$\n")
    assert marked_in(html) == []
    for code in ("$HOME", "$PATH", "$a$ \\(b\\)", "$c$ and $d$"):
        assert code in html


def test_a_formula_in_an_address_or_a_name_stays_its_source():
    html = render("markdown", "![$a$](a.png) [x](https://e.org/$b$?c=1)")
    assert 'alt="$a$"' in html
    assert 'href="https://e.org/$b$?c=1"' in html
    assert "\ue000" not in html


def test_a_text_cannot_pretend_to_have_formulas():
    assert "\ue0007\ue001" in render("markdown", "\ue0007\ue001 $a$")
    assert marked_in(render("html", '<span class="math">x</span>')) == []


@pytest.mark.parametrize("kind", ["html", "markdown"])
def test_no_attribute_becomes_an_element(kind):
    name = "$a$<script>alert(1)</script>$b$"
    html = render(kind, f'<img src="a.png" alt="{name}">' if kind == "html" else f"![{name}](a.png)")
    assert "<script" not in html
    assert 'alt="$a$&lt;script&gt;alert(1)&lt;/script&gt;$b$"' in html


def test_html_has_formulas_in_its_words_alone():
    html = render("html", '<p>$a&lt;b$ <code>$c$</code> <a href="https://e.org/$d$">$e$</a></p>')
    assert marked_in(html) == ["$a<b$", "$e$"]


def test_formulas_stand_in_sources_references_and_differences_too():
    content = Content(source="s", reference="r", differences="reference", latex=True)
    items = content.render_items([ItemTexts("$a$ cat", "$b$", "$a$ dog")], {})
    assert [marked_in(str(beside.html)) for beside in items.shared_context] == [["$b$"], ["$a$"]]
    assert "cat" in items.beginning_text_at(0)


def test_without_the_setting_nothing_is_marked():
    assert Content("text").render_items([ItemTexts("$a$")], {}).items == ["$a$"]
    assert "math" not in str(Content("markdown").render_items([ItemTexts("$a$")], {}).items[0])
