"""Campaigns for the pictures of HITs: a campaign file for each, and the actions of an annotator before the picture."""

import csv
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page

SYSTEMS = Path(__file__).resolve().parents[1] / "examples" / "data" / "systems.csv"
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

EMOTIONS = (
    "joy: happy, pleased or amused",
    "sadness: unhappy, disappointed or grieving",
    "anger: angry or annoyed",
    "fear: afraid, worried or nervous",
    "surprise: surprised or confused",
    "disgust: disgusted or repelled",
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


async def tick_labels(page: Page) -> None:
    for label in ("joy", "surprise"):
        await page.get_by_role("checkbox", name=label).check()


async def choose_left(page: Page) -> None:
    await page.keyboard.press("ArrowLeft")


async def choose_right(page: Page) -> None:
    await page.keyboard.press("ArrowRight")


async def put_in_order(page: Page) -> None:
    for verb in ("make", "go", "abide"):
        await row(page, verb).locator(".badge").click()
    await row(page, "go").hover()  # shows its buttons
    await row(page, "go").get_by_text("above").click()


async def choose_ends(page: Page) -> None:
    await row(page, "go").locator("[name=best]").check()
    await row(page, "abide").locator("[name=worst]").check()


async def give_numbers(page: Page) -> None:
    for text, value in (("Blue Spice is a coffee shop.", "150"), ("Blue Spice coffee cheap yes.", "40")):
        await row(page, text).locator("input").fill(value)


async def rate_two(page: Page) -> None:
    """Leave the last row untouched, so that the picture shows such a slider, too."""
    for place, score in enumerate(("84", "37")):
        await page.locator(".scripted .row input").nth(place).fill(score)


@dataclass(frozen=True)
class Scene:
    """A campaign whose HIT shows all of its items, and what an annotator does with it."""

    design: str
    name: str
    question: str
    texts: Sequence[str]
    act: Callable[[Page], Awaitable[None]]
    design_settings: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)  # further columns, with the same text for all items
    picture: str = ""

    @property
    def file(self) -> str:
        """Name of the picture."""
        return self.picture or f"design-{self.design}"

    def campaign_file(self) -> dict[str, Any]:
        """Return the campaign file, which is JSON and so YAML, too."""
        rows = [{"id": str(number), "text": text, **self.columns} for number, text in enumerate(self.texts, start=1)]
        return {
            "name": self.name,
            "question": self.question,
            "design": self.design,
            "design_settings": self.design_settings,
            "items_per_hit": len(self.texts),
            "repeat_items": True,  # so that the only task is not the last one
            **self.settings,
            "items": {"shown": "text", "rows": rows},
        }


@dataclass(frozen=True)
class SystemsScene(Scene):
    """A campaign of the systems in examples/data/systems.csv."""

    def campaign_file(self) -> dict[str, Any]:
        """Return the campaign file with the systems' outputs."""
        with SYSTEMS.open(encoding="utf-8", newline="") as file:
            return super().campaign_file() | {"items_per_hit": 3, "items": {"rows": list(csv.DictReader(file))}}


SCENES = (
    Scene(
        *("rating", "Restaurant descriptions", "How natural is this sentence?"),
        ["There is a place in the city centre, Blue Spice, that is not family-friendly."],
        rate,
        settings={"low_label": "not at all", "high_label": "perfectly"},
    ),
    Scene("ordinal", "Verbs in everyday speech", "I hear this verb every day.", VERBS, choose_points),
    Scene(
        *("categories", "Word senses", "Which sense has “bank” in this sentence?"),
        ["A bank of switches lined the wall."],
        choose_label,
        {"labels": SENSES},
    ),
    Scene(
        *("several_labels", "Emotions", "Which emotions does the writer express?"),
        ["I still cannot believe that we won, I was shaking until the very last minute!"],
        tick_labels,
        {"labels": EMOTIONS},
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
        settings={
            "low_label": "nothing",
            "high_label": "everything",
            "differences": "reference",
            "source_column": "de",
            "reference_column": "en",
        },
        columns={"de": "Der Hund schläft auf dem Sofa.", "en": "The dog is sleeping on the sofa."},
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
        settings={
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
    SystemsScene(
        *("slider", "German to English", "How good is this translation?"),
        (),
        rate_two,
        settings={"low_label": "useless", "high_label": "perfect", "judgments_per_item": 30},
        picture="systems",
    ),
)
