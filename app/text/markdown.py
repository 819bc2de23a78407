"""Markdown as Easel reads it, wherever it is shown: CommonMark without HTML, and with the backslashes of its texts."""

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline import escape as commonmark_escape

ESCAPABLE = frozenset("*_`[]#<>~|!+-.")  # marks that begin or end something in Markdown


def escape(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  (markdown-it calls it so)
    r"""Read a backslash before a mark of Markdown as an escape. Every other backslash is text.

    CommonMark would drop backslashes of `C:\temp\(x86)`, `\,` and `\\server`, and break a line that ends with one.
    """
    is_mark = state.src[state.pos + 1 : state.pos + 2] in ESCAPABLE
    return is_mark and commonmark_escape(state, silent)


def make_markdown_parser(*extensions: str) -> MarkdownIt:
    """Return a parser of CommonMark with these rules of markdown-it added."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(list(extensions))
    parser.inline.ruler.at("escape", escape)
    return parser
