"""Draws in the transaction of answers read nothing from the database, whatever the rule and the design."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from pydantic import ValidationError

from app.annotation.hits.answer_leases import can_draw_in_memory
from app.annotation.hits.assignment import AssignmentQuery, load_assignment_updating_posteriors_or_refuse
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.draw_hit import propose_hit_or_none
from app.campaigns.settings import CampaignSettings
from app.database.session import borrow_autocommit_driver
from app.designs.registry import DESIGNS
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign

NO_DATABASE: Any = object()


def are_valid(settings: dict[str, Any]) -> bool:
    try:
        CampaignSettings(name="Verbs", question="How frequent?", **settings)
    except ValidationError:
        return False
    return True


def valid_settings(**names: Any) -> dict[str, Any]:
    """The first settings that are valid with these names."""
    choices: dict[str, Mapping[str, Any]] = {"rule": SELECTION_RULES, "design": DESIGNS, "update_law": ONLINE_LAWS}
    named = [[names[key]] if key in names else [*choice] for key, choice in choices.items()]
    return next(filter(are_valid, (dict(zip(choices, chosen, strict=True)) for chosen in product(*named))))


EACH_RULE = [valid_settings(rule=name) for name, rule in SELECTION_RULES.items() if not rule.for_systems_only]
EACH_DESIGN = [valid_settings(design=name) for name in DESIGNS]


@pytest.mark.parametrize("settings", EACH_RULE + EACH_DESIGN, ids=lambda settings: "-".join(settings.values()))
async def test_a_campaign_that_is_drawn_in_memory_reads_nothing_for_a_draw(engine, settings):
    own = {"baseline": {"baseline": "v0"}}.get(settings["design"], {})
    campaign = await create_running_campaign(engine, items=20, design_settings=own, **settings)
    annotator = await create_annotator(engine, campaign)
    cache = PosteriorCache()
    async with borrow_autocommit_driver(engine) as connection:
        query = AssignmentQuery(annotator)
        await cache.load_current_index(connection, campaign)
        state = await load_assignment_updating_posteriors_or_refuse(connection, cache, query)
    rule = SELECTION_RULES[settings["rule"]]
    assert can_draw_in_memory(state.campaign) == (not rule.reads_labels and not rule.reads_comparisons)
    if can_draw_in_memory(state.campaign):
        assert await propose_hit_or_none(NO_DATABASE, state, cache, state, now=NOW) is not None
