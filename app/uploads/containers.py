"""Containers of a table, gzip and zip, unpacked while they are read; files of other formats are refused by name."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Collection
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, cast

from app.errors import (
    Invalid,
    TooLarge,
    join_names,
    shorten_echo,
    shortened_names_that_message_shows,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

MB = 2**20
UNPACK_BUFFER_BYTES = 2**18
FORMAT_HEAD_BYTES = 2**10  # enough to recognise a format
ZIP_SIGNATURE, GZIP_SIGNATURE = b"PK\x03\x04", b"\x1f\x8b"
MAX_FILES_IN_TABLE_ZIP, MAX_TABLE_ZIP_DIRECTORY_BYTES = 10_000, 2**21
ZIP_END_SIGNATURE, ZIP_END_BYTES = b"PK\x05\x06", 22  # without the zip's comment
SYSTEM_FILE_NAMES = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}
ZIP_ENCRYPTED_FLAG = 1
DENSE_BYTES = 2**23  # tables up to this size may have any density
MAX_DENSITY = 200  # bytes of a table for each byte of its packed form; tables of texts have 3 to 20

SAVE_AS_CSV_ADVICE = "Save the table as CSV in UTF-8 and upload that."
EXCEL_ADVICE = "In Excel, save it as an Excel workbook (.xlsx) or as CSV UTF-8, and upload that."
LIBREOFFICE_ADVICE = "In LibreOffice, save it as Text CSV in UTF-8 and upload that."
APPLE_ADVICE = "Choose File, Export To, CSV, with Unicode (UTF-8) as its encoding, and upload that."
DOCUMENT_ADVICE = "Copy its table into a spreadsheet, save that as CSV in UTF-8, and upload it."
UNPACK_ADVICE = "Unpack it and upload the table."
R_ADVICE = "In R, write the table with write.csv and upload that."


class ForeignFormat(NamedTuple):
    """A format that is no table: its name as part of a sentence, and advice."""

    phrase: str
    advice: str


def advice_to_convert_by_pandas(pandas_reader: str) -> str:
    return f"Convert it, for example with pandas.{pandas_reader}(…).to_csv(…, index=False), and upload that."


EXCEL_FORMAT = ForeignFormat("an Excel workbook of another kind than .xlsx", EXCEL_ADVICE)
OLD_EXCEL_FORMAT = ForeignFormat("an old Excel workbook (.xls)", EXCEL_ADVICE)
FORMAT_BY_SIGNATURE = {  # by (offset, bytes), long enough that no header of a table begins with them
    (0, b"PAR1\x15"): ForeignFormat("a Parquet file", advice_to_convert_by_pandas("read_parquet")),
    (0, b"ARROW1\0\0"): ForeignFormat("an Arrow or Feather file", advice_to_convert_by_pandas("read_feather")),
    (0, b"Obj\x01"): ForeignFormat("an Avro file", SAVE_AS_CSV_ADVICE),
    (0, b"\x80\x04\x95"): ForeignFormat("a Python pickle", advice_to_convert_by_pandas("read_pickle")),
    (0, b"\x80\x05\x95"): ForeignFormat("a Python pickle", advice_to_convert_by_pandas("read_pickle")),
    (0, b"\x89HDF\r\n\x1a\n"): ForeignFormat("an HDF5 file", advice_to_convert_by_pandas("read_hdf")),
    (0, b"SQLite format 3\0"): ForeignFormat("an SQLite database", SAVE_AS_CSV_ADVICE),
    (0, b"\x93NUMPY"): ForeignFormat("a NumPy array", SAVE_AS_CSV_ADVICE),
    (0, b"$FL2@"): ForeignFormat("an SPSS file (.sav)", advice_to_convert_by_pandas("read_spss")),
    (0, b"$FL3@"): ForeignFormat("an SPSS file (.zsav)", advice_to_convert_by_pandas("read_spss")),
    (0, b"<stata_dta>"): ForeignFormat("a Stata file (.dta)", advice_to_convert_by_pandas("read_stata")),
    (0, b"RDX2\n"): ForeignFormat("an R data file", R_ADVICE),
    (0, b"RDX3\n"): ForeignFormat("an R data file", R_ADVICE),
    (0, b"X\n\0\0\0"): ForeignFormat("an R data file (.rds)", R_ADVICE),
    (0, b"%PDF-"): ForeignFormat("a PDF document", DOCUMENT_ADVICE),
    (0, b"{\\rtf"): ForeignFormat("an RTF document", DOCUMENT_ADVICE),
    (0, b"\x89PNG\r\n\x1a\n"): ForeignFormat(
        "an image (PNG)", "Images that items name belong in a zip next to the table."
    ),
    (0, b"\xff\xd8\xff"): ForeignFormat("an image (JPEG)", "Images that items name belong in a zip next to the table."),
    (4, b"1AY&SY"): ForeignFormat("a bzip2 archive", UNPACK_ADVICE),
    (0, b"\xfd7zXZ\0"): ForeignFormat("an xz archive", UNPACK_ADVICE),
    (0, b"\x28\xb5\x2f\xfd"): ForeignFormat("a Zstandard archive", UNPACK_ADVICE),
    (0, b"7z\xbc\xaf\x27\x1c"): ForeignFormat("a 7-Zip archive", UNPACK_ADVICE),
    (0, b"Rar!\x1a\x07"): ForeignFormat("a RAR archive", UNPACK_ADVICE),
    (257, b"ustar"): ForeignFormat("a tar archive", UNPACK_ADVICE),
}
OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
FORMAT_BY_OLE_PART = {  # by the name of a part
    "Workbook": OLD_EXCEL_FORMAT,
    "Book": OLD_EXCEL_FORMAT,
    "WordDocument": ForeignFormat("an old Word document (.doc)", DOCUMENT_ADVICE),
    "PowerPoint Document": ForeignFormat("an old PowerPoint presentation (.ppt)", DOCUMENT_ADVICE),
    "EncryptedPackage": ForeignFormat(
        "an Office document with a password", "Save it without a password and upload that."
    ),
}
FORMAT_BY_ZIP_PATH = {  # by the beginning of a part's path
    "xl/": EXCEL_FORMAT,
    "word/": ForeignFormat("a Word document", DOCUMENT_ADVICE),
    "ppt/": ForeignFormat("a PowerPoint presentation", DOCUMENT_ADVICE),
    "Index/Tables/": ForeignFormat("an Apple Numbers document", APPLE_ADVICE),
    "Index/CalculationEngine": ForeignFormat("an Apple Numbers document", APPLE_ADVICE),
    "Index/": ForeignFormat("an Apple Numbers, Pages or Keynote document", APPLE_ADVICE),
    "Index.zip": ForeignFormat("an Apple Numbers, Pages or Keynote document", APPLE_ADVICE),
    "META-INF/container.xml": ForeignFormat("an e-book (EPUB)", DOCUMENT_ADVICE),
    "META-INF/MANIFEST.MF": ForeignFormat("a Java archive", UNPACK_ADVICE),
}
FORMAT_BY_ZIP_MIMETYPE = {  # by the beginning of the part `mimetype`
    b"application/vnd.oasis.opendocument.spreadsheet": ForeignFormat(
        "an OpenDocument spreadsheet (.ods)", LIBREOFFICE_ADVICE
    ),
    b"application/vnd.oasis.opendocument.text": ForeignFormat("an OpenDocument text (.odt)", DOCUMENT_ADVICE),
    b"application/vnd.oasis.opendocument": ForeignFormat("an OpenDocument file", DOCUMENT_ADVICE),
    b"application/epub+zip": ForeignFormat("an e-book (EPUB)", DOCUMENT_ADVICE),
}
FORMAT_BY_MARKUP_START = {  # by the beginning of the text in lower case
    "<!doctype html": ForeignFormat("a web page (HTML)", "Was it downloaded from a page that asks for a login?"),
    "<html": ForeignFormat("a web page (HTML)", "Was it downloaded from a page that asks for a login?"),
    "<?xml": ForeignFormat("an XML file", "Convert it to CSV in UTF-8 and upload that."),
}


class UnpackedTable(NamedTuple):
    """An open table, its name, and a note about its container."""

    file: BinaryIO
    name: str
    note: str | None = None


class ArchiveCodes(NamedTuple):
    """Codes of refusals of an archive around a table."""

    damaged: str
    dense: str


OF_GZIP = ArchiveCodes("gzip_unreadable", "gzip_too_dense")
OF_ZIP = ArchiveCodes("zip_unreadable", "zip_too_dense")


def raise_foreign_format_refusal(file_format: ForeignFormat) -> NoReturn:
    error_code = "excel_workbook" if file_format in (EXCEL_FORMAT, OLD_EXCEL_FORMAT) else "not_a_table"
    raise Invalid(f"This is {file_format.phrase}. {file_format.advice} Nothing was imported.", code=error_code)


def open_table_in_uploaded_file_or_refuse(file: BinaryIO, file_name: str, *, max_mb: int) -> UnpackedTable:
    """Return the table in a file: the file itself, or the table that a gzip or zip contains.

    Raises `Invalid` (`excel_workbook`, `not_a_table`, `gzip_unreadable`, `zip_unreadable`, `zip_encrypted`,
    `zip_not_one_table`) and, while an unpacked table is read, `TooLarge` (`file_too_large`, `gzip_too_dense`,
    `zip_too_dense`).
    """
    start = peek_first_bytes(file)
    if start.startswith(GZIP_SIGNATURE):
        table = unpack_table_of_gzip(file, file_name, max_mb)
    elif start.startswith((ZIP_SIGNATURE, ZIP_END_SIGNATURE)):
        table = unpack_only_table_of_zip_or_refuse(file, max_mb)
    else:
        refuse_binary_format(file, start)
        return UnpackedTable(file, file_name)
    inner_start = peek_first_bytes(table.file)
    if inner_start.startswith((GZIP_SIGNATURE, ZIP_SIGNATURE)):
        raise_foreign_format_refusal(ForeignFormat("an archive in an archive", UNPACK_ADVICE))
    refuse_binary_format(table.file, inner_start)
    return table


def peek_first_bytes(file: BinaryIO) -> bytes:
    start = file.read(FORMAT_HEAD_BYTES)
    file.seek(0)
    return start


def refuse_binary_format(file: BinaryIO, first_bytes: bytes) -> None:
    """Raise `Invalid` (`excel_workbook`, `not_a_table`) for a file of a known format that is no table."""
    for (offset, magic), file_format in FORMAT_BY_SIGNATURE.items():
        if first_bytes.startswith(magic, offset):
            raise_foreign_format_refusal(file_format)
    if first_bytes.startswith(OLE_SIGNATURE):
        raise_foreign_format_refusal(old_office_format_by_first_sector(file, first_bytes))


def refuse_html_or_xml_table(first_line: str) -> None:
    """Raise `Invalid` (`excel_workbook`, `not_a_table`) for HTML and XML."""
    text = first_line.lstrip().lower()
    for beginning, file_format in FORMAT_BY_MARKUP_START.items():
        if text.startswith(beginning):
            raise_foreign_format_refusal(file_format)


def old_office_format_by_first_sector(file: BinaryIO, start: bytes) -> ForeignFormat:
    """Return the format of an Office document from before 2007, by the names in its first directory sector."""
    sector_bytes = 1 << min(int.from_bytes(start[30:32], "little"), 12)
    sector = int.from_bytes(start[48:52], "little")
    file.seek((sector + 1) * sector_bytes)
    directory = file.read(4096)
    file.seek(0)
    for name, file_format in FORMAT_BY_OLE_PART.items():
        if name.encode("utf-16-le") in directory:
            return file_format
    return ForeignFormat("a document of Microsoft Office", SAVE_AS_CSV_ADVICE)


class UnpackedStream(io.RawIOBase):
    """A file in an archive, unpacked while it is read, up to a limit and to `MAX_DENSITY`; seekable.

    Args:
        stream: Its unpacked bytes.
        max_mb: The limit, in MB.
        packed_bytes: Size of its packed form.
        codes: Codes for a damaged archive and for one that is too dense.
        keep_alive: Must live as long as the stream.

    """

    def __init__(
        self, stream: IO[bytes], max_mb: int, packed_bytes: int, codes: ArchiveCodes, keep_alive: object = None
    ) -> None:
        self.stream, self.max_mb, self.packed_bytes, self.codes, self.keep_alive = (
            stream,
            max_mb,
            packed_bytes,
            codes,
            keep_alive,
        )
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = self.stream.seek(offset, whence)
        return self.position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        try:
            data = self.stream.read(len(view))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
            raise_damaged_archive_refusal(self.codes.damaged)
        self.position += len(data)
        if self.position > self.max_mb * MB:
            raise TooLarge(
                f"Unpacked, this file is larger than the maximum of {self.max_mb} MB. Nothing was imported. "
                "Split it, or raise EASEL_MAX_UPLOAD_MB.",
                code="file_too_large",
            )
        refuse_too_dense_archive(self.position, self.packed_bytes, "This table", self.codes.dense)
        view[: len(data)] = data
        return len(data)


def refuse_too_dense_archive(unpacked_bytes: int, packed_bytes: int, table: str, code: str, **details: Any) -> None:
    """Refuse a table that is packed more densely than tables are: a small archive can contain a large file.

    Args:
        unpacked_bytes: Size of the table, or of the part unpacked so far.
        packed_bytes: Size of its packed form.
        table: Its name in the message.
        code: Code of the refusal.
        details: Further facts of the refusal.

    Raises:
        TooLarge: With this code.

    """
    if unpacked_bytes > DENSE_BYTES and unpacked_bytes > MAX_DENSITY * packed_bytes:
        raise TooLarge(
            f"{table} is more than {MAX_DENSITY} times as large as its packed form, which is unusual for a table. "
            "Nothing was imported. Send the table unpacked.",
            code=code,
            **details,
        )


def raise_damaged_archive_refusal(error_code: str) -> NoReturn:
    kind = error_code.partition("_")[0]
    message = f"This {kind} file is damaged or was cut off. Pack it again. Nothing was imported."
    raise Invalid(message, code=error_code) from None


def buffered_reader_of_raw_stream(raw: UnpackedStream) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(raw, UNPACK_BUFFER_BYTES))


def unpack_table_of_gzip(file: BinaryIO, file_name: str, max_mb: int) -> UnpackedTable:
    inner_name = file_name[:-3] if file_name.lower().endswith(".gz") else file_name
    stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    packed_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    raw = UnpackedStream(stream, max_mb, packed_bytes, OF_GZIP)
    return UnpackedTable(buffered_reader_of_raw_stream(raw), inner_name, "The file was unpacked (gzip).")


def unpack_only_table_of_zip_or_refuse(file: BinaryIO, max_mb: int) -> UnpackedTable:
    """Return the only table in a zip.

    Raises `Invalid` (`excel_workbook`, `not_a_table`, `zip_unreadable`, `zip_encrypted`, `zip_not_one_table`).
    """
    refuse_table_zip_with_too_many_files(file)
    try:
        archive = zipfile.ZipFile(file)
        files = [info for info in archive.infolist() if is_zip_entry_from_person(info)]
        refuse_zipped_document(archive, {info.filename for info in files})
        if len(files) != 1:
            raise_not_one_table_refusal([info.filename for info in files])
        entry = files[0]
        if entry.flag_bits & ZIP_ENCRYPTED_FLAG:
            message = "This zip has a password. Pack the table without one. Nothing was imported."
            raise Invalid(message, code="zip_encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise_damaged_archive_refusal("zip_unreadable")
        stream = archive.open(entry)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        raise_damaged_archive_refusal("zip_unreadable")
    inner_name = PurePath(entry.filename.replace("\\", "/")).name
    note = f"“{shorten_echo(inner_name)}” was unpacked from the zip."
    raw = UnpackedStream(stream, max_mb, entry.compress_size, OF_ZIP, archive)
    return UnpackedTable(buffered_reader_of_raw_stream(raw), inner_name, note)


def refuse_table_zip_with_too_many_files(file: BinaryIO) -> None:
    """Refuse a zip with too many files by its last bytes, before its directory is read.

    Raises `Invalid` (`zip_unreadable`, `zip_not_one_table`).
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - ZIP_END_BYTES - 2**16))
    tail = file.read()
    file.seek(0)
    end = tail[tail.rfind(ZIP_END_SIGNATURE) :] if ZIP_END_SIGNATURE in tail else b""
    if len(end) < ZIP_END_BYTES:
        raise_damaged_archive_refusal("zip_unreadable")
    count, length = int.from_bytes(end[10:12], "little"), int.from_bytes(end[12:16], "little")
    if count > MAX_FILES_IN_TABLE_ZIP or length > MAX_TABLE_ZIP_DIRECTORY_BYTES:
        raise_not_one_table_refusal([], count)


def is_zip_entry_from_person(entry: zipfile.ZipInfo) -> bool:
    """Return whether a person put a file into the zip, and not their system."""
    return not entry.is_dir() and SYSTEM_FILE_NAMES.isdisjoint(entry.filename.replace("\\", "/").split("/"))


def refuse_zipped_document(archive: zipfile.ZipFile, paths: Collection[str]) -> None:
    """Raise `Invalid` (`excel_workbook`, `not_a_table`) for a document that is a zip of its parts."""
    if "mimetype" in paths:
        with archive.open("mimetype") as part:
            mimetype_text = part.read(100)
        for mimetype, file_format in FORMAT_BY_ZIP_MIMETYPE.items():
            if mimetype_text.startswith(mimetype):
                raise_foreign_format_refusal(file_format)
    for beginning, file_format in FORMAT_BY_ZIP_PATH.items():
        if any(path.startswith(beginning) for path in paths):
            raise_foreign_format_refusal(file_format)
    if "[Content_Types].xml" in paths:
        raise_foreign_format_refusal(EXCEL_FORMAT)


def raise_not_one_table_refusal(paths: list[str], file_count: int = 0) -> NoReturn:
    contents = (
        f"{file_count or len(paths):,} files ({join_names(paths)})"
        if paths
        else f"{file_count:,} files"
        if file_count
        else "no file"
    )
    details: dict[str, Any] = {"files": shortened_names_that_message_shows(paths)}
    raise Invalid(
        f"This zip holds {contents}, but one table is needed here. Upload the table alone; images, recordings and "
        "videos that items name belong in a zip next to it. Nothing was imported.",
        code="zip_not_one_table",
        **details,
    )
