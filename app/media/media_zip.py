"""Files of a zip: selected by name and unpacked piece by piece, so that no file is ever whole in memory.

Pure: from an open binary file to pieces. Raises `Invalid` or `TooLarge`, before unpacking anything if possible.
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

from app.designs.content import MAX_FILE_NAME_CHARS
from app.errors import Invalid, TooLarge, shorten_echo
from app.media.content_types import detect_content_type_or_none
from app.media.match_file_names import PathMatches, match_names_to_paths
from app.uploads.containers import is_zip_entry_from_person, refuse_too_dense_archive

MB = 2**20
MEDIA_PIECE_BYTES = 2**18
MAX_PATH_CHARACTERS = 2 * MAX_FILE_NAME_CHARS  # with folders that are no part of the name
MAX_FILES_IN_MEDIA_ZIP = 20_000
MAX_MEDIA_ZIP_DIRECTORY_BYTES = 2**23  # `zipfile` reads all of it into memory
ZIP_END_SIGNATURE, ZIP_END_BYTES = b"PK\x05\x06", 22  # without the comment, which has at most 64 KB
ZIP64_LOCATOR_SIGNATURE, ZIP64_LOCATOR_BYTES = b"PK\x06\x07", 20  # precedes the end of zips with too many files
ZIP_ENCRYPTED_FLAG = 1
# Other types use as much memory as their headers ask for.
ALLOWED_COMPRESSION_TYPES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class MediaZip(NamedTuple):
    """A zip of media.

    Attributes:
        max_file_mb: Limit of each file in it, in MB.
        max_mb: Limit of all files of a campaign, in MB.
        folder: The folder that holds the files, with a slash at its end; None if the zip holds nothing else.
        skip_unnamed: Leave out files that no item names instead of refusing them.

    """

    file: BinaryIO
    max_file_mb: int
    max_mb: int
    folder: str | None = None
    skip_unnamed: bool = False


class UnpackedPiece(NamedTuple):
    """Some bytes of a file; `piece_number` counts the pieces of one file, `file_number` the files."""

    file_number: int
    name: str
    content_type: str
    file_size: int
    piece_number: int
    data: bytes


def raise_zip_refusal(error_code: str, problem: str, path: str = "") -> NoReturn:
    subject, details = (f"“{shorten_echo(path)}” in the zip ", {"file": shorten_echo(path)}) if path else ("", {})
    raise Invalid(f"{subject}{problem} Nothing was imported.", code=error_code, **details)


def iterate_unpacked_media_pieces_or_refuse(
    media_zip: MediaZip,
    referenced_names: Collection[str],
    existing_names: Collection[str],
    existing_bytes: int,
    path_by_respelled_name: dict[str, str] | None = None,
) -> Iterator[UnpackedPiece]:
    """Yield the files of a zip that items name and the campaign does not have yet.

    Args:
        media_zip: The zip.
        referenced_names: The names that items use.
        existing_names: Names of the campaign's files.
        existing_bytes: Total size of the campaign's files.
        path_by_respelled_name: Gets the names that are spelled differently in the zip, each with its path there.

    Raises:
        Invalid: `zip_unreadable`, `zip_encrypted`, `media_name_unsafe`, `media_twice`, `media_unnamed`,
            `media_type_unknown`.
        TooLarge: `zip_too_many_files`, `media_file_too_large`, `media_too_large`.

    """
    with open_zip_or_refuse(media_zip.file) as archive:
        entry_by_path = {
            path: info
            for path, info in zip_entries_by_path_or_refuse(archive).items()
            if path.startswith(media_zip.folder or "")
        }
        names_and_paths, respelled_paths = name_path_pairs_and_respellings_or_refuse(
            entry_by_path, media_zip, referenced_names, existing_names
        )
        if path_by_respelled_name is not None:
            path_by_respelled_name |= {
                name: path[len(media_zip.folder or "") :] for name, path in respelled_paths.items()
            }
        refuse_too_large_media_files([entry_by_path[path] for _, path in names_and_paths], media_zip, existing_bytes)
        for file_number, (name, path) in enumerate(names_and_paths):
            yield from iterate_pieces_of_zip_entry(archive, entry_by_path[path], name, file_number)


def join_names_in_quotation_marks(names: Sequence[str]) -> str:
    """Return `“a”`, `“a” and “b”`, `“a”, “b” and “c”`."""
    *others, last = (f"“{shorten_echo(name)}”" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


@contextmanager
def open_zip_or_refuse(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading. Raises `Invalid` (`zip_unreadable`), also later; `TooLarge` (`zip_too_many_files`)."""
    refuse_media_zip_with_too_many_files(file)
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as problem:
        raise_zip_refusal("zip_unreadable", f"This is not a readable zip ({problem}).")


def refuse_media_zip_with_too_many_files(file: BinaryIO) -> None:
    """Raise `TooLarge` for a zip with too many files, and `Invalid` for an unreadable one, by its last bytes alone."""
    size = file.seek(0, 2)
    file.seek(max(0, size - ZIP_END_BYTES - 2**16))
    tail = file.read()
    file.seek(0)
    position = tail.rfind(ZIP_END_SIGNATURE)
    if position < 0 or len(tail) < position + ZIP_END_BYTES:
        raise_zip_refusal("zip_unreadable", "This is not a readable zip.")
    is_zip64 = tail[max(0, position - ZIP64_LOCATOR_BYTES) : position].startswith(ZIP64_LOCATOR_SIGNATURE)
    file_count, directory_bytes = (
        int.from_bytes(tail[position + start : position + end], "little") for start, end in ((10, 12), (12, 16))
    )
    if is_zip64 or file_count > MAX_FILES_IN_MEDIA_ZIP or directory_bytes > MAX_MEDIA_ZIP_DIRECTORY_BYTES:
        raise TooLarge(
            f"This zip has more than {MAX_FILES_IN_MEDIA_ZIP:,} files. Nothing was imported. Import the items in "
            "several files.",
            code="zip_too_many_files",
        )


def zip_entries_by_path_or_refuse(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files of a zip by their paths.

    Raises `Invalid`: `media_name_unsafe`, `media_twice`, `zip_encrypted`, `zip_unreadable`.
    """
    entry_by_path: dict[str, zipfile.ZipInfo] = {}
    for entry in filter(is_zip_entry_from_person, archive.infolist()):
        path = path_of_zip_entry_or_refuse(entry)
        if path in entry_by_path:
            raise_zip_refusal("media_twice", "is in the zip twice.", path)
        entry_by_path[path] = entry
    return entry_by_path


def list_paths_of_zip_or_refuse(media_zip: MediaZip) -> list[str]:
    """Return the paths of the files of a zip. Reads and raises as `missing_and_unreferenced_names_of_zip` does."""
    with open_zip_or_refuse(media_zip.file) as archive:
        return list(zip_entries_by_path_or_refuse(archive))


def folder_around_all_paths_or_empty(paths: Collection[str]) -> str:
    """Return the one folder that contains all files, with a slash at its end; empty if there is none."""
    folders = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""


def name_path_pairs_and_respellings_or_refuse(
    paths: Collection[str], media_zip: MediaZip, referenced_names: Collection[str], existing_names: Collection[str]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the name that items use for each file, with its path, in the order of the paths; and the respelled names.

    Items name a file by its path below the folder of `media_zip`; without one, by its path, or by its path below the
    one
    folder that contains everything.
    """
    spellings_by_path = item_names_by_path(paths, media_zip.folder)
    matches = match_names_to_paths(spellings_by_path, referenced_names, existing_names)
    for path, names in matches.names_by_path.items():
        own_name = spellings_by_path[path][-1]
        if len(own_name) > MAX_FILE_NAME_CHARS:
            raise_zip_refusal("media_name_unsafe", f"has a name of more than {MAX_FILE_NAME_CHARS} characters.", path)
        if own_name in existing_names or not set(existing_names).isdisjoint(names):
            raise_zip_refusal(
                "media_twice", "is in the zip twice, or the campaign already has a file of that name.", path
            )
    unreferenced_paths = [path for path, names in matches.names_by_path.items() if not names]
    if unreferenced_paths and not media_zip.skip_unnamed:
        matched_names = {name for names in matches.names_by_path.values() for name in names}
        raise_unreferenced_files_refusal(
            unreferenced_paths, matches, sorted({*referenced_names} - matched_names - {*existing_names})
        )
    all_matched_names = [name for names in matches.names_by_path.values() for name in names]
    if len(all_matched_names) != len(set(all_matched_names)):
        duplicate_path = next(
            path for path, names in matches.names_by_path.items() if all_matched_names.count(names[0]) > 1
        )
        raise_zip_refusal(
            "media_twice", "is in the zip twice, or the campaign already has a file of that name.", duplicate_path
        )
    return [
        (name, path) for path, names in matches.names_by_path.items() for name in names
    ], matches.path_by_respelled_name


def item_names_by_path(paths: Collection[str], folder: str | None) -> dict[str, list[str]]:
    """Return by path the names that items may use for it; `folder` as in `MediaZip`."""
    whole = folder_around_all_paths_or_empty(paths) if folder is None else folder
    return {path: ([path] if folder is None else []) + [path.removeprefix(whole)] for path in paths}


class ComparedNames(NamedTuple):
    """The names that items use and a zip lacks, and its paths that no item names."""

    missing_names: list[str]
    unreferenced_paths: list[str]


def missing_and_unreferenced_names_of_zip(
    media_zip: MediaZip, referenced_names: Collection[str], existing_names: Collection[str]
) -> ComparedNames:
    """Compare the files of a zip with those that items name.

    Only the directory at the end of the zip is read; the bytes before it may be missing. Raises what
    `zip_entries_by_path_or_refuse` and `open_zip_or_refuse` raise.
    """
    paths = list_paths_of_zip_or_refuse(media_zip)
    matches = match_names_to_paths(item_names_by_path(paths, media_zip.folder), referenced_names, existing_names)
    used = {name for names in matches.names_by_path.values() for name in names}
    missing_names = [name for name in referenced_names if name not in used and name not in existing_names]
    return ComparedNames(missing_names, [path for path, names in matches.names_by_path.items() if not names])


def raise_unreferenced_files_refusal(
    unreferenced_paths: Sequence[str], matches: PathMatches, missing_names: Sequence[str]
) -> NoReturn:
    """Refuse files of a zip that no item names; list them, and the names that the zip lacks."""
    for path in unreferenced_paths:
        if path in matches.ambiguous_name_by_path:
            name = shorten_echo(matches.ambiguous_name_by_path[path])
            raise_zip_refusal(
                "media_unnamed",
                f"could match the name “{name}” in the items, but so could another file. Use the exact file name.",
                path,
            )
    problem = f"No item names {join_names_in_quotation_marks(unreferenced_paths)} in the zip."
    missing_sentence = (
        f" It lacks {join_names_in_quotation_marks(missing_names)}, which items name." if missing_names else ""
    )
    pronoun = "them" if len(unreferenced_paths) > 1 else "it"
    advice = f" Take {pronoun} out of the zip, name {pronoun} in the table, or leave out files that no item names."
    if not any(matches.names_by_path.values()):
        advice = " Did you choose the column of file names as the one to show?"
    raise Invalid(
        f"{problem}{missing_sentence}{advice} Nothing was imported.",
        code="media_unnamed",
        file=shorten_echo(unreferenced_paths[0]),
        unnamed=[*map(shorten_echo, unreferenced_paths)],
        missing=[*map(shorten_echo, missing_names)],
    )


def path_of_zip_entry_or_refuse(entry: zipfile.ZipInfo) -> str:
    """Return the path of a file in a zip. Raises `Invalid` if it leads out of the zip or is no plain file."""
    path = normalize("NFC", entry.filename).replace("\\", "/")  # some programs on Windows write backslashes
    parts = PurePosixPath(path).parts
    is_odd = path != path.strip() or ":" in path or not path.isprintable() or len(path) > MAX_PATH_CHARACTERS
    if is_odd or path.startswith("/") or not {".", ".."}.isdisjoint(parts) or path != "/".join(parts):
        raise_zip_refusal(
            "media_name_unsafe",
            "has a name that cannot be used: a path that leads elsewhere, or unusual characters.",
            path,
        )
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise_zip_refusal("media_name_unsafe", "is a link or a device, not a file.", path)
    if entry.flag_bits & ZIP_ENCRYPTED_FLAG:
        raise_zip_refusal("zip_encrypted", "is encrypted. Pack it without a password.", path)
    if entry.compress_type not in ALLOWED_COMPRESSION_TYPES:
        raise_zip_refusal("zip_unreadable", "uses an unusual compression method. Pack it as usual.", path)
    return path


def refuse_too_large_media_files(
    entries: Collection[zipfile.ZipInfo], media_zip: MediaZip, existing_bytes: int
) -> None:
    """Refuse files that are too large by the zip's directory; `zipfile` unpacks no more of a file than that says."""
    for entry in entries:
        if entry.file_size > media_zip.max_file_mb * MB:
            raise TooLarge(
                f"“{shorten_echo(entry.filename)}” in the zip has {entry.file_size / MB:,.0f} MB; the maximum is "
                f"{media_zip.max_file_mb} MB. Nothing was imported.",
                code="media_file_too_large",
                file=shorten_echo(entry.filename),
            )
    total_bytes = existing_bytes + sum(entry.file_size for entry in entries)
    if total_bytes > media_zip.max_mb * MB:
        raise TooLarge(
            f"With this zip the campaign would have {total_bytes / MB:,.0f} MB of files; the maximum is "
            f"{media_zip.max_mb} MB. Nothing was imported.",
            code="media_too_large",
        )


def iterate_pieces_of_zip_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, file_number: int
) -> Iterator[UnpackedPiece]:
    """Yield the pieces of one file. Its checksum is verified at its end."""
    with archive.open(entry) as stream:
        data = stream.read(MEDIA_PIECE_BYTES)
        file_type = detect_content_type_or_none(data)
        if file_type is None:
            raise_zip_refusal("media_type_unknown", predicate_on_unsupported_file_type(data), entry.filename)
        piece_number, bytes_left = 0, entry.file_size
        while data:
            yield UnpackedPiece(file_number, name, file_type, entry.file_size, piece_number, data)
            bytes_left -= len(data)
            data, piece_number = stream.read(MEDIA_PIECE_BYTES), piece_number + 1
    if bytes_left:
        raise_zip_refusal("zip_unreadable", "has a different size than the zip says.", entry.filename)


def unpack_zip_entry_to_temporary_file(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> BinaryIO:
    """Return a file of a zip as a temporary file on disk, open at its beginning: a small zip can hold a large one.

    Raises `TooLarge` (`zip_too_dense`).
    """
    name = shorten_echo(entry.filename)
    refuse_too_dense_archive(entry.file_size, entry.compress_size, f"“{name}” in the zip", "zip_too_dense", file=name)
    with ExitStack() as stack, archive.open(entry) as stream:
        file: IO[bytes] = stack.enter_context(TemporaryFile())
        while data := stream.read(MEDIA_PIECE_BYTES):
            file.write(data)
        file.seek(0)
        stack.pop_all()
    return cast("BinaryIO", file)


def predicate_on_unsupported_file_type(first_bytes: bytes) -> str:
    """Return why a file is refused, with its apparent type."""
    if b"<svg" in first_bytes[:1000].lower():
        return "is an SVG, which can hold scripts. Save it as PNG."
    if not first_bytes:
        return "is empty."
    return "is neither an image (PNG, JPEG, GIF, WebP, AVIF) nor audio or video for browsers, despite its name."
