"""Fits of a campaign's newest answers: read once, one fit at a time off the event loop, results kept for a while."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import answers as stored
from app.analysis import calibrated
from app.analysis.calibrated import Counted
from app.analysis.findings import Answers, Comparison, Options, ResultTable, Scores
from app.analysis.groups import in_group
from app.analysis.methods import SCORES, TABLES
from app.analysis.offer import Offer, offered, scored, tabled
from app.analysis.scores import compare
from app.background.threads import in_daemon_thread
from app.database.bulk import snapshot
from app.database.campaign import campaign_by_slug
from app.designs.criteria import key_of, named
from app.errors import Conflict, NotFound, shortened
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ratings.moderated import Moderated
from app.record.news import Watermark, look

MOST_CAMPAIGNS = 5  # each criterion of one counts as one
MOST_RESULTS = 100  # of one campaign
MOST_GROUPS = 6  # of one campaign

Result = TypeVar("Result")


@dataclass
class CampaignFits:
    """A campaign's answers by a criterion as they were last read, what they reach, and what was made of them, results
    and refusals; groups: the same of some annotators' answers.

    There are no others as long as the campaign's row is the same and nothing was written since the watermark.
    """

    campaign: Row[Any]
    watermark: Watermark
    answers: Answers
    offer: Offer
    results: dict[Hashable, Any] = field(default_factory=dict)
    groups: dict[str, "CampaignFits"] = field(default_factory=dict)


@dataclass
class Fits:
    """What this process has fitted. Asked again with no new answer, it gives the same objects; do not change them.

    criterion: the name of that by which the campaign is read; of several the first where it is empty. group: of
    annotators, as `in_group` has it; all where it is empty.

    All methods raise `NotFound` (`campaign_not_found`, `criterion_not_found`, `group_not_found`, `method_not_found`,
    `table_not_found`), and `Conflict` with the sentence and code of an `Inestimable`, such as
    `method_reads_other_answers`.
    """

    kept: dict[tuple[int, int], CampaignFits] = field(default_factory=dict)
    calibrated: dict[tuple[int, int], Counted] = field(default_factory=dict)
    one_reader: asyncio.Lock = field(default_factory=asyncio.Lock)
    one_fit: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answers(self, engine: AsyncEngine, slug: str, *, criterion: str = "", group: str = "") -> Answers:
        """The campaign's answers as of now."""
        return (await self.newest(engine, slug, criterion=criterion, group=group)).answers

    async def offer(self, engine: AsyncEngine, slug: str, *, criterion: str = "") -> Offer:
        """What they reach."""
        return (await self.newest(engine, slug, criterion=criterion)).offer

    async def scores(
        self, engine: AsyncEngine, slug: str, method: str, *, criterion: str = "", group: str = ""
    ) -> tuple[Answers, Scores]:
        """The scores of a method of `SCORES`, and the answers that they are made from."""
        return await self.made(engine, slug, ("scores", method), scores_by(method), criterion=criterion, group=group)

    async def some_scores(
        self, engine: AsyncEngine, slug: str, names: Iterable[str], *, criterion: str = "", group: str = ""
    ) -> tuple[Answers, dict[str, Scores | None], tuple[Note, ...]]:
        """Those of several methods from the same answers; None for a method that cannot score any item, and why."""
        newest = await self.newest(engine, slug, criterion=criterion, group=group)
        found: dict[str, Scores | None] = {}
        notes: list[Note] = []
        for name in names:
            fit, title = scores_by(name), SCORES[name].title
            try:
                scores = await self.fitted(newest, ("scores", name), fit)
                found[name], more = scores, scores.notes
            except Conflict as refusal:
                found[name], more = None, (Note(refusal.code, refusal.message),)
            notes += [Note(note.code, f"{title}: {note}") for note in more]
        return newest.answers, found, tuple(notes)

    async def table(
        self,
        engine: AsyncEngine,
        slug: str,
        name: str,
        options: Options = Options(),
        *,
        criterion: str = "",
        group: str = "",
    ) -> ResultTable:
        """A table of `TABLES`."""
        method = known(TABLES, name, "table_not_found")
        chosen = method.chosen(options)
        what = ("table", name, chosen)
        fit = partial(tabled, method, options=chosen)
        return (await self.made(engine, slug, what, fit, criterion=criterion, group=group))[1]

    async def compare(
        self, engine: AsyncEngine, slug: str, one: str, other: str, *, criterion: str = "", group: str = ""
    ) -> tuple[Answers, Comparison]:
        """Two methods of `SCORES` side by side; a refusal if one of them has no scores at all."""
        fits = {method: scores_by(method) for method in (one, other)}
        newest = await self.newest(engine, slug, criterion=criterion, group=group)
        both = [await self.fitted(newest, ("scores", method), fits[method]) for method in (one, other)]
        what = ("compare", one, other)
        return newest.answers, await self.fitted(newest, what, lambda answers: compare(answers, *both))

    async def made(
        self,
        engine: AsyncEngine,
        slug: str,
        what: Hashable,
        fit: Callable[[Answers], Result],
        *,
        criterion: str = "",
        group: str = "",
    ) -> tuple[Answers, Result]:
        """What `fit` makes of the newest answers, kept under the name `what`."""
        newest = await self.newest(engine, slug, criterion=criterion, group=group)
        return newest.answers, await self.fitted(newest, what, fit)

    async def newest(self, engine: AsyncEngine, slug: str, *, criterion: str = "", group: str = "") -> CampaignFits:
        """Those of a group, of all annotators if it is empty."""
        newest = await self.of_all(engine, slug, criterion=criterion)
        if group and group not in newest.groups:
            own = await asyncio.to_thread(in_group, newest.answers, group)
            keep(newest.groups, group, replace(newest, answers=own, results={}, groups={}), MOST_GROUPS)
        return newest.groups[group] if group else newest

    async def of_all(self, engine: AsyncEngine, slug: str, *, criterion: str = "") -> CampaignFits:
        """The answers as of now, read only if they are not those read last, and once for all who ask meanwhile."""
        async with self.reading(engine) as connection:
            campaign = await campaign_by_slug(connection, slug)
            read_by = named(campaign, criterion)
            newest = self.kept.get(key_of(read_by))
            now, first, _ = await look(connection, campaign.id, newest.watermark if newest else None)
            if newest is None or newest.campaign != campaign or first is not None:
                answers = await stored.read(connection, read_by)
                newest = CampaignFits(campaign, now, answers, await offered(connection, read_by))
                keep(self.kept, key_of(read_by), newest, MOST_CAMPAIGNS)
            newest.watermark = now
            return newest

    @asynccontextmanager
    async def reading(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        """A snapshot to read a campaign's answers from: one at a time, and whoever waits for it has no connection."""
        async with self.one_reader, snapshot(engine) as connection:
            yield connection

    async def intervals(self, connection: AsyncConnection, campaign: Any) -> Moderated:
        """The calibrated intervals as of now, of which only the newest answers are read; `connection` is `reading`."""
        return (await self.counted(connection, campaign)).intervals

    async def counted(self, connection: AsyncConnection, campaign: Any) -> Counted:
        """What the answers as of now add up to, likewise."""
        newest = await calibrated.newest(connection, campaign, self.calibrated.get(key_of(campaign)))
        keep(self.calibrated, key_of(campaign), newest, MOST_CAMPAIGNS)
        return newest

    async def fitted(self, newest: CampaignFits, what: Hashable, fit: Callable[[Answers], Result]) -> Result:
        """The result kept under this name, or that of `fit`, run in a thread when no other fit runs.

        That nothing can be estimated is a result too. Whoever stops waiting does not stop the fit, which would go on in
        its thread beside the next one.
        """
        if what not in newest.results:
            await asyncio.shield(asyncio.create_task(self.run(newest, what, fit)))
        found = newest.results[what]
        if isinstance(found, Inestimable):
            raise Conflict(str(found), code=found.code)
        return cast("Result", found)

    async def run(self, newest: CampaignFits, what: Hashable, fit: Callable[[Answers], Any]) -> None:
        async with self.one_fit:
            if what not in newest.results:
                keep(
                    newest.results,
                    what,
                    await in_daemon_thread(partial(tried, fit, newest.answers), "fit"),
                    MOST_RESULTS,
                )


def scores_by(name: str) -> Callable[[Answers], Scores]:
    """What makes the scores of a method; raises `NotFound` (`method_not_found`)."""
    return partial(scored, known(SCORES, name, "method_not_found"))


def tried(fit: Callable[[Answers], Result], answers: Answers) -> Result | Inestimable:
    try:
        return fit(answers)
    except Inestimable as reason:
        return reason


def keep(kept: dict[Any, Any], key: Hashable, value: Any, most: int) -> None:
    """As the newest; what was kept first goes if there is too much."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        del kept[next(iter(kept))]


Method = TypeVar("Method")


def known(registry: dict[str, Method], name: str, code: str) -> Method:
    """The entry of this name; raises `NotFound` with this code, naming those that there are."""
    if name not in registry:
        there = ", ".join(registry)
        raise NotFound(f"There is no “{shortened(name)}” here; there are {there}.", code=code, names=[*registry])
    return registry[name]
