"""The link of an experiment with people: it redirects to the campaign of an arm, and stores nothing."""

import secrets

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse

from app.annotation.hits.pages.annotator import ANNOTATOR_PATH
from app.annotation.platforms.registry import EXPERIMENT_PATH_PREFIX, PLATFORMS, platforms_offered_for_experiments
from app.errors import NotFound
from app.experiments.arm_assignment import choose_visited_or_running_arm, load_arm_candidates_of_link_or_refuse
from app.http.dependencies import ServingConnection

router = APIRouter(include_in_schema=False)


@router.get(EXPERIMENT_PATH_PREFIX + ANNOTATOR_PATH)
async def redirect_to_arm(
    request: Request, platform_name: str, link_key: str, connection: ServingConnection
) -> RedirectResponse:
    """Redirect to the campaign of one arm with the platform's parameters. A visitor without an id gets a random arm."""
    platform = PLATFORMS[platform_name]
    if platform not in platforms_offered_for_experiments():
        message = "This link belongs to a campaign, not to an experiment. Use a campaign’s link instead."
        raise NotFound(message, code="campaign_not_found")
    arrival = platform.parse_arrival_or_none(request.query_params.multi_items(), request.app.state.settings)
    worker_id = arrival.worker_id if arrival else secrets.token_hex(16)
    arms = await load_arm_candidates_of_link_or_refuse(connection, link_key, platform.name, worker_id)
    arm = choose_visited_or_running_arm(arms, link_key, f"{platform.name} {worker_id}")
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{platform.entry_path(arm.link_key)}{query}", status_code=303)
