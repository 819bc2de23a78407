"""Preview HITs, made of a campaign's items or of placeholders. They are not stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.item_conditions import NO_BLOCKS
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database.campaign import load_item_number_by_external_id
from app.database.session import driver_of
from app.database.tables import items
from app.designs.answer import Answer, Form
from app.designs.campaign import Campaign
from app.designs.content import CONTENT_KINDS, RenderedItems, SourceAndReference
from app.designs.criteria import Criterion, submission_of_each_criterion_or_refuse
from app.designs.remarks import numbers_with_value, refuse_missing_comments
from app.media.render_items import render_campaign_items
from app.record.campaign import CampaignOnPage, load_campaign_for_page_or_refuse
from app.record.outputs import load_output_text_by_system

NEW_CAMPAIGN_SLUG = "new"  # in addresses, for a campaign that is not created yet
SELECT_SEGMENT_TEXTS = text(
    "SELECT source, reference FROM segments WHERE campaign_id = :campaign AND number = :segment"
)


@dataclass(frozen=True)
class PreviewHit:
    """HIT as the page's templates read it. `id` is the number of the preview HIT."""

    id: int
    items: list[int]
    drawn: RenderedItems
    draft: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PreviewCampaign(CampaignOnPage):
    """A campaign, and how far an annotator is with it."""

    place_in_blocks = NO_BLOCKS  # without an annotation: no column
    hits_answered: int
    answered_here: bool


async def load_preview_campaign_or_refuse(
    connection: AsyncConnection, slug: str, unsaved_settings: CampaignSettings | None
) -> CampaignOnPage:
    """Return the campaign, with unsaved settings instead of its own if there are any.

    Raises:
        NotFound: `campaign_not_found`.

    """
    if slug == NEW_CAMPAIGN_SLUG and unsaved_settings is not None:
        unsaved_columns = lifecycle.campaign_of_unsaved_settings(unsaved_settings).column_values_of_campaign()
        return CampaignOnPage.from_columns(unsaved_columns | {"item_count": 0, "has_people": False})
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    if unsaved_settings is None:
        return campaign
    return CampaignOnPage.from_columns(campaign.column_values_of_campaign() | unsaved_settings.model_dump())


async def load_preview_hit_of_random_items(
    connection: AsyncConnection, campaign: CampaignOnPage, preview_number: int
) -> PreviewHit:
    """Return a HIT of random items, determined by its number. Placeholders fill up a campaign with too few items.

    No item comes in two HITs until all of them have been shown, as for an annotator.
    """
    if campaign.segment_count:
        return await load_preview_hit_of_random_segment_outputs(connection, campaign, preview_number)
    always_shown = [
        *(await load_item_number_by_external_id(connection, campaign.id, campaign.design.always_shown)).values()
    ]
    others = np.delete(np.arange(max(campaign.item_count, campaign.items_per_hit)), always_shown)
    count = campaign.items_per_hit - len(always_shown)
    chosen = draw_candidates_unrepeated_in_round(others, count, seed=campaign.seed, preview_number=preview_number)
    rng = np.random.default_rng([campaign.seed, preview_number])
    chosen = rng.permutation([*chosen, *always_shown]).tolist() if always_shown else chosen
    statement = select(items.c.number, items.c.shown).where(
        items.c.campaign_id == campaign.id, items.c.number.in_(chosen)
    )
    texts = {row.number: row.shown for row in await connection.execute(statement)}
    shown = [texts.get(item, f"Item {item + 1}") for item in chosen]
    rendered = await render_campaign_items(await driver_of(connection), campaign, chosen, shown)
    if CONTENT_KINDS[campaign.content].is_file:  # a placeholder names no file
        drawn = [
            part if item in texts else name for part, item, name in zip(rendered.items, chosen, shown, strict=True)
        ]
        rendered = replace(rendered, items=drawn)
    return PreviewHit(preview_number, chosen, rendered)


async def load_preview_hit_of_random_segment_outputs(
    connection: AsyncConnection, campaign: CampaignOnPage, preview_number: int
) -> PreviewHit:
    """Return a HIT of distinct outputs of random systems for a random segment. Placeholders fill up missing outputs.

    No segment comes in two HITs until all of them have been shown.
    """
    rng = np.random.default_rng([campaign.seed, preview_number])
    segments = np.arange(campaign.segment_count)
    (segment,) = draw_candidates_unrepeated_in_round(segments, 1, seed=campaign.seed, preview_number=preview_number)
    key = {"campaign": campaign.id, "segment": segment}
    source_and_reference = SourceAndReference(*(await connection.execute(SELECT_SEGMENT_TEXTS, key)).one())
    always_shown = (
        await load_item_number_by_external_id(connection, campaign.id, campaign.design.always_shown)
    ).values()
    rows = [*(await load_output_text_by_system(connection, campaign.id, key["segment"])).items()]
    rows = sorted((rows[k] for k in rng.permutation(len(rows))), key=lambda row: row[0] not in always_shown)
    texts = dict.fromkeys(text for _, text in rows)
    texts |= {f"Output {k + 1}": None for k in range(campaign.items_per_hit)}
    items = {text: item for item, text in reversed(rows)}
    shown = [[*texts][k] for k in rng.permutation(campaign.items_per_hit)]
    numbers = [items.get(output, campaign.item_count + place) for place, output in enumerate(shown)]
    driver = await driver_of(connection)
    return PreviewHit(
        preview_number, numbers, await render_campaign_items(driver, campaign, numbers, shown, source_and_reference)
    )


def draw_candidates_unrepeated_in_round(
    candidates: NDArray[np.int_], count: int, *, seed: int, preview_number: int
) -> list[int]:
    """Return `count` random candidates, other ones for each HIT of a round. A round ends when too few are left."""
    if not count:
        return []
    round_number, place = divmod(preview_number, len(candidates) // count)
    order = np.random.default_rng([seed, round_number]).permutation(candidates)
    return [int(candidate) for candidate in order[place * count : (place + 1) * count]]


def parse_preview_answers_or_refuse(
    campaign: Campaign, hit: PreviewHit, form: Form
) -> list[tuple[Criterion[Campaign], Answer, list[float]]]:
    """Return the answer and the values by each criterion. Raises `Invalid` if an annotator could not submit them."""
    parts = submission_of_each_criterion_or_refuse(form, campaign)
    answers = [
        (criterion, *criterion.parse_answer(part, hit.items))
        for criterion, part in zip(campaign.criteria, parts, strict=True)
    ]
    _, answer, values = answers[0]
    refuse_missing_comments(campaign, answer.remarks, numbers_with_value(hit.items, values))
    return answers


def campaign_for_preview_page(campaign: CampaignOnPage, hit: PreviewHit) -> PreviewCampaign:
    """Return the campaign as annotators' pages read it, for an annotator who has answered all earlier preview HITs."""
    return PreviewCampaign.from_columns(
        campaign.column_values_of_campaign() | {"hits_answered": hit.id, "answered_here": False}
    )
