"""Imports of test modules before the collection, so that workers of a fresh checkout share the work on bytecode.

pytest rewrites the assertions of each test module when it is first imported, and keeps the result on disk. Workers that
import the same modules in the same order at the same time would each rewrite all of them.
"""

import importlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def import_share(worker: str, workers: int) -> None:
    """Import the share of a worker, such as "gw1"; the collection tells what is wrong with a module."""
    for name in iterate_share(int(worker.removeprefix("gw")), workers):
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def iterate_share(place: int, workers: int, folder: Path = ROOT / "tests") -> Iterator[str]:
    """Yield the names of the modules that one of the workers imports first."""
    for path in sorted(folder.rglob("test_*.py"))[place::workers]:
        yield ".".join(path.relative_to(folder.parent).with_suffix("").parts)
