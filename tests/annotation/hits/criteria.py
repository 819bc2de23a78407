"""Builders for campaigns that ask by several criteria."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits import submission
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.next_hit import HitOnPage
from app.annotation.platforms.assignments import AssignmentId
from app.campaigns.setting_types import can_law_read_design
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, AnswerByCriterion, Touch
from app.designs.campaign import Campaign
from app.designs.registry import DESIGNS
from app.inference.online.laws import ONLINE_LAWS
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign, find_or_lease_next_hit

NAMES = ("adequacy", "fluency", "style")


def criteria_settings(count: int = 2, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, "question": f"How is its {name}?"} | more for name in NAMES[:count]]


async def create_campaign_with_criteria(engine: AsyncEngine, count: int = 2, **settings: Any) -> Campaign:
    """A running campaign with so many criteria."""
    chosen: dict[str, Any] = {"criteria": criteria_settings(count), "judgments_per_item": 50} | settings
    return await create_running_campaign(engine, **chosen)


def settings_for_law(law: str) -> dict[str, Any]:
    """The settings of a way of asking that this update law can follow."""
    design = next(design for design in DESIGNS.values() if can_law_read_design(design(), ONLINE_LAWS[law]))
    return {"design": design.name, "update_law": law}


async def submit_by_criterion(
    engine: AsyncEngine, assignment: AssignmentId, hit: HitOnPage, said: dict[str, Sequence[float]], **more: Any
) -> AnswerReceipt:
    """By the name of each criterion, the values of the HIT's items."""
    answers = {name: Answer(dict(zip(hit.items, values, strict=True)), **more) for name, values in said.items()}
    async with borrow_autocommit_driver(engine) as connection:
        return await submission.store_answer_of_hit_and_return_receipt(
            connection, assignment, hit.id, AnswerByCriterion(answers), now=NOW
        )


def simulate_answers(campaign: Any, items: Sequence[int], rng: np.random.Generator) -> dict[str, Sequence[float]]:
    """An answer by each criterion, each another."""
    given = [view.design.simulate_answer_values(rng.random(len(items)).tolist()) for view in campaign.criteria]
    return dict(zip(campaign.criterion_names, given, strict=True))


async def answer_all_hits(
    engine: AsyncEngine, campaign: Campaign, *, people: int = 3, hits: int = 4, touched: bool = False
) -> list[AssignmentId]:
    """So many people answer so many HITs each; their assignments. touched: it is known how the answers came about."""
    rng, cache = np.random.default_rng(7), PosteriorCache()
    them = [await create_annotator(engine, campaign, f"ann {k}") for k in range(people)]
    for me in them * hits:
        work = await find_or_lease_next_hit(engine, me, cache=cache)
        if work.hit is not None:
            touches = {item: Touch(700, 2, "mouse") for item in work.hit.items}
            known: dict[str, Any] = {"touches": touches, "viewport": "390x844"} if touched else {}
            await submit_by_criterion(engine, me, work.hit, simulate_answers(campaign, work.hit.items, rng), **known)
    return them


async def create_campaign_that_agrees_about_fluency(engine: AsyncEngine, **settings: Any) -> Campaign:
    """Six people agree about fluency, where the first two items are best; about adequacy they do not agree at all."""
    campaign = await create_campaign_with_criteria(engine, items=10, **settings)
    cache = PosteriorCache()
    for person in range(6):
        me = await create_annotator(engine, campaign, f"ann {person}")
        for _ in range(2):
            hit = (await find_or_lease_next_hit(engine, me, cache=cache)).hit
            assert hit is not None
            noise = 3 * (person % 3 - 1)
            fluency = [min(100.0, ([95.0, 90.0][item] if item < 2 else 10.0 + item) + noise) for item in hit.items]
            adequacy = [float((person * 41 + item * 29) % 101) for item in hit.items]
            await submit_by_criterion(engine, me, hit, {"adequacy": adequacy, "fluency": fluency})
    return campaign
