"""Registry of platforms by name. To add a platform, add a module with a `PLATFORM` and one line here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.annotation.platforms import easel_results, link, panel, personal, programs
from app.annotation.platforms.mturk import platform as mturk
from app.annotation.platforms.platform import Platform, build_no_server_call
from app.annotation.platforms.prolific import platform as prolific
from app.annotation.platforms.result_format import ResultFileFormat

# Before the path of a campaign; the key is then that of an experiment, which redirects each visitor to a random arm.
EXPERIMENT_PATH_PREFIX = "/experiment"

PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        link.PLATFORM,
        personal.PLATFORM,
        prolific.PLATFORM,
        panel.PLATFORM,
        programs.API_PLATFORM,
        programs.SIMULATION_PLATFORM,
        mturk.PLATFORM,
        easel_results.PLATFORM,
    )
}

PLATFORM_BY_PEOPLE_FROM: dict[str, Platform] = {
    platform.people_from: platform for platform in PLATFORMS.values() if platform.people_from
}


def platforms_with_pages() -> list[Platform]:
    """Return the platforms for people, in the order in which researchers see them."""
    return [platform for platform in PLATFORMS.values() if platform.has_page]


def platforms_of_campaign(crowd_settings: Mapping[str, Any]) -> list[Platform]:
    """Return the platforms for people that are set up in a campaign, in the order in which researchers see them."""
    platforms = [platform.platform_in_campaign_or_none(crowd_settings) for platform in platforms_with_pages()]
    return [platform for platform in platforms if platform]


def platform_of_completion_code_or_none(crowd_settings: Mapping[str, Any]) -> Platform | None:
    """Return the platform whose completion code a campaign has, which means that people are recruited there; else None.

    A code that the ways back of all platforms share says nothing about where people come from.
    """
    return next(
        (
            platform
            for platform in platforms_of_campaign(crowd_settings)
            if platform.completion_code_setting != Platform.completion_code_setting
            and crowd_settings.get(platform.completion_code_setting)
        ),
        None,
    )


def recruiting_platform(crowd_settings: Mapping[str, Any]) -> Platform:
    """Return where the people of a campaign come from, as its settings say.

    The answer “a link” is also what a campaign starts with, so a completion code of a platform says more than that.
    """
    platform = PLATFORM_BY_PEOPLE_FROM[crowd_settings["people_from"]]
    if platform.has_start_button:
        return platform_of_completion_code_or_none(crowd_settings) or platform
    return platform.platform_in_campaign_or_none(crowd_settings) or platform


def people_from_values_paid_per_person() -> list[str]:
    """Return the answers to “Where do people come from?” of platforms that pay each person one reward."""
    return [people_from for people_from, platform in PLATFORM_BY_PEOPLE_FROM.items() if platform.pays_per_person]


def people_from_paid_per_task() -> list[str]:
    """Return the other answers to “Where do people come from?”."""
    return [people_from for people_from, platform in PLATFORM_BY_PEOPLE_FROM.items() if not platform.pays_per_person]


def platform_with_title(name: str, panel_title: str | None) -> Platform:
    """Return a platform as annotators read of it: one that a campaign describes has the campaign's title."""
    platform = PLATFORMS[name]
    return replace(platform, title=panel_title) if platform.set_up_by_campaign and panel_title else platform


def platforms_offered_for_experiments() -> list[Platform]:
    """Return the platforms for people that need no settings or people of a single campaign."""
    return [
        platform
        for platform in platforms_with_pages()
        if not (platform.has_personal_links or platform.set_up_by_campaign)
    ]


def annotator_url_by_platform(base_url: str, link_key: str, platforms: Sequence[Platform]) -> dict[str, str]:
    """Return the addresses of a campaign for annotators, by platform, without personal links.

    `base_url` is the public address of this server.
    """
    return {
        platform.name: f"{base_url}{platform.entry_path(link_key)}{platform.link_parameters}"
        for platform in platforms
        if not platform.has_personal_links
    }


def annotator_link_base_url_and_key(base_url: str, link_key: str, experiment_key: str | None) -> tuple[str, str]:
    """Return the base address and the key for the links of a campaign; for an arm of an experiment, those of the
    experiment. `experiment_key` is None if the campaign is no arm.
    """
    return (base_url, link_key) if experiment_key is None else (base_url + EXPERIMENT_PATH_PREFIX, experiment_key)


def open_link_url_of_campaign(base_url: str, link_key: str) -> str:
    """Return the address of a campaign's open link."""
    open_platform = next(platform for platform in platforms_with_pages() if platform.has_start_button)
    return f"{base_url}{open_platform.entry_path(link_key)}"


def names_of_platforms_with_server_calls() -> list[str]:
    """Return the names of platforms whose server may be told how visits end."""
    return [
        platform.name
        for platform in PLATFORMS.values()
        if platform.build_server_call_or_none is not build_no_server_call
    ]


def simulated_platform_names() -> list[str]:
    """Return the names of platforms whose annotators are simulated."""
    return [platform.name for platform in PLATFORMS.values() if platform.is_simulated]


def platforms_and_formats_of_result_files() -> list[tuple[Platform, ResultFileFormat]]:
    """Return the platforms whose result files can be imported, with the formats."""
    return [(platform, platform.result_files) for platform in PLATFORMS.values() if platform.result_files]


def detect_platform_and_result_format(columns: Sequence[str]) -> tuple[Platform, ResultFileFormat]:
    """Return the platform of a file with these columns. The last platform gets, and refuses, unknown files."""
    platforms = platforms_and_formats_of_result_files()
    return next(
        ((platform, files) for platform, files in platforms if files.has_known_column(columns)),
        platforms[-1],
    )
