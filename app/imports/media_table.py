"""The table of items that a zip of media stands for if it comes without one: one item for each file."""

import csv
from collections.abc import Collection
from io import StringIO
from pathlib import PurePosixPath

from app.designs.content import MEDIA_FILE_NAMES
from app.errors import Refusal
from app.media.media_zip import MediaZip, folder_around_all_paths_or_empty, list_paths_of_zip_or_refuse


def is_media_name(path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in MEDIA_FILE_NAMES.values())


def holds_only_media(media_zip: MediaZip) -> bool:
    """Return whether a file is a readable zip with images, recordings and videos only, by their names."""
    try:
        paths = list_paths_of_zip_or_refuse(media_zip)
    except Refusal:
        return False
    finally:
        media_zip.file.seek(0)
    return bool(paths) and all(map(is_media_name, paths))


def table_of_media_or_refuse(media_zip: MediaZip) -> bytes:
    """Return a CSV with the columns `id` and `file` and one row for each media file of a zip, in the order of paths.

    The id is the path without the top folder that all files share and without the ending, or with the ending if two ids
    would be the same. Raises what `list_paths_of_zip_or_refuse` raises.
    """
    paths = list_paths_of_zip_or_refuse(media_zip)
    folder = folder_around_all_paths_or_empty(paths)
    names = sorted(path.removeprefix(folder) for path in paths if is_media_name(path))
    table = StringIO()
    csv.writer(table).writerows([("id", "file"), *zip(ids_of_files(names), names, strict=True)])
    return table.getvalue().encode()


def ids_of_files(names: Collection[str]) -> list[str]:
    stems = [str(PurePosixPath(name).with_suffix("")) for name in names]
    return stems if len(set(stems)) == len(stems) else list(names)
