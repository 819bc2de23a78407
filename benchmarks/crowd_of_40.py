"""Measure which careless annotators the preset `strict` holds among 40, and the effect on scores.

Run `python -m benchmarks.crowd_of_40 [--seeds 20] [--first 1] [--held-only]`.

Simulated annotators work through the real pages over HTTP. Thirty are careful; they differ in bias, noise, use of the
scale and pace. Four answer at random, two give straight lines, two need a tenth of the usual time and hardly read, and
two fail gold items but otherwise answer like careful people. Each annotator answers 36 HITs of five out of 200 items,
in random order, with a simulated clock. After each round the rules run, as they do in the background of a server. Held
annotators are then excluded, and the scores are compared with another campaign that only the thirty careful annotators
answer.
"""

import argparse
import asyncio
import io
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import httpx
import numpy as np
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.http.dependencies import get_now
from app.imports import items
from app.main import create_app
from app.quality import decisions
from app.quality.run_rules import RuleScanPosition, scan_annotators_and_record_findings
from app.quality.sequential_limits import pearson_correlation_or_zero as pearson
from app.record import revisions
from app.settings import Settings
from benchmarks.temporary_database import run_temporary_database

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ITEMS, GOLD, ATTENTION = 200, 14, 4
ROUNDS, CHECKS_PERCENT = 36, 40
SECONDS = 25.0  # that a careful annotator takes for a HIT, in the middle
ITEM_NAME = re.compile(r"(?:item|gold|read)-\d{3}")

Kind = Literal["careful", "random", "straight", "fast", "fails gold"]
OF_40: dict[Kind, int] = {"careful": 30, "random": 4, "straight": 2, "fast": 2, "fails gold": 2}


@dataclass
class SimulatedClock:
    """A clock whose time the benchmark sets."""

    now: datetime = START

    def get(self) -> datetime:
        """Return the time, in the place of `get_now`."""
        return self.now


def set_clock_of_app(app: FastAPI, clock: SimulatedClock) -> None:
    """Make all routes of the application use this clock."""
    app.dependency_overrides[get_now] = app.state.utc_now = clock.get


@dataclass
class SimulatedPerson:
    """An annotator with habits, and the page in the browser.

    Attributes:
        kind: Careful, or kind of carelessness.
        bias: Bias on a scale of 1.
        noise: Standard deviation of answers.
        width: Share of the scale that is used.
        pace: Typical seconds per HIT.
        page: HTML of the current page.
        name: Pseudonym in the campaign.
        fields: Address of the campaign.

    """

    kind: Kind
    bias: float
    noise: float
    width: float
    pace: float
    page: str = ""
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def draw_seconds(self, rng: np.random.Generator) -> float:
        """Return the seconds for the next HIT."""
        return self.pace * float(np.exp(rng.normal(0, 0.4)))

    def draw_points(self, shown: Sequence[str], truth: dict[str, float], rng: np.random.Generator) -> list[float]:
        """Return points for the items of a HIT."""
        if self.kind == "random":
            return [100 * float(rng.random()) for _ in shown]
        if self.kind == "straight":
            line = np.full(len(shown), 50.0) if self.bias > 0 else np.linspace(15, 85, len(shown))
            return [float(np.clip(value + rng.normal(0, 0.8), 0, 100)) for value in line.tolist()]
        return [self.draw_points_of_item(name, truth[name], rng) for name in shown]

    def draw_points_of_item(self, name: str, true_value: float, rng: np.random.Generator) -> float:
        """Return points for one item; only annotators who fail gold treat gold items differently."""
        if name.startswith("read") and self.kind != "fast" and rng.random() > 0.02:
            return 100 * true_value
        if name.startswith("gold") and self.kind == "fails gold":
            true_value = 1 - true_value
        perceived_value = 0.5 + self.width * (true_value - 0.5) + self.bias + self.noise * rng.standard_normal()
        return float(np.clip(100 * perceived_value, 0, 100))


def draw_person(kind: Kind, rng: np.random.Generator) -> SimulatedPerson:
    """Return a random person of a kind; careful people vary most."""
    pace = SECONDS * float(np.exp(rng.normal(0, 0.35)))
    if kind == "fast":
        return SimulatedPerson(kind, 0.0, 0.35, 1.0, SECONDS / 10)
    return SimulatedPerson(kind, rng.normal(0, 0.06), rng.uniform(0.06, 0.2), rng.uniform(0.65, 1.1), pace)


def draw_crowd(count_by_kind: dict[Kind, int], rng: np.random.Generator) -> list[SimulatedPerson]:
    """Return people of all kinds in random order."""
    crowd = [draw_person(kind, rng) for kind, count in count_by_kind.items() for _ in range(count)]
    return [crowd[index] for index in rng.permutation(len(crowd))]


def items_csv_and_true_values(rng: np.random.Generator) -> tuple[str, dict[str, float]]:
    """Return a file of items with checks, and the true value of each item, 0 to 1; gold items have clear values."""
    true_values = {f"item-{k:03}": float(rng.random()) for k in range(ITEMS)}
    true_values |= {f"gold-{k:03}": float(rng.choice([0.1, 0.9])) for k in range(GOLD)}
    true_values |= {f"read-{k:03}": float(k % 2) for k in range(ATTENTION)}
    kinds = {"gold": ("gold", 30), "read": ("attention", 5)}
    rows = [
        ",".join((name, name, kind, f"{100 * true_value:g}" if kind else "", f"{tolerance}" if kind else ""))
        for name, true_value in true_values.items()
        for kind, tolerance in [kinds.get(name[:4], ("", 0))]
    ]
    return "\n".join(("id,text,check,expected,tolerance", *rows)), true_values


async def launch_campaign(app: FastAPI, name: str, file: str, **settings: Any) -> Any:
    """Create and launch a campaign with these items, and return it."""
    chosen = CampaignSettings.model_validate(
        {"name": name, "question": "How much?", "judgments_per_item": 60, "hits_per_annotator": ROUNDS}
        | {"repeat_items": True, "welcome": False, "checks_percent": CHECKS_PERCENT, "quality_preset": "strict"}
        | settings
    )
    async with app.state.database.begin() as connection:
        draft = await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=START)
        await items.import_items_and_return_receipt(
            connection, draft.slug, io.BytesIO(file.encode()), "items.csv", max_mb=1
        )
        return await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=START)


async def answer_hit(
    client: httpx.AsyncClient,
    person: SimulatedPerson,
    true_values: dict[str, float],
    clock: SimulatedClock,
    rng: np.random.Generator,
) -> bool:
    """Answer one HIT as a browser does; return False if the page has none."""
    numbers = list(dict.fromkeys(re.findall(r'name="score-(\d+)"', person.page)))
    form_match = re.search(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', person.page, re.DOTALL)
    if not numbers or form_match is None:
        return False
    shown = list(dict.fromkeys(ITEM_NAME.findall(person.page)))
    points = person.draw_points(shown, true_values, rng)
    form = {"token": form_match[1], "hit": form_match[2]}
    form |= {f"score-{number}": f"{value:.0f}" for number, value in zip(numbers, points, strict=True)}
    clock.now += timedelta(seconds=person.draw_seconds(rng))
    reply = await client.post(person.fields["address"], data=form, headers={"x-easel": "fetch"})
    person.page = reply.raise_for_status().text
    return True


async def let_people_answer(
    app: FastAPI,
    campaign: Any,
    people: Sequence[SimulatedPerson],
    true_values: dict[str, float],
    rng: np.random.Generator,
    *,
    rounds: int,
) -> None:
    """Let all people visit the campaign and answer in rounds; each person has a clock."""
    clocks = [SimulatedClock() for _ in people]
    address = f"/link/{campaign.link_key}"
    last: RuleScanPosition | None = None
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://easel.test", follow_redirects=True) as client:
        for number, person in enumerate(people, start=1):
            person.fields["address"], person.name = address, f"A{number}"
            set_clock_of_app(app, clocks[number - 1])
            person.page = (await client.post(address)).raise_for_status().text
        for _ in range(rounds):
            for index in rng.permutation(len(people)).tolist():
                set_clock_of_app(app, clocks[index])
                await answer_hit(client, people[index], true_values, clocks[index], rng)
            last = await scan_annotators_and_record_findings(
                app.state.database, campaign.id, now=max(clock.now for clock in clocks), last_position=last
            )


FIND_HELD_ANNOTATORS = text("""
    SELECT n.name, n.id, (SELECT string_agg(rule, ', ' ORDER BY f.id) FROM findings f
                          WHERE f.campaign_id = n.campaign_id AND f.annotator_id = n.id) AS rules
    FROM named_annotators n JOIN annotators a ON a.campaign_id = n.campaign_id AND a.id = n.id
    WHERE n.campaign_id = :campaign AND a.barred = 'held' ORDER BY n.id
""")
LOAD_SCORES = text("""
    SELECT i.external_id, p.score FROM items i JOIN current_posteriors p
    ON p.campaign_id = i.campaign_id AND p.number = i.number
    WHERE i.campaign_id = :campaign AND p.criterion = 0 ORDER BY i.number
""")


async def rules_by_held_annotator(engine: AsyncEngine, campaign: Any) -> dict[str, str]:
    """Return the rules that found each held annotator, by the annotator's name."""
    async with engine.connect() as connection:
        return {
            row.name: row.rules for row in await connection.execute(FIND_HELD_ANNOTATORS, {"campaign": campaign.id})
        }


async def exclude_held_annotators(engine: AsyncEngine, campaign: Any) -> None:
    """Exclude all held annotators and update the posteriors."""
    async with engine.begin() as connection:
        for row in (await connection.execute(FIND_HELD_ANNOTATORS, {"campaign": campaign.id})).all():
            await decisions.exclude_annotator(connection, campaign, row.id, reason="held by a rule", now=START)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=START)


async def correlation_with_truth(engine: AsyncEngine, campaign: Any, true_values: dict[str, float]) -> float:
    """Return the correlation of the scores with the items' true values."""
    async with engine.connect() as connection:
        rows = (await connection.execute(LOAD_SCORES, {"campaign": campaign.id})).all()
    scores = np.array([row.score for row in rows])
    return pearson(scores, np.array([true_values[row.external_id] for row in rows]))


class SeedResult(NamedTuple):
    """Result of one seed.

    Attributes:
        held: Held annotators by kind.
        rules: Kind of each held annotator, with the rules that found them.
        before: Correlation with the truth before held annotators are excluded.
        after: Correlation with the truth after they are excluded.
        alone: Correlation with the truth in the careful people's campaign.
        seconds: Duration.

    """

    held: dict[Kind, int]
    rules: list[str]
    before: float
    after: float
    alone: float
    seconds: float

    def is_good(self, count_by_kind: dict[Kind, int]) -> bool:
        """Return whether all careless and at most one careful annotator are held, without loss of correlation."""
        are_careless_held = all(self.held[kind] == count for kind, count in count_by_kind.items() if kind != "careful")
        is_worse = self.after < self.alone - 0.01  # False without a campaign of the careful people
        return are_careless_held and self.held["careful"] <= 1 and not is_worse


async def run_seed(
    app: FastAPI, seed: int, count_by_kind: dict[Kind, int], *, rounds: int = ROUNDS, with_careful_campaign: bool = True
) -> SeedResult:
    """Run a campaign with all people and, if wanted, one with only the careful people, on the same items."""
    start, rng, engine = time.monotonic(), np.random.default_rng(seed), app.state.database
    file, true_values = items_csv_and_true_values(rng)
    crowd = draw_crowd(count_by_kind, rng)
    campaign = await launch_campaign(app, f"crowd {seed}", file, seed=seed)
    await let_people_answer(app, campaign, crowd, true_values, rng, rounds=rounds)
    held = await rules_by_held_annotator(engine, campaign)
    held_by_kind: dict[Kind, int] = {
        kind: sum(person.kind == kind and person.name in held for person in crowd) for kind in count_by_kind
    }
    rules = [f"{person.kind}: {held[person.name]}" for person in crowd if person.name in held]
    before = await correlation_with_truth(engine, campaign, true_values)
    await exclude_held_annotators(engine, campaign)
    after = await correlation_with_truth(engine, campaign, true_values)
    if not with_careful_campaign:
        return SeedResult(held_by_kind, rules, before, after, np.nan, time.monotonic() - start)
    careful = [person for person in crowd if person.kind == "careful"]
    alone = await launch_campaign(app, f"careful {seed}", file, seed=seed, quality_preset="off")
    await let_people_answer(app, alone, careful, true_values, rng, rounds=rounds)
    correlation_alone = await correlation_with_truth(engine, alone, true_values)
    return SeedResult(held_by_kind, rules, before, after, correlation_alone, time.monotonic() - start)


async def run_seeds(app: FastAPI, seeds: Sequence[int], *, with_careful_campaign: bool) -> None:
    """Print a row for each seed."""
    print("| seed | careful held | random | straight | fast | fails gold | before | after | 30 alone | |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    good_seeds = 0
    async with app.router.lifespan_context(app):
        app.state.campaign_monitor.request_scan = lambda _campaign: None  # rules run at simulated times
        for seed in seeds:
            result = await run_seed(app, seed, OF_40, with_careful_campaign=with_careful_campaign)
            good_seeds += result.is_good(OF_40)
            counts = " | ".join(str(count) for count in result.held.values())
            figures = f"{result.before:.3f} | {result.after:.3f} | {result.alone:.3f}"
            print(f"| {seed} | {counts} | {figures} | {'' if result.is_good(OF_40) else 'missed'} |", flush=True)
            for line in result.rules:
                if line.startswith("careful") or not result.is_good(OF_40):
                    print(f"  {line}", flush=True)
    scores = ", and scores as of the thirty alone" if with_careful_campaign else ""
    print(f"\n{good_seeds} of {len(seeds)} seeds: all ten held, one careful person at most{scores}.")


def main(first: int, seeds: int, *, with_careful_campaign: bool) -> None:
    with run_temporary_database() as database:
        # All visits come from one address, some at the same time.
        settings = Settings(
            database_url=database.url, visits_per_address=1000, untouched_per_address=1000, untouched_per_campaign=5000
        )
        app = create_app(settings)
        asyncio.run(run_seeds(app, range(first, first + seeds), with_careful_campaign=with_careful_campaign))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--held-only", action="store_true", help="leave out the campaign of the careful ones alone")
    options = parser.parse_args()
    main(options.first, options.seeds, with_careful_campaign=not options.held_only)
