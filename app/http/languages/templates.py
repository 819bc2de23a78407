"""Translation of templates before Jinja compiles them, so that each language has its own compiled templates.

Looking up the messages at each rendering would take a fifth of the time for a HIT's page.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO, Any

# A message in an expression, and one that may hold markup and `{{ names }}`.
GETTEXT_LITERAL = re.compile(r"""(?<![\w.])_\("([^"\\]*)"\)""")
TRANS_BLOCK = re.compile(r"{% trans %}(.*?){% endtrans %}", re.DOTALL)
NGETTEXT_CALL = re.compile(r"""\bngettext\(\s*"([^"\\]*)",\s*"([^"\\]*)",""")

ExtractedMessage = tuple[int, str, str | tuple[str, str], Sequence[str]]


def join_block_lines(block: str) -> str:
    """Return the text of a block with its lines joined."""
    return " ".join(block.split())


def translate_template_source(source: str, translate: Callable[[str], str]) -> str:
    """Return a template's source with its messages translated by `translate`."""
    source = TRANS_BLOCK.sub(lambda block: translate(join_block_lines(block[1])), source)
    return GETTEXT_LITERAL.sub(lambda literal: f'"{translate(literal[1])}"', source)


def extract_template_messages(
    fileobj: IO[bytes],
    keywords: Collection[str],  # noqa: ARG001  (Babel hands over by name what it asks each extractor)
    comment_tags: Collection[str],  # noqa: ARG001
    options: Mapping[str, Any],  # noqa: ARG001
) -> Iterator[ExtractedMessage]:
    """Yield line, function, message and comments of each message in a template; an extractor for Babel."""
    source = fileobj.read().decode()
    for pattern, function in ((GETTEXT_LITERAL, "gettext"), (TRANS_BLOCK, "gettext"), (NGETTEXT_CALL, "ngettext")):
        for match in pattern.finditer(source):
            line = source.count("\n", 0, match.start()) + 1
            message = (match[1], match[2]) if pattern is NGETTEXT_CALL else join_block_lines(match[1])
            yield line, function, message, ()
