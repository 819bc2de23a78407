"""Prolific on loopback, for every test of payments."""

from collections.abc import Iterator

import pytest

from tests.payments.fake_prolific import FakeProlific, fake_prolific


@pytest.fixture
def prolific() -> Iterator[FakeProlific]:
    with fake_prolific() as books:
        yield books
