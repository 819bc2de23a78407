"""Exports: items with posteriors, responses with one item per row, assignments, settings, the EASL program's own file.

Every export is streamed from one snapshot, and its memory does not grow with the campaign. No export holds a
platform's worker id: annotators appear under their pseudonyms. Assignments keep the platform's ids, for payment.

`spreadsheet=True` writes CSV for spreadsheet programs (see `formats`); text that annotators sent is always guarded.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.alerts.settings import AlertSettings
from app.analysis.fit_cache import FitCache
from app.analysis.result_types import Options
from app.annotation.onboarding.settings import VisitSettings
from app.database.audit_log import load_changes_since_launch, log_change
from app.database.bulk import open_snapshot
from app.database.campaign import load_campaign_by_slug
from app.database.tables import campaigns
from app.designs.criteria import find_criterion
from app.designs.field_flags import is_private_field
from app.errors import Conflict, NotFound, shorten_echo
from app.exports.assignments import export_assignments
from app.exports.fitted import FitRequest, fitted_export_openers
from app.exports.items import export_easl_file, export_items, has_beta_posteriors
from app.exports.remarks import export_remarks
from app.exports.responses import export_responses
from app.exports.segments import export_segments
from app.exports.unanswered import export_unanswered_hits
from app.exports.visits import export_visits
from app.text.table_formats import EXPORT_MEDIA_TYPES, ExportFormat, TableStream, format_utc_time, stream_table_text

COLUMNS_WITHOUT_SETTING = (
    *("id", "slug", "link_key", "status", "iteration"),  # the link key opens the task, so it must not be passed on
    *("created_at", "launched_at", "finished_at", "archived_at", "revision", "decided", "fewest_items", "goal_reached"),
    *("always_shown", "tried_at", "rehearsal_of", "segment_count", "asked_criterion", "visit_version", "has_checks"),
    *("releases", "newest_plan"),
)


@dataclass(frozen=True)
class ExportFile:
    """A file to send, piece by piece.

    Attributes:
        slug: The campaign.
        name: Name of the export.
        extension: `csv`, `jsonl` or `json`.
        chunks: Pieces of the text.
        criterion: The criterion of the export, empty if it covers all of them.

    """

    slug: str
    name: str
    extension: str
    chunks: AsyncGenerator[str, None]
    criterion: str = ""

    @property
    def media_type(self) -> str:
        return EXPORT_MEDIA_TYPES[self.extension]


async def open_export(
    engine: AsyncEngine,
    slug: str,
    export_name: str,
    format_: ExportFormat = "csv",
    *,
    spreadsheet: bool = False,
    fits: FitCache | None = None,
    options: Options = Options(),
    criterion: str = "",
) -> ExportFile:
    """Open an export by name; settings are JSON and the `easl` file is CSV, whatever the format.

    All refusals are raised before the first piece. The audit log records downloads of exports about single annotators.

    Args:
        engine: The database.
        slug: The campaign.
        export_name: One of `export_names`.
        format_: Format of the file.
        spreadsheet: Whether to guard cells that spreadsheet programs would change.
        fits: Cache for exports that need a fit.
        options: Options of exports that need a fit.
        criterion: Criterion of the `easl` file and of exports that need a fit; the first if empty. Other exports have
            all.

    Raises:
        NotFound: `campaign_not_found`, `criterion_not_found`, `export_not_found`.
        Conflict: `not_launched` (no posteriors yet), `no_beta_posterior` (the law has none that the EASL program could
            read), `no_segments` (the items are no systems), or the code of an `Inestimable` (nothing can be fitted).

    """
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug(connection, slug)
        settings_changes = await load_changes_since_launch(connection, campaign.id) if export_name == "settings" else ()
    criterion_view = find_criterion(campaign, criterion)
    criterion_name = criterion_view.criterion_name if campaign.criteria else ""
    if export_name == "settings":
        return ExportFile(slug, export_name, "json", stream_one_text(format_settings_json(campaign, settings_changes)))
    if export_name not in export_names() or format_ not in ("csv", "jsonl"):
        raise NotFound(
            f"There is no export “{shorten_echo(export_name)}” as {format_}.",
            code="export_not_found",
            exports=[*export_names()],
        )
    file_name = f"{export_name}-excel" if spreadsheet and format_ == "csv" else export_name
    if open_table := fitted_export_openers().get(export_name):
        table = await open_table(FitRequest(fits or FitCache(), engine, slug, options, criterion))
        pieces = stream_table_text(table, format_, spreadsheet=spreadsheet)
        return ExportFile(slug, file_name, format_, pieces, criterion_name)
    if export_name in ("items", "easl") and campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no posteriors yet.", code="not_launched")
    if export_name == "segments" and not campaign.segment_count:
        raise Conflict(f"The items of “{campaign.name}” are no systems, so there are no segments.", code="no_segments")
    if export_name == "easl":
        if not has_beta_posteriors(campaign):
            raise Conflict(
                f"The update law {campaign.update_law} has no alpha and beta that the EASL program could read.",
                code="no_beta_posterior",
            )
        pieces = stream_table_from_snapshot(engine, criterion_view, export_easl_file, "csv", spreadsheet=spreadsheet)
        return ExportFile(slug, file_name, "csv", pieces, criterion_name)
    if export_name in EXPORTS_ABOUT_ANNOTATORS:
        async with engine.begin() as connection:
            await log_change(connection, "people.downloaded", campaign, about=f"{export_name}.{format_}")
    chunks = stream_table_from_snapshot(engine, campaign, TABLE_EXPORTS[export_name], format_, spreadsheet=spreadsheet)
    return ExportFile(slug, file_name, format_, chunks)


async def stream_table_from_snapshot(
    engine: AsyncEngine, campaign: Any, open_table: "TableOpener", format_: ExportFormat, *, spreadsheet: bool
) -> AsyncGenerator[str, None]:
    """Stream a table as text, from its own snapshot: a request's transaction ends before its reply is sent."""
    async with open_snapshot(engine) as connection:
        async for piece in stream_table_text(await open_table(connection, campaign), format_, spreadsheet=spreadsheet):
            yield piece


async def stream_one_text(text_: str) -> AsyncGenerator[str, None]:
    yield text_


def format_settings_json(campaign: Row[Any], changes: Sequence[Row[Any]]) -> str:
    """Return all settings by name, the campaign's status, and the changes since its launch.

    Each change says after how many HITs it was made, but not by whom. `settings` can be given to a new campaign.
    """
    facts = {name: getattr(campaign, name) for name in ("slug", "status", "created_at", "launched_at", "finished_at")}
    fields = {**AlertSettings.model_fields, **VisitSettings.model_fields}
    left_out = {*COLUMNS_WITHOUT_SETTING, *(name for name, field in fields.items() if is_private_field(field))}
    settings = {c.name: getattr(campaign, c.name) for c in campaigns.columns if c.name not in left_out}
    change_fields = ("noted_at", "answers", "action", "before", "after")
    facts |= {
        "settings": settings,
        "changes": [{name: getattr(line, name) for name in change_fields} for line in changes],
    }
    return json.dumps(facts, ensure_ascii=False, indent=2, default=format_utc_time) + "\n"


TableOpener = Callable[[AsyncConnection, Any], Awaitable[TableStream]]
TABLE_EXPORTS: dict[str, TableOpener] = {
    "items": export_items,
    "responses": export_responses,
    "segments": export_segments,
    "unanswered": export_unanswered_hits,
    "assignments": export_assignments,
    "visits": export_visits,
    "remarks": export_remarks,
    "easl": export_easl_file,
}
EXPORTS_ABOUT_ANNOTATORS = ("responses", "unanswered", "assignments", "visits", "remarks")


def export_names() -> tuple[str, ...]:
    """Return the names of all exports."""
    return (*TABLE_EXPORTS, *fitted_export_openers(), "settings")
