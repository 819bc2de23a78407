"""Match names of files in a table with the paths of a zip, also if they are spelled differently. Pure.

A name is exactly a path, or a path without the one folder that holds everything. If there is no such path, case, the
form of accents, backslashes of Windows and folders before the name may differ, as long as only one file fits.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

MAX_RESPELLED_NAMES_LISTED = 3


@dataclass
class PathMatches:
    """Names in a table by the path that they mean.

    Attributes:
        names_by_path: By path, the names that mean it; empty for a path that no item names.
        path_by_respelled_name: Names that match no path exactly, with the path that they mean.
        ambiguous_name_by_path: By path, a name that may mean it or another path.

    """

    names_by_path: dict[str, list[str]]
    path_by_respelled_name: dict[str, str] = field(default_factory=dict)
    ambiguous_name_by_path: dict[str, str] = field(default_factory=dict)


def normalise_path_for_matching(path: str) -> str:
    """Return a path without the differences in spelling that are allowed."""
    return normalize("NFC", path.strip()).replace("\\", "/").removeprefix("./").casefold()


def match_names_to_paths(
    spellings_by_path: Mapping[str, Sequence[str]], referenced_names: Collection[str], existing_names: Collection[str]
) -> PathMatches:
    """Return which names mean which path.

    Args:
        spellings_by_path: The exact spellings of each path, the preferred one first.
        referenced_names: The names in the table.
        existing_names: Names of files that the campaign has already, which need no path.

    """
    names_by_path: dict[str, list[str]] = {path: [] for path in spellings_by_path}
    table_names, exact_names = set(referenced_names), set[str]()
    for path, spellings in spellings_by_path.items():
        if name := next((way for way in spellings if way in table_names), None):
            names_by_path[path].append(name)
            exact_names.add(name)
    matches = PathMatches(names_by_path)
    paths_by_spelling, paths_by_suffix = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path, spellings in spellings_by_path.items():
        for way in spellings:
            paths_by_spelling[normalise_path_for_matching(way)].add(path)
        for end in path_endings_after_each_folder(normalise_path_for_matching(path)):
            paths_by_suffix[end].add(path)
    for name in sorted(table_names - exact_names - set(existing_names)):
        candidates = paths_that_name_may_mean(normalise_path_for_matching(name), paths_by_spelling, paths_by_suffix)
        if len(candidates) == 1:
            names_by_path[candidates[0]].append(name)
            matches.path_by_respelled_name[name] = candidates[0]
        else:
            matches.ambiguous_name_by_path.update(dict.fromkeys(candidates, name))
    return matches


def paths_that_name_may_mean(
    casefolded_name: str, paths_by_spelling: Mapping[str, set[str]], paths_by_suffix: Mapping[str, set[str]]
) -> list[str]:
    """Return the paths that a casefolded name may mean: equal ones, else those that end with it or that it ends in."""
    equal_paths = paths_by_spelling.get(casefolded_name)
    return sorted(
        equal_paths
        or paths_by_suffix.get(casefolded_name, set()).union(
            *(paths_by_spelling.get(end, set()) for end in path_endings_after_each_folder(casefolded_name))
        )
    )


def path_endings_after_each_folder(path: str) -> list[str]:
    """Return a path without its first folder, without its first two, and so on."""
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(1, len(parts))]


def note_on_respelled_names_or_none(path_by_respelled_name: Mapping[str, str]) -> str | None:
    """Return a sentence about names that were found in another spelling; None if there are none."""
    if not path_by_respelled_name:
        return None
    examples = [
        f"“{path}” for “{name}”" for name, path in list(path_by_respelled_name.items())[:MAX_RESPELLED_NAMES_LISTED]
    ]
    remainder = (
        f" and {len(path_by_respelled_name) - MAX_RESPELLED_NAMES_LISTED:,} more"
        if len(path_by_respelled_name) > MAX_RESPELLED_NAMES_LISTED
        else ""
    )
    return f"Some files are spelled differently in the zip: {', '.join(examples)}{remainder}."
