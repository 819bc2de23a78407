r"""Backslashes in Markdown are shown as they were uploaded, unless they stand before a mark of Markdown."""

import re

import pytest
from markupsafe import Markup

from app.designs.content import Content, ItemTexts
from app.http.templating import markdown_texts_to_safe_html

SHOWN = (
    r"C:\temp\(x86)",
    r"C:\new\table",
    r"\\server\share",
    r"\(x\) and \(a_0\)",
    r"\frac{a}{b} \, \\ c",
    r"100\% \{a\} \} \\",
    r"""\$5 \& \" \' \/ \: \; \= \? \@ \^ \a \7 \é""",
    "ends with \\",
    "one \\\ntwo",
    r"`\*code\* \# \\`",
)
ESCAPED = {
    r"\*literal\*": "*literal*",
    r"\[x\]": "[x]",
    r"\[a\](https://e.org)": "[a](https://e.org)",
    r"[a\]b](https://e.org)": "a]b",
    r"1\. one": "1. one",
    r"\# \+ \- \> \! \| \~ \` \_ \<": "# + - > ! | ~ ` _ <",
    r"C:\_x": "C:_x",
    r"\\*literal\\*": r"\*literal\*",
    "| a |\n|---|\n| b \\| \\(c\\) |": r"a b | \(c\)",
}
FORMULAS = {
    r"\(a_0\) \[b\] \, C:\temp\(x86)": [r"\(a_0\)", r"\[b\]"],
    r"\frac{a}{b} \\ $c\,d$ \(e": [r"$c\,d$"],
}


async def words(markdown, *, latex=False):
    """Return the words of Markdown, which are the same as an item and as instructions."""
    (item,) = Content("markdown", latex=latex).render_items([ItemTexts(markdown)], {}).items
    (instructions,) = await markdown_texts_to_safe_html(markdown, mark_formulas=latex)
    both = [" ".join(Markup(re.sub("<[^>]*>", " ", html)).unescape().split()) for html in (str(item), instructions)]
    assert both[0] == both[1]
    return both[0]


@pytest.mark.parametrize("latex", [False, True])
async def test_backslashes_are_shown_as_uploaded(latex):
    plain = [" ".join(text.replace("`", "").split()) for text in SHOWN]
    expected = [text.replace(r"\$", "$") if latex else text for text in plain]
    assert [await words(text, latex=latex) for text in SHOWN] == expected


async def test_a_backslash_before_a_mark_is_an_escape():
    assert {text: await words(text) for text in ESCAPED} == ESCAPED


async def test_other_backslashes_break_no_line_and_format_nothing():
    (html,) = await markdown_texts_to_safe_html("one \\\ntwo \\*three\\* 1\\. *four*\\", mark_formulas=False)
    assert html == "<p>one \\\ntwo *three* 1. <em>four</em>\\</p>\n"


async def test_formulas_keep_all_and_the_rest_is_as_without_them():
    for text, formulas in FORMULAS.items():
        (html,) = await markdown_texts_to_safe_html(text, mark_formulas=True)
        assert [Markup(source).unescape() for source in re.findall('class="math[^>]*>([^<]*)<', html)] == formulas
        assert await words(text, latex=True) == text


async def test_a_backslash_before_a_dollar_is_an_escape_where_formulas_are():
    assert await words(r"\$5 and \$x$, `\$a`", latex=True) == r"$5 and $x$, \$a"
    assert await words(r"\$5 and \$x$, `\$a`") == r"\$5 and \$x$, \$a"
