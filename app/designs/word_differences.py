"""Word differences between two texts, marked so that eyes, screen readers and print can tell them."""

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple
from unicodedata import category

from markupsafe import Markup

# What joins the letter before it: accents, vowel signs, variation selectors, and what joins two letters.
COMBINING_CHARACTERS = "".join(chr(code) for code in range(0x20000) if category(chr(code))[0] == "M") + "\u200c\u200d"
# Thai to Lao, Myanmar, Khmer, Japanese and Chinese are written without spaces.
SPACELESS_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# White space, a letter of a script without spaces, a word, or a sign. Each character begins a match, so no place of a
# text is looked at twice.
WORD_TOKEN = re.compile(
    rf"\s+|(?:[{SPACELESS_SCRIPTS}]|(?:[^\W{SPACELESS_SCRIPTS}][{COMBINING_CHARACTERS}]*)+|[^\s])[{COMBINING_CHARACTERS}]*"
)
MAX_EQUAL_WORD_PAIRS = (
    10_000  # of equal words in two texts: a third of a second in the worst case, a few milliseconds in prose
)
MAX_WORD_COMPARISONS = 1_000_000  # of words
HIDDEN_LABEL = '<span class="visually-hidden">{}</span>'
DIFFERENCE_MARKS = {
    name: Markup(f"{{}}<{name}>{HIDDEN_LABEL.format(words)}{{}}{HIDDEN_LABEL.format(']')}</{name}>")  # noqa: S704  (of constants)
    for name, words in (("ins", "[added: "), ("del", "[left out: "), ("mark", "[differs: "))
}


class SpacedWord(NamedTuple):
    """A word, a sign or a letter, with the white space before it; at the end of a text there may be no word."""

    space: str
    word: str


def mark_differing_words_or_none_if_slow(text: str, other_text: str, *, show_deletions: bool = False) -> Markup | None:
    """Return `text` with the words marked that are not in `other_text`; with `show_deletions`, as the changes from
    `other_text`.

    None where that would take long, because the texts are long or repeat the same words again and again.
    """
    before, after = split_text_into_spaced_words(other_text), split_text_into_spaced_words(text)
    start = count_common_words_at_beginning(before, after)
    end = count_common_words_at_beginning(before[start:][::-1], after[start:][::-1])
    old, new = ([one.word for one in side[start : len(side) - end]] for side in (before, after))
    counts = Counter(old)
    if sum(counts[word] for word in new) > MAX_EQUAL_WORD_PAIRS or len(old) * len(new) > MAX_WORD_COMPARISONS:
        return None
    parts = [Markup.escape(join_spaced_words_into_text(after[:start]))]
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left_out, added = before[start + a : start + b], after[start + c : start + d]
        if kind == "equal":
            parts.append(Markup.escape(join_spaced_words_into_text(added)))
            continue
        if show_deletions and left_out:
            parts.append(markup_of_marked_words("del", left_out))
        if show_deletions and left_out and added and not added[0].space:
            parts.append(Markup(" "))  # at the beginning of the text, where no space stands before the words
        if added:
            parts.append(markup_of_marked_words("ins" if show_deletions else "mark", added))
    parts.append(Markup.escape(join_spaced_words_into_text(after[len(after) - end :])))
    return Markup("").join(parts)


def split_text_into_spaced_words(text: str) -> list[SpacedWord]:
    """Return the words of a text; joined, they are the text."""
    words: list[SpacedWord] = []
    space = ""
    for token in WORD_TOKEN.findall(text):
        if token[0].isspace():
            space = token
        else:
            words.append(SpacedWord(space, token))
            space = ""
    return [*words, SpacedWord(space, "")]


def count_common_words_at_beginning(words: list[SpacedWord], other_words: list[SpacedWord]) -> int:
    """Return how many words two texts have in common before the first that differs."""
    pairs = zip(words, other_words, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a.word != b.word), min(len(words), len(other_words)))


def join_spaced_words_into_text(words: list[SpacedWord]) -> str:
    return "".join(chain.from_iterable(words))


def markup_of_marked_words(kind: str, words: list[SpacedWord]) -> Markup:
    """Return words with a mark, which begins after the white space before them."""
    return DIFFERENCE_MARKS[kind].format(words[0].space, words[0].word + join_spaced_words_into_text(words[1:]))
