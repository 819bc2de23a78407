"""Compare figures of published data sets with the published values: `python -m benchmarks.published`.

The data of examples/data are imported into campaigns of a temporary database, and analysed there as on the analysis
page.
"""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.fit_cache import FitCache
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database.session import create_engine
from app.imports import items, responses_import
from app.inference.labels import dawid_skene
from benchmarks.temporary_database import run_temporary_database
from examples import published

PublishedFigure = tuple[str, str, str]  # its name, the published value, the value that Easel computes
MAX_FILE_MB = 64


async def import_campaign_and_time_responses(engine: AsyncEngine, campaign: published.Campaign) -> tuple[str, float]:
    """Import a campaign with its responses, and return its slug and the seconds that the import of responses took."""
    now = datetime.now(UTC)
    settings = CampaignSettings.model_validate(campaign.settings)
    items_file = io.BytesIO(published.as_csv(campaign.columns, campaign.items).encode())
    async with engine.begin() as connection:
        slug = (await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=now)).slug
        await items.import_items_and_return_receipt(connection, slug, items_file, "items.csv", max_mb=MAX_FILE_MB)
        await lifecycle.change_campaign_status_or_refuse(connection, slug, "launch", now=now)
        await lifecycle.change_campaign_status_or_refuse(connection, slug, "pause", now=now)
    responses_file = io.BytesIO(published.as_csv(published.NEEDED, campaign.responses).encode())
    start = time.perf_counter()
    await responses_import.import_responses_of_file_and_return_receipt(
        engine, slug, responses_file, "responses.csv", now=now, max_mb=MAX_FILE_MB
    )
    return slug, time.perf_counter() - start


async def load_table_rows(engine: AsyncEngine, slug: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a result table, by column name."""
    table = await FitCache().load_cached_or_fit_table(engine, slug, name)
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


async def transitivity_of_arguments(engine: AsyncEngine, slug: str) -> PublishedFigure:
    """Return the pooled kappa of transitivity of the arguments."""
    rows = {row["measure"]: row for row in await load_table_rows(engine, slug, "consistency")}
    transitivity_row = rows["transitivity"]
    return (
        f"kappa of transitivity over {transitivity_row['rests_on']:,} triads",
        ".741 over 14,476",
        f"{transitivity_row['value']:.3f}",
    )


async def prevalence_of_word_sense(engine: AsyncEngine, slug: str) -> PublishedFigure:
    """Return the prevalence of the first sense of *add*."""
    first_row, *_ = await load_table_rows(engine, slug, "labels")
    return "prevalence of sense 1 of *add*", ".51", f"{first_row['prevalence']:.3f}"


async def log_likelihood_of_anesthesia_labels(engine: AsyncEngine, slug: str) -> PublishedFigure:
    """Return the log-likelihood of Dawid-Skene for the anesthesia labels."""
    answers = await FitCache().load_answers(engine, slug)
    labels = np.asarray(answers.value, dtype=np.int64)
    result = dawid_skene.fit(answers.item, answers.annotator, labels, alpha=1.0, beta=1.0)
    return "log-likelihood from shares of votes", "-190.73", f"{result.log_likelihood:.2f}"


FIGURES_BY_CAMPAIGN: dict[str, Callable[[AsyncEngine, str], Awaitable[PublishedFigure]]] = {
    "arguments": transitivity_of_arguments,
    "senses": prevalence_of_word_sense,
    "anesthesia": log_likelihood_of_anesthesia_labels,
}


async def import_and_print_figures(url: str) -> None:
    """Import each data set and print its figure next to the published one."""
    engine = create_engine(url, pool_size=4)
    print("| campaign | HITs | import, s | figure | published | found |\n|---|---:|---:|---|---|---|")
    for name, compute_figure in FIGURES_BY_CAMPAIGN.items():
        campaign = published.MADE[name]()
        hits = len({(hit, annotator) for hit, annotator, *_ in campaign.responses})
        slug, seconds = await import_campaign_and_time_responses(engine, campaign)
        print(f"| {name} | {hits:,} | {seconds:.1f} | {' | '.join(await compute_figure(engine, slug))} |", flush=True)
    await engine.dispose()


def main() -> None:
    with run_temporary_database() as database:
        asyncio.run(import_and_print_figures(database.url))


if __name__ == "__main__":
    main()
