"""Fits of a campaign's newest answers: read once, fitted one at a time off the event loop, kept for a while."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import calibrated_intervals
from app.analysis import load_answers as stored
from app.analysis.available_methods import (
    AvailableMethods,
    fit_scores_with_reading_notes,
    fit_table_or_refuse,
    load_available_methods,
)
from app.analysis.calibrated_intervals import CalibratedEvidence
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.result_types import Answers, Comparison, Options, ResultTable, Scores
from app.analysis.scores import compare_scores_by_correlation
from app.analysis.subgroups import answers_of_group_or_refuse
from app.background.process import run_in_daemon_thread
from app.database.bulk import open_snapshot
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict, NotFound, shorten_echo
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.changes import Watermark, poll_changes

MAX_CACHED_CAMPAIGNS = 5  # with all of their criteria
MAX_CACHED_RESULTS = 100  # of one campaign
MAX_CACHED_GROUPS = 6  # of one campaign

Result = TypeVar("Result")


@dataclass
class CampaignFits:
    """A campaign's answers by one criterion as last read, what they support, and the results and refusals made from
    them.

    `fits_by_group` holds the same for groups of annotators. The answers stay current as long as the campaign's row is
    unchanged and nothing was written since the watermark.
    """

    campaign: Campaign
    watermark: Watermark
    answers: Answers
    available_methods: AvailableMethods
    results: LRUCache[Hashable, Any] = field(default_factory=lambda: LRUCache(MAX_CACHED_RESULTS))
    fits_by_group: LRUCache[str, "CampaignFits"] = field(default_factory=lambda: LRUCache(MAX_CACHED_GROUPS))


@dataclass
class FitCache:
    """Fitted results of this process. Without a new answer, the same objects are returned; do not change them.

    `criterion` is the name of the criterion by which the campaign is read; if empty, the first of several. `group` is
    a group of annotators as `subgroups.answers_of_group_or_refuse` reads it; if empty, all annotators.

    All methods raise `NotFound` (`campaign_not_found`, `criterion_not_found`, `group_not_found`, `method_not_found`,
    `table_not_found`), and `Conflict` with the sentence and code of an `Inestimable`, such as
    `method_reads_other_answers`.

    Attributes:
        fits_by_criterion: By the campaign's id and the criterion's number; all of a campaign are of the same answers.
        evidence_by_criterion: By the same keys.

    """

    fits_by_criterion: LRUCache[int, dict[int, CampaignFits]] = field(
        default_factory=lambda: LRUCache(MAX_CACHED_CAMPAIGNS)
    )
    evidence_by_criterion: LRUCache[int, dict[int, CalibratedEvidence]] = field(
        default_factory=lambda: LRUCache(MAX_CACHED_CAMPAIGNS)
    )
    reader_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    fit_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def load_answers(self, engine: AsyncEngine, slug: str, *, criterion: str = "", group: str = "") -> Answers:
        """Return the campaign's answers as of now."""
        return (
            await self.load_campaign_fits_of_group_or_refuse(engine, slug, criterion=criterion, group=group)
        ).answers

    async def load_available_methods(self, engine: AsyncEngine, slug: str, *, criterion: str = "") -> AvailableMethods:
        """Return the methods that the campaign's answers support."""
        return (await self.load_campaign_fits_of_group_or_refuse(engine, slug, criterion=criterion)).available_methods

    async def load_answers_and_fit_scores(
        self, engine: AsyncEngine, slug: str, method_name: str, *, criterion: str = "", group: str = ""
    ) -> tuple[Answers, Scores]:
        """Return the scores of a method of `SCORE_METHODS`, and the answers that they are made from."""
        return await self.load_answers_and_fit(
            engine,
            slug,
            ("scores", method_name),
            score_function_of_method_or_refuse(method_name),
            criterion=criterion,
            group=group,
        )

    async def load_answers_scores_by_method_and_notes(
        self, engine: AsyncEngine, slug: str, method_names: Iterable[str], *, criterion: str = "", group: str = ""
    ) -> tuple[Answers, dict[str, Scores | None], tuple[Note, ...]]:
        """Return the scores of several methods from the same answers; None, and a note, for a method without any
        scores.
        """
        campaign_fits = await self.load_campaign_fits_of_group_or_refuse(engine, slug, criterion=criterion, group=group)
        scores_by_method: dict[str, Scores | None] = {}
        notes: list[Note] = []
        for name in method_names:
            fit, title = score_function_of_method_or_refuse(name), SCORE_METHODS[name].title
            try:
                scores = await self.cached_result_or_fit_in_thread(campaign_fits, ("scores", name), fit)
                scores_by_method[name], method_notes = scores, scores.notes
            except Conflict as refusal:
                scores_by_method[name], method_notes = None, (Note(refusal.code, refusal.message),)
            notes += [Note(note.code, f"{title}: {note}") for note in method_notes]
        return campaign_fits.answers, scores_by_method, tuple(notes)

    async def load_cached_or_fit_table(
        self,
        engine: AsyncEngine,
        slug: str,
        table_name: str,
        options: Options = Options(),
        *,
        criterion: str = "",
        group: str = "",
    ) -> ResultTable:
        """Return a table of `TABLE_METHODS`."""
        method = registered_method_or_refuse(TABLE_METHODS, table_name, "table_not_found")
        relevant_options = method.relevant_options(options)
        result_key = ("table", table_name, relevant_options)
        if method.needs_criteria and criterion:  # the table is the same for all: it is fitted once, for the first
            await refuse_unknown_criterion(engine, slug, criterion)
            criterion = ""
        fit = partial(fit_table_or_refuse, method, options=relevant_options)
        return (await self.load_answers_and_fit(engine, slug, result_key, fit, criterion=criterion, group=group))[1]

    def kept_answers_and_table_or_none(
        self, campaign_id: int, table_name: str, options: Options = Options()
    ) -> tuple[Answers, ResultTable] | None:
        """Return a table of the first criterion and its answers as they were last fitted; None without a fit, or if it
        was refused.
        """
        campaign_fits = self.fits_by_criterion.get(campaign_id, {}).get(0)
        result_key = ("table", table_name, TABLE_METHODS[table_name].relevant_options(options))
        table = campaign_fits.results.get(result_key) if campaign_fits else None
        return (campaign_fits.answers, table) if campaign_fits and isinstance(table, ResultTable) else None

    async def compare_methods(
        self,
        engine: AsyncEngine,
        slug: str,
        method_name: str,
        other_method_name: str,
        *,
        criterion: str = "",
        group: str = "",
    ) -> tuple[Answers, Comparison]:
        """Compare two methods of `SCORE_METHODS`; refuse if one of them has no scores at all."""
        fits = {method: score_function_of_method_or_refuse(method) for method in (method_name, other_method_name)}
        campaign_fits = await self.load_campaign_fits_of_group_or_refuse(engine, slug, criterion=criterion, group=group)
        scores = [
            await self.cached_result_or_fit_in_thread(campaign_fits, ("scores", method), fits[method])
            for method in (method_name, other_method_name)
        ]
        result_key = ("compare", method_name, other_method_name)
        return campaign_fits.answers, await self.cached_result_or_fit_in_thread(
            campaign_fits, result_key, lambda answers: compare_scores_by_correlation(answers, *scores)
        )

    async def load_answers_and_fit(
        self,
        engine: AsyncEngine,
        slug: str,
        result_key: Hashable,
        fit: Callable[[Answers], Result],
        *,
        criterion: str = "",
        group: str = "",
    ) -> tuple[Answers, Result]:
        """Return the newest answers and the result of `fit` on them, cached as `result_key`."""
        campaign_fits = await self.load_campaign_fits_of_group_or_refuse(engine, slug, criterion=criterion, group=group)
        return campaign_fits.answers, await self.cached_result_or_fit_in_thread(campaign_fits, result_key, fit)

    async def load_campaign_fits_of_group_or_refuse(
        self, engine: AsyncEngine, slug: str, *, criterion: str = "", group: str = ""
    ) -> CampaignFits:
        """Return the fits of a group, or of all annotators if it is empty."""
        campaign_fits = await self.load_current_campaign_fits(engine, slug, criterion=criterion)
        if group and group not in campaign_fits.fits_by_group:
            group_answers = await asyncio.to_thread(answers_of_group_or_refuse, campaign_fits.answers, group)
            campaign_fits.fits_by_group[group] = CampaignFits(
                campaign_fits.campaign, campaign_fits.watermark, group_answers, campaign_fits.available_methods
            )
        return campaign_fits.fits_by_group[group] if group else campaign_fits

    async def load_current_campaign_fits(self, engine: AsyncEngine, slug: str, *, criterion: str = "") -> CampaignFits:
        """Return the fits as of now. Answers are read only if they changed, and once for all concurrent callers."""
        async with self.open_answers_snapshot(engine) as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            chosen = campaign.find_criterion_or_refuse(criterion)
            by_criterion = self.fits_by_criterion.get(campaign.id, {})
            known = next(iter(by_criterion.values()), None)
            now, first, _ = await poll_changes(connection, campaign.id, known.watermark if known else None)
            if known is None or known.campaign != campaign or first is not None:
                by_criterion, known = {}, None
            if chosen.number not in by_criterion:
                answers = await stored.load_campaign_answers(connection, chosen, known.answers if known else None)
                available = await load_available_methods(connection, chosen)
                by_criterion[chosen.number] = CampaignFits(campaign, now, answers, available)
                self.fits_by_criterion[campaign.id] = by_criterion
            for campaign_fits in by_criterion.values():
                campaign_fits.watermark = now
            return by_criterion[chosen.number]

    @asynccontextmanager
    async def open_answers_snapshot(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        """Open a snapshot to read a campaign's answers from: one at a time, and waiting tasks hold no connection."""
        async with self.reader_lock, open_snapshot(engine) as connection:
            yield connection

    async def load_and_cache_calibrated_evidence(
        self, connection: AsyncConnection, criterion: Criterion[Campaign]
    ) -> CalibratedEvidence:
        """Return the calibrated evidence as of now, reading only new answers from an `open_answers_snapshot`."""
        by_criterion = self.evidence_by_criterion.setdefault(criterion.campaign.id, {})
        by_criterion[criterion.number] = await calibrated_intervals.load_calibrated_evidence_extending_previous(
            connection, criterion, by_criterion.get(criterion.number)
        )
        return by_criterion[criterion.number]

    async def cached_result_or_fit_in_thread(
        self, campaign_fits: CampaignFits, result_key: Hashable, fit: Callable[[Answers], Result]
    ) -> Result:
        """Return the result cached under this key, or run `fit` in a thread when no other fit runs.

        A refusal is cached as a result, too. Cancelling a waiting task does not stop the fit: it would go on in its
        thread next to the following one.
        """
        if result_key not in campaign_fits.results:
            await asyncio.shield(asyncio.create_task(self.ensure_fit_is_cached(campaign_fits, result_key, fit)))
        result = campaign_fits.results[result_key]
        if isinstance(result, Inestimable):
            raise Conflict(str(result), code=result.code)
        return cast("Result", result)

    async def ensure_fit_is_cached(
        self, campaign_fits: CampaignFits, result_key: Hashable, fit: Callable[[Answers], Any]
    ) -> None:
        async with self.fit_lock:
            if result_key not in campaign_fits.results:
                campaign_fits.results[result_key] = await run_in_daemon_thread(
                    partial(fit_or_return_inestimable, fit, campaign_fits.answers), "fit"
                )


async def refuse_unknown_criterion(engine: AsyncEngine, slug: str, criterion: str) -> None:
    """Raise `NotFound` (`criterion_not_found`) if the campaign has no criterion of this name."""
    async with engine.connect() as connection:
        (await load_campaign_by_slug_or_refuse(connection, slug)).find_criterion_or_refuse(criterion)


def score_function_of_method_or_refuse(method_name: str) -> Callable[[Answers], Scores]:
    """Return the function that computes the scores of a method.

    Raises:
        NotFound: `method_not_found`.

    """
    return partial(
        fit_scores_with_reading_notes, registered_method_or_refuse(SCORE_METHODS, method_name, "method_not_found")
    )


def fit_or_return_inestimable(fit: Callable[[Answers], Result], answers: Answers) -> Result | Inestimable:
    try:
        return fit(answers)
    except Inestimable as reason:
        return reason


Method = TypeVar("Method")


def registered_method_or_refuse(registry: dict[str, Method], name: str, code: str) -> Method:
    """Return the entry of this name.

    Raises:
        NotFound: With this code, naming the existing entries.

    """
    if name not in registry:
        names = ", ".join(registry)
        raise NotFound(f"There is no “{shorten_echo(name)}”. Choose one of {names}.", code=code, names=[*registry])
    return registry[name]
