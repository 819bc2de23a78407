"""Reasons why an item cannot show the files that it names."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from app.designs.content import Content, ItemTexts, NamedFile
from app.errors import join_names, shorten_echo
from app.media.content_types import can_be_shown_as_media_kind
from app.media.match_file_names import normalise_path_for_matching
from app.uploads import MAX_SHOWN_CHARACTERS

PHRASE_BY_MEDIA_KIND = {"image": "an image", "audio": "a recording", "video": "a video"}


class MediaProblem(NamedTuple):
    """Reason why an item cannot show a file that it names."""

    code: str
    message: str


def problem_with_too_long_texts_or_none(cells: ItemTexts) -> MediaProblem | None:
    """Return a problem if source or reference would take annotators long to read, and the server long to render."""
    if max(len(cell or "") for cell in cells) <= MAX_SHOWN_CHARACTERS:
        return None
    return MediaProblem(
        "shown_too_long", f"the source or the reference has more than {MAX_SHOWN_CHARACTERS:,} characters."
    )


def problem_with_external_file_or_none(content: Content, file: NamedFile) -> MediaProblem | None:
    """Return a problem if a file is on another server and items may not show such files."""
    if not file.is_link or (content.links and file.name.startswith("https://")):
        return None
    name = shorten_echo(file.name)
    if content.links:
        return MediaProblem("media_link_refused", f"“{name}” is not an https:// address.")
    message = f"“{name}” is on another server. Put it into the zip, or allow links to media in the settings."
    return MediaProblem("media_link_refused", message)


def problem_with_missing_or_wrong_file_or_none(
    file: NamedFile, content_type_by_name: Mapping[str, str]
) -> MediaProblem | None:
    """Return a problem if a file is missing or has the wrong type, by the content types of the stored files."""
    name = shorten_echo(file.name)
    if file.name not in content_type_by_name:
        base_name = normalise_path_for_matching(file.name).rpartition("/")[2]
        similar_names = [
            other
            for other in content_type_by_name
            if normalise_path_for_matching(other).rpartition("/")[2] == base_name
        ]
        hint = f" There is {join_names(similar_names)}." if similar_names else ""
        return MediaProblem("media_missing", f"there is no file “{name}” in the zip or in the campaign.{hint}")
    content_type = content_type_by_name[file.name]
    if not can_be_shown_as_media_kind(file.kind, content_type):
        return MediaProblem(
            "media_wrong_kind",
            f"the file “{name}” is {content_type}, but should be shown as {PHRASE_BY_MEDIA_KIND[file.kind]}.",
        )
    return None


def iterate_media_problems_of_item(
    content: Content, content_type_by_name: Mapping[str, str], cells: ItemTexts
) -> Iterator[MediaProblem]:
    if problem := problem_with_too_long_texts_or_none(cells):
        yield problem
        return
    for file in content.find_media_files_in_cells(cells):
        if problem := problem_with_external_file_or_none(content, file) or (
            None if file.is_link else problem_with_missing_or_wrong_file_or_none(file, content_type_by_name)
        ):
            yield problem
