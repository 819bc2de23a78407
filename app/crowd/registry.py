"""The platforms by name. A new one is a module with a `PLATFORM`, and one line here."""

from collections.abc import Sequence

from app.crowd import files, link, personal, programs, prolific
from app.crowd.answered import ResultFiles
from app.crowd.mturk import platform as mturk
from app.crowd.platform import Platform

PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        link.PLATFORM,
        personal.PLATFORM,
        prolific.PLATFORM,
        programs.API,
        programs.SIMULATION,
        mturk.PLATFORM,
        files.PLATFORM,
    )
}


def with_pages() -> list[Platform]:
    """Those from which people come, in the order in which researchers see them."""
    return [platform for platform in PLATFORMS.values() if platform.has_page]


def links(base: str, link_key: str) -> dict[str, str]:
    """The addresses of a campaign for annotators, by platform, without those of single persons; `base` is where people
    reach this server.
    """
    return {it.name: f"{base}{it.address(link_key)}{it.link_parameters}" for it in with_pages() if not it.by_list}


def public_link(base: str, link_key: str) -> str:
    """The address of a campaign at which anybody can start."""
    return links(base, link_key)[next(it.name for it in with_pages() if it.starts_here)]


def made_up() -> list[str]:
    """The names of those whose annotators are no people."""
    return [it.name for it in PLATFORMS.values() if it.made_up]


def with_results() -> list[tuple[Platform, ResultFiles]]:
    """The platforms whose files of answers can be imported."""
    return [(it, it.results) for it in PLATFORMS.values() if it.results]


def of_results(columns: Sequence[str]) -> tuple[Platform, ResultFiles]:
    """Whose file one with these columns is. What nobody recognises is for the last one to refuse."""
    known = with_results()
    return next(((it, files) for it, files in known if files.recognises(columns)), known[-1])
