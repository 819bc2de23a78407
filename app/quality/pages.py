"""Researchers' pages about annotators: all of them, one with all their answers, and findings, rules and checks."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import Path as PathParameter
from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.database.audit_log import ACTION_PHRASES as ACTIONS_IN_LOG
from app.http.dependencies import (
    Database,
    FormFields,
    Now,
    RowId,
    Transaction,
    dependency_on_app_state,
    render_page,
)
from app.http.paging import Page
from app.quality import actions, annotator_answers, annotators, inbox, judged_items, listings
from app.quality.bulk_decisions import (
    MAX_ANNOTATORS_AT_ONCE,
    AnnotatorState,
    apply_bulk_decision_and_return_outcome,
    parse_bulk_action_or_refuse,
)
from app.quality.caught_guessers import load_guess_chance_by_kind, sentences_on_caught_guessers_or_empty
from app.quality.checks import hint_that_hits_cannot_show_checks_or_empty
from app.quality.decisions import (
    ANNOTATOR_NAME_PATTERN,
    MAX_REASON_CHARACTERS,
    NO_REASON,
    find_annotator_id_or_refuse,
    reason_or_note_that_none_was_given,
)
from app.quality.dependencies import Comparisons, Medians, Revisions
from app.quality.guesser_reach import sentence_on_judgments_until_guessers_are_flagged_or_empty
from app.quality.listing_options import AnnotatorSort
from app.quality.peer_agreement import has_few_answers
from app.quality.rule_reach import load_notice_on_too_few_annotators_or_empty, load_reach_summary
from app.quality.rule_sentences import parts_of_rule_sentence
from app.quality.settings import RULE_ACTIONS, active_rule_choices_by_name, parse_all_rule_choices_by_name
from app.quality.value_histograms import histogram_bin_count_or_zero
from app.quality.work_time import (
    MIN_OWN_TIMES,
    MIN_SECONDS_PER_ITEM,
    MIN_TASKS_FOR_HOURLY_PAY,
    MIN_USUAL_SECONDS,
)
from app.record.campaign import load_campaign_for_page_or_refuse

router = researcher_router("/admin/campaigns/{slug}")


# Platforms and analysis stand above this room, so the application hands the functions in.
ListPlatformsToApprove = Annotated[
    Callable[[Any, Any], Awaitable[Sequence[Any]]], dependency_on_app_state("list_platforms_to_approve")
]

LoadFindingAboutAnnotators = Annotated[
    Callable[..., Awaitable[Any]], dependency_on_app_state("load_finding_about_annotators")
]

ANNOTATOR_ROWS_PER_PAGE = 50
REVISION_WAIT_SECONDS = 3.0  # then the page shows scores without the decision
ANNOTATOR_FIELD_PREFIX = "annotator-"  # of the field with the state of an annotator
AnnotatorPathName = Annotated[str, PathParameter(max_length=40)]
AnnotatorPageNumber = Annotated[int, Query(alias="page", ge=1, le=1_000_000)]


ACTIONS_BY_BLOCKED_STATE = {
    None: ("hold", "exclude"),
    "held": ("release", "exclude"),
    "excluded": ("restore",),
    "erased": (),
}


@router.get("/annotators")
async def annotators_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    comparisons: Comparisons,
    medians: Medians,
    list_platforms_to_approve: ListPlatformsToApprove,
    now: Now,
    sort: AnnotatorSort = "name",
    rising: bool = False,
    number: AnnotatorPageNumber = 1,
    shows_all: Annotated[bool, Query(alias="all")] = False,
) -> HTMLResponse:
    """List the annotators; those who left before their first answer only if asked for."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    total = await annotators.count_annotators(connection, campaign.id)
    left_early = await annotators.count_annotators_without_answer(connection, campaign.id)
    page: Page[Any] = Page(number, ANNOTATOR_ROWS_PER_PAGE, total if shows_all else total - left_early)
    list_options: dict[str, Any] = {"sorting": sort, "rising": rising, "limit": page.size, "offset": page.offset}
    list_options["with_early_leavers"] = shows_all
    comparison = await comparisons.load_newest_comparison(connection, campaign)
    context = {
        "campaign": campaign,
        "annotator_rows": await annotators.load_annotator_lines(
            connection, campaign, median_seconds=medians, **list_options
        ),
        "comparisons": comparison,
        "has_reliability": comparison.is_any_reliability_known,
        "has_histograms": histogram_bin_count_or_zero(campaign.criteria[0].design) > 0,
        "is_recalculating": await annotators.are_decisions_missing_in_posteriors(connection, campaign.id),
        "bins": campaign.design.classes,
        "sort": sort,
        "is_ascending": rising,
        "sortings": get_args(AnnotatorSort),
        "page": page,
        "left_early": left_early,
        "min_tasks_for_hourly_pay": MIN_TASKS_FOR_HOURLY_PAY,
        "min_own_times": MIN_OWN_TIMES,
        "min_seconds_per_item": MIN_SECONDS_PER_ITEM,
        "min_task_seconds": MIN_USUAL_SECONDS,
        "now": now,
        "platforms_to_approve": await list_platforms_to_approve(connection, campaign),
        "shows_all": shows_all,
        "query": urlencode(
            {"sort": sort} | ({"rising": "true"} if rising else {}) | ({"all": "true"} if shows_all else {})
        ),
    }
    return render_page(request, "admin/annotators.html", context)


@router.get("/annotators/{annotator}")
async def annotator_page(
    request: Request,
    connection: Transaction,
    comparisons: Comparisons,
    slug: str,
    annotator: AnnotatorPathName,
    *,
    number: AnnotatorPageNumber = 1,
    order: judged_items.ItemOrder = "disagreement",
    item_page_number: Annotated[int, Query(alias="items", ge=1, le=1_000_000)] = 1,
) -> HTMLResponse:
    """Show an annotator: figures, decisions, and answers by item and by HIT."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    annotator_id = await find_annotator_id_or_refuse(connection, campaign, annotator)
    (line,) = await annotators.load_annotator_lines(connection, campaign, limit=1, annotator_id=annotator_id)
    page: Page[Any] = Page(number, ANNOTATOR_ROWS_PER_PAGE, line.answers)
    answers = await annotator_answers.load_answer_lines_of_annotator(
        connection, campaign, annotator_id, limit=page.size, offset=page.offset
    )
    item_offset = ANNOTATOR_ROWS_PER_PAGE * (item_page_number - 1)
    items, item_total = await judged_items.load_judged_items_and_total(
        connection, campaign, annotator_id, order=order, limit=ANNOTATOR_ROWS_PER_PAGE, offset=item_offset
    )
    context = {
        "campaign": campaign,
        "annotator": line,
        "judged_items": [list(rows) for _, rows in groupby(items, lambda item: (item.seq, item.number))],
        "item_order": order,
        "item_page": Page[Any](item_page_number, ANNOTATOR_ROWS_PER_PAGE, item_total),
        "comparisons": await comparisons.load_newest_comparison(connection, campaign),
        "is_recalculating": await annotators.are_decisions_missing_in_posteriors(connection, campaign.id),
        "bins": campaign.criteria[0].design.classes,
        "actions": ACTIONS_BY_BLOCKED_STATE[line.barred],
        "answers": answers,
        "decisions": await annotator_answers.load_decisions_about_annotator(connection, campaign.id, line.name),
        "verb_by_action": ACTIONS_IN_LOG,
        "checks": await listings.load_check_answer_lines_of_annotator(connection, campaign, annotator_id),
        "max_reason_length": MAX_REASON_CHARACTERS,
        "page": page,
    }
    return render_page(request, "admin/annotator.html", context)


@router.post("/annotators/{annotator}/{action}")
async def submit_annotator_action(
    form: FormFields,
    database: Database,
    revisions: Revisions,
    slug: str,
    annotator: AnnotatorPathName,
    *,
    action: Literal["hold", "release", "exclude", "restore"],
    now: Now,
) -> Response:
    """Apply a decision. If the posteriors take long to follow, they do so after the reply."""
    campaign_id = await actions.apply_annotator_decision_and_return_campaign_id(
        database, slug, annotator, action, reason=form.get("reason", ""), now=now, is_reason_optional=True
    )
    await revisions.start_revision_and_wait(campaign_id, now=now, wait_seconds=REVISION_WAIT_SECONDS)
    return redirect_to_annotator_page(slug, annotator, notice=f"annotator-{action}")


@router.post("/annotators/{annotator}/answers/{answer}/{action}")
async def submit_answer_action(
    form: FormFields,
    database: Database,
    revisions: Revisions,
    slug: str,
    annotator: AnnotatorPathName,
    *,
    answer: RowId,
    action: Literal["exclude", "restore"],
    now: Now,
) -> Response:
    """Apply a decision about one answer, as `submit_annotator_action` does."""
    reason = reason_or_note_that_none_was_given(form.get("reason", ""))
    campaign_id = await actions.apply_answer_decision_and_return_campaign_id(
        database, slug, answer, action, reason=reason, now=now, annotator_name=annotator
    )
    await revisions.start_revision_and_wait(campaign_id, now=now, wait_seconds=REVISION_WAIT_SECONDS)
    return redirect_to_annotator_page(slug, annotator, notice=f"answer-{action}")


def redirect_to_annotator_page(slug: str, annotator: str, *, notice: str) -> Response:
    return RedirectResponse(f"/admin/campaigns/{slug}/annotators/{annotator}?done={notice}", status_code=303)


@router.get("/checks")
async def quality_inbox_page(
    request: Request,
    connection: Transaction,
    comparisons: Comparisons,
    slug: str,
    *,
    load_finding_about_annotators: LoadFindingAboutAnnotators,
    number: AnnotatorPageNumber = 1,
    before: str = "",
) -> HTMLResponse:
    """Show the quality inbox; `before` has the states before the last decision, for its undo bar."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    silent = campaign.status == "draft" or not active_rule_choices_by_name(campaign)
    size = inbox.INBOX_ROWS_PER_PAGE
    comparison = await comparisons.load_newest_comparison(connection, campaign)
    quality_inbox = await inbox.load_page_of_quality_inbox(
        connection,
        campaign,
        item_count=campaign.item_count,
        assessments=comparison.assessments,
        limit=size,
        offset=size * (number - 1),
    )
    rules = parse_all_rule_choices_by_name(campaign.quality_preset, campaign.quality_rules)
    reach_summary = await load_reach_summary(connection, campaign, item_count=campaign.item_count)
    context = {
        "campaign": campaign,
        "inbox": quality_inbox,
        "is_assessing": comparison.is_running,
        "disagreement": await load_finding_about_annotators(
            campaign, may_fit=await has_few_answers(connection, campaign.id)
        ),
        "page": Page[Any](number, size, quality_inbox.total),
        "states_before": parse_former_state_by_annotator_name(before),
        "actions_by_state": ACTIONS_BY_BLOCKED_STATE,
        "max_reason_length": MAX_REASON_CHARACTERS,
        "checks": await listings.load_check_lines_with_outcome_counts(connection, campaign),
        "no_checks_hint": hint_that_hits_cannot_show_checks_or_empty(campaign),
        "rules": rules,
        "rule_actions": RULE_ACTIONS,
        "sentences": {name: parts_of_rule_sentence(choice.rule) for name, choice in rules.items()},
        "reach_by_rule": reach_summary.by_rule,
        "guesser_sentence": sentence_on_judgments_until_guessers_are_flagged_or_empty(
            campaign, reach_summary.workload, comparison.assessments
        ),
        "expected_checks": reach_summary.expected_checks,
        "caught_guessers": sentences_on_caught_guessers_or_empty(
            campaign, reach_summary.workload, await load_guess_chance_by_kind(connection, campaign)
        ),
        "may_one_person_meet_all_checks": reach_summary.may_one_person_meet_all_checks,
        "meets_all_checks": reach_summary.workload.meets_all_checks,
        "too_few_annotators": ""
        if silent
        else await load_notice_on_too_few_annotators_or_empty(connection, campaign.id),
        "is_recalculating": await annotators.are_decisions_missing_in_posteriors(connection, campaign.id),
    }
    return render_page(request, "admin/checks.html", context)


@router.post("/checks/decisions")
async def submit_bulk_decision(
    form: FormFields, database: Database, revisions: Revisions, slug: str, *, now: Now
) -> Response:
    """Apply a decision to the chosen annotators, or to the one beside the pressed button, and offer to undo it."""
    action, _, only = form.get("action", "").partition(":")
    states = {
        name.removeprefix(ANNOTATOR_FIELD_PREFIX): state
        for name, state in form.items()
        if name.startswith(ANNOTATOR_FIELD_PREFIX)
    }
    outcome = await apply_bulk_decision_and_return_outcome(
        database,
        slug,
        [only] if only else [*states],
        parse_bulk_action_or_refuse(action),
        reason=form.get("reason", "").strip(),
        now=now,
        states_to_restore=states,
        fallback_reason=NO_REASON,
    )
    await revisions.start_revision_and_wait(outcome.campaign_id, now=now, wait_seconds=REVISION_WAIT_SECONDS)
    before = "" if action == "undo" else ",".join(f"{name}.{state}" for name, state in outcome.states_before.items())
    notice = "decision-undone" if action == "undo" else "no-decision"
    query = urlencode({"before": before} if before else {"done": notice})
    return RedirectResponse(f"/admin/campaigns/{slug}/checks?{query}", status_code=303)


def parse_former_state_by_annotator_name(states_text: str) -> dict[str, str]:
    """Return the states by annotator's name in a text such as `A1.active,A7.held`; anything else in it is ignored."""
    pairs = [part.partition(".")[::2] for part in states_text.split(",")[:MAX_ANNOTATORS_AT_ONCE]]
    states = get_args(AnnotatorState)
    return {name: state for name, state in pairs if ANNOTATOR_NAME_PATTERN.fullmatch(name) and state in states}
