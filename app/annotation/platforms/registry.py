"""The platforms by name. A new one is a module with a `PLATFORM`, and one line here."""

from collections.abc import Sequence

from app.annotation.platforms import easel_results, link, personal, programs, prolific
from app.annotation.platforms.mturk import platform as mturk
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.result_format import ResultFileFormat

PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        link.PLATFORM,
        personal.PLATFORM,
        prolific.PLATFORM,
        programs.API_PLATFORM,
        programs.SIMULATION_PLATFORM,
        mturk.PLATFORM,
        easel_results.PLATFORM,
    )
}


def platforms_with_pages() -> list[Platform]:
    """Those from which people come, in the order in which researchers see them."""
    return [platform for platform in PLATFORMS.values() if platform.has_page]


def platform_links(base_url: str, link_key: str) -> dict[str, str]:
    """The addresses of a campaign for annotators, by platform, without those of single persons; `base` is where people
    reach this server.
    """
    return {
        it.name: f"{base_url}{it.entry_path(link_key)}{it.link_parameters}"
        for it in platforms_with_pages()
        if not it.has_personal_links
    }


def public_link(base_url: str, link_key: str) -> str:
    """The address of a campaign at which anybody can start."""
    return platform_links(base_url, link_key)[next(it.name for it in platforms_with_pages() if it.has_start_button)]


def simulated_platform_names() -> list[str]:
    """The names of those whose annotators are no people."""
    return [it.name for it in PLATFORMS.values() if it.is_simulated]


def platforms_with_result_files() -> list[tuple[Platform, ResultFileFormat]]:
    """The platforms whose files of answers can be imported."""
    return [(it, it.result_files) for it in PLATFORMS.values() if it.result_files]


def detect_result_platform(columns: Sequence[str]) -> tuple[Platform, ResultFileFormat]:
    """Whose file one with these columns is. What nobody recognises is for the last one to refuse."""
    platforms = platforms_with_result_files()
    return next(
        ((it, files) for it, files in platforms if files.has_known_column(columns)),
        platforms[-1],
    )
