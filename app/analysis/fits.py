"""Fits of a campaign's newest answers: read once, one fit at a time off the event loop, results kept for a while."""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis import answers as stored
from app.analysis.answers import Mark
from app.analysis.methods import SCORES, TABLES, Answers, Comparison, Options, Scores, Table, compare
from app.database.bulk import snapshot
from app.database.campaign import campaign_by_slug
from app.errors import Conflict, NotFound
from app.inference.inestimable import Inestimable

MOST_RESULTS = 200
MOST_ANSWERS = 2

Result = TypeVar("Result")


@dataclass
class Fits:
    """What this process has fitted. Asked again with no new answer, it gives the same objects; do not change them.

    All methods raise `NotFound` (`campaign_not_found`, `method_not_found`, `table_not_found`), and `Conflict` with the
    sentence and code of an `Inestimable`.
    """

    results: dict[Hashable, Any] = field(default_factory=dict)
    read: dict[Mark, Answers] = field(default_factory=dict)
    one_reader: asyncio.Lock = field(default_factory=asyncio.Lock)
    one_fit: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answers(self, engine: AsyncEngine, slug: str) -> Answers:
        """The campaign's answers as of now."""
        return (await self.newest(engine, slug))[1]

    async def scores(self, engine: AsyncEngine, slug: str, method: str) -> tuple[Answers, Scores]:
        """The scores of a method of `SCORES`, and the answers that they are made from."""
        return await self.made(engine, slug, ("scores", method), known(SCORES, method, "method_not_found").fit)

    async def some_scores(
        self, engine: AsyncEngine, slug: str, names: Iterable[str]
    ) -> tuple[Answers, dict[str, Scores | None], tuple[str, ...]]:
        """Those of several methods from the same answers; None for a method that cannot score any item, and why."""
        mark, answers = await self.newest(engine, slug)
        found: dict[str, Scores | None] = {}
        notes: list[str] = []
        for name in names:
            method = known(SCORES, name, "method_not_found")
            try:
                scores = await self.fitted((mark, ("scores", name)), partial(method.fit, answers))
                found[name], more = scores, scores.notes
            except Conflict as refusal:
                found[name], more = None, (refusal.message,)
            notes += [f"{method.title}: {note}" for note in more]
        return answers, found, tuple(notes)

    async def table(self, engine: AsyncEngine, slug: str, name: str, options: Options = Options()) -> Table:
        """A table of `TABLES`."""
        fit = known(TABLES, name, "table_not_found").fit
        return (await self.made(engine, slug, ("table", name, options), lambda answers: fit(answers, options)))[1]

    async def compare(self, engine: AsyncEngine, slug: str, one: str, other: str) -> tuple[Answers, Comparison]:
        """Two methods of `SCORES` side by side; a refusal if one of them has no scores at all."""
        fits = [known(SCORES, method, "method_not_found").fit for method in (one, other)]
        mark, answers = await self.newest(engine, slug)
        both = [
            await self.fitted((mark, ("scores", method)), partial(fit, answers))
            for method, fit in zip((one, other), fits, strict=True)
        ]
        return answers, await self.fitted((mark, ("compare", one, other)), partial(compare, answers, *both))

    async def made(
        self, engine: AsyncEngine, slug: str, what: Hashable, fit: Callable[[Answers], Result]
    ) -> tuple[Answers, Result]:
        """What `fit` makes of the newest answers, kept under the name `what`."""
        mark, answers = await self.newest(engine, slug)
        return answers, await self.fitted((mark, what), partial(fit, answers))

    async def newest(self, engine: AsyncEngine, slug: str) -> tuple[Mark, Answers]:
        """The answers as of now, read only if they are not those read last, and once for all who ask meanwhile."""
        async with self.one_reader, snapshot(engine) as connection:
            campaign = await campaign_by_slug(connection, slug)
            mark = await stored.mark(connection, campaign)
            if mark not in self.read:
                keep(self.read, mark, await stored.read(connection, campaign), MOST_ANSWERS)
            return mark, self.read[mark]

    async def fitted(self, key: Hashable, fit: Callable[[], Result]) -> Result:
        """The result kept under this key, or that of `fit`, run in a thread when no other fit runs.

        That nothing can be estimated is a result too. Whoever stops waiting does not stop the fit, which would go on in
        its thread beside the next one.
        """
        if key not in self.results:
            await asyncio.shield(asyncio.create_task(self.run(key, fit)))
        found = self.results[key]
        if isinstance(found, Inestimable):
            raise Conflict(str(found), code=found.code)
        return cast("Result", found)

    async def run(self, key: Hashable, fit: Callable[[], Any]) -> None:
        async with self.one_fit:
            if key not in self.results:
                keep(self.results, key, await asyncio.to_thread(tried, fit), MOST_RESULTS)


def tried(fit: Callable[[], Result]) -> Result | Inestimable:
    try:
        return fit()
    except Inestimable as reason:
        return reason


def keep(kept: dict[Any, Any], key: Hashable, value: Any, most: int) -> None:
    """In the place of what was kept first, if there is too much."""
    kept[key] = value
    while len(kept) > most:
        del kept[next(iter(kept))]


Method = TypeVar("Method")


def known(registry: dict[str, Method], name: str, code: str) -> Method:
    """The entry of this name; raises `NotFound` with this code, naming those that there are."""
    if name not in registry:
        raise NotFound(f"There is no “{name}” here; there are {', '.join(registry)}.", code=code, names=[*registry])
    return registry[name]
