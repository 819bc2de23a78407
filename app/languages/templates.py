"""Messages in templates, put in before Jinja compiles these: each language has templates of its own.

Looked up at each rendering they would cost a HIT's page a fifth of its time.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO, Any

# A message in an expression, and one that may hold markup and `{{ names }}`.
LITERAL = re.compile(r"""(?<![\w.])_\("([^"\\]*)"\)""")
BLOCK = re.compile(r"{% trans %}(.*?){% endtrans %}", re.DOTALL)
COUNTED = re.compile(r"""\bngettext\(\s*"([^"\\]*)",\s*"([^"\\]*)",""")

Found = tuple[int, str, str | tuple[str, str], Sequence[str]]


def message_of(block: str) -> str:
    """What stands in a block, with its lines joined."""
    return " ".join(block.split())


def translated(source: str, into: Callable[[str], str]) -> str:
    """The source of a template with its messages as `into` has them."""
    source = BLOCK.sub(lambda found: into(message_of(found[1])), source)
    return LITERAL.sub(lambda found: f'"{into(found[1])}"', source)


def extract(
    fileobj: IO[bytes],
    keywords: Collection[str],  # noqa: ARG001  (Babel hands over by name what it asks each extractor)
    comment_tags: Collection[str],  # noqa: ARG001
    options: Mapping[str, Any],  # noqa: ARG001
) -> Iterator[Found]:
    """Babel's extractor for these templates: line, function, message and comments of each message."""
    source = fileobj.read().decode()
    for pattern, function in ((LITERAL, "gettext"), (BLOCK, "gettext"), (COUNTED, "ngettext")):
        for found in pattern.finditer(source):
            line = source.count("\n", 0, found.start()) + 1
            message = (found[1], found[2]) if pattern is COUNTED else message_of(found[1])
            yield line, function, message, ()
