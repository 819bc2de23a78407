"""Text of uploaded bytes: Unicode is detected; an older encoding is never guessed, but offered with a sample."""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, NamedTuple, NoReturn

from app.errors import Invalid, join_names, shorten_echo
from app.uploads.rows import MAX_ROW_CHARACTERS, raise_upload_refusal_at_line

DECODE_CHUNK_BYTES = 2**20
MAX_SAMPLE_CHARACTERS = 60
MAX_LINES_WEIGHED = 40
MAX_ENCODINGS_OFFERED = 4
UTF_8 = "utf-8"
ENCODINGS = {  # name of the encoding: its title on pages
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
LEGACY_ENCODINGS = [name for name in ENCODINGS if not name.startswith("utf-")]
BYTE_ORDER_MARKS = (  # longer ones first, since shorter ones begin some of them
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WORD_PATTERN = re.compile(r"[^\s,;\t\"“”„‚‘«»()\[\]…!?.:–—-]+")
CELL_PATTERN = re.compile(r"[^\t,;\"\r\n]+")
NUL_CHARACTER_SENTENCE = "there is a NUL character, so this is not a text file."
USUAL_SYMBOLS = set("“”‘’„‚–—…•€£¥°©®™×«»§¿¡·")


class TextEncoding(NamedTuple):
    """The encoding of a file, and the number of bytes of its byte order mark."""

    encoding: str
    mark_bytes: int
    is_chosen: bool = False


class EncodingOffer(NamedTuple):
    """An encoding in which a file can be read, with a sample of its text."""

    name: str
    title: str
    sample: str


def find_supported_encoding_or_refuse(name: str) -> str:
    """Return one of `ENCODINGS` by any of its names. Raises `Invalid` (`encoding_unknown`)."""
    try:
        codec = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        codec = None
    encoding = next((own for own in ENCODINGS if codec is not None and codecs.lookup(own).name == codec.name), None)
    if codec is not None and codec.name in ("iso8859-1", "ascii"):  # browsers read these two as windows-1252
        encoding = "windows-1252" if codec.name == "iso8859-1" else UTF_8
    if encoding is None:
        raise Invalid(
            f"There is no encoding “{shorten_echo(name)}”. Choose one of {join_names(list(ENCODINGS))}. Nothing was "
            "imported.",
            code="encoding_unknown",
        )
    return encoding


def detect_encoding(file: BinaryIO, chosen_encoding: str | None) -> TextEncoding:
    """Return the encoding of a file.

    It is given by the byte order mark, else by `chosen_encoding`, else it is UTF-8, or UTF-16 if every other byte of
    the file's beginning is zero.
    """
    start = file.read(DECODE_CHUNK_BYTES)
    file.seek(0)
    for mark, encoding in BYTE_ORDER_MARKS:
        if start.startswith(mark):
            skip = len(mark)
            while start.startswith(mark, skip):  # some programs put a mark before an existing one
                skip += len(mark)
            return TextEncoding(encoding, skip)
    if chosen_encoding is not None:
        encoding = find_supported_encoding_or_refuse(chosen_encoding)
        return TextEncoding("utf-16-le" if encoding == "utf-16" else encoding, 0, is_chosen=True)
    return TextEncoding(utf_16_kind_of_bytes_or_none(start[: 2**12]) or UTF_8, 0)


def utf_16_kind_of_bytes_or_none(start: bytes) -> str | None:
    """Return the kind of UTF-16 that these bytes begin; None for any other text."""
    zero_counts = [start[offset::2].count(0) for offset in (0, 1)]
    if min(zero_counts) or not max(zero_counts):
        return None
    encoding = "utf-16-be" if zero_counts[0] else "utf-16-le"
    text = start[: len(start) // 2 * 2].decode(encoding, "replace")
    begins_with_ascii = len(start) > 1 and 0 in start[:2]
    has_line_ends = "\n" in text or "\r" in text
    return encoding if begins_with_ascii or (has_line_ends and max(zero_counts) > 1) else None


def notes_on_encoding(text_encoding: TextEncoding) -> list[str]:
    """Return a sentence about the encoding, unless it is UTF-8."""
    if text_encoding.encoding == UTF_8 and not text_encoding.is_chosen:
        return []
    return [f"Read as {ENCODINGS.get(text_encoding.encoding, text_encoding.encoding.upper())}."]


def iterate_decoded_chunks(file: BinaryIO, text_encoding: TextEncoding) -> Iterator[str]:
    """Yield the text of a file from its beginning, in chunks.

    The chunks are large: a thread that often waits for a file, each time for a moment, starves other threads of the
    GIL.
    Raises `Invalid` (`not_utf8`, `encoding_unsuited`, `nul_byte`).
    """
    file.seek(text_encoding.mark_bytes)
    decoder = codecs.getincrementaldecoder(text_encoding.encoding)("strict")
    line_number = 1
    while True:
        data = file.read(DECODE_CHUNK_BYTES)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as problem:
            raise_undecodable_bytes_refusal(problem, line_number, text_encoding)
        if (position := text.find("\0")) >= 0:
            line_number += text.count("\n", 0, position)
            raise_upload_refusal_at_line("nul_byte", line_number, NUL_CHARACTER_SENTENCE)
        if text:
            yield text
        line_number += text.count("\n")
        if not data:
            return


def iterate_decoded_lines_with_ends_or_refuse(file: BinaryIO, text_encoding: TextEncoding) -> Iterator[str]:
    """Yield the lines of a file with their ends; lone carriage returns become line feeds.

    Raises what `iterate_decoded_chunks` raises, and `Invalid` (`row_too_long`).
    """
    line_number, pieces, length = 1, list[str](), 0
    has_only_returns: bool | None = None
    for chunk in iterate_decoded_chunks(file, text_encoding):
        text = chunk
        if has_only_returns is None and ("\n" in text or "\r" in text[:-1]):
            has_only_returns = "\n" not in text
        if has_only_returns:
            text = text.replace("\r", "\n")
        lines = text.split("\n")
        for line in lines[:-1]:
            yield "".join([*pieces, line, "\n"]) if pieces else line + "\n"
            pieces, length = [], 0
        line_number += len(lines) - 1
        pieces.append(lines[-1])
        length += len(lines[-1])
        if length > MAX_ROW_CHARACTERS:
            raise_upload_refusal_at_line(
                "row_too_long", line_number, f"this line has more than {MAX_ROW_CHARACTERS:,} characters."
            )
    if length:
        yield "".join(pieces)


def raise_undecodable_bytes_refusal(
    problem: UnicodeDecodeError, first_line: int, text_encoding: TextEncoding
) -> NoReturn:
    """Raise `Invalid` (`not_utf8`, with the possible `encodings` in its details; `encoding_unsuited`, `nul_byte`)."""
    before = problem.object[: problem.start].decode(text_encoding.encoding, "replace")
    line_number = first_line + before.count("\n") + (before.count("\r") if "\n" not in before else 0)
    if text_encoding.encoding != UTF_8:
        title = ENCODINGS.get(text_encoding.encoding, text_encoding.encoding.upper())
        raise_upload_refusal_at_line(
            "encoding_unsuited", line_number, f"this cannot be read as {title}. Choose another encoding."
        )
    if b"\0" in problem.object:
        raise_upload_refusal_at_line("nul_byte", line_number, NUL_CHARACTER_SENTENCE)
    text = problem.object.decode(UTF_8, "replace")
    invalid_count = text.count("\ufffd")
    valid_count = sum(character > "\x7f" for character in text) - invalid_count
    if valid_count > invalid_count:
        raise_upload_refusal_at_line(
            "not_utf8",
            line_number,
            "most of this file is UTF-8, but this line is not. Was it merged from files with different "
            "encodings, or cut off? Fix the line, and save the file as UTF-8.",
            encodings=[],
        )
    offers = possible_encodings_likeliest_first(problem.object)
    if not offers:
        raise_upload_refusal_at_line(
            "not_utf8", line_number, "this is not UTF-8 text. Save the file as UTF-8 and try again.", encodings=[]
        )
    name, title, sample = offers[0]
    raise_upload_refusal_at_line(
        "not_utf8",
        line_number,
        f"this is not UTF-8 text. It looks like {title}: “{sample}”. To read it that way, choose this encoding (on the "
        f"command line --encoding {name}, in the API encoding={name}), or save the file as UTF-8.",
        encodings=[offer._asdict() for offer in offers],
    )


def possible_encodings_likeliest_first(data: bytes) -> list[EncodingOffer]:
    """Return the encodings that may fit these bytes, the likeliest first; of those with equal texts, one."""
    lines = [line for line in re.split(b"[\r\n]+", data) if not line.isascii()][:MAX_LINES_WEIGHED]
    candidates: dict[str, tuple[int, str]] = {}
    for name in LEGACY_ENCODINGS:
        try:
            text = "\n".join(line.decode(name) for line in lines)
        except UnicodeDecodeError:
            continue
        if all(text != other for _, other in candidates.values()):
            candidates[name] = (count_signs_of_wrong_encoding_in_text(text), text)
    ordered = sorted(candidates, key=lambda name: candidates[name][0])[:MAX_ENCODINGS_OFFERED]
    return [
        EncodingOffer(name, ENCODINGS[name], cell_with_most_non_ascii_letters(candidates[name][1])) for name in ordered
    ]


def cell_with_most_non_ascii_letters(text: str) -> str:
    """Return the cell with the most letters beyond ASCII, shortened."""
    cells = [cell.strip() for cell in CELL_PATTERN.findall(text)] or [text]
    best_cell = max(cells, key=lambda cell: sum(character > "\x7f" for character in cell[:MAX_SAMPLE_CHARACTERS]))
    printable = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in best_cell
    )
    return printable if len(printable) <= MAX_SAMPLE_CHARACTERS else printable[: MAX_SAMPLE_CHARACTERS - 1] + "…"


def count_signs_of_wrong_encoding_in_text(text: str) -> int:
    """Return the number of signs of a wrong encoding in a text.

    Signs are control characters, symbols or capitals within words, two scripts in a word, and long runs of accented
    letters.
    """
    score = sum(3 for character in text if unicodedata.category(character) in ("Cc", "Co", "Cn") and character != "\n")
    for word in WORD_PATTERN.findall(text):
        if not word.isascii():
            score += count_signs_of_wrong_encoding_in_word(word)
    return score


def count_signs_of_wrong_encoding_in_word(word: str) -> int:
    letters = [character for character in word if character.isalpha()]
    symbols = [character for character in word if character > "\x7f" and not character.isalnum()]
    scripts = {unicode_script_of_character(character) for character in letters}
    unusual_count = sum(
        character not in USUAL_SYMBOLS and unicodedata.category(character)[0] != "M" for character in symbols
    )
    symbols_in_word = sum(character not in "’'" for character in symbols) if letters else 0
    inner_capitals = sum(first.islower() and second.isupper() for first, second in pairwise(word))
    accented_runs = len(re.findall(r"[\u0080-\u024f]{3,}", word))
    return unusual_count + 2 * symbols_in_word + 2 * inner_capitals + 3 * (len(scripts) > 1) + 2 * accented_runs


def unicode_script_of_character(character: str) -> str:
    script = unicodedata.name(character, "").partition(" ")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA", "CJK") else script
