"""Notes before a launch on recordings: those whose length cannot be read, and those that cannot be switched."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.content import Content, ItemTexts
from app.errors import join_names, pluralize, shorten_echo
from app.media.recording_lengths import MAX_MEASURED_FILES, load_seconds_by_recording

# As in static/hit/switching.js.
MAX_SWITCHED_SECONDS = 60
SAME_LENGTH_SECONDS = 0.05
RECORDING_KINDS = ("audio", "video")
ITEMS_READ_FOR_RECORDINGS = 10_000

LIST_CELLS_OF_ITEMS = text("""
    SELECT '' AS segment, shown, fields ->> CAST(:source AS text) AS source,
        fields ->> CAST(:reference AS text) AS reference
    FROM items WHERE campaign_id = :campaign AND retired_at IS NULL ORDER BY number LIMIT :most
""")
LIST_CELLS_OF_OUTPUTS = text("""
    SELECT s.external_id AS segment, o.shown, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    WHERE o.campaign_id = :campaign ORDER BY o.segment, o.item LIMIT :most
""")

RecordingsOfSegments = Mapping[str, list[str]]  # names of the files that one HIT may show, by segment; "" for items


async def load_recording_notes(connection: AsyncConnection, campaign: Campaign) -> list[str]:
    """Return sentences about recordings that will not play as the settings ask; none if they demand nothing."""
    switches = campaign.switch_sounds != "none"
    if not switches and campaign.must_play != "end":
        return []
    recordings, link_count = await load_recordings_of_segments_and_link_count(connection, campaign)
    names = dict.fromkeys(name for group in recordings.values() for name in group)
    if not names and not link_count:
        return []
    seconds_by_name = await load_seconds_by_recording(connection, campaign.id, names)
    return [
        *iterate_notes_on_recordings_of_unknown_length(names, link_count, seconds_by_name),
        *(iterate_notes_on_gaps_when_switching_recordings(campaign, recordings, seconds_by_name) if switches else ()),
    ]


async def load_recordings_of_segments_and_link_count(
    connection: AsyncConnection, campaign: Campaign
) -> tuple[RecordingsOfSegments, int]:
    """Return the uploaded recordings that items show, and the number of those on other servers."""
    content = Content.from_campaign(campaign)
    statement = LIST_CELLS_OF_OUTPUTS if campaign.segment_count else LIST_CELLS_OF_ITEMS
    parameters: dict[str, Any] = {"campaign": campaign.id, "most": ITEMS_READ_FOR_RECORDINGS}
    if not campaign.segment_count:
        parameters |= {"source": content.source, "reference": content.reference}
    recordings: dict[str, list[str]] = {}
    links = set()
    for segment, rows in groupby(await connection.execute(statement, parameters), key=lambda row: row.segment):
        files = [
            file
            for row in rows
            for file in content.find_media_files_in_cells(ItemTexts(row.shown, row.source, row.reference))
            if file.kind in RECORDING_KINDS
        ]
        links |= {file.name for file in files if file.is_link}
        recordings[segment] = sorted({file.name for file in files if not file.is_link})
    return recordings, len(links)


def iterate_notes_on_recordings_of_unknown_length(
    names: Mapping[str, None], link_count: int, seconds_by_name: Mapping[str, float | None]
) -> Iterator[str]:
    """Yield sentences on recordings whose length is unknown."""
    unreadable = [name for name, seconds in seconds_by_name.items() if seconds is None]
    if unreadable:
        lengths = "The length" if len(unreadable) == 1 else "The lengths"
        yield (
            f"{lengths} of {join_names(unreadable)} cannot be read. Play {'it' if len(unreadable) == 1 else 'them'} in "
            "the preview: a browser may not be able to, either."
        )
    if link_count:
        were = "was" if link_count == 1 else "were"
        yield f"{pluralize(link_count, 'recording')} on other servers {were} not measured."
    if len(names) > MAX_MEASURED_FILES:
        yield f"Only the first {MAX_MEASURED_FILES:,} of {len(names):,} recordings were measured."


def iterate_notes_on_gaps_when_switching_recordings(
    campaign: Campaign, recordings: RecordingsOfSegments, seconds_by_name: Mapping[str, float | None]
) -> Iterator[str]:
    """Yield sentences on recordings between which people cannot switch without a gap."""
    lengths_by_segment = {
        segment: {name: seconds for name in names if (seconds := seconds_by_name.get(name)) is not None}
        for segment, names in recordings.items()
    }
    too_long = dict.fromkeys(
        name_with_seconds(name, seconds)
        for lengths in lengths_by_segment.values()
        for name, seconds in lengths.items()
        if seconds > MAX_SWITCHED_SECONDS
    )
    if too_long:
        yield (
            f"Recordings longer than {MAX_SWITCHED_SECONDS} seconds cannot be switched without a gap, and are shown "
            f"with ordinary players: {join_names(list(too_long))}."
        )
    if campaign.switch_sounds != "same position":
        return
    unequal = [
        (segment, lengths)
        for segment, lengths in lengths_by_segment.items()
        if lengths and max(lengths.values()) - min(lengths.values()) > SAME_LENGTH_SECONDS
    ]
    if unequal:
        segment, lengths = unequal[0]
        shortest, longest = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        where = f" in {pluralize(len(unequal), 'segment')}, such as “{shorten_echo(segment)}”:" if segment else ":"
        yield (
            "Switching at the same position needs recordings of the same length in a task. Lengths differ"
            f"{where} {name_with_seconds(shortest, lengths[shortest])} and "
            f"{name_with_seconds(longest, lengths[longest])}. Tasks with such recordings have ordinary players. Cut "
            "them to the same length, or let each recording start at its beginning."
        )


def name_with_seconds(name: str, seconds: float) -> str:
    """Return the name of a recording with its length."""
    return f"{name} ({seconds:.2f} s)"
