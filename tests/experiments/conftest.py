"""Experiments in small."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    """A run in small takes less time than the start of a process, which imports all that a run needs.

    `folder` in test_experiments.py, which is of its module, is made by processes as people's runs are.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.experiments.runs.make_process_pool", partial(ThreadPoolExecutor, 1))
        yield
