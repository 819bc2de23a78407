"""API of campaigns and their items."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError

from app.accounts.guards import CurrentAccess, program_router, require_program_token
from app.accounts.roles import SEE_SETTINGS
from app.annotation.platforms.closed_links import load_notes_on_closed_links
from app.annotation.platforms.registry import (
    annotator_link_base_url_and_key,
    annotator_url_by_platform,
    platforms_of_campaign,
    platforms_offered_for_experiments,
)
from app.campaigns import empty_campaigns, hints, item_list, launch, lifecycle, settings_edits, summaries
from app.campaigns.campaign_filter import ARCHIVED_FILTER, CampaignFilter
from app.campaigns.comparisons import JUDGMENTS_SETTING, ComparisonUnit, judgments_per_item_for_comparisons_or_refuse
from app.campaigns.pay import HourlyPay
from app.campaigns.setting_types import settings_with_changes
from app.campaigns.settings import CampaignSettings
from app.campaigns.starter_questions import load_starter_questions
from app.campaigns.totals import CampaignTotals
from app.designs.field_flags import RequestBody
from app.designs.schema import ValueSchema
from app.errors import Invalid
from app.http.dependencies import Now, Transaction, openapi_description_of_refusals, request_base_url
from app.http.request_problems import require_known_names_once
from app.record.campaign import CampaignOnPage, load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse
from app.uploads import MAX_UPLOAD_ROWS

router = program_router(
    "/api/v1/campaigns", "Campaigns", refusals={422: "`invalid`; `details.fields` names each field"}
)
templates_router = APIRouter(
    prefix="/api/v1/templates",
    tags=["Campaigns"],
    dependencies=[Depends(require_program_token), Depends(require_known_names_once)],
)
CAMPAIGN_NOT_FOUND = {404: "`campaign_not_found`"}


class Transition(RequestBody):
    """A step of a campaign's life."""

    action: lifecycle.LifecycleAction | Literal["revert"]


class CampaignTotalsSchema(BaseModel):
    """Work and pay of a campaign in which every item that is not retired gets all judgments wanted."""

    tasks: int = Field(description="HITs that annotators answer.")
    check_places: int = Field(
        description="Places that gold and attention items take in these HITs, on average; they add no judgments."
    )
    people: int | None = Field(
        description="Fewest people to recruit; null without items or a limit of HITs per annotator."
    )
    people_at_most: int | None = Field(
        description="Most people to recruit if no one judges an item twice, since the last ones find fewer HITs."
    )
    minutes_per_person: int | None = Field(description="Minutes per person, if known.")
    pay_per_person: float | None = Field(description="Pay of one person in the campaign's currency, if known.")
    hours: float | None = Field(description="Hours of work, if the settings say how many minutes a HIT takes.")
    pay: float | None = Field(
        description="Pay in the campaign's currency, if set: for all HITs or, where a platform pays each "
        "person one reward, for `people` people."
    )
    pay_at_most: float | None = Field(description="Pay for `people_at_most` people, or the same as `pay`.")
    pay_per_hour: float | None = Field(description="Pay per hour of work, if both are known.")

    @classmethod
    def from_row(cls, row: Any) -> Self:
        totals = CampaignTotals.from_campaign(row)
        people = totals.people
        hourly = HourlyPay.from_campaign(row)
        return cls(
            tasks=totals.tasks,
            check_places=totals.check_places,
            people=people.at_least if people else None,
            people_at_most=people.at_most if people else None,
            minutes_per_person=people.minutes if people else None,
            pay_per_person=people.reward if people else None,
            hours=totals.hours,
            pay=totals.costs[0] if totals.costs else None,
            pay_at_most=totals.costs[-1] if totals.costs else None,
            pay_per_hour=hourly.amount if hourly else None,
        )


class ComparisonsSchema(BaseModel):
    """How often the systems of a campaign are compared on each prompt."""

    unit: str = Field(description="What is counted: comparisons of a pair or with the baseline, or judgments.")
    per_prompt: float = Field(description="How many each pair (or system) gets on each prompt.")
    systems: int
    prompts: int
    warning: str = Field(description="Set if some pairs are never compared; otherwise empty.")

    @classmethod
    def from_row(cls, row: Any) -> Self | None:
        unit = ComparisonUnit.comparison_unit_or_none(row, row.item_count)
        if unit is None:
            return None
        return cls(
            unit=unit.title,
            per_prompt=unit.count(row.judgments_per_item),
            systems=unit.systems,
            prompts=unit.prompts,
            warning=unit.warning(row.judgments_per_item),
        )


class CampaignSchema(BaseModel):
    """A campaign as programs see it."""

    slug: str = Field(description="Name of the campaign in addresses.")
    status: str = Field(description="draft, running, paused or finished.")
    rehearsal: bool = Field(description="Whether it is a copy answered by simulated annotators. Lists leave these out.")
    experiment: str | None = Field(
        description="The experiment with people to which the campaign belongs as an arm, if any."
    )
    arm: str | None = Field(description="The name of its arm.")
    settings: CampaignSettings
    better_rule: str | None = Field(
        description="The selection rule that suits the goal, if the campaign uses another rule. For pairwise "
        "comparisons with 8 or more judgments per item and no goal it is `pairs`."
    )
    totals: CampaignTotalsSchema
    comparisons: ComparisonsSchema | None = Field(description="Null unless the items are outputs of several systems.")
    values: ValueSchema = Field(
        description="Values that annotators give items; with several criteria, those for the first."
    )
    items: int
    judgments_taken: int
    judgments_wanted: int
    created_at: datetime
    launched_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None = Field(description="Time when it was archived.")
    links: dict[str, str] = Field(
        description=(
            "Links for annotators, by platform. For an arm: the links of its experiment, which lead each person to a "
            "random arm."
        )
    )

    @classmethod
    def from_row(cls, row: Any, server_url: str) -> Self:
        """Return the campaign of a row of `summaries.load_campaigns_with_progress`."""
        value_schema = ValueSchema.from_design(row.criteria[0].design)
        settings = lifecycle.unchecked_settings_with_deliverable_emails(row)
        link_by_platform = annotator_url_by_platform(
            *annotator_link_base_url_and_key(server_url, row.link_key, row.experiment_key),
            platforms_offered_for_experiments() if row.experiment_key else platforms_of_campaign(dict(settings)),
        )
        fields = {
            "settings": settings,
            "values": value_schema,
            "links": link_by_platform,
        }
        fields["totals"] = CampaignTotalsSchema.from_row(row)
        fields["comparisons"] = ComparisonsSchema.from_row(row)
        fields["better_rule"] = hints.name_of_better_rule_or_none(row)
        return cls.model_validate(summaries.campaign_progress_as_dict(row) | fields)


class CampaignWithNotes(CampaignSchema):
    """A campaign after a step of its life, or a change of its settings."""

    notes: list[str] = Field(
        description="Notes on what was done, for example that items begin with their own priors, or that people from a "
        "platform find no task any more."
    )


class Campaigns(BaseModel):
    campaigns: list[CampaignSchema]


class CampaignListQuery(CampaignFilter):
    """Which campaigns programs list."""

    archived: bool = Field(default=False, description="List archived campaigns instead of the others.")


async def load_campaign_schema(request: Request, connection: Transaction, slug: str) -> CampaignSchema:
    return CampaignSchema.from_row(
        await summaries.load_campaign_with_progress_or_refuse(connection, slug), request_base_url(request)
    )


@router.get("")
async def list_campaigns(
    request: Request,
    connection: Transaction,
    access: CurrentAccess,
    chosen: Annotated[CampaignListQuery, Query()],
) -> Campaigns:
    """List the campaigns whose settings you may see and that are not archived, newest first."""
    archived = chosen.archived or chosen.status == ARCHIVED_FILTER
    rows = await summaries.load_campaigns_with_progress(
        connection, only_archived=archived, access=access, permission=SEE_SETTINGS
    )
    base = request_base_url(request)
    return Campaigns(campaigns=[CampaignSchema.from_row(row, base) for row in rows if chosen.shows_campaign(row)])


@router.post(
    "",
    status_code=201,
    responses=openapi_description_of_refusals(
        {422: "`address_without_tls`, or `invalid`; `details.fields` names each field"}
    ),
)
async def create_campaign(
    request: Request, connection: Transaction, now: Now, settings: CampaignSettings
) -> CampaignSchema:
    """Create a draft. Its slug is made from its name."""
    row = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=now)
    return await load_campaign_schema(request, connection, row.slug)


@router.post("/{slug}/copies", status_code=201, responses=openapi_description_of_refusals(CAMPAIGN_NOT_FOUND))
async def copy_campaign(
    request: Request,
    connection: Transaction,
    access: CurrentAccess,
    now: Now,
    slug: str,
    *,
    chosen: lifecycle.CampaignCopy | None = None,
) -> CampaignSchema:
    """Create a draft with the settings and the items of a campaign, but none of its answers, members and read-only
    links.
    """
    row = await lifecycle.create_copy_of_campaign(
        connection, slug, now=now, access=access, chosen=chosen or lifecycle.CampaignCopy()
    )
    return await load_campaign_schema(request, connection, row.slug)


@router.get("/{slug}", responses=openapi_description_of_refusals(CAMPAIGN_NOT_FOUND))
async def get_campaign(request: Request, connection: Transaction, slug: str) -> CampaignSchema:
    """Return one campaign with its settings and its progress."""
    return await load_campaign_schema(request, connection, slug)


COMPARISONS_KEY = "comparisons_per_prompt_and_pair"
Changes = Annotated[
    dict[str, Any],
    Body(
        description="Any of the campaign's settings. Where systems are compared, "
        f"`{COMPARISONS_KEY}` may replace `judgments_per_item`: the least number of judgments that gives each pair "
        "this many comparisons on each prompt.",
        examples=[{"judgments_per_item": 5}],
    ),
]


@router.patch(
    "/{slug}",
    responses=openapi_description_of_refusals(
        CAMPAIGN_NOT_FOUND
        | {409: "`not_a_draft`, `only_more`", 422: "`comparisons_wrong`, `nothing_compared`, `address_without_tls`"}
    ),
)
async def change_settings(request: Request, connection: Transaction, slug: str, changes: Changes) -> CampaignWithNotes:
    """Change settings of a draft, or those settings of a launched campaign that do not change what its answers mean.

    The schema marks the latter with `after_launch`. Another `design` also sets `repeat_items` to its default, unless
    you send that setting or had chosen another value than the default of the former design.
    """
    await lifecycle.lock_and_load_campaign_or_refuse(connection, slug)
    campaign = await load_campaign_for_page_or_refuse(connection, slug)

    def change(before: CampaignSettings) -> CampaignSettings:
        settings = settings_with_validated_changes(
            before, {name: value for name, value in changes.items() if name != COMPARISONS_KEY}
        )
        if COMPARISONS_KEY not in changes:
            return settings
        wanted = judgments_per_system_for_comparisons_or_refuse(changes, settings, campaign)
        return settings_with_validated_changes(settings, {JUDGMENTS_SETTING: wanted})

    changed = await settings_edits.store_changed_settings_or_refuse(connection, slug, change)
    notes = await load_notes_on_closed_links(connection, changed)
    return CampaignWithNotes(**dict(await load_campaign_schema(request, connection, slug)), notes=notes)


def judgments_per_system_for_comparisons_or_refuse(
    changes: Mapping[str, Any], settings: CampaignSettings, campaign: CampaignOnPage
) -> int:
    """Return the judgments per system for the comparisons of a program.

    Raises `Invalid` (`comparisons_wrong`, `nothing_compared`).
    """
    comparisons = changes[COMPARISONS_KEY]
    if isinstance(comparisons, bool) or not isinstance(comparisons, int | float) or JUDGMENTS_SETTING in changes:
        message = f"Send a number as {COMPARISONS_KEY}, without {JUDGMENTS_SETTING}. Nothing was changed."
        raise Invalid(message, code="comparisons_wrong", setting=COMPARISONS_KEY)
    changed = replace(lifecycle.campaign_of_unsaved_settings(settings), segment_count=campaign.segment_count)
    unit = ComparisonUnit.comparison_unit_or_none(changed, campaign.item_count)
    if unit is None:
        message = f"“{campaign.name}” has no outputs of several systems, so send {JUDGMENTS_SETTING} instead."
        raise Invalid(message, code="nothing_compared", setting=COMPARISONS_KEY)
    return judgments_per_item_for_comparisons_or_refuse(unit, comparisons, COMPARISONS_KEY)


def settings_with_validated_changes(settings: CampaignSettings, changes: Mapping[str, Any]) -> CampaignSettings:
    """Return the settings with these changes."""
    try:
        return CampaignSettings.model_validate(settings_with_changes(settings.model_dump(), changes))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


@router.delete(
    "/{slug}",
    status_code=204,
    responses=openapi_description_of_refusals(
        CAMPAIGN_NOT_FOUND
        | {409: "`not_a_draft`, `has_answers`, `payments_unsettled`, `calls_unsettled`, `revision_running`"}
    ),
)
async def delete_campaign(connection: Transaction, slug: str) -> None:
    """Delete a draft, or a finished campaign without answers, with its items. Answers are never deleted."""
    await empty_campaigns.delete_empty_campaign_or_refuse(connection, slug)


@router.post(
    "/{slug}/transitions",
    responses=openapi_description_of_refusals(
        CAMPAIGN_NOT_FOUND
        | {
            409: "`revision_running`, `wrong_status`, `nothing_wanted`, `has_answers`, `no_items`, `no_drawn_items`, "
            "`too_few_items`, `impossible_prior`, `item_unknown`, `expected_impossible`, `baseline_unknown`, "
            "`column_unknown`, `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`, "
            "`one_system`, `too_few_common_segments`, `iterations_of_systems`, `implied_of_systems`, "
            "`content_of_systems`, `condition_column_missing`, `condition_cell_missing`, `one_condition`, "
            "`too_many_conditions`, `content_column_missing`, `content_cell_missing`, `content_incomplete`, "
            "`too_few_items_in_block`, `too_few_tasks_for_blocks`"
        }
    ),
)
async def transition_campaign(
    request: Request, connection: Transaction, slug: str, requested: Transition, now: Now
) -> CampaignWithNotes:
    """Launch, pause, resume, finish, reopen, archive, restore or revert a campaign.

    Archiving takes a campaign that is not running off the list; restoring puts it back. Reverting makes a launched
    campaign without answers a draft again.
    """
    if requested.action == "revert":
        row = await empty_campaigns.revert_unanswered_to_draft_or_refuse(connection, slug)
    else:
        row = await lifecycle.change_campaign_status_or_refuse(connection, slug, requested.action, now=now)
        if row.status != "running":  # its annotators are assessed a last time
            request.app.state.campaign_monitor.request_scan(row.id)
    campaign = await load_campaign_schema(request, connection, slug)
    notes = await launch.load_launch_notes(connection, row) if requested.action == "launch" else []
    return CampaignWithNotes(**dict(campaign), notes=notes)


class Item(BaseModel):
    number: int = Field(description="0 for the first item. Responses and posteriors refer to items by this number.")
    id: str
    text: str = Field(description="What annotators see.")
    fields: dict[str, Any] = Field(description="Every column of the uploaded row.")
    retired: bool = Field(description="Whether HITs no longer ask about it.")


class Items(BaseModel):
    total: int
    items: list[Item]


@router.get("/{slug}/items", responses=openapi_description_of_refusals(CAMPAIGN_NOT_FOUND))
async def list_items(
    connection: Transaction,
    slug: str,
    offset: Annotated[int, Query(ge=0, le=MAX_UPLOAD_ROWS)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Items:
    """Return one page of the items, ordered by number."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    total, rows = await item_list.load_item_total_and_page(connection, campaign.id, offset=offset, limit=limit)
    item_models = [
        Item(
            number=row.number,
            id=row.external_id,
            text=row.shown,
            fields=row.fields,
            retired=row.retired_at is not None,
        )
        for row in rows
    ]
    return Items(total=total, items=item_models)


class Template(BaseModel):
    """A question to begin with."""

    name: str
    title: str
    description: str
    source: str | None = Field(description="Source of the question.")
    settings: CampaignSettings = Field(description="Settings of the new campaign, which you can change.")


class Templates(BaseModel):
    templates: list[Template]


@templates_router.get("", responses=openapi_description_of_refusals({401: "`token_missing`, `token_invalid`"}))
async def list_templates() -> Templates:
    """List the question templates that come with Easel, each with its campaign settings."""
    return Templates(
        templates=[
            Template(name=question.name, settings=question.settings, **question.about.model_dump())
            for question in load_starter_questions()
        ]
    )
