"""Exports: items with posteriors, responses with one item per row, assignments, settings, the EASL program's own file.

Every export is streamed from one snapshot, and its memory does not grow with the campaign. No export holds a
platform's worker id: annotators appear under their pseudonyms. Assignments keep the platform's ids, for payment.

`spreadsheet=True` writes CSV for spreadsheet programs (see `formats`); text that annotators sent is always guarded.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.fit_cache import FitCache
from app.analysis.result_types import Options
from app.campaigns.settings import CampaignSettings
from app.database.audit_log import load_log_lines_since_launch, log_change
from app.designs.campaign import Campaign
from app.designs.field_flags import is_omitted_from_campaign_files
from app.errors import Conflict, NotFound, shorten_echo
from app.exports import annotator_tables
from app.exports.adjudicated_labels import open_adjudications_table, refuse_campaign_without_item_labels
from app.exports.export_types import (
    Export,
    ExportFile,
    ExportRequest,
    Pieces,
    define_annotator_table_export,
    define_campaign_table_export,
    define_criterion_table_export,
    define_fitted_export,
)
from app.exports.fitted import fitted_export_opener_by_name
from app.exports.items import has_alpha_beta_posterior, open_easl_program_table, open_items_export_table
from app.exports.responses import open_responses_export_table
from app.exports.returning import RETURNING_EXPORT
from app.exports.segments import open_segment_outputs_table
from app.exports.unanswered import open_items_in_unanswered_hits_table
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.text.table_formats import ExportFormat, format_utc_time


async def open_export_or_refuse(
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
    """Open an export by name. All refusals are raised before the first piece.

    Args:
        engine: The database.
        slug: The campaign.
        export_name: One of `export_names`.
        format_: Format of the file, unless the export has only one.
        spreadsheet: Whether to guard cells that spreadsheet programs would change.
        fits: Cache for exports that need a fit.
        options: Options of exports that need a fit.
        criterion: Criterion of exports that have only one; the first if empty.

    Raises:
        NotFound: `campaign_not_found`, `criterion_not_found`, `export_not_found`.
        Conflict: `not_launched` (no posteriors yet), `no_beta_posterior` (the law has none that the EASL program could
            read), `no_segments` (the items are no systems), or the code of an `Inestimable` (nothing can be fitted).

    """
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    chosen = campaign.find_criterion_or_refuse(criterion)
    export = export_by_name().get(export_name)
    if export is None or format_ not in ("csv", "jsonl", export.only_format):
        raise NotFound(
            f"There is no export “{shorten_echo(export_name)}” as {format_}.",
            code="export_not_found",
            exports=[*export_names()],
        )
    export.check(campaign)
    if export.is_about_annotators:
        async with engine.begin() as connection:
            await log_change(connection, "people.downloaded", campaign, about=f"{export_name}.{format_}")
    format_ = export.only_format or format_
    request = ExportRequest(engine, campaign, criterion, chosen, format_, spreadsheet, fits or FitCache(), options)
    return ExportFile(
        slug,
        f"{export_name}-excel" if spreadsheet and format_ == "csv" else export_name,
        format_,
        await export.open(request),
        chosen.name if export.has_one_criterion else "",
    )


async def stream_settings_json(request: ExportRequest) -> Pieces:
    async def settings_pieces() -> Pieces:
        async with request.engine.connect() as connection:
            changes = await load_log_lines_since_launch(connection, request.campaign.id)
        yield format_settings_json(request.campaign, changes)

    return settings_pieces()


def format_settings_json(campaign: Campaign, changes: Sequence[Row[Any]]) -> str:
    """Return all settings by name, the campaign's status, and the changes since its launch.

    Each change says after how many HITs it was made, but not by whom. `settings` can be given to a new campaign.
    """
    columns = campaign.column_values_of_campaign()
    facts = {name: columns[name] for name in ("slug", "status", "created_at", "launched_at", "finished_at")}
    fields = CampaignSettings.model_fields.items()
    settings = {name: columns[name] for name, field in fields if not is_omitted_from_campaign_files(field)}
    change_fields = ("noted_at", "answers", "action", "before", "after")
    facts |= {
        "settings": settings,
        "changes": [{name: getattr(line, name) for name in change_fields} for line in changes],
    }
    return json.dumps(facts, ensure_ascii=False, indent=2, default=format_utc_time) + "\n"


def refuse_export_of_draft(campaign: Campaign) -> None:
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no posteriors yet.", code="not_launched")


def refuse_draft_or_non_beta_law(campaign: Campaign) -> None:
    refuse_export_of_draft(campaign)
    if not has_alpha_beta_posterior(campaign.criteria[0]):
        raise Conflict(
            f"The update law {campaign.update_law} has no alpha and beta for the EASL program to read.",
            code="no_beta_posterior",
        )


def refuse_campaign_without_segments(campaign: Campaign) -> None:
    if not campaign.segment_count:
        raise Conflict(f"The items of “{campaign.name}” are not systems, so there are no segments.", code="no_segments")


TABLE_EXPORTS: dict[str, Export] = {
    "items": define_campaign_table_export(open_items_export_table, refuse_export_of_draft),
    "responses": define_campaign_table_export(open_responses_export_table, is_about_annotators=True),
    "segments": define_campaign_table_export(open_segment_outputs_table, refuse_campaign_without_segments),
    "unanswered": define_campaign_table_export(open_items_in_unanswered_hits_table, is_about_annotators=True),
    "annotators": define_annotator_table_export(annotator_tables.ANNOTATORS),
    "returning": RETURNING_EXPORT,
    "decisions": define_annotator_table_export(annotator_tables.DECISIONS),
    "adjudications": define_campaign_table_export(
        open_adjudications_table, refuse_campaign_without_item_labels, is_about_annotators=True
    ),
    "assignments": define_annotator_table_export(annotator_tables.ASSIGNMENTS),
    "visits": define_annotator_table_export(annotator_tables.VISITS),
    "remarks": define_annotator_table_export(annotator_tables.REMARKS),
    "easl": define_criterion_table_export(open_easl_program_table, refuse_draft_or_non_beta_law, "csv"),
}


def export_by_name() -> dict[str, Export]:
    """Return all exports by name: tables, what the analysis declares, and the settings."""
    fitted_exports = {
        name: define_fitted_export(open_table) for name, open_table in fitted_export_opener_by_name().items()
    }
    return TABLE_EXPORTS | fitted_exports | {"settings": Export(stream_settings_json, only_format="json")}


def export_names() -> tuple[str, ...]:
    return tuple(export_by_name())
