"""The overview of a campaign: the parts that its templates read, by name."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.alerts import listings as alerts
from app.annotation.platforms import visit_limit
from app.annotation.platforms.closed_links import load_notes_on_closed_links
from app.dashboard import charts, drawings, own_columns, table, timeline, uncompared_systems, unjudged_items
from app.dashboard.square_counts import RecentSquareCounts
from app.dashboard.state import DashboardState
from app.database.alerts import alert_sentence
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.goals.settings import can_have_goal
from app.media.thumbnails import load_image_html_by_item_number
from app.quality import listings as findings
from app.server_calls.ledger import count_server_calls_to_decide
from app.simulation import rehearsal_offer
from app.simulation.rehearsal_lessons import load_rehearsal_lessons_or_none


async def load_score_table_context(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    view: table.ItemsView,
    state: DashboardState,
    *,
    shows_own_columns: bool,
) -> dict[str, Any]:
    """Load the table of scores, with the columns of the uploaded items for users who may see them."""
    campaign = criterion.campaign
    if not shows_own_columns:
        view = view.without_own_columns()
    items_page = await table.load_items_page(connection, criterion, view, state.intervals, state.shrinkage)
    return {
        "view": view.model_copy(update={"page": items_page.number}),
        "score_table": items_page,
        "thumbnails": await load_image_html_by_item_number(
            connection, campaign, {row.item.number: row.item.shown for row in items_page.rows}
        ),
        "own_columns": await own_columns.load_names_of_uploaded_columns(connection, campaign.id)
        if shows_own_columns
        else (),
        "column_values": await own_columns.load_column_values_or_empty_if_many(connection, campaign.id, view.by)
        if view.by
        else (),
    }


async def load_whole_campaign_context(
    connection: AsyncConnection,
    campaign: Campaign,
    state: DashboardState,
    square_counts: RecentSquareCounts,
    *,
    now: datetime,
) -> dict[str, Any]:
    """Load what the page says about the whole campaign, next to its figures."""
    is_answered = state.figures["answered"]
    return {
        "unjudged": await unjudged_items.load_items_annotators_could_not_judge(connection, campaign),
        "left_over": await uncompared_systems.load_uncompared_systems_if_finished(connection, campaign),
        "alerts": await alerts.load_newest_seen_or_unseen_alerts(connection, campaign.id),
        "describe_alert": alert_sentence,
        "closed_links": await load_notes_on_closed_links(connection, campaign),
        "turned_away": await visit_limit.count_refused_visits_of_two_days(connection, campaign.id, now=now),
        "calls_to_decide": await count_server_calls_to_decide(connection, campaign.id),
        "timeline": await timeline.load_newest_timeline_entries(connection, campaign.id),
        "to_review": await findings.load_annotators_to_review(connection, campaign.id),
        "rehearsal": None
        if is_answered
        else await rehearsal_offer.load_rehearsal_offer_or_none_for_rehearsal(connection, campaign),
        "rehearsal_lessons": await load_rehearsal_lessons_or_none(connection, campaign),
        "square": await square_counts.load_counts_or_none(connection, campaign, now=now),
        "can_have_goal": can_have_goal(campaign.design, lacks_deciding_criterion=campaign.lacks_deciding_criterion),
    }


def figures_template_context(criterion: Criterion[Campaign], state: DashboardState) -> dict[str, Any]:
    """Return what the templates of the cards and charts read."""
    done_at = state.figures["cards"]["progress"]["done_at"]
    item_count = len(state.history.judgments)
    return {
        "state": state,
        "law": criterion.law,
        "design": criterion.design,
        "unit": criterion.design.score_unit(criterion.law),
        "end_labels": criterion.end_labels,
        "dashes": drawings.EARLY_CURVE_DASHES,
        "done_at": done_at and datetime.fromtimestamp(done_at, UTC),
        "charts": charts.offered_chart_title_by_name(state.figures, item_count, is_ordered=criterion.design.is_ordered),
        "matrix": state.heatmap is not None and len(state.heatmap.order) <= charts.MAX_ITEMS_AS_MATRIX,
        "score_history_drawing": charts.score_history_drawing,
        "pace_rows": drawings.hits_per_hour_table_rows(state.figures),
    }
