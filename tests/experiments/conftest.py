"""What tests of experiments share."""

from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def without_processes(monkeypatch):
    """Runs are done one after another in this process: starting others takes longer than two small runs."""
    monkeypatch.setattr("app.experiments.runs.ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))
