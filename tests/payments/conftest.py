"""Prolific on loopback, for every test of payments."""

from collections.abc import Iterator

import pytest

from app import main
from app.accounts import tokens, users
from tests.annotation.hits.campaigns import NOW
from tests.payments.fake_prolific import FakeProlific, ProlificServer


@pytest.fixture(autouse=True)
def no_payment_work_of_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test takes the turns itself: the application's own would hold a campaign after some seconds."""
    monkeypatch.setattr(main, "PAYMENT_WORK_PAUSE_SECONDS", 3600.0)


@pytest.fixture(scope="session")
def prolific_server() -> Iterator[ProlificServer]:
    """Yield the server of all tests of this process: to start and to stop one takes longer than most tests do."""
    server = ProlificServer()
    yield server
    server.close()


@pytest.fixture
def prolific(prolific_server: ProlificServer) -> Iterator[FakeProlific]:
    with prolific_server.opened() as books:
        yield books


@pytest.fixture
async def program(app, researcher, study):
    """Calls the API of the study's campaign as its owner's program."""
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)

    async def call(method, path="", part="payments", **sent):
        address = f"/api/v1/campaigns/{study.campaign.slug}/{part}{path}"
        return await researcher.request(method, address, headers={"authorization": f"Bearer {token}"}, **sent)

    return call
