"""Names of files in tables, found among the paths of a zip though they are spelled in another way. Pure.

A name is a path exactly, or without the one folder that was packed whole. If there is no such path, capitals, the form
of accents, backslashes of Windows and folders before the name may differ, as long as only one file fits.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

MOST_TOLD = 3


@dataclass
class NamesOfPaths:
    """Names in a table by the path that they mean.

    Attributes:
        names: By path, the names that mean it; empty for a path that no item names.
        respelled: Names that are no path exactly, with the path that they mean.
        unclear: By path, a name that may mean it or another path.

    """

    names: dict[str, list[str]]
    respelled: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)


def folded_path(name: str) -> str:
    """Return a path without what may differ in its spelling."""
    return normalize("NFC", name.strip()).replace("\\", "/").removeprefix("./").casefold()


def match_names(paths: Mapping[str, Sequence[str]], wanted: Collection[str], taken: Collection[str]) -> NamesOfPaths:
    """Return which names mean which path.

    Args:
        paths: The ways in which each path may be written exactly, the preferred one first.
        wanted: The names in the table.
        taken: Names of files that are there already, which need no path.

    """
    names: dict[str, list[str]] = {path: [] for path in paths}
    exact = set[str]()
    for path, ways in paths.items():
        if name := next((way for way in ways if way in wanted), None):
            names[path].append(name)
            exact.add(name)
    found = NamesOfPaths(names)
    whole, ends = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path, ways in paths.items():
        for way in ways:
            whole[folded_path(way)].add(path)
        for end in ends_of(folded_path(path)):
            ends[end].add(path)
    for name in sorted(set(wanted) - exact - set(taken)):
        fitting = fitting_paths(folded_path(name), whole, ends)
        if len(fitting) == 1:
            names[fitting[0]].append(name)
            found.respelled[name] = fitting[0]
        else:
            found.unclear.update(dict.fromkeys(fitting, name))
    return found


def fitting_paths(name: str, whole: Mapping[str, set[str]], ends: Mapping[str, set[str]]) -> list[str]:
    """Return the paths that a folded name may mean: equal ones, else those that end with it or that it ends with."""
    same = whole.get(name)
    return sorted(same or ends.get(name, set()).union(*(whole.get(end, set()) for end in ends_of(name))))


def ends_of(path: str) -> list[str]:
    """Return a path without its first folder, without its first two, and so on."""
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(1, len(parts))]


def sentence_on_spelling(respelled: Mapping[str, str]) -> str | None:
    """Return a sentence about names that were found in another spelling, None if there are none."""
    if not respelled:
        return None
    some = [f"“{path}” for “{name}”" for name, path in list(respelled.items())[:MOST_TOLD]]
    more = f" and {len(respelled) - MOST_TOLD:,} more" if len(respelled) > MOST_TOLD else ""
    return f"Files were taken that are spelled in another way in the zip: {', '.join(some)}{more}."
