"""The pictures of the designs, for `pictures.py`: a campaign of each on its running server, answered in part."""

import csv
import io
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Locator, Page
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns import items, lifecycle
from app.campaigns.columns import ColumnMapping
from app.campaigns.settings import CampaignSettings
from app.cli.run_command import run_with_engine

MOMENT = datetime(2026, 1, 5, tzinfo=UTC)
BELOW = 20  # pixels under the last line
VERBS = ("run", "bring", "make", "accuse", "ponder")
SENSES = (
    "bank: a financial institution that takes deposits and lends money",
    "shore: sloping land beside a river or a lake",
    "heap: a long ridge or mass of something, as of clouds or of earth",
    "row: an arrangement of similar objects in a line or in tiers",
    "reserve: a supply held ready for use, as of blood",
    "tilt: of an aircraft, to incline to one side in a turn",
    "rely: to count on someone or something",
    "none of these",
)


def row(page: Page, text: str) -> Locator:
    """The row of an item, by its text."""
    return page.locator("[data-item]", has=page.get_by_text(text, exact=True))


async def rate(page: Page) -> None:
    await page.locator(".scripted .row input").first.fill("74")


async def rate_some(page: Page) -> None:
    for place, score in enumerate(("81", "34", "76")):
        await page.locator(".scripted .row input").nth(place).fill(score)


async def choose_points(page: Page) -> None:
    for verb, point in (("run", 4), ("bring", 1), ("make", 3)):
        await row(page, verb).locator("input").nth(point).check(force=True)


async def choose_label(page: Page) -> None:
    await page.keyboard.press("d")


async def choose_left(page: Page) -> None:
    await page.keyboard.press("ArrowLeft")


async def choose_right(page: Page) -> None:
    await page.keyboard.press("ArrowRight")


async def put_in_order(page: Page) -> None:
    for verb in ("make", "go", "abide"):
        await page.get_by_text(verb, exact=True).click()
    await row(page, "go").get_by_text("above").click()


async def choose_ends(page: Page) -> None:
    await row(page, "go").locator("[name=best]").check()
    await row(page, "abide").locator("[name=worst]").check()


async def give_numbers(page: Page) -> None:
    for text, value in (("Blue Spice is a coffee shop.", "150"), ("Blue Spice coffee cheap yes.", "40")):
        await row(page, text).locator("input").fill(value)


@dataclass(frozen=True)
class Scene:
    """A campaign, with as many items as its HIT shows, and what somebody does with that."""

    design: str
    name: str
    question: str
    texts: Sequence[str]
    act: Callable[[Page], Awaitable[None]]
    settings: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)  # columns, the same for all items
    picture: str = ""

    @property
    def file(self) -> str:
        return self.picture or f"design-{self.design}"


SCENES = (
    Scene(
        *("rating", "Restaurant descriptions", "How natural is this sentence?"),
        ["There is a place in the city centre, Blue Spice, that is not family-friendly."],
        rate,
        more={"low_label": "not at all", "high_label": "perfectly"},
    ),
    Scene("ordinal", "Verbs in everyday speech", "I hear this verb every day.", VERBS, choose_points),
    Scene(
        *("categories", "Word senses", "Which sense has “bank” in this sentence?"),
        ["A bank of switches lined the wall."],
        choose_label,
        {"labels": SENSES},
    ),
    Scene(
        *("pairwise", "School uniforms", "Which argument is more convincing?"),
        [
            "Uniforms spare pupils the daily comparison of clothes, and mornings are shorter.",
            "Uniforms make nobody equal: children compare bags, phones and holidays instead.",
        ],
        choose_left,
    ),
    Scene(
        *("baseline", "Translations", "Which translation reads better?"),
        [
            "The committee postponed its decision until the spring.",
            "The committee has moved the decision to the spring.",
        ],
        choose_right,
        {"baseline": "2"},
    ),
    Scene(
        *("ranking", "Lexical frequency", "How often are these verbs used?"),
        ("accuse", "abide", "hum", "go", "make"),
        put_in_order,
    ),
    Scene(
        *("best_worst", "Lexical frequency", "How often are these verbs used?"),
        ("accuse", "go", "abide", "make"),
        choose_ends,
    ),
    Scene(
        *("magnitude", "Restaurant descriptions", "How informative is this sentence?"),
        [
            "Blue Spice is a coffee shop.",
            "Blue Spice serves coffee by the river, and it is cheap.",
            "Blue Spice coffee cheap yes.",
        ],
        give_numbers,
        {"reference": "Blue Spice is a cheap coffee shop."},
    ),
    Scene(
        *("slider", "Translations", "How much of the source does the translation say?"),
        [
            "The dog sleeps on the sofa.",
            "The dog is on the sofa.",
            "A cat is sleeping on the sofa.",
            "Dog sleep sofa.",
        ],
        rate,
        more={
            "low_label": "nothing",
            "high_label": "everything",
            "differences": "reference",
            "source_column": "de",
            "reference_column": "en",
        },
        beside={"de": "Der Hund schläft auf dem Sofa.", "en": "The dog is sleeping on the sofa."},
        picture="items",
    ),
    Scene(
        *("rating", "Translations", "Judge these translations of one sentence."),
        [
            "The dog sleeps on the sofa.",
            "Dog sleep sofa.",
            "A cat is sleeping on the sofa.",
        ],
        rate_some,
        more={
            "criteria_shown": "grid",
            "criteria": [
                {
                    "name": "adequacy",
                    "question": "How much of the meaning does it express?",
                    "low_label": "nothing",
                    "high_label": "everything",
                },
                {
                    "name": "fluency",
                    "question": "How well is it written?",
                    "low_label": "unreadable",
                    "high_label": "flawless",
                },
            ],
        },
        picture="criteria",
    ),
)


def make_campaigns() -> dict[str, str]:
    """The keys of their links, by the files of the pictures."""

    async def work(engine: AsyncEngine) -> dict[str, str]:
        async with engine.begin() as connection:
            return {scene.file: await launched(connection, scene) for scene in SCENES}

    return run_with_engine(work)


async def launched(connection: Any, scene: Scene) -> str:
    settings = CampaignSettings(
        name=scene.name,
        question=scene.question,
        design=scene.design,
        design_settings=scene.settings,
        items_per_hit=len(scene.texts),
        **scene.more,
    )
    campaign = await lifecycle.create_draft_campaign(connection, settings, now=MOMENT)
    table = io.StringIO()
    rows = [(number, text, *scene.beside.values()) for number, text in enumerate(scene.texts, start=1)]
    csv.writer(table).writerows([("id", "text", *scene.beside), *rows])
    file = io.BytesIO(table.getvalue().encode())
    await items.import_items(
        connection, campaign.slug, file, "items.csv", mapping=ColumnMapping(shown="text"), max_mb=1
    )
    return str((await lifecycle.apply_transition(connection, campaign.slug, "launch", now=MOMENT)).link_key)


async def take(browser: Browser, base: str, keys: dict[str, str], pictures: Path) -> None:
    """A picture of each, from the top of the page to the end of what is on it."""
    for scene in SCENES:
        context = await browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
        page = await context.new_page()
        await page.goto(f"{base}/link/{keys[scene.file]}")
        await page.get_by_role("button", name="Start").click()
        await page.locator("[data-send]").wait_for()
        await scene.act(page)
        await page.mouse.move(0, 0)
        end = await page.locator("details.keys summary").bounding_box()
        assert end is not None
        clip = {"x": 0, "y": 0, "width": 1280, "height": end["y"] + end["height"] + BELOW}
        path = pictures / f"{scene.file}.png"
        await page.screenshot(path=path, clip=clip, animations="disabled")  # type: ignore[arg-type]  # a plain dict
        await context.close()
