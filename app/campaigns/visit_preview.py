"""Preview of a whole visit as a participant sees it: its pages in order, and every way in which it can end. Pure.

Nothing is stored. Where the participant is, and what they have sent in the open step, travels in the address and in the
forms. Each reply parses these forms again, so they need no signature.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from pydantic import Field, ValidationError

from app.annotation.hits.no_hit_reasons import NoHitReason
from app.annotation.onboarding.consent import step_result_of_consent_form_or_refuse
from app.annotation.onboarding.passphrase import link_closed_error, passphrase_missing_error
from app.annotation.onboarding.settings import COLUMN_BY_ANSWERING_SETTING, VisitAndAnswerSettings
from app.annotation.onboarding.step import StepResult, VisitHistory, VisitStep
from app.annotation.onboarding.steps import VISIT_STEPS, has_consent_on_start_page, steps_with_own_page
from app.annotation.platforms.platform import Platform, VisitOutcome
from app.annotation.platforms.registry import platforms_of_campaign, recruiting_platform
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.campaigns.preview_hit import PreviewHit, parse_preview_answers_or_refuse
from app.designs.answer import Form
from app.designs.campaign import Campaign
from app.designs.field_flags import InputModel
from app.errors import Invalid, Refusal

START_PAGE = "start"
PASSPHRASE_PAGE = "passphrase"  # noqa: S105  (the name of a page)
BEFORE_ACCEPTING_PAGE = "before-accepting"
THANKS_PAGE = "thanks"
MAX_PREVIEWED_HITS = 2
MAX_STATE_CHARACTERS = 60_000
REASONS_AFTER_WORK: tuple[NoHitReason, ...] = ("limit", "assignment_done", "seen_all", "stopped", "held")
CLOSED_STATUSES = ("draft", "paused", "finished")  # of a campaign whose first page admits nobody
UNREPEATED_FIELDS = ("token", "viewport")


@dataclass(frozen=True)
class VisitPage:
    """Page of a previewed visit.

    Attributes:
        key: Name in the address.
        title: Name that the researcher reads.
        is_outcome: True if the page is not part of the usual visit but one of its other ends.
        step: Onboarding step; None on other pages.
        results: Results of that step with which its page opens.
        hit_number: Number of the HIT, 1 for the first; None on other pages.
        reason: Reason why there is no HIT; None on other pages.
        status: Status of the campaign that a new visitor meets.
        refusal: What a visitor to the open link is told before the welcome; None on other pages.
        way_back: End of the visit whose way back to the platform the page describes; None on other pages.

    """

    key: str
    title: str
    is_outcome: bool = False
    step: VisitStep | None = None
    results: Sequence[StepResult] = ()
    hit_number: int | None = None
    reason: NoHitReason | None = None
    status: str = "running"
    refusal: Refusal | None = None
    way_back: VisitOutcome | None = None


class VisitPreviewState(InputModel):
    """Where a participant is in a preview.

    Attributes:
        forms: Forms that they have sent in the open step.
        opened_from: Page of the campaign from which the researcher opened the preview, such as settings/visit.

    """

    platform: str = ""
    page: str = ""
    forms: list[dict[str, str]] = Field(default=[])
    opened_from: str = ""

    def to_json_token(self) -> str:
        return self.model_dump_json()


def parse_preview_token_or_refuse(token: str) -> VisitPreviewState:
    """Return the state in a form of the preview. Raises `Invalid` (`preview_unreadable`)."""
    try:
        if len(token) <= MAX_STATE_CHARACTERS:
            return VisitPreviewState.model_validate_json(token)
    except ValidationError:
        pass
    raise Invalid("This page of the preview cannot be read. Start the preview again.", code="preview_unreadable")


def visit_and_answer_settings_of_campaign(campaign: Campaign) -> VisitAndAnswerSettings:
    """Return a campaign's current onboarding settings."""
    columns = campaign.column_values_of_campaign()
    return VisitAndAnswerSettings.model_construct(
        **{name: columns[COLUMN_BY_ANSWERING_SETTING.get(name, name)] for name in VisitAndAnswerSettings.model_fields}
    )


def version_of_previewed_visit(campaign: Campaign) -> int:
    """Return the version of the visit's texts; for a draft, the one that its launch will create."""
    return max(1, campaign.visit_version)


def preview_platform_or_first(campaign: Campaign, name: str) -> Platform:
    """Return the campaign's platform of this name, by default the one that people come from, else the first."""
    crowd_settings = crowd_setting_by_name_with_slug_of_campaign(campaign)
    platforms = platforms_of_campaign(crowd_settings)
    name = name or recruiting_platform(crowd_settings).name
    return next((platform for platform in platforms if platform.name == name), platforms[0])


def build_visit_pages(campaign: Campaign, platform: Platform) -> list[VisitPage]:
    """Return the pages of a visit in their order, then its other ends."""
    settings, version = visit_and_answer_settings_of_campaign(campaign), version_of_previewed_visit(campaign)
    steps = required_onboarding_steps(campaign, platform)
    pages = pages_before_onboarding(campaign, platform)
    pages += [
        VisitPage(step.name, capitalized_step_name(step), step=step) for step in steps_with_own_page(settings, platform)
    ]
    pages += [
        VisitPage(f"hit-{number}", f"Task {number}", hit_number=number)
        for number in range(1, count_previewed_hits(campaign, platform) + 1)
    ]
    thanks = no_hit_reason_code_after_last_hit(campaign, platform)
    pages.append(VisitPage(THANKS_PAGE, "Thanks", reason=thanks))
    for step in steps:
        pages += [
            VisitPage(
                f"{step.name}-ends-{number}", title, is_outcome=True, step=step, results=results(settings, version)
            )
            for number, (title, results) in enumerate(step.endings.items(), start=1)
            if results(settings, version)
        ]
    if is_open_link_platform(platform) and not campaign.open_link:
        pages.append(VisitPage("link-closed", "Open link is closed", is_outcome=True, refusal=link_closed_error()))
    if platform.has_start_button or platform.has_preview_page:
        pages += [
            VisitPage(f"arrives-{status}", f"New visitor, campaign {status}", is_outcome=True, status=status)
            for status in CLOSED_STATUSES
        ]
    pages += [
        VisitPage(f"no-hit-{reason}", f"No task: {reason.replace('_', ' ')}", is_outcome=True, reason=reason)
        for reason in get_args(NoHitReason)
        if reason not in ("visit", thanks)
    ]
    pages += [
        VisitPage(f"way-back-{outcome}", f"Way back: {outcome.replace('_', ' ')}", is_outcome=True, way_back=outcome)
        for outcome in get_args(VisitOutcome)
    ]
    return pages


def pages_before_onboarding(campaign: Campaign, platform: Platform) -> list[VisitPage]:
    """Return the pages before the onboarding steps."""
    if platform.has_preview_page:
        return [VisitPage(BEFORE_ACCEPTING_PAGE, "Before accepting the task")]
    pages = [VisitPage(START_PAGE, "Welcome")] if platform.has_start_button else []
    if is_open_link_platform(platform) and campaign.open_link and campaign.passphrase:
        pages.insert(0, VisitPage(PASSPHRASE_PAGE, "Passphrase", refusal=passphrase_missing_error()))
    return pages


def is_open_link_platform(platform: Platform) -> bool:
    """Return whether one link admits anyone who has it."""
    return platform.has_start_button and not platform.has_personal_links


def required_onboarding_steps(campaign: Campaign, platform: Platform) -> list[VisitStep]:
    settings = visit_and_answer_settings_of_campaign(campaign)
    return [step for step in VISIT_STEPS if step.is_required(settings, platform)]


def capitalized_step_name(step: VisitStep) -> str:
    """Return the name of an onboarding step that the researcher reads."""
    return step.name.capitalize()


def count_previewed_hits(campaign: Campaign, platform: Platform) -> int:
    if platform.one_hit_per_assignment:
        return 1
    return min(int(campaign.hits_per_annotator or MAX_PREVIEWED_HITS), MAX_PREVIEWED_HITS)


def no_hit_reason_code_after_last_hit(campaign: Campaign, platform: Platform) -> NoHitReason:
    """Return why there is no further HIT for an annotator who has answered all of theirs."""
    if platform.one_hit_per_assignment:
        return "assignment_done"
    return "limit" if campaign.hits_per_annotator else "seen_all"


def is_last_previewed_hit(campaign: Campaign, platform: Platform, page: VisitPage) -> bool:
    return platform.one_hit_per_assignment or page.hit_number == campaign.hits_per_annotator


def visit_page_or_first(pages: Sequence[VisitPage], page_key: str) -> VisitPage:
    """Return the page of this key, else the first one: another platform, or other settings, may have no such page."""
    return next((page for page in pages if page.key == page_key), pages[0])


def neighbouring_page_or_none(pages: Sequence[VisitPage], page: VisitPage, offset: int) -> VisitPage | None:
    """Return the page before (-1) or after (1) another one in the usual visit; None if there is none.

    An outcome has no next page. Before it is the page of the step that it ends, the thanks before a way back, or the
    first page.
    """
    usual_pages = [one for one in pages if not one.is_outcome]
    if page.is_outcome:
        step_page = next((one for one in usual_pages if page.step and one.step == page.step), usual_pages[0])
        return (usual_pages[-1] if page.way_back else step_page) if offset < 0 else None
    place = usual_pages.index(page) + offset
    return usual_pages[place] if 0 <= place < len(usual_pages) else None


def count_hits_answered_before_page(campaign: Campaign, platform: Platform, page: VisitPage) -> int:
    """Return how many HITs the participant has answered when they see a page."""
    if page.hit_number is not None:
        return page.hit_number - 1
    if page.reason in REASONS_AFTER_WORK:
        limit = None if platform.one_hit_per_assignment else campaign.hits_per_annotator
        return int(limit or count_previewed_hits(campaign, platform))
    return 0


@dataclass(frozen=True)
class PreviewedStep:
    """An onboarding step in a preview: the settings, the step, and the results with which its page opened."""

    settings: VisitAndAnswerSettings
    version: int
    step: VisitStep
    results: Sequence[StepResult]

    def visit_history_after_forms_or_refuse(self, forms: Sequence[Mapping[str, str]]) -> VisitHistory:
        """Return the history after these forms. Raises what the step's `parse_form` raises."""
        history = VisitHistory(self.version, results=self.results)
        for form in forms:
            history = self.history_with_step_result(history, self.step.parse_form(form, self.settings, history))
        return history

    def history_with_step_result(self, history: VisitHistory, result: StepResult | None) -> VisitHistory:
        """Return the history with a result, which replaces an earlier one of the same version, as when it is stored."""
        if result is None:
            return history
        others = [one for one in history.results if one.version != result.version]
        return VisitHistory(self.version, results=[*others, result])

    def is_passed(self, history: VisitHistory) -> bool:
        return self.step.is_passed(self.settings, history)


def previewed_step_of_page(campaign: Campaign, page: VisitPage) -> PreviewedStep:
    """Return the onboarding step of a page, which must have one."""
    assert page.step is not None  # noqa: S101  (the caller has looked)
    return PreviewedStep(
        visit_and_answer_settings_of_campaign(campaign), version_of_previewed_visit(campaign), page.step, page.results
    )


def consent_result_of_start_form_or_none(
    campaign: Campaign, platform: Platform, form: Mapping[str, str]
) -> StepResult | None:
    """Return the answer to the consent text on the page with the Start button; None if that page does not ask for it.

    Raises `Invalid`.
    """
    settings = visit_and_answer_settings_of_campaign(campaign)
    if not has_consent_on_start_page(settings, platform):
        return None
    return step_result_of_consent_form_or_refuse(form, settings, VisitHistory(version_of_previewed_visit(campaign)))


def form_fields_parsed_again_later(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form that its step parses again later."""
    return {name: value for name, value in form.items() if name not in UNREPEATED_FIELDS}


def stored_step_result_as_json(result: StepResult) -> str:
    """Return the step result that Easel would store, as JSON text."""
    return json.dumps(result._asdict(), ensure_ascii=False, indent=1)


def parse_answer_as_stored_json(campaign: Campaign, hit: PreviewHit, form: Form) -> str:
    """Parse a form and return the answer that Easel would store, as JSON text.

    Raises `Invalid` for an impossible answer.
    """
    answers = {}
    for criterion, answer, values in parse_preview_answers_or_refuse(campaign, hit, form):
        details = {name: detail for name, detail in asdict(answer).items() if detail and name != "values"}
        answers[criterion.name or "answer"] = {"values": values, **details}
    kept: dict[str, Any] = {"items": hit.items, **answers}
    return json.dumps(kept, ensure_ascii=False, indent=1, default=str)
