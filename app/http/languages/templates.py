"""Messages in templates, put in before Jinja compiles these: each language has templates of its own.

Looked up at each rendering they would cost a HIT's page a fifth of its time.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO, Any

# A message in an expression, and one that may hold markup and `{{ names }}`.
GETTEXT_LITERAL = re.compile(r"""(?<![\w.])_\("([^"\\]*)"\)""")
TRANS_BLOCK = re.compile(r"{% trans %}(.*?){% endtrans %}", re.DOTALL)
NGETTEXT_CALL = re.compile(r"""\bngettext\(\s*"([^"\\]*)",\s*"([^"\\]*)",""")

ExtractedMessage = tuple[int, str, str | tuple[str, str], Sequence[str]]


def block_message(block: str) -> str:
    """What stands in a block, with its lines joined."""
    return " ".join(block.split())


def translate_template_source(source: str, translate: Callable[[str], str]) -> str:
    """The source of a template with its messages as `into` has them."""
    source = TRANS_BLOCK.sub(lambda found: translate(block_message(found[1])), source)
    return GETTEXT_LITERAL.sub(lambda found: f'"{translate(found[1])}"', source)


def extract_template_messages(
    fileobj: IO[bytes],
    keywords: Collection[str],  # noqa: ARG001  (Babel hands over by name what it asks each extractor)
    comment_tags: Collection[str],  # noqa: ARG001
    options: Mapping[str, Any],  # noqa: ARG001
) -> Iterator[ExtractedMessage]:
    """Babel's extractor for these templates: line, function, message and comments of each message."""
    source = fileobj.read().decode()
    for pattern, function in ((GETTEXT_LITERAL, "gettext"), (TRANS_BLOCK, "gettext"), (NGETTEXT_CALL, "ngettext")):
        for match in pattern.finditer(source):
            line = source.count("\n", 0, match.start()) + 1
            message = (match[1], match[2]) if pattern is NGETTEXT_CALL else block_message(match[1])
            yield line, function, message, ()
