"""Draft a study at the platform's service from a campaign, publish it, pause it, and add places, as a person says."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.platform import Platform, VisitOutcome
from app.annotation.platforms.registry import (
    PLATFORMS,
    annotator_link_base_url_and_key,
    annotator_url_by_platform,
)
from app.annotation.platforms.service import (
    Balance,
    HourlyRecommendation,
    ServiceFailure,
    StudyCode,
    StudyCost,
    StudyDraft,
    StudyState,
)
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import store_changed_settings_or_refuse
from app.campaigns.summaries import CampaignWithProgress, load_campaign_with_progress_or_refuse
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid
from app.payments.connections import ServiceConnector, load_account_or_refuse
from app.payments.money import hundredths_text, money_text
from app.payments.service_calls import (
    call_service_or_refuse,
    load_account_with_token_or_refuse,
    service_with_token_of_account_or_refuse,
)
from app.recruiting.study_plan import (
    StudyPlan,
    count_people_for_missing_judgments,
    iterate_cost_warnings,
    iterate_study_warnings,
)

T = TypeVar("T")  # Python 3.11 has no other way

CODE_LETTERS, CODE_LENGTH = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789", 8
OUTCOMES: tuple[VisitOutcome, ...] = ("completed", "failed_checks", "screened_out", "nothing_left")

# If two people draft at once, the first one's study counts; the other stays an unpublished draft there.
STORE_STUDY_ONCE = text("""
    UPDATE payment_accounts SET study = :study, due_at = coalesce(due_at, :due_at)
    WHERE campaign_id = :campaign AND study = '' RETURNING study
""")
COUNT_TAKEN_PLACES = text("""
    SELECT count(*) FROM submissions WHERE campaign_id = :campaign AND study = :study
    AND status NOT IN ('returned', 'timed_out', 'rejected', 'screened_out')
""")


@dataclass(frozen=True)
class StudyView:
    """A campaign's study: the plan, the state at the platform if it was drafted, and what to know about it.

    Attributes:
        cost: What all places of the drafted study cost, as the platform computes it; None if it does not say.
        proposed_places: More places that the campaign's need asks for; None if there are enough.

    """

    plan: StudyPlan
    study: str
    state: StudyState | None
    cost: StudyCost | None
    balance: Balance | None
    recommended: HourlyRecommendation | None
    warnings: list[str]
    proposed_places: int | None


def total_rewards_of_study(state: StudyState) -> int:
    """Rewards of all places of a study, in hundredths."""
    return state.reward * state.places


async def load_study_view_or_refuse(
    database: AsyncEngine, connector: ServiceConnector, slug: str, base_url: str
) -> StudyView:
    """Return a campaign's study. Raises `Conflict` (`no_budget`, `no_token`, `study_settings_missing`,
    `service_refused`) and `BadGateway` (`service_unavailable`).
    """
    async with database.begin() as connection:
        campaign = await load_campaign_with_progress_or_refuse(connection, slug)
        account = await load_account_with_token_or_refuse(connection, campaign)
        taken = {"campaign": campaign.id, "study": account.study}
        taken_places = (await connection.execute(COUNT_TAKEN_PLACES, taken)).scalar_one()
    plan = StudyPlan.from_campaign(campaign)
    service = service_with_token_of_account_or_refuse(connector, account)
    state = await call_service_or_refuse(lambda: service.load_study_state(account.study)) if account.study else None
    cost = await result_of_call_or_none(lambda: service.load_study_cost(account.study)) if account.study else None
    balance = (
        await result_of_call_or_none(lambda: service.load_balance(account.workspace)) if account.workspace else None
    )
    recommended = await result_of_call_or_none(
        lambda: service.load_hourly_recommendation(account.workspace, plan.currency)
    )
    needed = taken_places + count_people_for_missing_judgments(campaign)
    return StudyView(
        plan,
        account.study,
        state,
        cost,
        balance,
        recommended,
        [
            *iterate_study_warnings(plan, base_url, recommended),
            *iterate_cost_warnings(
                plan.currency,
                total_rewards_of_study(state) if state else plan.total,
                cost,
                balance if state is None or state.status == "unpublished" else None,
            ),
        ],
        needed if state and campaign.status == "running" and needed > state.places else None,
    )


async def result_of_call_or_none(make_call: Callable[[], Awaitable[T]]) -> T | None:
    """Return what a call returns; None if it fails, since the page can do without."""
    try:
        return await make_call()
    except ServiceFailure:
        return None


async def draft_study_and_return_id_or_refuse(
    database: AsyncEngine, connector: ServiceConnector, slug: str, base_url: str, *, now: Any
) -> str:
    """Make an unpublished study from a campaign, and return its id. It costs nothing before it is published.

    Raises:
        Conflict: `no_budget`, `no_token`, `study_exists`, `study_settings_missing`, `study_of_rehearsal`,
            `service_refused`.
        BadGateway: `service_unavailable`.

    """
    async with database.begin() as connection:
        campaign = await load_campaign_with_progress_or_refuse(connection, slug)
        account = await load_account_with_token_or_refuse(connection, campaign)
        if account.study:
            raise study_exists_error(account.study)
        if campaign.rehearsal_of is not None:
            raise Conflict("A rehearsal has no study. Nothing was changed.", code="study_of_rehearsal")
        plan = StudyPlan.from_campaign(campaign)
        platform = PLATFORMS[account.platform]
        with_codes = await add_missing_completion_codes_to_campaign(connection, campaign, platform)
    service = service_with_token_of_account_or_refuse(connector, account)
    draft = StudyDraft(
        name=campaign.recruiting_title or campaign.name,
        description=campaign.recruiting_description or campaign.in_short or campaign.question,
        url=study_url(base_url, campaign, platform),
        reward=plan.reward,
        minutes=plan.minutes,
        places=plan.places,
        codes=completion_codes_of_study(with_codes, platform),
        reference=campaign.slug,
        devices=campaign.recruiting_devices,
        filter_set=campaign.recruiting_filter_set,
        groups=campaign.recruiting_groups,
        excluded_groups=campaign.recruiting_excluded_groups,
        labels=campaign.recruiting_labels,
    )
    study = await call_service_or_refuse(lambda: service.create_study_and_return_id(draft))
    async with database.begin() as connection:
        parameters = {"campaign": campaign.id, "study": study, "due_at": now}
        if (await connection.execute(STORE_STUDY_ONCE, parameters)).one_or_none() is None:
            raise study_exists_error((await load_account_or_refuse(connection, campaign)).study)
        after = {"places": plan.places, "reward": money_text(plan.reward, plan.currency)}
        await log_change(connection, "payments.study_drafted", campaign, about=study, new_values=after)
    return study


def study_exists_error(study: str) -> Conflict:
    return Conflict(f"This campaign already has the study {study}. Nothing was changed.", code="study_exists")


def study_url(base_url: str, campaign: CampaignWithProgress, platform: Platform) -> str:
    base_and_key = annotator_link_base_url_and_key(base_url, campaign.link_key, campaign.experiment_key)
    return annotator_url_by_platform(*base_and_key, [platform])[platform.name]


async def add_missing_completion_codes_to_campaign(
    connection: AsyncConnection, campaign: Campaign, platform: Platform
) -> Campaign:
    """Give the campaign a random code for each outcome that has neither a code nor an address."""

    def add_codes(settings: CampaignSettings) -> CampaignSettings:
        values = settings.model_dump()
        missing = [f"return_{outcome}" for outcome in OUTCOMES[1:] if not values[f"return_{outcome}"]]
        if not values[platform.completion_code_setting]:
            missing.append(platform.completion_code_setting)
        return settings.model_copy(update={name: new_completion_code() for name in missing})

    return await store_changed_settings_or_refuse(connection, campaign.slug, add_codes)


def new_completion_code() -> str:
    return "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))


def completion_codes_of_study(campaign: Campaign, platform: Platform) -> list[StudyCode]:
    """Return the codes with which people of each outcome return; outcomes that lead to an address have none."""
    settings = campaign.column_values_of_campaign()
    codes = [(outcome, platform.build_completion({}, settings, outcome).code) for outcome in OUTCOMES]
    return [StudyCode(code, outcome) for outcome, code in codes if code]


async def change_study_state_or_places_or_refuse(
    database: AsyncEngine, connector: ServiceConnector, slug: str, action: str, *, total: str = "", places: str = ""
) -> None:
    """Publish, pause or resume a study, or give it more places.

    Args:
        database: The database; calls are made outside of transactions.
        connector: Connector to the service.
        slug: The campaign's slug.
        action: publish, pause, resume or places.
        total: Total of all rewards, as the person typed it to publish.
        places: The new number of places, which is more than before.

    Raises:
        Conflict: `no_budget`, `no_token`, `study_missing`, `not_running`, `total_differs`, `service_refused`.
        Invalid: `invalid`, `places_unreadable`.
        BadGateway: `service_unavailable`.

    """
    async with database.begin() as connection:
        campaign = await load_campaign_with_progress_or_refuse(connection, slug)
        account = await load_account_with_token_or_refuse(connection, campaign)
    study = account.study
    if not study:
        raise Conflict("This campaign has no study yet. Draft one first.", code="study_missing")
    if action not in ("publish", "pause", "resume", "places"):
        raise Invalid("The action is publish, pause, resume or places.", code="invalid")
    service = service_with_token_of_account_or_refuse(connector, account)
    state = await call_service_or_refuse(lambda: service.load_study_state(study))
    if action == "places":
        count = parse_larger_place_count_or_refuse(places, state)
        await call_service_or_refuse(lambda: service.increase_study_places_to(study, count))
        after: dict[str, Any] | None = {"places": count}
    else:
        if action == "publish":
            refuse_unconfirmed_publication(campaign, state, total)
        await call_service_or_refuse(lambda: service.publish_pause_or_resume_study(study, action))
        after = {"total": money_text(total_rewards_of_study(state), account.currency)} if action == "publish" else None
    async with database.begin() as connection:
        await log_change(connection, "payments.study_changed", campaign, about=f"{study}: {action}", new_values=after)


def refuse_unconfirmed_publication(campaign: Campaign, state: StudyState, total: str) -> None:
    """Raise `Conflict` (`not_running`, `total_differs`) unless people can work, and a person typed what it costs."""
    if campaign.status != "running":
        raise Conflict(
            "Launch the campaign first: until then, people find no work. Nothing was changed.", code="not_running"
        )
    if total.strip() != hundredths_text(total_rewards_of_study(state)):
        raise Conflict(
            f"The rewards of all {state.places:,} places are {hundredths_text(total_rewards_of_study(state))}. "
            "Type this total to publish the study. Nothing was changed.",
            code="total_differs",
        )


def parse_larger_place_count_or_refuse(places: str, state: StudyState) -> int:
    if not (places.isascii() and places.isdigit() and len(places) < 7 and int(places) > state.places):
        raise Invalid(
            f"The study has {state.places:,} places. Enter a larger number: places can only be added.",
            code="places_unreadable",
        )
    return int(places)
