"""Word differences between two texts, marked so that eyes, screen readers and print can tell them."""

import re
from difflib import SequenceMatcher

from markupsafe import Markup

# A word, a sign, or a letter of a script that writes no spaces, each with the space before it.
WORD = re.compile(r"\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]|_)")
MOST_COMPARISONS = 250_000  # of words: some tens of milliseconds in the worst case
HIDDEN = '<span class="visually-hidden">{}</span>'
MARKS = {
    name: Markup(f"{{}}<{name}>{HIDDEN.format(words)}{{}}{HIDDEN.format(']')}</{name}>")  # noqa: S704  (of constants)
    for name, words in (("ins", "[added: "), ("del", "[left out: "), ("mark", "[differs: "))
}


def differences(text: str, other: str, *, both: bool = False) -> str:
    """`text` with the words marked that `other` has not; with `both`, as the changes that make `text` of `other`.

    Texts whose words are too many to be compared while somebody waits come without marks.
    """
    before, after = WORD.findall(other), WORD.findall(text)
    if len(before) * len(after) > MOST_COMPARISONS:
        return text
    found = Markup("")
    old, new = ([word.strip() for word in side] for side in (before, after))
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += Markup.escape("".join(after[c:d]))
            continue
        if both and b > a:
            found += marked("del", before[a:b])
        if both and b > a and d > c and not after[c][:1].isspace():
            found += " "  # at the beginning of the text, where no space stands before the words
        if d > c:
            found += marked("ins" if both else "mark", after[c:d])
    return found


def marked(kind: str, words: list[str]) -> Markup:
    """Words with a mark, which begins after the space before them."""
    run = "".join(words)
    rest = run.lstrip()
    return MARKS[kind].format(run[: len(run) - len(rest)], rest)
