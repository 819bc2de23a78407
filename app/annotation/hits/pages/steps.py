"""Pages of the onboarding steps, and what these share with the pages of HITs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from app.annotation.hits import completion
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.landing import load_rendered_sample_items
from app.annotation.hits.served_campaign import ServedCampaign
from app.annotation.onboarding import visit_progress
from app.annotation.onboarding.steps import VISIT_STEPS, place_of_step_among_pages
from app.annotation.onboarding.welcome import has_welcome_page
from app.annotation.platforms.assignments import WorkerTokens
from app.annotation.platforms.registry import platform_with_title
from app.database.session import Driver
from app.designs.content import RenderedItems, SourceAndReference
from app.designs.item_names import rename_form_items_to_positions
from app.errors import Refusal
from app.http.dependencies import (
    allow_campaign_sources_and_frames,
    is_script_request,
    render_page,
    set_request_language,
)
from app.http.templating import markdown_texts_to_safe_html
from app.media.render_items import render_campaign_items


@dataclass(frozen=True)
class PageState:
    """Content of the page besides the HIT.

    Attributes:
        receipt: Receipt of the answer that was just stored.
        notice: Refusal of the answer that was just sent.
        reported: True if the annotator has just reported media that do not load.
        form: Values to fill into the form.
        replaces: Number of the answer that the annotator is changing.
        answered_hit_id: HIT whose gold items may get feedback.
        is_leaving: True if the annotator has just ended the visit.

    """

    receipt: AnswerReceipt | None = None
    notice: Refusal | None = None
    reported: bool = False
    form: Mapping[str, str] = field(default_factory=dict)
    replaces: int | None = None
    answered_hit_id: int | None = None
    is_leaving: bool = False


def worker_tokens_of_server(request: Request) -> WorkerTokens:
    worker_tokens: WorkerTokens = request.app.state.worker_tokens
    return worker_tokens


async def render_onboarding_step(
    request: Request, connection: Driver, assignment: AssignmentState, page_state: PageState
) -> HTMLResponse:
    """Return the page of the onboarding step that the annotator must pass before the work."""
    platform = platform_with_title(assignment.platform, assignment.panel_title)
    visit = await visit_progress.load_visit_or_refuse(connection, assignment.key)
    step = visit.next_step_or_none or VISIT_STEPS[0]  # if all were passed in another tab meanwhile, its form is ignored
    allow_campaign_sources_and_frames(request, assignment)
    set_request_language(request, assignment)
    instructions, consent = await markdown_texts_to_safe_html(
        assignment.instructions, visit.settings.consent, mark_formulas=assignment.latex
    )
    context: dict[str, Any] = {
        "step": step.name,
        "campaign": assignment,
        "version": visit.visit_version,
        "design": assignment.design,
        "criterion_forms": assignment.shuffled_criteria_for_annotator(assignment.annotator_id),
        "platform": platform,
        "token": worker_tokens_of_server(request).issue_or_reuse_token(
            platform.name, assignment.link_key, assignment.key
        ),
        "instructions": instructions,
        "are_instructions_new": not (platform.has_start_button or has_welcome_page(visit.settings, platform)),
        "consent": consent,
        "place": place_of_step_among_pages(visit.settings, platform, step),
    }
    context |= step.page_context(visit.settings, visit.history)
    context["shown"] = replace(
        page_state, form=rename_form_items_to_positions(page_state.form, range(len(context.get("texts", ()))))
    )
    outcome = context.get("outcome")
    context["completion"] = (
        await completion.load_completion_and_store_server_call(connection, assignment, outcome) if outcome else None
    )
    explanations = (context.get("feedback") or {}).get("explanations", ())
    context["explained"] = await markdown_texts_to_safe_html(*explanations, mark_formulas=assignment.latex)
    context["rendered"] = await render_given_or_sample_items(connection, assignment, context.get("texts"))
    return render_page(request, "_step.html" if is_script_request(request) else "step.html", context)


async def render_given_or_sample_items(
    connection: Driver, campaign: ServedCampaign, texts: Sequence[str] | None
) -> RenderedItems:
    """Return the items with these texts, or sample items of the campaign if there are none."""
    if texts is None:
        return await load_rendered_sample_items(connection, campaign)
    return await render_campaign_items(connection, campaign, range(len(texts)), texts, SourceAndReference())
