"""Run the tests that loop over a registry: `.venv/bin/python -m tests.registries designs`.

Further arguments go to pytest, such as `-n 4`, or `-m 'not browser'`. Without arguments, the registries are listed.
"""

import ast
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.changed import imported_names

ROOT = Path(__file__).resolve().parents[1]
WHOLE_PROJECT = ("tests/test_documentation.py", "tests/test_site.py", "tests/test_style.py")


class Registry(NamedTuple):
    """Dotted names under which tests import the entries, and what else a new entry concerns."""

    imports: tuple[str, ...]
    further_tests: tuple[str, ...] = ()


REGISTRIES = {
    "designs": Registry(("app.designs.registry.DESIGNS",), ("tests/languages", "tests/test_pictures.py")),
    "laws": Registry(
        ("app.inference.online.laws.ONLINE_LAWS", "tests.laws.SCORE_LAWS"), ("tests/designs/test_every_design.py",)
    ),
    "methods": Registry(
        ("app.analysis.methods.SCORE_METHODS", "app.analysis.methods.TABLE_METHODS"), ("tests/api/test_methods.py",)
    ),
    "platforms": Registry(("app.annotation.platforms.registry.PLATFORMS",), ("tests/annotation/platforms",)),
    "populations": Registry(("app.simulation.annotators.POPULATIONS",), ("tests/simulation/test_annotators.py",)),
    "quality-rules": Registry(("app.quality.registry.QUALITY_RULES",), ("tests/quality/test_look.py",)),
    "questions": Registry(("app.campaigns.question_names.QUESTION_NAMES",)),
    "selection-rules": Registry(("app.selection.registry.SELECTION_RULES",)),
    "steps": Registry(
        ("app.annotation.onboarding.steps.VISIT_STEPS",),
        ("tests/annotation/onboarding/test_steps.py", "tests/languages"),
    ),
}


def list_tests_of_registry(registry: Registry, texts_by_path: Mapping[str, str]) -> list[str]:
    """Return the paths of the tests that a new entry concerns, given all Python files of the tests."""
    looping = {
        path
        for path, text in texts_by_path.items()
        if Path(path).name.startswith("test_") and uses_whole_registry(text, registry)
    }
    return sorted(looping.union(registry.further_tests, WHOLE_PROJECT))


def uses_whole_registry(text: str, registry: Registry) -> bool:
    """Return whether a module imports the registry, and does more with it than to look up entries: `DESIGNS["x"]`."""
    if not any(imported.rpartition(".")[2] in text for imported in registry.imports):  # most modules, without parsing
        return False
    names = {imported.rpartition(".")[2] for imported in imported_names(text).intersection(registry.imports)}
    nodes = list(ast.walk(ast.parse(text)))
    looked_up = {id(node.value) for node in nodes if isinstance(node, ast.Subscript)}
    return any(isinstance(node, ast.Name) and node.id in names and id(node) not in looked_up for node in nodes)


def main(arguments: list[str]) -> int:
    """Run the tests of the registry that the first argument names; return the exit status."""
    if not arguments or arguments[0] not in REGISTRIES:
        problem = f"There is no registry “{arguments[0]}”. " if arguments else ""
        sys.stderr.write(f"{problem}Name one of {', '.join(REGISTRIES)}.\n")
        return 2
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    tests = list_tests_of_registry(REGISTRIES[arguments[0]], texts)
    sys.stdout.write("\n".join(tests) + "\n")
    return pytest.main([*tests, *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
