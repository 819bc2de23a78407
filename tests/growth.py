"""Texts that make careless code slow, at any length; and how the work on them grows."""

import time

# Repeated, with what comes once before and after.
REPEATED = {
    "blanks at the end": ("other", " ", ""),
    "blanks before": ("", " ", "x"),
    "tabs": ("a", "\t", ""),
    "no-break spaces": ("a", "\xa0", ""),
    "wide spaces": ("a", "\u2003", "\u200b"),
    "ends of lines": ("a", "\n", "b"),
    "carriage returns": ("a", "\r", ""),
    "line separators": ("a", "\u2028", ""),
    "separators": ("a", "\x1f", "!"),
    "one word": ("", "x", "!"),
    "digits": ("-", "1", "x"),
    "zeros": ("0.", "0", "e"),
    "dots": ("", ".", ""),
    "signs": ("", "!", "a"),
    "underscores": ("", "_", ""),
    "accents": ("e", "\u0301", "x"),
    "accents apart": ("", "e \u0301", ""),
    "joiners": ("a", "\u200d", ""),
    "Chinese": ("", "我", "a"),
    "Thai": ("", "ก้", ""),
    "faces": ("", "👩\u200d👧", ""),
    "words": ("", "ab cd ", ""),
    "words and blanks": ("", "a    ", ""),
    "opening brackets": ("", "[", ""),
    "opening images": ("", "![", ""),
    "opening links": ("", "[a](", ""),
    "opening braces": ("", "{", ""),
    "doubled braces": ("", "{{", ""),
    "braces with names": ("", "{a", ""),
    "closing braces": ("", "}", ""),
    "indices": ("{a", "[0]", ""),
    "dots of paths": ("{a", ".a", "["),
    "dollars": ("", "$", ""),
    "dollars and letters": ("", "$a", ""),
    "parentheses of formulas": ("", "\\(", ""),
    "brackets of formulas": ("", "\\[a", ""),
    "backslashes": ("", "\\", ""),
    "stars": ("", "*a ", ""),
    "double stars": ("", "**a", ""),
    "tildes": ("", "~~a", ""),
    "back-ticks": ("", "`a", ""),
    "quotations": ("", "> ", ""),
    "lists": ("", "- ", "a"),
    "numbers": ("", "1. ", "a"),
    "definitions": ("", "[a]: b\n", ""),
    "less-than signs": ("", "<", ""),
    "tags": ("", "<a ", ""),
    "comments": ("", "<!--", ""),
    "comments that end": ("", "<!-- -->", ""),
    "tags that end": ("", "<b>", ""),
    "closing tags": ("", "</b>", ""),
    "bold paragraphs": ("", "<b><p>", ""),
    "quoted attributes": ("", '<b a="', ""),
    "other attributes": ("", "<b lang=a ", ""),
    "ampersands": ("", "&", ""),
    "entities": ("", "&#x1", ""),
    "quotation marks": ("", '"', ""),
    "quoted cells": ("a", '"","', "\n"),
    "commas": ("", ",", ""),
    "colons": ("", "a: ", ""),
    "hyphens": ("", "-a", ""),
    "equals signs": ("", "a=", ""),
    "slashes": ("/", "a/", ""),
    "at signs": ("", "a@", ""),
    "copies": ("a", " (copy", ""),
    "questions": ("", "a?", ":"),
    "weights": ("", "en;q=", ""),
    "addresses": ("https://", "a", '"'),
    "files": ("", "a.png", "!"),
}


def text_of_kind(name: str, size: int) -> str:
    """A text of about this many characters, made of what the name says."""
    before, again, after = REPEATED[name]
    return before + again * (size // len(again)) + after


def numbered(size: int) -> dict[str, str]:
    """Texts of about this many characters whose parts all differ."""
    return {
        "bold of many kinds": "".join(f"<b title={k}><p>" for k in range(size // 17)),
        "bold of many languages": "".join(f"<b lang=a{k}><p>" for k in range(size // 17)),
        "bold in cells": "".join(f"<b title={k}><table><td></b>" for k in range(size // 32)),
        "bold behind a quotation mark": "<p title='<b x=\"'>" + "".join(f"<b a={k}><p>" for k in range(size // 14)),
        "fonts in lists": "".join(f'<li><font color="{k}">' for k in range(size // 24)),
        "definitions of links": "".join(f"[a{k}]: b\n" for k in range(size // 11)),
        "back-ticks of many lengths": "".join("`" * k + " " for k in range(1, int((2 * size) ** 0.5))),
        "lists in lists": "".join(" " * k + "- a\n" for k in range(int(size**0.5))),
    }


def hostile(size: int) -> dict[str, str]:
    """All such texts, by what they are made of."""
    return {name: text_of_kind(name, size) for name in REPEATED} | numbered(size)


def seconds(work, *given) -> float:
    """Processor time of this thread."""
    start = time.thread_time()
    work(*given)
    return time.thread_time() - start


def grows_too_fast(work, small, large, *, trivial: float = 0.05) -> bool:
    """Whether work on the large text, eight times the small one, takes far more than eight times as long.

    Quadratic work takes 64 times as long, linear work 8 times; between the two is room for a machine that has other
    things to do. What is done in a moment is fast enough. Another look decides.
    """
    return all(is_slow(work, small, large, trivial) for _ in range(3))


def is_slow(work, small, large, trivial: float) -> bool:
    took = seconds(work, large)
    return took > trivial and took > 28 * seconds(work, small)
