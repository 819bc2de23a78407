"""Text out of bytes: Unicode is recognised, and an older encoding is never guessed: it is offered with a sample."""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, NamedTuple, NoReturn

from app.errors import Invalid, listed, shortened
from app.upload.rows import LONGEST_ROW, refuse

READ_AT_ONCE = 2**20  # bytes
SAMPLE_CHARACTERS = 60
LINES_WEIGHED = 40
MOST_OFFERS = 4
UTF_8 = "utf-8"
ENCODINGS = {  # as somebody chooses it: what a page calls it
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16, little-endian",
    "utf-16-be": "UTF-16, big-endian",
    "windows-1252": "Windows-1252",
    "macintosh": "Mac OS Roman",
    "windows-1250": "Windows-1250",
    "windows-1251": "Windows-1251",
    "windows-1253": "Windows-1253",
    "windows-1254": "Windows-1254",
    "iso-8859-2": "ISO 8859-2",
    "iso-8859-15": "ISO 8859-15",
    "koi8-r": "KOI8-R",
    "cp850": "DOS code page 850",
    "cp932": "Shift JIS",
    "gb18030": "GB 18030",
    "big5": "Big5",
    "euc-kr": "EUC-KR",
}
OFFERED = [name for name in ENCODINGS if not name.startswith("utf-")]
MARKS = (  # of the beginning of a file, longer ones first
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WORD = re.compile(r"[^\s,;\t\"“”„‚‘«»()\[\]…!?.:–—-]+")
CELL = re.compile(r"[^\t,;\"\r\n]+")
NO_TEXT = "there is a NUL character, so this is not a text file."
USUAL_SIGNS = set("“”‘’„‚–—…•€£¥°©®™×«»§¿¡·")


class Encoded(NamedTuple):
    """How the bytes of a file are text: their encoding, and the bytes of a byte order mark before them."""

    encoding: str
    skip: int
    chosen: bool = False


class EncodingOffer(NamedTuple):
    """An encoding in which a file can be read, and a text of the file so."""

    name: str
    title: str
    sample: str


def encoding_named(name: str) -> str:
    """One of `ENCODINGS` by any of its names. Raises `Invalid` (`encoding_unknown`)."""
    try:
        codec = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        codec = None
    known = next((own for own in ENCODINGS if codec is not None and codecs.lookup(own).name == codec.name), None)
    if codec is not None and codec.name in ("iso8859-1", "ascii"):  # as browsers do
        known = "windows-1252" if codec.name == "iso8859-1" else UTF_8
    if known is None:
        raise Invalid(
            f"There is no encoding “{shortened(name)}”. Choose one of {listed(list(ENCODINGS))}. Nothing was imported.",
            code="encoding_unknown",
        )
    return known


def encoding_of(file: BinaryIO, chosen: str | None) -> Encoded:
    """The encoding of a file: by its byte order mark, else as `chosen`, else UTF-8, or UTF-16 where every other byte of
    its beginning is zero.
    """
    start = file.read(READ_AT_ONCE)
    file.seek(0)
    for mark, encoding in MARKS:
        if start.startswith(mark):
            skip = len(mark)
            while start.startswith(mark, skip):  # as where a program puts one before that of another
                skip += len(mark)
            return Encoded(encoding, skip)
    if chosen is not None:
        encoding = encoding_named(chosen)
        return Encoded("utf-16-le" if encoding == "utf-16" else encoding, 0, chosen=True)
    return Encoded(utf_16_without_mark(start[: 2**12]) or UTF_8, 0)


def utf_16_without_mark(start: bytes) -> str | None:
    """The kind of UTF-16 in which a text begins so; None for any other text."""
    zeros = [start[place::2].count(0) for place in (0, 1)]
    if min(zeros) or not max(zeros):
        return None
    encoding = "utf-16-be" if zeros[0] else "utf-16-le"
    text = start[: len(start) // 2 * 2].decode(encoding, "replace")
    begins_with_ascii = len(start) > 1 and 0 in start[:2]
    line_ends = "\n" in text or "\r" in text
    return encoding if begins_with_ascii or (line_ends and max(zeros) > 1) else None


def notes_on(encoded: Encoded) -> list[str]:
    """A sentence about the encoding, if it is not UTF-8."""
    if encoded.encoding == UTF_8 and not encoded.chosen:
        return []
    return [f"Read as {ENCODINGS.get(encoded.encoding, encoded.encoding.upper())}."]


def chunks_of(file: BinaryIO, encoded: Encoded) -> Iterator[str]:
    """The text of a file from its beginning, some of it at a time.

    Many bytes are read at once: a thread that often waits for its file, each time only for a moment, keeps Python's
    lock from all others. Raises `Invalid` (`not_utf8`, `encoding_unsuited`, `nul_byte`).
    """
    file.seek(encoded.skip)
    decoder = codecs.getincrementaldecoder(encoded.encoding)("strict")
    line = 1
    while True:
        data = file.read(READ_AT_ONCE)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as problem:
            refuse_encoding(problem, line, encoded)
        if (place := text.find("\0")) >= 0:
            line += text.count("\n", 0, place)
            refuse("nul_byte", line, NO_TEXT)
        if text:
            yield text
        line += text.count("\n")
        if not data:
            return


def lines_of(file: BinaryIO, encoded: Encoded) -> Iterator[str]:
    """The lines of a file with their ends; where only carriage returns end them, with line feeds instead.

    Raises what `chunks_of` raises, and `Invalid` (`row_too_long`).
    """
    number, pieces, length = 1, list[str](), 0
    only_returns: bool | None = None
    for chunk in chunks_of(file, encoded):
        text = chunk
        if only_returns is None and ("\n" in text or "\r" in text[:-1]):
            only_returns = "\n" not in text
        if only_returns:
            text = text.replace("\r", "\n")
        lines = text.split("\n")
        for line in lines[:-1]:
            yield "".join([*pieces, line, "\n"]) if pieces else line + "\n"
            pieces, length = [], 0
        number += len(lines) - 1
        pieces.append(lines[-1])
        length += len(lines[-1])
        if length > LONGEST_ROW:
            refuse("row_too_long", number, f"this line has more than {LONGEST_ROW:,} characters.")
    if length:
        yield "".join(pieces)


def refuse_encoding(problem: UnicodeDecodeError, line: int, encoded: Encoded) -> NoReturn:
    """Raises `Invalid` (`not_utf8`; details: `encodings` that can be chosen, or `encoding_unsuited`, `nul_byte`)."""
    before = problem.object[: problem.start].decode(encoded.encoding, "replace")
    number = line + before.count("\n") + (before.count("\r") if "\n" not in before else 0)
    if encoded.encoding != UTF_8:
        title = ENCODINGS.get(encoded.encoding, encoded.encoding.upper())
        refuse("encoding_unsuited", number, f"this cannot be read as {title}. Choose another encoding.")
    if b"\0" in problem.object:
        refuse("nul_byte", number, NO_TEXT)
    text = problem.object.decode(UTF_8, "replace")
    wrong = text.count("\ufffd")
    right = sum(character > "\x7f" for character in text) - wrong
    if right > wrong:
        refuse(
            "not_utf8",
            number,
            "most of this file is UTF-8, but this line is not. Was it put together from files of different encodings, "
            "or cut off? Mend the line, and save the file as UTF-8.",
            encodings=[],
        )
    offers = offers_for(problem.object)
    if not offers:
        refuse("not_utf8", number, "this is not UTF-8 text. Save the file as UTF-8 and try again.", encodings=[])
    name, title, sample = offers[0]
    refuse(
        "not_utf8",
        number,
        f"this is not UTF-8 text. It looks like {title}: “{sample}”. To read it so, choose this encoding (on the "
        f"command line --encoding {name}, in the API encoding={name}), or save the file as UTF-8.",
        encodings=[offer._asdict() for offer in offers],
    )


def offers_for(data: bytes) -> list[EncodingOffer]:
    """The encodings in which bytes may be text, the likeliest first, without those that come to the same text."""
    lines = [line for line in re.split(b"[\r\n]+", data) if not line.isascii()][:LINES_WEIGHED]
    found: dict[str, tuple[int, str]] = {}
    for name in OFFERED:
        try:
            text = "\n".join(line.decode(name) for line in lines)
        except UnicodeDecodeError:
            continue
        if all(text != other for _, other in found.values()):
            found[name] = (implausibility(text), text)
    ordered = sorted(found, key=lambda name: found[name][0])[:MOST_OFFERS]
    return [EncodingOffer(name, ENCODINGS[name], sample_of(found[name][1])) for name in ordered]


def sample_of(text: str) -> str:
    """The cell with the most letters beyond ASCII, shortened."""
    cells = [cell.strip() for cell in CELL.findall(text)] or [text]
    best = max(cells, key=lambda cell: sum(character > "\x7f" for character in cell[:SAMPLE_CHARACTERS]))
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in best)
    return printable if len(printable) <= SAMPLE_CHARACTERS else printable[: SAMPLE_CHARACTERS - 1] + "…"


def implausibility(text: str) -> int:
    """How many signs of a wrong encoding there are in a text: controls, signs or capitals within words, two scripts in
    a word, and long runs of accented letters.
    """
    signs = sum(3 for character in text if unicodedata.category(character) in ("Cc", "Co", "Cn") and character != "\n")
    for word in WORD.findall(text):
        if not word.isascii():
            signs += word_implausibility(word)
    return signs


def word_implausibility(word: str) -> int:
    letters = [character for character in word if character.isalpha()]
    others = [character for character in word if character > "\x7f" and not character.isalnum()]
    scripts = {script_of(character) for character in letters}
    odd = sum(character not in USUAL_SIGNS and unicodedata.category(character)[0] != "M" for character in others)
    inside = sum(character not in "’'" for character in others) if letters else 0
    capitals = sum(one.islower() and two.isupper() for one, two in pairwise(word))
    runs = len(re.findall(r"[\u0080-\u024f]{3,}", word))
    return odd + 2 * inside + 2 * capitals + 3 * (len(scripts) > 1) + 2 * runs


def script_of(character: str) -> str:
    script = unicodedata.name(character, "").partition(" ")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA", "CJK") else script
