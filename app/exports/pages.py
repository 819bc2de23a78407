"""Page of the files that a campaign exports, and their downloads."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, StreamingResponse

from app.accounts.guards import researcher_router
from app.analysis.available_methods import load_available_methods
from app.analysis.dependencies import ProcessFits
from app.analysis.load_answers import has_answers
from app.analysis.method_types import MethodExport
from app.analysis.pages.analysis import CriterionNameQuery, criterion_template_context
from app.analysis.view import AnalysisView
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.designs.scale import MAX_POINTS
from app.errors import NotFound, shorten_echo
from app.exports.dependencies import streaming_response_of_export
from app.exports.everything import open_everything_or_refuse
from app.exports.items import has_alpha_beta_posterior
from app.exports.methods_paragraph import load_methods_text
from app.exports.registry import open_export_or_refuse
from app.http.dependencies import Now, ReadingDatabase, Transaction, render_page
from app.inference.online.law import Law
from app.media import media_store as media
from app.record import remarks
from app.record.campaign import load_campaign_for_page_or_refuse
from app.text.table_formats import ExportFormat

router = researcher_router("/admin/campaigns/{slug}/export")
scores_router = researcher_router("/admin/campaigns/{slug}")


DOWNLOAD_FORMATS = (("csv", "CSV"), ("xl.csv", "CSV for Excel"), ("jsonl", "JSONL"))


def iterate_available_export_sections(
    criterion: Criterion[Campaign], exports: Iterable[MethodExport], *, has_remarks: bool
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield (title, contents, [(file, words)]) of what this campaign can export now.

    Args:
        criterion: The criterion of exports that are about one.
        exports: Exports that need a fit, by that criterion.
        has_remarks: Whether there are comments and flags, or can be.

    """
    design, each_criterion_text = criterion.design, " A row for each criterion." * criterion.campaign.has_criteria
    criterion_query = "?" + urlencode({"criterion": criterion.name}) if criterion.campaign.has_criteria else ""
    if criterion.campaign.status != "draft":
        contents = describe_items_file(design, criterion.law) + each_criterion_text
        yield "Items", contents, [(f"items.{end}", title) for end, title in DOWNLOAD_FORMATS]
    value_text = f"score ({design.allowed_values_text}){', label' * bool(design.classes)}{', rank' * design.is_ordered}"
    contents = (
        f"One row per item and answer: annotator, {value_text}, task, position, times, "
        f"kind of input.{each_criterion_text}"
    )
    yield "Responses", contents, [(f"responses.{end}", title) for end, title in DOWNLOAD_FORMATS]
    if criterion.campaign.segment_count:
        contents = (
            "Every output with its system, segment, source and reference, its judgments and their mean."
            f"{each_criterion_text}"
        )
        yield "Segments", contents, [(f"segments.{end}", title) for end, title in DOWNLOAD_FORMATS]
    contents = (
        "One row for each item that was shown but not answered: annotator, task, state (open, expired or given up), "
        "and times."
    )
    yield "Shown, not answered", contents, [(f"unanswered.{end}", title) for end, title in DOWNLOAD_FORMATS]
    contents = "One row for each annotator: platform, first arrival, tasks answered and counted, held or excluded."
    yield "Annotators", contents, [(f"annotators.{end}", title) for end, title in DOWNLOAD_FORMATS]
    if criterion.campaign.only_campaigns:
        contents = (
            "One row for each annotator who took part in an earlier campaign of the study: both pseudonyms, to compare "
            "the waves."
        )
        yield "Returning annotators", contents, [(f"returning.{end}", title) for end, title in DOWNLOAD_FORMATS]
    contents = "Decisions about annotators and answers, such as exclusions, with reason and time, in order."
    yield "Decisions", contents, [(f"decisions.{end}", title) for end, title in DOWNLOAD_FORMATS]
    if criterion.campaign.has_item_labels:
        contents = "Labels that researchers chose for items, with reason and time, in order; earlier choices are kept."
        yield "Adjudications", contents, [(f"adjudications.{end}", title) for end, title in DOWNLOAD_FORMATS]
    contents = (
        "One row for each arrival: annotator, the platform’s assignment, tasks answered, and times of arrival and end."
    )
    yield "Assignments", contents, [(f"assignments.{end}", title) for end, title in DOWNLOAD_FORMATS]
    if criterion.campaign.visit_version:
        contents = "The steps of each annotator before the first task, such as the version of the consent, with times."
        yield "Visits", contents, [(f"visits.{end}", title) for end, title in DOWNLOAD_FORMATS]
    if has_remarks:
        contents = "Annotators’ remarks on items and tasks: comments, and flags with the chosen reason."
        yield "Comments and flags", contents, [(f"remarks.{end}", title) for end, title in DOWNLOAD_FORMATS]
    for method_export in exports:
        contents = method_export.contents + f" {sentence_on_where_labels_are_cut(design)}" * (
            method_export.can_cut_scores and not design.classes
        )
        yield (
            method_export.title,
            contents,
            [(f"{method_export.name}.{end}{criterion_query}", title) for end, title in DOWNLOAD_FORMATS],
        )
    yield "Settings", "All settings by name, and the status of the campaign, for programs.", [("settings.json", "JSON")]
    if criterion.campaign.status != "draft" and has_alpha_beta_posterior(criterion):
        yield (
            "EASL file",
            "The item file of the released EASL program: your columns, then alpha, beta, mode, var.",
            [(f"easl.csv{criterion_query}", "CSV")],
        )


def describe_items_file(design: Design, law: Law) -> str:
    """Return a sentence on the columns of the file of items."""
    score = design.score_unit(law).title.lower()
    if law.family.counts_classes:
        score = f"likeliest label and its {score}"
    mean = f", and the {design.unit.mean_phrase}, plain and shrunken, with both intervals" * design.is_ordered
    return f"Every item with its uploaded columns, {score}, its parameters, 95 % interval and judgments{mean}."


def sentence_on_where_labels_are_cut(design: Design) -> str:
    """Return the sentence that says at which value judgments are cut into labels."""
    middle = f"{design.unit.format_number_at_place_rounded(MAX_POINTS / 2)} {design.unit.sign}"
    return f"The {design.noun}s that annotators gave are cut at {middle}."


@router.get("")
async def show_export_page(
    request: Request, connection: Transaction, slug: str, *, now: Now, criterion: CriterionNameQuery = ""
) -> HTMLResponse:
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    chosen = campaign.find_criterion_or_refuse(criterion)
    answered = await has_answers(connection, campaign)
    exports = (await load_available_methods(connection, chosen)).exports if answered else []
    context = criterion_template_context(chosen) | {"view": AnalysisView(criterion=criterion)}
    files = [
        *iterate_available_export_sections(
            chosen, exports, has_remarks=await remarks.are_remarks_asked_or_stored(connection, campaign)
        )
    ]
    context |= {"has_files": await media.has_media_files(connection, campaign.id)}
    return render_page(request, "admin/export.html", context | {"downloads": files, "now": now})


@scores_router.get("/scores.csv")
async def download_scores_csv(
    database: ReadingDatabase, fits: ProcessFits, slug: str, *, now: Now, criterion: CriterionNameQuery = ""
) -> StreamingResponse:
    """Send the table of scores, which viewers see on the overview, too."""
    export_options: dict[str, Any] = {"spreadsheet": False, "fits": fits, "criterion": criterion}
    return streaming_response_of_export(
        await open_export_or_refuse(database, slug, "items", "csv", **export_options), now
    )


@router.get("/everything.zip")
async def download_everything(
    database: ReadingDatabase, fits: ProcessFits, slug: str, *, now: Now, assignments: bool = False
) -> StreamingResponse:
    """Send one zip with all files, the tables of the analysis, a codebook and a README."""
    return streaming_response_of_export(
        await open_everything_or_refuse(database, slug, now=now, fits=fits, with_platform_ids=assignments), now
    )


@router.get("/methods")
async def show_methods_paragraph(
    request: Request, database: ReadingDatabase, fits: ProcessFits, slug: str, *, now: Now
) -> HTMLResponse:
    """Show the numbers for the methods section of a paper, as Markdown to copy."""
    methods_text = await load_methods_text(database, slug, fits, now=now)
    async with database.connect() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, slug)
    return render_page(request, "admin/methods.html", {"campaign": campaign, "methods_text": methods_text})


@router.get("/{file}")
async def download_export(
    database: ReadingDatabase, fits: ProcessFits, slug: str, file: str, *, now: Now, criterion: CriterionNameQuery = ""
) -> StreamingResponse:
    """`items.csv`, `responses.jsonl`, ...; `.xl.csv` protects cells that a spreadsheet program would change."""
    export_name, _, extension = file.partition(".")
    if extension not in (("json",) if export_name == "settings" else ("csv", "xl.csv", "jsonl")):
        raise NotFound(f"There is no export “{shorten_echo(file)}”.", code="export_not_found")
    format_: ExportFormat = "jsonl" if extension == "jsonl" else "csv"
    export_options: dict[str, Any] = {"spreadsheet": extension == "xl.csv", "fits": fits, "criterion": criterion}
    return streaming_response_of_export(
        await open_export_or_refuse(database, slug, export_name, format_, **export_options), now
    )
