"""A zip of files: which of them are taken, and their bytes piece by piece, so that none is ever whole in memory.

Pure: from an open binary file to pieces. Whatever is wrong raises `Invalid` or `TooLarge`, before anything is unpacked
that it could be seen without.
"""

import stat
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import IO, BinaryIO, NamedTuple, NoReturn, cast
from unicodedata import normalize

from app.designs.content import LONGEST_FILE_NAME
from app.errors import Invalid, TooLarge, shortened
from app.media.file_names import NamesOfPaths, match_names
from app.media.signatures import content_type
from app.upload.containers import check_density

MB = 2**20
PIECE_BYTES = 2**18
LONGEST_PATH = 2 * LONGEST_FILE_NAME  # with the folders that do not count
MOST_FILES = 20_000
LARGEST_DIRECTORY = 2**23  # bytes: `zipfile` reads all of it, whatever it says
END, END_BYTES = b"PK\x05\x06", 22  # of a zip: signature and length without its comment, which is 64 KB at most
WIDE_END, WIDE_END_BYTES = b"PK\x06\x07", 20  # stands before it where there are more files than we take
LEFT_BY_SYSTEMS = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
ENCRYPTED = 1  # a bit of a file's flags
PACKED_BY = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others take memory as their headers please


class Packed(NamedTuple):
    """A zip, and how large a file of it and all files of a campaign may be, in MB.

    folder: where in it they lie, with a slash at its end; None where nothing else is in it. skip_unnamed: whether files
    that no item names are left out, and not refused.
    """

    file: BinaryIO
    max_file_mb: int
    max_mb: int
    folder: str | None = None
    skip_unnamed: bool = False


class Piece(NamedTuple):
    """Some bytes of a file, the `place`-th piece of it; `number` counts the files."""

    number: int
    name: str
    content_type: str
    size: int
    place: int
    data: bytes


def refuse(code: str, problem: str, name: str = "") -> NoReturn:
    about, details = (f"“{shortened(name)}” in the zip ", {"file": shortened(name)}) if name else ("", {})
    raise Invalid(f"{about}{problem} Nothing was imported.", code=code, **details)


def pieces(
    packed: Packed,
    wanted: Collection[str],
    taken: Collection[str],
    taken_bytes: int,
    respelled: dict[str, str] | None = None,
) -> Iterator[Piece]:
    """The files of a zip, which items name (`wanted`) and the campaign does not have yet (`taken`, of so many bytes).

    respelled: takes in the names that are spelled in another way in the zip, each with its path there.

    Raises `Invalid`: `zip_unreadable`, `zip_encrypted`, `media_name_unsafe`, `media_twice`, `media_unnamed`,
    `media_type_unknown`; `TooLarge`: `zip_too_many_files`, `media_file_too_large`, `media_too_large`.
    """
    with opened(packed.file) as archive:
        paths = {path: info for path, info in members(archive).items() if path.startswith(packed.folder or "")}
        names, others = named(paths, packed, wanted, taken)
        if respelled is not None:
            respelled |= {name: path[len(packed.folder or "") :] for name, path in others.items()}
        check_sizes([paths[path] for _, path in names], packed, taken_bytes)
        for number, (name, path) in enumerate(names):
            yield from unpacked(archive, paths[path], name, number)


def quoted(names: Sequence[str]) -> str:
    """Return `“a”`, `“a” and “b”`, `“a”, “b” and “c”`."""
    *others, last = (f"“{shortened(name)}”" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


@contextmanager
def opened(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Raises `Invalid` (`zip_unreadable`), also while it is read; `TooLarge` (`zip_too_many_files`)."""
    check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as problem:
        refuse("zip_unreadable", f"This is not a zip that can be read ({problem}).")


def check_directory(file: BinaryIO) -> None:
    """Look at the end of a zip, which says how long the list of its files is."""
    size = file.seek(0, 2)
    file.seek(max(0, size - END_BYTES - 2**16))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(END)
    if at < 0 or len(tail) < at + END_BYTES:
        refuse("zip_unreadable", "This is not a zip that can be read.")
    wide = tail[max(0, at - WIDE_END_BYTES) : at].startswith(WIDE_END)
    files, directory = (int.from_bytes(tail[at + start : at + end], "little") for start, end in ((10, 12), (12, 16)))
    if wide or files > MOST_FILES or directory > LARGEST_DIRECTORY:
        raise TooLarge(
            f"This zip has more than {MOST_FILES:,} files. Nothing was imported. Import the items in several files.",
            code="zip_too_many_files",
        )


def is_ours(info: zipfile.ZipInfo) -> bool:
    """Whether a file was put there by somebody, and not by their system."""
    return not info.is_dir() and not set(LEFT_BY_SYSTEMS) & set(info.filename.replace("\\", "/").split("/"))


def members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by their paths.

    Raises `Invalid`: `media_name_unsafe`, `media_twice`, `zip_encrypted`, `zip_unreadable`.
    """
    found: dict[str, zipfile.ZipInfo] = {}
    for info in filter(is_ours, archive.infolist()):
        path = checked(info)
        if path in found:
            refuse("media_twice", "is there twice.", path)
        found[path] = info
    return found


def packed_whole(paths: Collection[str]) -> str:
    """The one folder in which all files lie, with a slash at its end; nothing where there is none."""
    folders = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""


def named(
    paths: Collection[str], packed: Packed, wanted: Collection[str], taken: Collection[str]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the name that items use for each file, with its path, in the order of the paths; and the respelled names.

    Items call a file by its path below the folder; where there is none, by its path, or by that below the one folder
    that was packed whole.
    """
    ways = ways_to_name(paths, packed.folder)
    found = match_names(ways, wanted, taken)
    for path, names in found.names.items():
        own = ways[path][-1]
        if len(own) > LONGEST_FILE_NAME:
            refuse("media_name_unsafe", f"has a name of more than {LONGEST_FILE_NAME} characters.", path)
        if own in taken or not set(taken).isdisjoint(names):
            refuse("media_twice", "is there twice, or the campaign has a file of that name already.", path)
    unnamed = [path for path, names in found.names.items() if not names]
    if unnamed and not packed.skip_unnamed:
        named_here = {name for names in found.names.values() for name in names}
        refuse_unnamed(unnamed, found, sorted({*wanted} - named_here - {*taken}))
    several = [name for names in found.names.values() for name in names]
    if len(several) != len(set(several)):
        twice = next(path for path, names in found.names.items() if several.count(names[0]) > 1)
        refuse("media_twice", "is there twice, or the campaign has a file of that name already.", twice)
    return [(name, path) for path, names in found.names.items() for name in names], found.respelled


def ways_to_name(paths: Collection[str], folder: str | None) -> dict[str, list[str]]:
    """Return by path the names that items may use for it exactly; folder: as in `Packed`."""
    whole = packed_whole(paths) if folder is None else folder
    return {path: ([path] if folder is None else []) + [path.removeprefix(whole)] for path in paths}


class ComparedNames(NamedTuple):
    """The names that items use and a zip lacks, and the paths in it that no item names."""

    missing: list[str]
    unnamed: list[str]


def compare_names(packed: Packed, wanted: Collection[str], taken: Collection[str]) -> ComparedNames:
    """Compare the files of a zip with those that items name, by its list of files alone; what lies before that may be
    cut off. Raises what `members` and `opened` raise.
    """
    with opened(packed.file) as archive:
        paths = members(archive)
    found = match_names(ways_to_name(paths, packed.folder), wanted, taken)
    used = {name for names in found.names.values() for name in names}
    missing = [name for name in wanted if name not in used and name not in taken]
    return ComparedNames(missing, [path for path, names in found.names.items() if not names])


def refuse_unnamed(unnamed: Sequence[str], found: NamesOfPaths, missing: Sequence[str]) -> NoReturn:
    """Refuse files of a zip that no item names, all of them by name, with those that items name and it lacks."""
    for path in unnamed:
        if path in found.unclear:
            name = shortened(found.unclear[path])
            refuse(
                "media_unnamed", f"may be what items call “{name}”, but so may another file. Spell it as it is.", path
            )
    words = f"In the zip {quoted(unnamed)} {'are' if len(unnamed) > 1 else 'is'} named by no item."
    lacks = f" It lacks {quoted(missing)}, which items name." if missing else ""
    them = "them" if len(unnamed) > 1 else "it"
    way = f" Take {them} out of the zip, name {them} in the table, or leave out files that no item names."
    if not any(found.names.values()):
        way = " Is the column of file names the one that is shown?"
    raise Invalid(
        f"{words}{lacks}{way} Nothing was imported.",
        code="media_unnamed",
        file=shortened(unnamed[0]),
        unnamed=[*map(shortened, unnamed)],
        missing=[*map(shortened, missing)],
    )


def checked(info: zipfile.ZipInfo) -> str:
    """The path of a file in a zip. Raises `Invalid` for one that leads out of it, and for what is no plain file."""
    path = normalize("NFC", info.filename).replace("\\", "/")  # which some programs of Windows write
    parts = PurePosixPath(path).parts
    odd = path != path.strip() or ":" in path or not path.isprintable() or len(path) > LONGEST_PATH
    if odd or path.startswith("/") or not {".", ".."}.isdisjoint(parts) or path != "/".join(parts):
        refuse("media_name_unsafe", "has a name that cannot be used: a path that leads elsewhere, or odd signs.", path)
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        refuse("media_name_unsafe", "is a link or a device, and no file.", path)
    if info.flag_bits & ENCRYPTED:
        refuse("zip_encrypted", "is encrypted. Pack it without a password.", path)
    if info.compress_type not in PACKED_BY:
        refuse("zip_unreadable", "is packed in a way that few programs know. Pack it as usual.", path)
    return path


def check_sizes(files: Collection[zipfile.ZipInfo], packed: Packed, taken_bytes: int) -> None:
    """By what the zip says: `zipfile` unpacks no more of a file than that."""
    for info in files:
        if info.file_size > packed.max_file_mb * MB:
            raise TooLarge(
                f"“{shortened(info.filename)}” in the zip has {info.file_size / MB:,.0f} MB, and "
                f"{packed.max_file_mb} MB is the most. Nothing was imported.",
                code="media_file_too_large",
                file=shortened(info.filename),
            )
    size = taken_bytes + sum(info.file_size for info in files)
    if size > packed.max_mb * MB:
        raise TooLarge(
            f"With this zip the campaign would have {size / MB:,.0f} MB of files, and {packed.max_mb} MB is the most. "
            "Nothing was imported.",
            code="media_too_large",
        )


def unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, number: int) -> Iterator[Piece]:
    """One file. Its check sum is looked at when its end is read."""
    with archive.open(info) as opened:
        data = opened.read(PIECE_BYTES)
        kind = content_type(data)
        if kind is None:
            refuse("media_type_unknown", what_else(data), info.filename)
        place, left = 0, info.file_size
        while data:
            yield Piece(number, name, kind, info.file_size, place, data)
            left -= len(data)
            data, place = opened.read(PIECE_BYTES), place + 1
    if left:
        refuse("zip_unreadable", "has another size than the zip says.", info.filename)


def unpacked_file(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BinaryIO:
    """Return a file of a zip as a temporary file on disk, open at its beginning: a small zip can hold a large one.

    Raises `TooLarge` (`zip_too_dense`).
    """
    name = shortened(info.filename)
    check_density(info.file_size, info.compress_size, f"“{name}” in the zip", "zip_too_dense", file=name)
    with ExitStack() as stack, archive.open(info) as opened:
        file: IO[bytes] = stack.enter_context(TemporaryFile())
        while data := opened.read(PIECE_BYTES):
            file.write(data)
        file.seek(0)
        stack.pop_all()
    return cast("BinaryIO", file)


def what_else(start: bytes) -> str:
    """Why a file is not taken, with what it seems to be."""
    if b"<svg" in start[:1000].lower():
        return "is an SVG, which can hold scripts. Save it as PNG."
    if not start:
        return "is empty."
    return "is neither an image (PNG, JPEG, GIF, WebP, AVIF) nor sound or video for browsers, whatever its name says."
