import pytest
from hypothesis import settings

from app.inference.online import ONLINE, Law

# The same examples on every run, and no stopwatch: a busy machine is not a failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(params=sorted(name for name, law in ONLINE.items() if law.update))
def law(request) -> Law:
    return ONLINE[request.param]
