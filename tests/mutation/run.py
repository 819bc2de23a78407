"""Draw mutants of a room, try them, and report."""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from scipy.stats import binomtest

from tests.mutation.mutants import Mutant, list_mutants
from tests.mutation.plugin import ROOT, Forks, Result, TestMap

TYPICAL_SECONDS = 0.05
COMMON_WORDS = {"test", "annotation", "hit", "record", "quality", "none", "return", "load", "pas"}
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Room:
    """A part of the application, and its tests.

    Attributes:
        folders: Of its modules.
        tests: Folders and files; the first is the nearest.
        is_pure: Whether tests import the modules that they test. They need no run that finds out what they call.

    """

    folders: tuple[str, ...]
    tests: tuple[str, ...]
    is_pure: bool = False


ROOMS = {
    "inference": Room(("app/inference",), ("tests/inference",), is_pure=True),
    "serving": Room(
        ("app/annotation/hits", "app/record"),
        (
            *("tests/annotation/hits", "tests/record", "tests/annotation/onboarding", "tests/annotation/platforms"),
            "tests/api",
            *(f"tests/privacy/test_{name}.py" for name in ("withdrawal", "withdrawals_again", "erasures")),
            *(f"tests/server_calls/test_{name}.py" for name in ("outcomes", "call_pages")),
            *(f"tests/imports/test_{name}.py" for name in ("answers_import", "interrupted_imports", "output_media")),
            "tests/campaigns/test_unjudged_items.py",
            "tests/dashboard/test_unjudged_items.py",
            "tests/exports/test_remarks.py",
            "tests/maintenance/test_metrics.py",
            "tests/planning/test_forecast_page.py",
        ),
    ),
    "quality": Room(
        ("app/quality",),
        (
            "tests/quality",
            *(f"tests/api/test_{name}.py" for name in ("annotators", "findings", "law_edition", "quality", "reach")),
            *(f"tests/annotation/hits/test_{name}.py" for name in ("checks", "checks_by_criterion", "check_sets")),
            *(f"tests/imports/test_{name}.py" for name in ("campaign_file", "gold_items", "known_answers", "marking")),
            *(f"tests/campaigns/test_{name}.py" for name in ("notes_before_launch", "steps")),
            "tests/analysis/test_findings.py",
            "tests/annotation/hits/test_playback.py",
        ),
    ),
}


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes:
        only: If not empty, all mutants with any of these texts in their names are tried, and none is drawn.
        seconds: Of processor time for the tests of a mutant.

    """

    room: str
    mutants: int
    seed: int
    only: Sequence[str]
    test_map: Path
    seconds: float


def run_mutants(forks: Forks, plan: Plan) -> None:
    """Try the mutants of a plan, and write what became of each."""
    room = ROOMS[plan.room]
    sources = read_sources([room])
    mutants = [one for path, source in sources.items() for one in list_mutants(path, source)]
    if room.is_pure:
        found = TestMap(at_import=set(forks.at_import), tests=map_imports(sources, forks.items))
    else:
        found = forks.make_test_map(plan.test_map, read_sources(one for one in ROOMS.values() if not one.is_pure))
        forks.seconds |= found.seconds
    usable = [one for one in mutants if f"{one.path}:{one.function}" not in found.at_import]
    say(f"seed {plan.seed}: {len(mutants)} mutants in {plan.room}, of which {len(usable)} can be tried")
    results = []
    for mutant in draw_mutants(usable, plan):
        tests = choose_tests(mutant, found, room, forks.seconds)
        result = forks.try_mutant(mutant, sources[mutant.path], tests, plan.seconds)
        results.append(result)
        noticed_by = result.test or f"{result.tests} tests"
        say(f"{result.outcome} {mutant.operator} line {mutant.line} {mutant.name} | {noticed_by}")
    say("\n".join(report_lines(results, read_reasons())))


def map_imports(modules: Iterable[str], tests: Iterable[str]) -> dict[str, list[str]]:
    """Return the tests of the files that import each module, or else of those that import what imports it.

    Files of the same name as the module come first.
    """
    files = sorted({test.partition("::")[0] for test in tests})
    imported = {file: list_imports((ROOT / file).read_text()) for file in (*modules, *files)}
    found = {}
    for path in imported:
        importers = [file for file, names in imported.items() if dotted_name(path) in names]
        further = [file for file in files if any(dotted_name(one) in imported[file] for one in importers)]
        chosen = [file for file in files if file in importers] or further
        chosen.sort(key=lambda file: len(imported[file]))
        nearest = [file for file in chosen if Path(file).stem == f"test_{Path(path).stem}"]
        found[path] = [test for file in dict.fromkeys([*nearest, *chosen]) for test in tests if is_in_file(test, file)]
    return found


def is_in_file(test: str, file: str) -> bool:
    return test.partition("::")[0] == file


def list_imports(source: str) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    return {str(node.module) for node in nodes} | {f"{node.module}.{one.name}" for node in nodes for one in node.names}


def dotted_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def list_modules(room: Room) -> list[Path]:
    return sorted(file for folder in room.folders for file in (ROOT / folder).rglob("*.py"))


def read_sources(rooms: Iterable[Room]) -> dict[str, str]:
    """Return the text of the rooms' modules by their paths."""
    return {str(file.relative_to(ROOT)): file.read_text() for room in rooms for file in list_modules(room)}


def draw_mutants(mutants: Sequence[Mutant], plan: Plan) -> list[Mutant]:
    if plan.only:
        return [mutant for mutant in mutants if any(text in mutant.name for text in plan.only)]
    return Random(plan.seed).sample(mutants, min(plan.mutants, len(mutants)))


def choose_tests(mutant: Mutant, found: TestMap, room: Room, seconds: Mapping[str, float]) -> list[str]:
    """Return the tests of a mutant, the most promising first.

    They have many words in common with the mutant. Among others each file has its turn, since the tests of a file are
    alike; its quick ones come first, and the files of the room's own folder.
    """
    words = words_of_name(mutant.name)
    tests = found.tests.get(mutant.path if room.is_pure else f"{mutant.path}:{mutant.block}", [])
    turns: Counter[str] = Counter()
    keys: dict[str, tuple[int, int, bool, float]] = {}
    for test in sorted(tests, key=lambda test: seconds.get(test, TYPICAL_SECONDS)):
        file = test.partition("::")[0]
        shared = len(words & words_of_name(test))
        duration = seconds.get(test, TYPICAL_SECONDS)
        keys[test] = (-shared, turns[file], not test.startswith(room.tests[0]), duration)
        turns[file] += 1
    return sorted(keys, key=keys.__getitem__)


def words_of_name(name: str) -> set[str]:
    """Return the words of a test's or mutant's name that tell it from others, without an s at their ends."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", name.lower())} - COMMON_WORDS


def read_reasons() -> dict[str, str]:
    """Return why a mutant changes nothing, by its name."""
    return {entry["mutant"]: entry["reason"] for entry in tomllib.loads(EQUIVALENT.read_text()).get("equivalent", [])}


def report_lines(results: Iterable[Result], reasons: dict[str, str]) -> list[str]:
    """Return how many were killed, with a 95 % interval of the share among those that change something."""
    outcomes = Counter(
        "equivalent" if one.outcome == "survived" and one.mutant.name in reasons else one.outcome for one in results
    )
    noticed, total = outcomes["killed"] + outcomes["timeout"], outcomes.total() - outcomes["equivalent"]
    lines = [", ".join(f"{outcomes[name]} {name}" for name in ("killed", "timeout", "survived", "equivalent"))]
    if total:
        low, high = binomtest(noticed, total).proportion_ci(method="wilson")
        lines.append(f"noticed: {noticed} of {total}, {noticed / total:.1%} (95 % interval {low:.1%} to {high:.1%})")
    return lines
