"""Corrections of the texts of items, and of systems' outputs for segments.

HITs that were leased before a correction show the former text, which `item_versions` and `output_versions` keep. A
draft needs no former texts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.lifecycle import lock_and_load_campaign_or_refuse
from app.campaigns.media_checks import iterate_rendering_digests, media_file_names_of_outputs
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.designs.content import Content, ItemTexts
from app.designs.field_flags import is_blank
from app.errors import Conflict, Invalid, NotFound, shorten_echo
from app.imports.item_changes import item_not_found_error
from app.media import media_store
from app.media.media_problems import iterate_media_problems_of_item
from app.record import law_storage
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.uploads import MAX_SHOWN_CHARACTERS

MAX_LOGGED_TEXT_CHARACTERS = 500

LAST_HIT_SQL = "coalesce((SELECT max(id) FROM hits WHERE campaign_id = :campaign), 0)"

# The caller holds `TAKE_STORE_LOCK`, so no lease is between its number and its commit.
STORE_FORMER_TEXT = text(f"""
    INSERT INTO item_versions (campaign_id, item, version, shown, last_hit, replaced_at)
    SELECT campaign_id, number,
           1 + (SELECT count(*) FROM item_versions v WHERE v.campaign_id = :campaign AND v.item = :number), shown,
           {LAST_HIT_SQL}, :now
    FROM items WHERE campaign_id = :campaign AND number = :number
""")
UPDATE_ITEM_TEXT = text("UPDATE items SET shown = :shown WHERE campaign_id = :campaign AND number = :number")
LOCK_ITEM = text("SELECT number, shown FROM items WHERE campaign_id = :campaign AND external_id = :id FOR UPDATE")
LOAD_VERSION_NUMBERS = text("""
    SELECT item, 1 + max(version) AS version FROM item_versions
    WHERE campaign_id = :campaign AND item = ANY(CAST(:numbers AS int[])) GROUP BY item
""")
LOAD_FORMER_TEXTS = text("""
    SELECT version, shown, replaced_at FROM item_versions WHERE campaign_id = :campaign AND item = :number
    ORDER BY version DESC
""")

FIND_OUTPUT_SQL = """
    SELECT o.segment, o.item, o.shown, coalesce(o.digest, o.shown) AS same_as FROM outputs o
    JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign AND s.external_id = :segment_id AND i.external_id = :id
"""
FIND_OUTPUT, LOCK_OUTPUT = text(FIND_OUTPUT_SQL), text(f"{FIND_OUTPUT_SQL} FOR UPDATE OF o")
UPDATE_OUTPUT_IN_DRAFT = text("""
    UPDATE outputs SET shown = :shown, digest = NULL
    WHERE campaign_id = :campaign AND segment = :segment AND item = :item
""")
# From the launch on, systems with the same output for a segment share its judgments, so all of them get the correction.
STORE_FORMER_OUTPUTS = text(f"""
    INSERT INTO output_versions (campaign_id, segment, item, version, shown, last_hit, replaced_at)
    SELECT o.campaign_id, o.segment, o.item,
           1 + (SELECT count(*) FROM output_versions v
                WHERE v.campaign_id = :campaign AND v.segment = o.segment AND v.item = o.item),
           o.shown, {LAST_HIT_SQL}, :now
    FROM outputs o
    WHERE o.campaign_id = :campaign AND o.segment = :segment AND coalesce(o.digest, o.shown) = :same_as
""")
UPDATE_OUTPUTS = text("""
    UPDATE outputs SET shown = :shown, digest = CAST(:digest AS text)
    WHERE campaign_id = :campaign AND segment = :segment AND coalesce(digest, shown) = :same_as
""")
HAS_EQUAL_OUTPUT = text("""
    SELECT EXISTS (SELECT FROM outputs WHERE campaign_id = :campaign AND segment = :segment
                   AND coalesce(digest, shown) = coalesce(CAST(:digest AS text), :shown)
                   AND coalesce(digest, shown) <> :same_as)
""")
LOAD_FORMER_OUTPUTS = text("""
    SELECT version, shown, replaced_at FROM output_versions
    WHERE campaign_id = :campaign AND segment = :segment AND item = :item ORDER BY version DESC
""")


async def store_corrected_text_returning_version(
    connection: AsyncConnection,
    slug: str,
    item_id: str,
    new_text: str,
    *,
    now: datetime,
    segment_id: str | None = None,
) -> int:
    """Store the corrected text of an item, or of a system's output for a segment; return the number of this version.

    After the launch, other systems with the same output for the segment get the correction, too.

    Raises:
        NotFound: `campaign_not_found`, `item_not_found`, `output_not_found`.
        Conflict: `for_systems_only`, `output_taken`.
        Invalid: `segment_missing`, `shown_empty`, `shown_too_long`, `text_unchanged`, and what media of the text may be
            missing.

    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await connection.execute(law_storage.TAKE_STORE_LOCK, {"campaign": campaign.id})
    campaign = await lock_and_load_campaign_or_refuse(connection, slug)
    require_segment_only_for_systems(campaign, segment_id)
    if segment_id is None:
        before, version = await store_item_text_returning_former_and_version(
            connection, campaign, item_id, new_text, now=now
        )
        about = item_id
    else:
        before, version = await store_output_returning_former_and_version(
            connection, campaign, item_id, segment_id, new_text, now=now
        )
        about = f"{item_id}, {segment_id}"
    before_facts, after_facts = ({"text": shorten_logged_text(item_text)} for item_text in (before, new_text))
    await log_change(
        connection,
        "items.corrected",
        campaign,
        about=shorten_echo(about),
        old_values=before_facts,
        new_values=after_facts,
    )
    return version


def require_segment_only_for_systems(campaign: Campaign, segment_id: str | None) -> None:
    """Raise `Invalid` (`segment_missing`) or `Conflict` (`for_systems_only`) unless a segment is named for a system."""
    if campaign.segment_count and segment_id is None:
        message = f"“{campaign.name}” compares systems: name the segment of the output. Nothing was changed."
        raise Invalid(message, code="segment_missing")
    if segment_id is not None and not campaign.segment_count:
        message = f"“{campaign.name}” has no outputs for segments: name only the item. Nothing was changed."
        raise Conflict(message, code="for_systems_only")


async def store_item_text_returning_former_and_version(
    connection: AsyncConnection, campaign: Campaign, item_id: str, new_text: str, *, now: datetime
) -> tuple[str, int]:
    """Store the text of an item, and return its former text and the number of the new version."""
    item = (await connection.execute(LOCK_ITEM, {"campaign": campaign.id, "id": item_id})).one_or_none()
    if item is None:
        raise item_not_found_error(campaign, item_id)
    await refuse_unshowable_or_unchanged_text(connection, campaign, item.shown, new_text)
    parameters = {"campaign": campaign.id, "number": item.number, "shown": new_text, "now": now}
    if campaign.status != "draft":
        await connection.execute(STORE_FORMER_TEXT, parameters)
    await connection.execute(UPDATE_ITEM_TEXT, parameters)
    return item.shown, (await load_version_number_by_corrected_item(connection, campaign.id, [item.number])).get(
        item.number, 1
    )


async def store_output_returning_former_and_version(
    connection: AsyncConnection, campaign: Campaign, system_id: str, segment_id: str, new_text: str, *, now: datetime
) -> tuple[str, int]:
    """Store a system's output for a segment, and return the former one and the number of the new version.

    After the launch it must not become equal to an output of other systems: then their judgments would have to be
    shared from now on. In a draft nothing is shared yet.
    """
    output = await load_output_row_or_refuse(connection, campaign, system_id, segment_id, is_locked=True)
    await refuse_unshowable_or_unchanged_text(connection, campaign, output.shown, new_text)
    key = {"campaign": campaign.id, "segment": output.segment}
    if campaign.status == "draft":
        await connection.execute(UPDATE_OUTPUT_IN_DRAFT, key | {"item": output.item, "shown": new_text})
        return output.shown, 1
    key |= {"same_as": output.same_as}
    new_values = key | {
        "shown": new_text,
        "digest": await load_digest_of_files_in_output_or_none(connection, campaign, new_text),
    }
    if await connection.scalar(HAS_EQUAL_OUTPUT, new_values):
        message = "Another system has this output for the segment; choose a different text. Nothing was changed."
        raise Conflict(message, code="output_taken")
    await connection.execute(STORE_FORMER_OUTPUTS, key | {"now": now})
    await connection.execute(UPDATE_OUTPUTS, new_values)
    return output.shown, 1 + len(
        await load_former_texts_of_output(connection, campaign.id, output.segment, output.item)
    )


async def load_output_row_or_refuse(
    connection: AsyncConnection, campaign: Campaign, system_id: str, segment_id: str, *, is_locked: bool = False
) -> Row[Any]:
    """Return a system's output for a segment. Raises `NotFound` (`output_not_found`)."""
    parameters = {"campaign": campaign.id, "id": system_id, "segment_id": segment_id}
    output = (await connection.execute(LOCK_OUTPUT if is_locked else FIND_OUTPUT, parameters)).one_or_none()
    if output is None:
        system, segment = shorten_echo(system_id), shorten_echo(segment_id)
        message = f"“{campaign.name}” has no output of “{system}” for the segment “{segment}”."
        raise NotFound(message, code="output_not_found", item=system, segment=segment)
    return output


async def load_digest_of_files_in_output_or_none(
    connection: AsyncConnection, campaign: Campaign, output_text: str
) -> str | None:
    """Return the digest of what an output shows; None if it names no files."""
    content = Content.from_campaign(campaign)
    rows: Any = [ItemTexts(output_text)]
    if content.kind == "text" or not (names := media_file_names_of_outputs(content, rows)):
        return None
    digest_by_file = await media_store.load_file_digest_by_name(connection, campaign.id, names)
    return next(iter(iterate_rendering_digests(content, rows, digest_by_file)))


def shorten_logged_text(item_text: str) -> str:
    return item_text if len(item_text) <= MAX_LOGGED_TEXT_CHARACTERS else item_text[:MAX_LOGGED_TEXT_CHARACTERS] + "…"


async def refuse_unshowable_or_unchanged_text(
    connection: AsyncConnection, campaign: Campaign, present_text: str, new_text: str
) -> None:
    """Raise `Invalid` if a text cannot be shown, or is the present one."""
    if is_blank(new_text):
        raise Invalid("There is nothing to show to annotators. Nothing was changed.", code="shown_empty")
    if len(new_text) > MAX_SHOWN_CHARACTERS:
        message = f"The text has more than {MAX_SHOWN_CHARACTERS:,} characters. Nothing was changed."
        raise Invalid(message, code="shown_too_long")
    if new_text == present_text:
        raise Invalid("The new text is the same as the current one. Nothing was changed.", code="text_unchanged")
    content = Content.from_campaign(campaign)
    if content.is_plain_text:
        return
    stored_files = await media_store.load_file_types_total_size_and_next_number(connection, campaign.id)
    for problem in iterate_media_problems_of_item(content, stored_files.content_type_by_name, ItemTexts(new_text)):
        raise Invalid(f"{problem.message[0].upper()}{problem.message[1:]} Nothing was changed.", code=problem.code)


async def load_version_number_by_corrected_item(
    connection: AsyncConnection, campaign_id: int, numbers: Sequence[int]
) -> dict[int, int]:
    """Return the number of the present version of those of these items that were corrected, by item number."""
    rows = await connection.execute(LOAD_VERSION_NUMBERS, {"campaign": campaign_id, "numbers": [*numbers]})
    return {row.item: row.version for row in rows}


async def load_former_texts_of_item(connection: AsyncConnection, campaign_id: int, number: int) -> Sequence[Row[Any]]:
    """Return the former texts of an item, the newest first."""
    return (await connection.execute(LOAD_FORMER_TEXTS, {"campaign": campaign_id, "number": number})).all()


async def load_former_texts_of_output(
    connection: AsyncConnection, campaign_id: int, segment: int, item: int
) -> Sequence[Row[Any]]:
    """Return the former texts of a system's output for a segment, the newest first."""
    key = {"campaign": campaign_id, "segment": segment, "item": item}
    return (await connection.execute(LOAD_FORMER_OUTPUTS, key)).all()
