"""Routes of the analysis page and of downloads."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from app.accounts.guards import CurrentAccess, researcher_router
from app.accounts.roles import SEE_PEOPLE
from app.analysis.available_methods import ALL_METHODS, load_available_methods
from app.analysis.chart_axes import COEFFICIENT_AXIS, percents_of_interval_ends_or_none
from app.analysis.dependencies import ProcessFits, refuse_annotator_tables_without_access
from app.analysis.load_answers import has_answers
from app.analysis.page_parts import load_analysis_picture_or_none, page_parts_by_name
from app.analysis.reported_interval import choose_reported_interval
from app.analysis.result_types import MAX_CLASSES, Options
from app.analysis.subgroups import load_group_choices
from app.analysis.view import AnalysisView, criterion_query_fields, format_interval
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import NotFound, shorten_echo
from app.http.dependencies import (
    Now,
    ReadingDatabase,
    allow_https_media_if_campaign_does,
    content_disposition_headers,
    is_script_request,
    render_page,
)
from app.http.templating import english_environment
from app.media.thumbnails import load_image_html_by_item_id
from app.record.campaign import load_campaign_for_page_or_refuse
from app.text.numbers import format_with_places
from app.text.table_formats import EXPORT_MEDIA_TYPES, format_csv_rows

CriterionNameQuery = Annotated[str, Query(max_length=200)]


def criterion_template_context(criterion: Criterion[Campaign]) -> dict[str, Any]:
    """Return a criterion and its campaign for a template, and the query fields that name it."""
    criterion_query = criterion_query_fields(criterion)
    return {
        "campaign": criterion.campaign,
        "criterion": criterion,
        "of_criterion": criterion_query,
        "criterion_query": "?" + urlencode(criterion_query) if criterion_query else "",
    }


# The analysis page


router = researcher_router("/admin/campaigns/{slug}/analysis", Depends(refuse_annotator_tables_without_access))

AnalysisViewQuery = Annotated[AnalysisView, Query()]


@router.get("")
async def show_analysis_page(
    request: Request, database: ReadingDatabase, access: CurrentAccess, slug: str, view: AnalysisViewQuery
) -> HTMLResponse:
    """Show all parts, empty and without a fit: the script fetches each, or the reader follows its link."""
    context = await load_analysis_template_context(database, slug, view, can_see_annotators=access.can(SEE_PEOPLE))
    allow_https_media_if_campaign_does(request, context["campaign"])
    return render_page(request, "admin/analysis.html", context)


async def load_analysis_template_context(
    database: ReadingDatabase, slug: str, view: AnalysisView, single_part: str = "", *, can_see_annotators: bool
) -> dict[str, Any]:
    """Return the template context of the page around its parts.

    Args:
        database: The database.
        slug: The campaign.
        view: Fields of the address.
        single_part: The part that is shown by itself, empty for all.
        can_see_annotators: Whether the reader may see single annotators.

    """
    async with database.connect() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, slug)
        criterion = campaign.find_criterion_or_refuse(view.criterion)
        answered = await has_answers(connection, campaign)
        available = (await load_available_methods(connection, criterion)).visible_methods(
            can_see_annotators=can_see_annotators
        )
        groups = await load_group_choices(connection, criterion) if can_see_annotators else []
    shown_parts = page_parts_by_name(available)
    shown_parts |= (
        {single_part: page_parts_by_name()[single_part]} if single_part and single_part not in shown_parts else {}
    )
    return criterion_template_context(criterion) | {
        "interval_advice": choose_reported_interval(criterion).advice,
        "answered": answered,
        "view": view,
        "groups": groups,
        "section": single_part,
        "titles": {name: part.title for name, part in shown_parts.items()},
    }


@router.get("/figures/{name}.svg")
async def download_figure_svg(
    fits: ProcessFits, database: ReadingDatabase, slug: str, name: str, *, view: AnalysisViewQuery, now: Now
) -> Response:
    """Send a picture of the page for papers. Refused: `figure_not_found`."""
    picture = await load_analysis_picture_or_none(fits, database, slug, name, view)
    if picture is None:
        raise NotFound(f"There is no chart of {shorten_echo(name)} for these answers.", code="figure_not_found")
    svg = english_environment.get_template("admin/_analysis_figure.xml").render(picture=picture)
    headers = content_disposition_headers(
        slug, name, "svg", *view.answer_filter_query_fields.values(), now=now, inline=True
    )
    return Response(svg, media_type="image/svg+xml", headers=headers)


@router.get("/tables/{name}.csv")
async def download_table_csv(
    fits: ProcessFits, database: ReadingDatabase, slug: str, name: str, *, view: AnalysisViewQuery, now: Now
) -> Response:
    """Send a table with all its rows and digits."""
    options = Options(view.classes, view.baseline or None)
    table = await fits.load_cached_or_fit_table(database, slug, name, options, **view.answer_filter_query_fields)
    columns = [column.name for column in table.columns]
    body = await asyncio.to_thread(format_csv_rows, columns, [columns, *table.rows])
    headers = content_disposition_headers(slug, name, "csv", *view.answer_filter_query_fields.values(), now=now)
    return Response(body, media_type=EXPORT_MEDIA_TYPES["csv"], headers=headers)


# Functions that the templates of all parts use.
ANALYSIS_TEMPLATE_HELPERS = {
    "with_places": format_with_places,
    "between": format_interval,
    "interval": percents_of_interval_ends_or_none,
    "correlation_axis": COEFFICIENT_AXIS,
    "most_classes": MAX_CLASSES,
}


def listed_item_ids(part_context: Mapping[str, Any]) -> list[str]:
    """Return the ids of the items that a part lists on the pages of its tables."""
    scored_rows = part_context["part"].page.rows if "part" in part_context else ()
    table_rows = [row for table in part_context.get("tables", ()) for row in table.rows if row.item]
    return [*(row.id for row in scored_rows), *(row.item for row in table_rows)]


@router.get("/{section}")
async def show_analysis_part(
    *,
    request: Request,
    fits: ProcessFits,
    database: ReadingDatabase,
    access: CurrentAccess,
    slug: str,
    section: str,
    view: AnalysisViewQuery,
) -> HTMLResponse:
    """Show one part: a fragment for the script, else a page of its own. Refused: `part_not_found`."""
    can_see_annotators = access.can(SEE_PEOPLE)
    part = page_parts_by_name(ALL_METHODS.visible_methods(can_see_annotators=can_see_annotators)).get(section)
    if part is None:
        raise NotFound(f"The analysis has no section “{shorten_echo(section)}”.", code="part_not_found")
    context = await load_analysis_template_context(
        database, slug, view, single_part=section, can_see_annotators=can_see_annotators
    )
    allow_https_media_if_campaign_does(request, context["campaign"])
    if not context["answered"]:
        return render_page(request, "admin/analysis.html", context)
    context |= ANALYSIS_TEMPLATE_HELPERS | {"own_parameters": part.address_fields, "template": part.template}
    context |= await part.load_context(fits, database, slug, view)
    async with database.connect() as connection:
        context["thumbnails"] = await load_image_html_by_item_id(
            connection, context["campaign"], listed_item_ids(context)
        )
    return render_page(
        request, "admin/_analysis_part.html" if is_script_request(request) else "admin/analysis.html", context
    )
