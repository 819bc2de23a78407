"""Published judgments through the tool: imported as campaigns, their analysis beside the published figures.

`python -m benchmarks.published`: the data of examples/data, on a database of its own.
"""

import asyncio
import io
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.fit_cache import FitCache
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import embedded
from app.database.migrate import upgrade_schema
from app.database.session import create_engine
from app.imports import items, responses_import
from app.inference.labels import dawid_skene
from examples import published

Figure = tuple[str, str, str]  # what it is, as published, as found
MOST_MB = 64


async def imported(engine: AsyncEngine, campaign: published.Campaign) -> tuple[str, float]:
    """Its slug, and the seconds that the import of responses took."""
    now = datetime.now(UTC)
    settings = CampaignSettings.model_validate(campaign.settings)
    shown = io.BytesIO(published.as_csv(campaign.columns, campaign.items).encode())
    async with engine.begin() as connection:
        slug = (await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=now)).slug
        await items.import_items_and_return_receipt(connection, slug, shown, "items.csv", max_mb=MOST_MB)
        await lifecycle.change_campaign_status_or_refuse(connection, slug, "launch", now=now)
        await lifecycle.change_campaign_status_or_refuse(connection, slug, "pause", now=now)
    answers = io.BytesIO(published.as_csv(published.NEEDED, campaign.responses).encode())
    start = time.perf_counter()
    await responses_import.import_responses_of_file_and_return_receipt(
        engine, slug, answers, "responses.csv", now=now, max_mb=MOST_MB
    )
    return slug, time.perf_counter() - start


async def table(engine: AsyncEngine, slug: str, name: str) -> list[dict[str, Any]]:
    found = await FitCache().load_cached_or_fit_table(engine, slug, name)
    return [dict(zip([column.name for column in found.columns], row, strict=True)) for row in found.rows]


async def of_arguments(engine: AsyncEngine, slug: str) -> Figure:
    rows = {row["measure"]: row for row in await table(engine, slug, "consistency")}
    kappa = rows["transitivity"]
    return f"kappa of transitivity over {kappa['rests_on']:,} triads", ".741 over 14,476", f"{kappa['value']:.3f}"


async def of_senses(engine: AsyncEngine, slug: str) -> Figure:
    first, *_ = await table(engine, slug, "labels")
    return "prevalence of sense 1 of *add*", ".51", f"{first['prevalence']:.3f}"


async def of_patients(engine: AsyncEngine, slug: str) -> Figure:
    answers = await FitCache().load_answers(engine, slug)
    labels = np.asarray(answers.value, dtype=np.int64)
    found = dawid_skene.fit(answers.item, answers.annotator, labels, alpha=1.0, beta=1.0)
    return "log-likelihood from shares of votes", "-190.73", f"{found.log_likelihood:.2f}"


FIGURES: dict[str, Callable[[AsyncEngine, str], Awaitable[Figure]]] = {
    "arguments": of_arguments,
    "senses": of_senses,
    "anesthesia": of_patients,
}


async def measure(url: str) -> None:
    engine = create_engine(url, pool_size=4)
    print("| campaign | HITs | import, s | figure | published | found |\n|---|---:|---:|---|---|---|")
    for name, figure in FIGURES.items():
        campaign = published.MADE[name]()
        hits = len({(hit, annotator) for hit, annotator, *_ in campaign.responses})
        slug, seconds = await imported(engine, campaign)
        print(f"| {name} | {hits:,} | {seconds:.1f} | {' | '.join(await figure(engine, slug))} |", flush=True)
    await engine.dispose()


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        asyncio.run(measure(url))


if __name__ == "__main__":
    main()
