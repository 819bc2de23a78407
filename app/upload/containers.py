"""Files around a table, gzip and zip, which are unpacked while they are read; other files are called by their name."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Collection
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, cast

from app.errors import Invalid, TooLarge, listed, shortened, some_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

MB = 2**20
READ_AT_ONCE = 2**18  # bytes
HEAD_BYTES = 2**10  # looked at to tell a kind of file
ZIP, GZIP = b"PK\x03\x04", b"\x1f\x8b"
MOST_FILES_IN_ZIP, LARGEST_DIRECTORY = 10_000, 2**21
END, END_BYTES = b"PK\x05\x06", 22  # of a zip, without its comment
LEFT_BY_SYSTEMS = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}
ENCRYPTED = 1  # a bit of a file's flags
DENSE_BYTES = 2**23  # up to this size a table may be packed as densely as it likes
MAX_DENSITY = 200  # bytes of a table for each byte of its packed form; tables of texts have 3 to 20

SAVE_AS_CSV = "Save the table as CSV in UTF-8 and upload that."
IN_EXCEL = "In Excel, save it as CSV UTF-8 and upload that."
IN_LIBREOFFICE = "In LibreOffice, save it as Text CSV in UTF-8 and upload that."
IN_APPLE = "Choose File, Export To, CSV, with Unicode (UTF-8) as its encoding, and upload that."
IN_WORDS = "Copy its table into a spreadsheet, save that as CSV in UTF-8, and upload it."
UNPACK = "Unpack it and upload the table."
IN_R = "In R, write the table with write.csv and upload that."


class Container(NamedTuple):
    """A kind of file that is no table: its name in a sentence, and what to do."""

    name: str
    advice: str


def in_pandas(reader: str) -> str:
    return f"Convert it, for example with pandas.{reader}(…).to_csv(…, index=False), and upload that."


EXCEL = Container("an Excel workbook", IN_EXCEL)
OLD_EXCEL = Container("an old Excel workbook (.xls)", IN_EXCEL)
MAGIC = {  # (offset, bytes): what it is; with enough bytes that no header of a table begins so
    (0, b"PAR1\x15"): Container("a Parquet file", in_pandas("read_parquet")),
    (0, b"ARROW1\0\0"): Container("an Arrow or Feather file", in_pandas("read_feather")),
    (0, b"Obj\x01"): Container("an Avro file", SAVE_AS_CSV),
    (0, b"\x80\x04\x95"): Container("a Python pickle", in_pandas("read_pickle")),
    (0, b"\x80\x05\x95"): Container("a Python pickle", in_pandas("read_pickle")),
    (0, b"\x89HDF\r\n\x1a\n"): Container("an HDF5 file", in_pandas("read_hdf")),
    (0, b"SQLite format 3\0"): Container("an SQLite database", SAVE_AS_CSV),
    (0, b"\x93NUMPY"): Container("a NumPy array", SAVE_AS_CSV),
    (0, b"$FL2@"): Container("an SPSS file (.sav)", in_pandas("read_spss")),
    (0, b"$FL3@"): Container("an SPSS file (.zsav)", in_pandas("read_spss")),
    (0, b"<stata_dta>"): Container("a Stata file (.dta)", in_pandas("read_stata")),
    (0, b"RDX2\n"): Container("an R data file", IN_R),
    (0, b"RDX3\n"): Container("an R data file", IN_R),
    (0, b"X\n\0\0\0"): Container("an R data file (.rds)", IN_R),
    (0, b"%PDF-"): Container("a PDF document", IN_WORDS),
    (0, b"{\\rtf"): Container("an RTF document", IN_WORDS),
    (0, b"\x89PNG\r\n\x1a\n"): Container("an image (PNG)", "Images that items name come as a zip beside the table."),
    (0, b"\xff\xd8\xff"): Container("an image (JPEG)", "Images that items name come as a zip beside the table."),
    (4, b"1AY&SY"): Container("a bzip2 archive", UNPACK),
    (0, b"\xfd7zXZ\0"): Container("an xz archive", UNPACK),
    (0, b"\x28\xb5\x2f\xfd"): Container("a Zstandard archive", UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c"): Container("a 7-Zip archive", UNPACK),
    (0, b"Rar!\x1a\x07"): Container("a RAR archive", UNPACK),
    (257, b"ustar"): Container("a tar archive", UNPACK),
}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
IN_OLE = {  # the name of a part: what the whole is
    "Workbook": OLD_EXCEL,
    "Book": OLD_EXCEL,
    "WordDocument": Container("an old Word document (.doc)", IN_WORDS),
    "PowerPoint Document": Container("an old PowerPoint presentation (.ppt)", IN_WORDS),
    "EncryptedPackage": Container("an Office document with a password", "Save it without one, as CSV UTF-8."),
}
IN_ZIP = {  # how the path of a part begins: what the whole is
    "xl/": EXCEL,
    "word/": Container("a Word document", IN_WORDS),
    "ppt/": Container("a PowerPoint presentation", IN_WORDS),
    "Index/Tables/": Container("an Apple Numbers document", IN_APPLE),
    "Index/CalculationEngine": Container("an Apple Numbers document", IN_APPLE),
    "Index/": Container("an Apple Numbers, Pages or Keynote document", IN_APPLE),
    "Index.zip": Container("an Apple Numbers, Pages or Keynote document", IN_APPLE),
    "META-INF/container.xml": Container("an e-book (EPUB)", IN_WORDS),
    "META-INF/MANIFEST.MF": Container("a Java archive", UNPACK),
}
MIMETYPES = {  # of a zip's part of that name
    b"application/vnd.oasis.opendocument.spreadsheet": Container("an OpenDocument spreadsheet (.ods)", IN_LIBREOFFICE),
    b"application/vnd.oasis.opendocument.text": Container("an OpenDocument text (.odt)", IN_WORDS),
    b"application/vnd.oasis.opendocument": Container("an OpenDocument file", IN_WORDS),
    b"application/epub+zip": Container("an e-book (EPUB)", IN_WORDS),
}
MARKUP = {  # how a text begins, in small letters: what it is
    "<!doctype html": Container("a web page (HTML)", "Was it downloaded from a page that asks for a login?"),
    "<html": Container("a web page (HTML)", "Was it downloaded from a page that asks for a login?"),
    "<?xml": Container("an XML file", "Convert it to CSV in UTF-8 and upload that."),
}


class UnpackedTable(NamedTuple):
    """A table as it is read: an open file, its name, and a note about what it was packed in."""

    file: BinaryIO
    name: str
    note: str | None = None


class ArchiveCodes(NamedTuple):
    """Codes of refusals of an archive around a table."""

    damaged: str
    dense: str


OF_GZIP = ArchiveCodes("gzip_unreadable", "gzip_too_dense")
OF_ZIP = ArchiveCodes("zip_unreadable", "zip_too_dense")


def refuse_container(container: Container) -> NoReturn:
    code = "excel_workbook" if container in (EXCEL, OLD_EXCEL) else "not_a_table"
    raise Invalid(f"This is {container.name}. {container.advice} Nothing was imported.", code=code)


def unpacked(file: BinaryIO, name: str, *, max_mb: int) -> UnpackedTable:
    """The table in a file: the file itself, or the one that a gzip or zip holds.

    Raises `Invalid` (`excel_workbook`, `not_a_table`, `gzip_unreadable`, `zip_unreadable`, `zip_encrypted`,
    `zip_not_one_table`) and, while an unpacked table is read, `TooLarge` (`file_too_large`, `gzip_too_dense`,
    `zip_too_dense`).
    """
    start = first_bytes_of(file)
    if start.startswith(GZIP):
        table = gzipped(file, name, max_mb)
    elif start.startswith((ZIP, END)):
        table = zipped(file, max_mb)
    else:
        refuse_other(file, start)
        return UnpackedTable(file, name)
    inner = first_bytes_of(table.file)
    if inner.startswith((GZIP, ZIP)):
        refuse_container(Container("an archive in an archive", UNPACK))
    refuse_other(table.file, inner)
    return table


def first_bytes_of(file: BinaryIO) -> bytes:
    start = file.read(HEAD_BYTES)
    file.seek(0)
    return start


def refuse_other(file: BinaryIO, start: bytes) -> None:
    """Raises `Invalid` (`excel_workbook`, `not_a_table`) for a file that is known not to be a table."""
    for (offset, magic), container in MAGIC.items():
        if start.startswith(magic, offset):
            refuse_container(container)
    if start.startswith(OLE):
        refuse_container(in_ole(file, start))


def refuse_markup(first_line: str) -> None:
    """Raises `Invalid` (`excel_workbook`, `not_a_table`)."""
    text = first_line.lstrip().lower()
    for beginning, container in MARKUP.items():
        if text.startswith(beginning):
            refuse_container(container)


def in_ole(file: BinaryIO, start: bytes) -> Container:
    """The kind of an Office document of before 2007, by the names in its first directory sector."""
    sector_bytes = 1 << min(int.from_bytes(start[30:32], "little"), 12)
    sector = int.from_bytes(start[48:52], "little")
    file.seek((sector + 1) * sector_bytes)
    directory = file.read(4096)
    file.seek(0)
    for name, container in IN_OLE.items():
        if name.encode("utf-16-le") in directory:
            return container
    return Container("a document of Microsoft Office", SAVE_AS_CSV)


class UnpackedFile(io.RawIOBase):
    """A file in an archive, unpacked while it is read, up to a limit and to `MAX_DENSITY`; it can be read again from
    its beginning.

    Args:
        stream: Its unpacked bytes.
        max_mb: The limit, in MB.
        packed_bytes: Size of its packed form.
        codes: Of an archive that is damaged, and of one that is too dense.
        keep: Must live as long as the stream.

    """

    def __init__(
        self, stream: IO[bytes], max_mb: int, packed_bytes: int, codes: ArchiveCodes, keep: object = None
    ) -> None:
        self.stream, self.max_mb, self.packed_bytes, self.codes, self.keep = stream, max_mb, packed_bytes, codes, keep
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
            refuse_damaged(self.codes.damaged)
        self.position += len(data)
        if self.position > self.max_mb * MB:
            raise TooLarge(
                f"Unpacked, this file has more than {self.max_mb} MB, which is the most. Nothing was imported. "
                "Split it, or raise EASEL_MAX_UPLOAD_MB.",
                code="file_too_large",
            )
        check_density(self.position, self.packed_bytes, "This table", self.codes.dense)
        view[: len(data)] = data
        return len(data)


def check_density(unpacked_bytes: int, packed_bytes: int, table: str, code: str, **details: Any) -> None:
    """Refuse a table that is packed more densely than tables are: a small archive can hold a large file.

    Args:
        unpacked_bytes: Size of the table, or of what was unpacked of it so far.
        packed_bytes: Size of its packed form.
        table: What the message calls it.
        code: Code of the refusal.
        details: Further facts of the refusal.

    Raises:
        TooLarge: With this code.

    """
    if unpacked_bytes > DENSE_BYTES and unpacked_bytes > MAX_DENSITY * packed_bytes:
        raise TooLarge(
            f"{table} is more than {MAX_DENSITY} times as large as its packed form, as no usual table is. Nothing was "
            "imported. Send the table without packing it.",
            code=code,
            **details,
        )


def refuse_damaged(code: str) -> NoReturn:
    kind = code.partition("_")[0]
    words = f"This {kind} file is damaged or was cut off. Pack it again. Nothing was imported."
    raise Invalid(words, code=code) from None


def buffered(raw: UnpackedFile) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(raw, READ_AT_ONCE))


def gzipped(file: BinaryIO, name: str, max_mb: int) -> UnpackedTable:
    inner = name[:-3] if name.lower().endswith(".gz") else name
    stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    packed_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    raw = UnpackedFile(stream, max_mb, packed_bytes, OF_GZIP)
    return UnpackedTable(buffered(raw), inner, "The file was unpacked (gzip).")


def zipped(file: BinaryIO, max_mb: int) -> UnpackedTable:
    """Raises `Invalid` (`excel_workbook`, `not_a_table`, `zip_unreadable`, `zip_encrypted`, `zip_not_one_table`)."""
    check_directory(file)
    try:
        archive = zipfile.ZipFile(file)
        files = [info for info in archive.infolist() if is_uploaded(info)]
        refuse_document(archive, {info.filename for info in files})
        if len(files) != 1:
            refuse_several([info.filename for info in files])
        info = files[0]
        if info.flag_bits & ENCRYPTED:
            words = "This zip has a password. Pack the table without one. Nothing was imported."
            raise Invalid(words, code="zip_encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            refuse_damaged("zip_unreadable")
        stream = archive.open(info)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        refuse_damaged("zip_unreadable")
    inner = PurePath(info.filename.replace("\\", "/")).name
    note = f"“{shortened(inner)}” was unpacked from the zip."
    raw = UnpackedFile(stream, max_mb, info.compress_size, OF_ZIP, archive)
    return UnpackedTable(buffered(raw), inner, note)


def check_directory(file: BinaryIO) -> None:
    """Look at the end of a zip, which says how long the list of its files is, before that list is read.

    Raises `Invalid` (`zip_unreadable`, `zip_not_one_table`).
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - END_BYTES - 2**16))
    tail = file.read()
    file.seek(0)
    end = tail[tail.rfind(END) :] if END in tail else b""
    if len(end) < END_BYTES:
        refuse_damaged("zip_unreadable")
    count, length = int.from_bytes(end[10:12], "little"), int.from_bytes(end[12:16], "little")
    if count > MOST_FILES_IN_ZIP or length > LARGEST_DIRECTORY:
        refuse_several([], count)


def is_uploaded(info: zipfile.ZipInfo) -> bool:
    """Whether a person put a file into the zip, and not their system."""
    return not info.is_dir() and LEFT_BY_SYSTEMS.isdisjoint(info.filename.replace("\\", "/").split("/"))


def refuse_document(archive: zipfile.ZipFile, paths: Collection[str]) -> None:
    """Raises `Invalid` (`excel_workbook`, `not_a_table`) for a document that is a zip of its parts."""
    if "mimetype" in paths:
        with archive.open("mimetype") as part:
            kind = part.read(100)
        for mimetype, container in MIMETYPES.items():
            if kind.startswith(mimetype):
                refuse_container(container)
    for beginning, container in IN_ZIP.items():
        if any(path.startswith(beginning) for path in paths):
            refuse_container(container)
    if "[Content_Types].xml" in paths:
        refuse_container(EXCEL)


def refuse_several(paths: list[str], count: int = 0) -> NoReturn:
    holds = f"{count or len(paths):,} files ({listed(paths)})" if paths else f"{count:,} files" if count else "no file"
    details: dict[str, Any] = {"files": some_of(paths)}
    raise Invalid(
        f"This zip holds {holds}, and one table is wanted here. Upload the table alone; images, recordings and videos "
        "that items name come as a zip beside it. Nothing was imported.",
        code="zip_not_one_table",
        **details,
    )
