"""Fixtures of the API, for tests of final labels."""

from tests.api.conftest import api_client  # noqa: F401  (a fixture)
