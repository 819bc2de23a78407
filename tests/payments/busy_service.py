"""A service during whose calls something else happens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from app.annotation.platforms.prolific.service import ProlificService
from app.annotation.platforms.service import Submission
from app.payments.connections import ServiceConnector
from tests.payments.fake_prolific import TOKEN
from tests.payments.studies import Study

Event = Callable[[], Awaitable[Any]]


async def nothing() -> None:
    """Happens during all other calls."""


class BusyService:
    """A service that lets something happen before or after the effect of one kind of call, each time it is made."""

    is_cut_short = False

    def __init__(self, address: str, method: str, before: Event, after: Event) -> None:
        self.service = ProlificService(address, TOKEN)
        self.method = method
        self.before = before
        self.after = after

    @asynccontextmanager
    async def session(self, *, seconds: float) -> AsyncIterator["BusyService"]:
        yield self

    async def iterate_submissions(self, study: str) -> AsyncIterator[Submission]:
        async for submission in self.service.iterate_submissions(study):
            yield submission
        if self.method == "iterate_submissions":
            await self.after()

    def __getattr__(self, name: str) -> Any:
        async def call(*values: Any) -> Any:
            if name != self.method:
                return await getattr(self.service, name)(*values)
            await self.before()
            reply = await getattr(self.service, name)(*values)
            await self.after()
            return reply

        return call


def busy_connector(study: Study, method: str, *, before: Event = nothing, after: Event = nothing) -> ServiceConnector:
    """Return a connector to the Prolific of a test for one more process, during whose calls something happens."""
    service = BusyService(study.books.address, method, before, after)
    return ServiceConnector(study.connector.settings, study.connector.cipher, lambda *_: cast("Any", service))
