"""Estimates as exact as the product makes them."""

import pytest


@pytest.fixture(autouse=True)
def exact_estimates(all_posterior_draws: None) -> None:
    """See `all_posterior_draws`."""
