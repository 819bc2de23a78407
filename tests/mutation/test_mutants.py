"""The faults that `python -m tests.mutation` puts into functions, and its list of those that change nothing."""

import ast
from pathlib import Path

import pytest

from tests.mutation.mutants import compile_mutant, list_mutants
from tests.mutation.run import ROOMS, list_modules, read_reasons

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''
"""A module."""
LIMIT = 3

def describe(values: list[int] = [1], *, is_long: bool = True) -> str:
    """Return 1 text."""
    logger.info("has 2")
    if not values:
        raise ValueError("fewer than 1")
    return f"{len(values) + 1} values"

class Counter:
    def __repr__(self) -> str:
        return "1" + "2"

    def add(self, amount: int) -> int:
        self.total = self.total + amount
        return self.total if amount < 5 else 0
'''


def faults(source: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mutant in list_mutants("module.py", source):
        found.setdefault(mutant.function, []).append(f"{mutant.before} -> {mutant.after}")
    return found


def test_texts_hints_defaults_logs_and_what_runs_at_import_are_left_alone():
    assert faults(SOURCE)["describe"] == [
        "if not values -> if not not values",
        "not values -> values",
        "raise ValueError('fewer than 1') -> pass",
        "return f'{len(values) + 1} values' -> return None",
    ]
    assert set(faults(SOURCE)) == {"describe", "Counter.add"}


def test_statements_comparisons_arithmetic_branches_and_constants_are_changed():
    assert faults(SOURCE)["Counter.add"] == [
        "self.total = self.total + amount -> pass",
        "self.total + amount -> self.total - amount",
        "return self.total if amount < 5 else 0 -> return None",
        "self.total if amount < 5 else 0 -> 0 if amount < 5 else self.total",
        "amount < 5 -> amount <= 5",
        "amount < 5 -> amount >= 5",
        "5 -> 6",
        "5 -> 4",
        "0 -> 1",
        "0 -> -1",
    ]


@pytest.mark.parametrize("mutant", list_mutants("module.py", SOURCE), ids=lambda mutant: f"{mutant.position}")
def test_each_changes_the_code_of_its_function_alone(mutant):
    original = compile(SOURCE, "module.py", "exec")
    changed = compile_mutant(mutant, SOURCE, Path("module.py"))
    assert changed != original
    texts = ast.unparse(ast.parse(SOURCE)).count(mutant.before.removeprefix("if "))
    assert texts >= 1


def test_the_list_of_those_that_change_nothing_names_mutants_that_exist():
    names = {
        mutant.name
        for room in ROOMS.values()
        for file in list_modules(room)
        for mutant in list_mutants(str(file.relative_to(ROOT)), file.read_text())
    }
    assert [name for name in read_reasons() if name not in names] == []
