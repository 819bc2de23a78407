"""All rows of the palette for a query, in groups: pages, settings and help are matched here."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from urllib.parse import urlencode

from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.access import Access
from app.accounts.campaign_tabs import list_allowed_campaign_tabs
from app.accounts.roles import (
    CREATE_CAMPAIGN,
    MANAGE_PEOPLE,
    OWN_ACCOUNT,
    SEE_CAMPAIGN,
    SEE_PEOPLE,
    SEE_SERVER,
    SEE_SETTINGS,
)
from app.campaigns.form import FormField, build_form_sections, fields_of_design_with_its_choices
from app.campaigns.form_sections import STEP_TITLES
from app.designs.campaign import Campaign
from app.help.documentation import HELP_PATH
from app.help.search import find_sections_by_heading_words
from app.http.paging import AddressQuery, SearchWords
from app.palette.entry import MAX_ENTRIES_PER_GROUP, PaletteEntry
from app.palette.stored_entries import (
    find_matching_annotator_entries,
    find_matching_campaign_entries,
    find_matching_item_entries,
    load_visible_campaign_and_access_or_none,
)

# Pages of the server, and what each needs.
SERVER_PAGES = (
    ("Campaigns", "/admin", OWN_ACCOUNT),
    ("New campaign", "/admin/campaigns/new", CREATE_CAMPAIGN),
    ("People", "/admin/people", MANAGE_PEOPLE),
    ("Log", "/admin/log", SEE_SERVER),
    ("Account", "/admin/account", OWN_ACCOUNT),
    ("Help", HELP_PATH, OWN_ACCOUNT),
    ("API", "/admin/api", OWN_ACCOUNT),
)


class PaletteQuery(AddressQuery):
    """Words to search for, and the slug of the open campaign; both may be empty."""

    q: SearchWords = Field(default="", description="Words that a title has; without any, pages and campaigns.")
    campaign: str = Field(default="", max_length=200, description="Slug of the campaign to search in; may be empty.")


async def find_palette_entries(connection: AsyncConnection, access: Access, query: PaletteQuery) -> list[PaletteEntry]:
    """Return all entries that match, those of the open campaign first. Without words, only campaigns and pages.

    A campaign that the access does not let see adds nothing, like one that does not exist.
    """
    words = query.q
    opened = (
        await load_visible_campaign_and_access_or_none(connection, query.campaign, access) if query.campaign else None
    )
    entries = await find_campaign_entries(connection, *opened, words) if opened else []
    entries += await find_matching_campaign_entries(connection, words, access)
    entries += [
        PaletteEntry("Easel", title, "", url)
        for title, url, need in SERVER_PAGES
        if access.can(need) and has_all_words(title, words)
    ]
    # The first use reads the whole documentation, for which annotators would wait.
    return entries + await asyncio.to_thread(find_help_entries, words)


async def find_campaign_entries(
    connection: AsyncConnection, campaign: Campaign, access: Access, words: str
) -> list[PaletteEntry]:
    """Return the entries about one campaign. The access is the one in this campaign."""
    address = f"/admin/campaigns/{campaign.slug}"
    entries = [
        PaletteEntry(campaign.name, tab.title, "", address + tab.subpage)
        for tab in list_allowed_campaign_tabs(access, campaign)
        if has_all_words(tab.title, words)
    ]
    if not words:
        return entries
    if access.can(SEE_SETTINGS):
        entries += find_setting_entries(campaign, words)
    # The items of a draft are on pages with its settings only.
    if access.can(SEE_SETTINGS if campaign.status == "draft" else SEE_CAMPAIGN):
        entries += await find_matching_item_entries(connection, campaign, words)
    if access.can(SEE_PEOPLE):
        entries += await find_matching_annotator_entries(connection, campaign, words)
    return entries


def find_setting_entries(campaign: Campaign, words: str) -> list[PaletteEntry]:
    """Return the settings of the campaign's design whose title has all words."""
    entries = [
        PaletteEntry(
            "Settings",
            field.title,
            step_title,
            f"/admin/campaigns/{campaign.slug}/settings?{urlencode({'setting': field.name})}",
        )
        for step_title, fields in step_titles_with_fields()
        for field in fields_of_design_with_its_choices(fields, campaign.design_name)
        if has_all_words(field.title, words)
    ]
    return entries[:MAX_ENTRIES_PER_GROUP]


@cache
def step_titles_with_fields() -> Sequence[tuple[str, Sequence[FormField]]]:
    """Return the titles of the steps with the fields of each, without those about single criteria."""
    return [
        (STEP_TITLES[section.step], [field for field in section.all_fields if not field.criterion_title])
        for section in build_form_sections({})
    ]


def find_help_entries(words: str) -> list[PaletteEntry]:
    """Return the headings of the help that have the words, and a last row that searches its texts."""
    if not words:
        return []
    entries = [
        PaletteEntry("Help", found.section.heading, found.page.title, found.url)
        for found in find_sections_by_heading_words(words, limit=MAX_ENTRIES_PER_GROUP)
    ]
    return [
        *entries,
        PaletteEntry("Help", f"Search the help for “{words}”", "", f"{HELP_PATH}?{urlencode({'q': words})}"),
    ]


def has_all_words(title: str, words: str) -> bool:
    """Return whether a title contains each of the words, in upper or lower case."""
    folded = title.casefold()
    return all(word in folded for word in words.casefold().split())


def group_names_with_palette_entries(entries: Iterable[PaletteEntry]) -> list[tuple[str, list[PaletteEntry]]]:
    """Return the entries by their group, in their order."""
    return [(group, list(rows)) for group, rows in groupby(entries, key=lambda entry: entry.group)]
