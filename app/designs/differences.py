"""Word differences between two texts, marked so that eyes, screen readers and print can tell them."""

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple
from unicodedata import category

from markupsafe import Markup

# What joins the letter before it: accents, vowel signs, variation selectors, and what joins two letters.
MARKS_OF_LETTERS = "".join(chr(code) for code in range(0x20000) if category(chr(code))[0] == "M") + "\u200c\u200d"
# Thai to Lao, Myanmar, Khmer, Japanese and Chinese are written without spaces.
NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# White space, a letter of a script without spaces, a word, or a sign. Each character begins a match, so no place of a
# text is looked at twice.
TOKEN = re.compile(rf"\s+|(?:[{NO_SPACES}]|(?:[^\W{NO_SPACES}][{MARKS_OF_LETTERS}]*)+|[^\s])[{MARKS_OF_LETTERS}]*")
MOST_PAIRS = 10_000  # of equal words in two texts: a third of a second in the worst case, a few milliseconds in prose
MOST_COMPARISONS = 1_000_000  # of words
HIDDEN = '<span class="visually-hidden">{}</span>'
MARKS = {
    name: Markup(f"{{}}<{name}>{HIDDEN.format(words)}{{}}{HIDDEN.format(']')}</{name}>")  # noqa: S704  (of constants)
    for name, words in (("ins", "[added: "), ("del", "[left out: "), ("mark", "[differs: "))
}


class SpacedWord(NamedTuple):
    """A word, a sign or a letter, with the white space before it; at the end of a text there may be no word."""

    space: str
    word: str


def differences(text: str, other: str, *, both: bool = False) -> Markup | None:
    """Return `text` with the words marked that `other` has not; with `both`, as the changes that make `text` of
    `other`. None where that would take long, because the texts are long or repeat the same words again and again.
    """
    before, after = words_in(other), words_in(text)
    start = common_start(before, after)
    end = common_start(before[start:][::-1], after[start:][::-1])
    old, new = ([one.word for one in side[start : len(side) - end]] for side in (before, after))
    counts = Counter(old)
    if sum(counts[word] for word in new) > MOST_PAIRS or len(old) * len(new) > MOST_COMPARISONS:
        return None
    parts = [Markup.escape(joined(after[:start]))]
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left_out, added = before[start + a : start + b], after[start + c : start + d]
        if kind == "equal":
            parts.append(Markup.escape(joined(added)))
            continue
        if both and left_out:
            parts.append(marked("del", left_out))
        if both and left_out and added and not added[0].space:
            parts.append(Markup(" "))  # at the beginning of the text, where no space stands before the words
        if added:
            parts.append(marked("ins" if both else "mark", added))
    parts.append(Markup.escape(joined(after[len(after) - end :])))
    return Markup("").join(parts)


def words_in(text: str) -> list[SpacedWord]:
    """Return the words of a text, which together are the text."""
    words: list[SpacedWord] = []
    space = ""
    for token in TOKEN.findall(text):
        if token[0].isspace():
            space = token
        else:
            words.append(SpacedWord(space, token))
            space = ""
    return [*words, SpacedWord(space, "")]


def common_start(one: list[SpacedWord], other: list[SpacedWord]) -> int:
    """Return how many words two texts have in common before the first that differs."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a.word != b.word), min(len(one), len(other)))


def joined(words: list[SpacedWord]) -> str:
    """Return words as the text that they were."""
    return "".join(chain.from_iterable(words))


def marked(kind: str, words: list[SpacedWord]) -> Markup:
    """Return words with a mark, which begins after the white space before them."""
    return MARKS[kind].format(words[0].space, words[0].word + joined(words[1:]))
