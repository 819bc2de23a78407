"""Forty simulated annotators through the real pages, ten of whom do not care: whom the preset `strict` holds, and what
that does to the scores. `python -m benchmarks.crowd_of_40 [--seeds 20] [--first 1] [--held-only]`

Thirty are careful: they differ in bias, noise, how much of the scale they use and how quick they are. Four answer at
random, two give straight lines, two need a tenth of the usual time and hardly look, two fail gold items and answer all
others like careful people. Each answers 36 HITs of five of 200 items, in random order, over HTTP; the clock that pages
ask is simulated, too. After each round the annotators are looked at, as the server does in the background. Who is held
is then excluded, and the scores are compared with those of another campaign that the thirty careful ones alone answer.
"""

import argparse
import asyncio
import io
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
import numpy as np
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import embedded
from app.database.migrate import upgrade_schema
from app.http.dependencies import get_now
from app.imports import items
from app.main import create_app
from app.quality import decisions
from app.quality.run_rules import RuleScanPosition, scan_annotators_and_record_findings
from app.quality.sequential_limits import pearson_correlation_or_zero as pearson
from app.record import revisions
from app.settings import Settings

BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ITEMS, GOLD, ATTENTION = 200, 14, 4
ROUNDS, CHECKS_PERCENT = 36, 40
SECONDS = 25.0  # that a careful annotator takes for a HIT, in the middle
TOKEN = re.compile(r"(?:item|gold|read)-\d{3}")

Kind = Literal["careful", "random", "straight", "fast", "fails gold"]
OF_40: dict[Kind, int] = {"careful": 30, "random": 4, "straight": 2, "fast": 2, "fails gold": 2}


@dataclass
class MadeUpClock:
    """The time that pages are told."""

    now: datetime = BEGIN

    def get(self) -> datetime:
        """As `get_now`."""
        return self.now


def set_clock_of_app(app: FastAPI, clock: MadeUpClock) -> None:
    """Let all routes of the application have this time."""
    app.dependency_overrides[get_now] = app.state.utc_now = clock.get


@dataclass
class Person:
    """Somebody at a page: what they are like, and the page that they see."""

    kind: Kind
    bias: float
    noise: float
    width: float
    pace: float
    page: str = ""
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def seconds(self, rng: np.random.Generator) -> float:
        """For the next HIT."""
        return self.pace * float(np.exp(rng.normal(0, 0.4)))

    def says(self, shown: Sequence[str], truth: dict[str, float], rng: np.random.Generator) -> list[float]:
        """Points for what is shown, from first to last."""
        if self.kind == "random":
            return [100 * float(rng.random()) for _ in shown]
        if self.kind == "straight":
            line = np.full(len(shown), 50.0) if self.bias > 0 else np.linspace(15, 85, len(shown))
            return [float(np.clip(value + rng.normal(0, 0.8), 0, 100)) for value in line.tolist()]
        return [self.of_one(name, truth[name], rng) for name in shown]

    def of_one(self, name: str, worth: float, rng: np.random.Generator) -> float:
        """Points for one item; checks are items like others to them, but for those who fail gold."""
        if name.startswith("read") and self.kind != "fast" and rng.random() > 0.02:
            return 100 * worth
        if name.startswith("gold") and self.kind == "fails gold":
            worth = 1 - worth
        seen = 0.5 + self.width * (worth - 0.5) + self.bias + self.noise * rng.standard_normal()
        return float(np.clip(100 * seen, 0, 100))


def person(kind: Kind, rng: np.random.Generator) -> Person:
    """One of a kind; careful people differ most."""
    pace = SECONDS * float(np.exp(rng.normal(0, 0.35)))
    if kind == "fast":
        return Person(kind, 0.0, 0.35, 1.0, SECONDS / 10)
    return Person(kind, rng.normal(0, 0.06), rng.uniform(0.06, 0.2), rng.uniform(0.65, 1.1), pace)


def crowd(people: dict[Kind, int], rng: np.random.Generator) -> list[Person]:
    """In random order."""
    everybody = [person(kind, rng) for kind, count in people.items() for _ in range(count)]
    return [everybody[place] for place in rng.permutation(len(everybody))]


def table(rng: np.random.Generator) -> tuple[str, dict[str, float]]:
    """The file of items with their checks, and what each is worth, 0 to 1. Gold items are clear ones."""
    truth = {f"item-{k:03}": float(rng.random()) for k in range(ITEMS)}
    truth |= {f"gold-{k:03}": float(rng.choice([0.1, 0.9])) for k in range(GOLD)}
    truth |= {f"read-{k:03}": float(k % 2) for k in range(ATTENTION)}
    kinds = {"gold": ("gold", 30), "read": ("attention", 5)}
    rows = [
        ",".join((name, name, kind, f"{100 * worth:g}" if kind else "", f"{tolerance}" if kind else ""))
        for name, worth in truth.items()
        for kind, tolerance in [kinds.get(name[:4], ("", 0))]
    ]
    return "\n".join(("id,text,check,expected,tolerance", *rows)), truth


async def begun(app: FastAPI, name: str, file: str, **settings: Any) -> Any:
    """A running campaign of these items."""
    chosen = CampaignSettings.model_validate(
        {"name": name, "question": "How much?", "judgments_per_item": 60, "hits_per_annotator": ROUNDS}
        | {"welcome": False, "checks_percent": CHECKS_PERCENT, "quality_preset": "strict"}
        | settings
    )
    async with app.state.database.begin() as connection:
        draft = await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=BEGIN)
        await items.import_items_and_return_receipt(
            connection, draft.slug, io.BytesIO(file.encode()), "items.csv", max_mb=1
        )
        return await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=BEGIN)


async def answer(
    client: httpx.AsyncClient, someone: Person, truth: dict[str, float], clock: MadeUpClock, rng: np.random.Generator
) -> bool:
    """One HIT as a browser sends it; False where the page has none."""
    numbers = list(dict.fromkeys(re.findall(r'name="score-(\d+)"', someone.page)))
    found = re.search(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', someone.page, re.DOTALL)
    if not numbers or found is None:
        return False
    shown = list(dict.fromkeys(TOKEN.findall(someone.page)))
    points = someone.says(shown, truth, rng)
    form = {"token": found[1], "hit": found[2]}
    form |= {f"score-{number}": f"{value:.0f}" for number, value in zip(numbers, points, strict=True)}
    clock.now += timedelta(seconds=someone.seconds(rng))
    reply = await client.post(someone.fields["address"], data=form, headers={"x-easel": "fetch"})
    someone.page = reply.raise_for_status().text
    return True


async def visited(
    app: FastAPI,
    campaign: Any,
    people: Sequence[Person],
    truth: dict[str, float],
    rng: np.random.Generator,
    *,
    rounds: int,
) -> None:
    """Everybody comes, and answers in rounds; each person's time goes on by itself."""
    clocks = [MadeUpClock() for _ in people]
    address = f"/link/{campaign.link_key}"
    last: RuleScanPosition | None = None
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://easel.test", follow_redirects=True) as client:
        for number, someone in enumerate(people, start=1):
            someone.fields["address"], someone.name = address, f"A{number}"
            set_clock_of_app(app, clocks[number - 1])
            someone.page = (await client.post(address)).raise_for_status().text
        for _ in range(rounds):
            for place in rng.permutation(len(people)).tolist():
                set_clock_of_app(app, clocks[place])
                await answer(client, people[place], truth, clocks[place], rng)
            last = await scan_annotators_and_record_findings(
                app.state.database, campaign.id, now=max(clock.now for clock in clocks), last_position=last
            )


HELD = text("""
    SELECT n.name, n.id, (SELECT string_agg(rule, ', ' ORDER BY f.id) FROM findings f
                          WHERE f.campaign_id = n.campaign_id AND f.annotator_id = n.id) AS rules
    FROM named_annotators n JOIN annotators a ON a.campaign_id = n.campaign_id AND a.id = n.id
    WHERE n.campaign_id = :campaign AND a.barred = 'held' ORDER BY n.id
""")
SCORES = text("""
    SELECT i.external_id, p.score FROM items i JOIN current_posteriors p
    ON p.campaign_id = i.campaign_id AND p.number = i.number
    WHERE i.campaign_id = :campaign AND p.criterion = 0 ORDER BY i.number
""")


async def held_in(engine: AsyncEngine, campaign: Any) -> dict[str, str]:
    """The names of those who are held, with the rules that found them."""
    async with engine.connect() as connection:
        return {row.name: row.rules for row in await connection.execute(HELD, {"campaign": campaign.id})}


async def without_the_held(engine: AsyncEngine, campaign: Any) -> None:
    """The same campaign without their answers."""
    async with engine.begin() as connection:
        for row in (await connection.execute(HELD, {"campaign": campaign.id})).all():
            await decisions.exclude_annotator(connection, campaign, row.id, reason="held by a rule", now=BEGIN)
    await revisions.revise_posteriors_if_decision_missing(engine, campaign.id, now=BEGIN)


async def correlation(engine: AsyncEngine, campaign: Any, truth: dict[str, float]) -> float:
    """Correlation of the scores with the items' true values."""
    async with engine.connect() as connection:
        rows = (await connection.execute(SCORES, {"campaign": campaign.id})).all()
    scores = np.array([row.score for row in rows])
    return pearson(scores, np.array([truth[row.external_id] for row in rows]))


class OneSeed(NamedTuple):
    """Annotators held by the rules, by kind; correlations with the truth before and after their exclusion, and of
    the careful people's own campaign.
    """

    held: dict[Kind, int]
    rules: list[str]
    before: float
    after: float
    alone: float
    seconds: float

    def good(self, people: dict[Kind, int]) -> bool:
        """All who do not care, and one careful person at most."""
        careless = all(self.held[kind] == count for kind, count in people.items() if kind != "careful")
        worse = self.after < self.alone - 0.01  # not where nobody asked for the careful people's own campaign
        return careless and self.held["careful"] <= 1 and not worse


async def one_seed(
    app: FastAPI, seed: int, people: dict[Kind, int], *, rounds: int = ROUNDS, with_those_alone: bool = True
) -> OneSeed:
    """Two campaigns of the same items: one of all, and one of the careful people alone if that is wanted."""
    began, rng, engine = time.monotonic(), np.random.default_rng(seed), app.state.database
    file, truth = table(rng)
    everybody = crowd(people, rng)
    campaign = await begun(app, f"crowd {seed}", file, seed=seed)
    await visited(app, campaign, everybody, truth, rng, rounds=rounds)
    held = await held_in(engine, campaign)
    kinds: dict[Kind, int] = {kind: sum(one.kind == kind and one.name in held for one in everybody) for kind in people}
    rules = [f"{one.kind}: {held[one.name]}" for one in everybody if one.name in held]
    before = await correlation(engine, campaign, truth)
    await without_the_held(engine, campaign)
    after = await correlation(engine, campaign, truth)
    if not with_those_alone:
        return OneSeed(kinds, rules, before, after, np.nan, time.monotonic() - began)
    careful = [one for one in everybody if one.kind == "careful"]
    alone = await begun(app, f"careful {seed}", file, seed=seed, quality_preset="off")
    await visited(app, alone, careful, truth, rng, rounds=rounds)
    of_alone = await correlation(engine, alone, truth)
    return OneSeed(kinds, rules, before, after, of_alone, time.monotonic() - began)


async def run(app: FastAPI, seeds: Sequence[int], *, with_those_alone: bool) -> None:
    """A line for each seed."""
    print("| seed | careful held | random | straight | fast | fails gold | before | after | 30 alone | |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    good = 0
    async with app.router.lifespan_context(app):
        app.state.campaign_monitor.request_scan = lambda _campaign: None  # the looks here come at a simulated time
        for seed in seeds:
            found = await one_seed(app, seed, OF_40, with_those_alone=with_those_alone)
            good += found.good(OF_40)
            counts = " | ".join(str(count) for count in found.held.values())
            figures = f"{found.before:.3f} | {found.after:.3f} | {found.alone:.3f}"
            print(f"| {seed} | {counts} | {figures} | {'' if found.good(OF_40) else 'missed'} |", flush=True)
            for line in found.rules:
                if line.startswith("careful") or not found.good(OF_40):
                    print(f"  {line}", flush=True)
    scores = ", and scores as of the thirty alone" if with_those_alone else ""
    print(f"\n{good} of {len(seeds)} seeds: all ten held, one careful person at most{scores}.")


def main(first: int, seeds: int, *, with_those_alone: bool) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        # They all come from one address, some at once.
        settings = Settings(
            database_url=url, visits_per_address=1000, untouched_per_address=1000, untouched_per_campaign=5000
        )
        app = create_app(settings)
        asyncio.run(run(app, range(first, first + seeds), with_those_alone=with_those_alone))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--held-only", action="store_true", help="leave out the campaign of the careful ones alone")
    given = parser.parse_args()
    main(given.first, given.seeds, with_those_alone=not given.held_only)
