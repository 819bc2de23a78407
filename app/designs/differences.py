"""Word differences between two texts, marked so that eyes, screen readers and print can tell them."""

import re
from collections import Counter
from difflib import SequenceMatcher

from markupsafe import Markup

# A word, a sign, or a letter of a script that writes no spaces, each with the space before it.
WORD = re.compile(r"\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]|_)")
MOST_PAIRS = 10_000  # of equal words in two texts: a third of a second in the worst case, a few milliseconds in prose
MOST_COMPARISONS = 1_000_000  # of words
HIDDEN = '<span class="visually-hidden">{}</span>'
MARKS = {
    name: Markup(f"{{}}<{name}>{HIDDEN.format(words)}{{}}{HIDDEN.format(']')}</{name}>")  # noqa: S704  (of constants)
    for name, words in (("ins", "[added: "), ("del", "[left out: "), ("mark", "[differs: "))
}


def differences(text: str, other: str, *, both: bool = False) -> str:
    """`text` with the words marked that `other` has not; with `both`, as the changes that make `text` of `other`.

    Texts that take long to be compared, because they are long or say the same again and again, come without marks.
    """
    before, after = WORD.findall(other), WORD.findall(text)
    old, new = ([word.strip() for word in side] for side in (before, after))
    counts = Counter(old)
    if sum(counts[word] for word in new) > MOST_PAIRS or len(old) * len(new) > MOST_COMPARISONS:
        return text
    found = Markup("")
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
