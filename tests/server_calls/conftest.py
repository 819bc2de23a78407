"""A platform on loopback, for every test of calls to platforms."""

from collections.abc import Iterator

import pytest

from app import main
from tests.server_calls.fake_platform import FakePlatform, fake_platform


@pytest.fixture(autouse=True)
def no_calls_of_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the application's own calls; the test makes them."""
    monkeypatch.setattr(main, "SERVER_CALLS_PAUSE_SECONDS", 3600.0)


@pytest.fixture(autouse=True)
def calls_without_tls_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow calls without TLS, because the fake platform is on loopback."""
    monkeypatch.setenv("EASEL_WEBHOOKS_INSIDE", "1")


@pytest.fixture
def platform() -> Iterator[FakePlatform]:
    with fake_platform() as fake:
        yield fake
