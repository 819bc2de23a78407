"""The page of a campaign's items, and the actions on chosen items."""

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError
from starlette.datastructures import FormData

from app.accounts.guards import researcher_router
from app.annotation.platforms.column_mapping import COLUMN_ROLES
from app.annotation.platforms.registry import platforms_and_formats_of_result_files
from app.campaigns import item_list, settings_edits
from app.campaigns.item_list import ItemListView
from app.campaigns.known_answer_limits import MAX_GOLD_ITEMS_AT_ONCE, MIN_GOLD_ITEMS
from app.campaigns.known_answers import KnownAnswersChoice, load_known_answers_of_usual_columns
from app.campaigns.lifecycle import require_draft, unchecked_settings_with_deliverable_emails
from app.campaigns.pages.campaigns import CAMPAIGN_PATH, campaign_page_url, redirect_to
from app.campaigns.step_page import expected_answer_inputs_of_criteria
from app.designs.campaign import Campaign
from app.designs.content import CONTENT_KINDS
from app.designs.file_format import CriterionValueFormat
from app.errors import Invalid, NotFound, Refusal, shorten_echo
from app.http.dependencies import (
    AppSettings,
    Database,
    FormFields,
    Now,
    Transaction,
    allow_https_media_if_campaign_does,
    render_page,
)
from app.imports import item_changes, items, mark_checks, responses_import, text_corrections
from app.imports.answer_options import AnswerFileOptions
from app.imports.columns import ColumnMapping
from app.imports.item_files import READ_AS_TITLES
from app.imports.mark_checks import CheckToMark, stored_check_as_entered
from app.imports.pages.marking_form import parse_checks_to_mark
from app.imports.response_receipt import ResponseImportReceipt, response_receipt_sentences
from app.imports.segment_table import load_segments_page_with_chosen
from app.quality.check_expectations import expected_and_tolerance_column_names
from app.quality.checks import hint_that_hits_cannot_show_checks_or_empty
from app.quality.expected_answers import default_tolerance_cell_or_empty, proposed_tolerance_cell_or_empty
from app.quality.listings import expected_answers_by_check_id
from app.quality.rule_reach import (
    propose_checks_percent_or_none,
    sentences_on_check_counts_and_failures_needed,
)
from app.record.campaign import CampaignOnPage, load_campaign_for_page_or_refuse
from app.settings import Settings
from app.uploads.rows import ROW_NUMBERS_AS_IDS

router = researcher_router("/admin")


@router.get(CAMPAIGN_PATH + "/items")
async def campaign_items_page(
    request: Request, connection: Transaction, slug: str, view: Annotated[ItemListView, Query()]
) -> HTMLResponse:
    return await items_page_response(request, connection, slug, view=view)


async def items_page_response(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    view: ItemListView | None = None,
    refusal: Refusal | None = None,
    status: int = 200,
    **more_context: Any,
) -> HTMLResponse:
    """Show a page of the items, with the form that adds items; for systems, a page of their segments by a criterion,
    and the chosen segment with its outputs.
    """
    campaign, view = await load_campaign_for_page_or_refuse(connection, slug), view or ItemListView()
    segments = (
        await load_segments_page_with_chosen(
            connection, campaign.find_criterion_or_refuse(view.criterion), view.page, view.segment
        )
        if campaign.segment_count
        else None
    )
    context: dict[str, Any] = {"campaign": campaign, "total": campaign.item_count, "segments": segments}
    context |= await load_item_table_template_context(
        request, connection, campaign, ItemListView() if segments else view
    )
    if segments:
        context["expected_answers"] = expected_answers_by_check_id(campaign, [row for row, _ in segments.checks])
    context |= upload_form_template_context(request, campaign) | {"refusal": refusal}
    if request.query_params.get("done") == "imported":
        context["receipt"] = await items.load_last_import_receipt_or_none(connection, campaign.id)
    example_ids = [row.external_id for row in context["page"].rows if not row.check_kind][: campaign.items_per_hit]
    segment_id = segments.page.rows[0].segment.external_id if segments else None
    context |= more_context | answer_import_form_context(request, campaign, example_ids, segment_id)
    return render_page(request, "admin/items.html", context, status=refusal.status if refusal else status)


async def load_item_table_template_context(
    request: Request, connection: Transaction, campaign: CampaignOnPage, view: ItemListView
) -> dict[str, Any]:
    """Return the context of the table of items: the rows of a page as annotators see them, and the columns."""
    check_counts = await item_list.count_checks_by_kind(connection, campaign.id)
    page = await item_list.load_item_list_page(
        connection, campaign.id, view, item_count=campaign.item_count, check_count=sum(check_counts.values())
    )
    drawn_items, reports = await item_list.render_items_and_count_media_reports(connection, campaign, page.rows)
    allow_https_media_if_campaign_does(request, campaign)
    return {
        "view": view,
        "page": page,
        "rendered": drawn_items,
        "reports": reports,
        "versions": await text_corrections.load_version_number_by_corrected_item(
            connection, campaign.id, [row.number for row in page.rows]
        ),
        "own_columns": item_list.uploaded_column_names_of_rows(page.rows, view.column),
        "expected_answers": expected_answers_by_check_id(campaign, [row for row in page.rows if row.check_kind]),
        "check_counts": check_counts,
        "check_summary": sentences_on_check_counts_and_failures_needed(campaign, campaign.item_count, check_counts),
        "checks_proposal": propose_checks_percent_or_none(campaign, campaign.item_count, check_counts),
        "hint_that_hits_cannot_show_checks_or_empty": hint_that_hits_cannot_show_checks_or_empty(campaign),
        "min_gold": MIN_GOLD_ITEMS,
        "expectation_columns": [expected_and_tolerance_column_names(name) for name in campaign.criterion_names or [""]],
        "expected_answer_inputs": expected_answer_inputs_of_criteria(
            unchecked_settings_with_deliverable_emails(campaign)
        ),
        "known_answers": await load_known_answers_of_usual_columns(connection, campaign),
        "default_tolerance": default_tolerance_cell_or_empty(campaign.design),
        "proposed_tolerance": proposed_tolerance_cell_or_empty(campaign.design),
        "kind": CONTENT_KINDS[campaign.content],
    }


def upload_form_template_context(request: Request, campaign: Campaign) -> dict[str, Any]:
    limits: Settings = request.app.state.settings
    return {
        "max_mb": limits.max_upload_mb,
        "limits": limits,
        "row_numbers": ROW_NUMBERS_AS_IDS,
        "prior_columns": campaign.law.family.parameter_names,
        "read_as_titles": READ_AS_TITLES,
    }


def answer_import_form_context(
    request: Request, campaign: Campaign, example_item_ids: Sequence[str], segment_id: str | None
) -> dict[str, Any]:
    """Return the context of the form that imports answers, with an example file about these items."""
    return {
        "imported": receipt_sentences_of_query(request),
        "platforms": [platform for platform, _ in platforms_and_formats_of_result_files()],
        "answer_format": CriterionValueFormat(campaign),
        "example": responses_import.example_response_csv_or_empty(campaign, example_item_ids, segment_id),
        "answer_fields": AnswerFileOptions.model_fields,
        "mapped": COLUMN_ROLES,
    }


def receipt_sentences_of_query(request: Request) -> list[str]:
    """Return the receipt of the import of responses that redirected here, in sentences."""
    try:
        receipt = ResponseImportReceipt.model_validate(dict(request.query_params))
    except ValidationError:  # the address was edited by hand
        return []
    return response_receipt_sentences(receipt) if receipt.model_fields_set else []


def parse_item_list_view_or_default(form_data: FormData) -> ItemListView:
    """Return the view from which a form was sent; the whole list if the form does not say."""
    fields: dict[str, Any] = {name: form_data.get(name) for name in ("search", "show", "page") if form_data.get(name)}
    try:
        return ItemListView(**fields, column=tuple(str(name) for name in form_data.getlist("column")))
    except ValidationError:
        return ItemListView()


def item_list_url(slug: str, view: ItemListView, notice: str, **more_fields: Any) -> str:
    """Return the address of the page after an action; its top, with the notice of what was done, is in sight."""
    fields = [*view.query_fields(), ("done", notice), *more_fields.items()]
    return f"{campaign_page_url(slug, '/items')}?{urlencode(fields)}"


def ticked_ids_of_form_or_refuse(form_data: FormData) -> list[str]:
    """Return the ids of the ticked items. Raises `Invalid` (`nothing_chosen`)."""
    chosen_ids = list(dict.fromkeys(value for value in form_data.getlist("item") if isinstance(value, str)))
    if not chosen_ids:
        raise Invalid("Tick the items first. Nothing was changed.", code="nothing_chosen")
    return chosen_ids


@router.post(CAMPAIGN_PATH + "/items/chosen")
async def submit_action_on_chosen_items(request: Request, database: Database, slug: str, now: Now) -> Response:
    """Retire, restore or delete the ticked items; for gold and attention items and before a deletion, ask first. The
    button “Edit” of a check asks about this check alone.
    """
    form_data = await request.form()
    view, action = parse_item_list_view_or_default(form_data), str(form_data.get("action", ""))
    try:
        if edited_id := str(form_data.get("edit", "")):
            return await chosen_items_form_response(request, database, slug, view, item_ids=[edited_id])
        chosen_ids = ticked_ids_of_form_or_refuse(form_data)
        if action in ("gold", "attention") or (action == "delete" and "sure" not in form_data):
            return await chosen_items_form_response(request, database, slug, view, action=action, item_ids=chosen_ids)
        async with database.begin() as connection:
            count = await item_changes.retire_restore_or_delete_items_and_count(
                connection, slug, action, chosen_ids, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await items_page_response(
                request, connection, slug, view=view, status=refusal.status, not_changed=refusal
            )
    return redirect_to(item_list_url(slug, view, f"items-{action}", count=count))


async def chosen_items_form_response(
    request: Request,
    database: Database,
    slug: str,
    view: ItemListView,
    *,
    item_ids: Sequence[str],
    action: str = "",
    refusal: Refusal | None = None,
    entered: Sequence[CheckToMark] = (),
    keep: bool = False,
) -> HTMLResponse:
    """Show the chosen items and ask what is needed: expected answers of checks, or whether to delete them.

    Without an action, the first item is a check that keeps its kind.
    """
    async with database.begin() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, slug)
        rows = await item_changes.load_listed_items_or_refuse(connection, campaign, item_ids)
        drawn_items, _ = await item_list.render_items_and_count_media_reports(connection, campaign, rows)
    action = action or rows[0].check_kind or "gold"
    context = {"campaign": campaign, "view": view, "action": action, "items": rows, "rendered": drawn_items}
    checks = [*(stored_check_as_entered(row) for row in rows if row.check_kind), *entered]
    context |= {"entered": {check.item_id: check for check in checks}, "refusal": refusal, "keep": keep}
    context |= {"edits_checks": action != "delete" and all(row.check_kind for row in rows)}
    context["kind"] = CONTENT_KINDS[campaign.content]
    allow_https_media_if_campaign_does(request, campaign)
    context |= {
        "design": campaign.design,
        "wrong_item": next((row.external_id for row in rows if is_refusal_about_item(row.external_id, refusal)), None),
        "expected_answer_inputs": expected_answer_inputs_of_criteria(
            unchecked_settings_with_deliverable_emails(campaign)
        ),
        "criteria": [expected_and_tolerance_column_names(name) for name in campaign.criterion_names or [""]],
    }
    return render_page(request, "admin/items_chosen.html", context, status=refusal.status if refusal else 200)


def is_refusal_about_item(item_id: str, refusal: Refusal | None) -> bool:
    """Return whether a refusal is about this item; it names the beginning of a long id."""
    return refusal is not None and refusal.details.get("item") == shorten_echo(item_id)


@router.post(CAMPAIGN_PATH + "/items/checks")
async def submit_chosen_items_as_checks(request: Request, database: Database, slug: str) -> Response:
    """Make the chosen items gold or attention items, all or none."""
    form_data = await request.form()
    view, kind, keep = parse_item_list_view_or_default(form_data), str(form_data.get("action", "")), "keep" in form_data
    checks = parse_checks_to_mark(form_data)
    try:
        async with database.begin() as connection:
            await mark_checks.turn_draft_items_into_checks_or_refuse(
                connection, slug, checks, kind=kind, keeps_items=keep
            )
    except NotFound:
        raise
    except Refusal as refusal:
        return await chosen_items_form_response(
            request, database, slug, view,
            action=kind, item_ids=[check.item_id for check in checks], refusal=refusal, entered=checks, keep=keep,
        )  # fmt: skip
    if "edits" in form_data:
        return redirect_to(item_list_url(slug, view, "checks-changed"))
    return redirect_to(item_list_url(slug, view, "kept-and-marked" if keep else "marked", count=len(checks)))


@router.post(CAMPAIGN_PATH + "/items/known-answers")
async def submit_known_answers_as_gold(
    request: Request, form_values: FormFields, database: Database, slug: str
) -> Response:
    """Make items gold items by the known answers in a column of their table."""
    try:
        choice = parse_known_answers_choice_or_refuse(form_values)
        async with database.begin() as connection:
            ids = await mark_checks.mark_gold_by_known_answers_returning_ids(connection, slug, choice)
    except NotFound:
        raise
    except Refusal as refusal:
        async with database.begin() as connection:
            return await items_page_response(
                request, connection, slug, status=refusal.status, known_refusal=refusal, entered_known=form_values
            )
    view = ItemListView(show="checks")
    return redirect_to(item_list_url(slug, view, "kept-and-marked" if choice.keep else "marked", count=len(ids)))


def parse_known_answers_choice_or_refuse(form_values: Mapping[str, str]) -> KnownAnswersChoice:
    """Return the choice of a form; its empty fields have their defaults. Raises `Invalid` (`known_answers_choice`)."""
    fields: dict[str, Any] = {
        name: form_values[name].strip()
        for name in ("column", "count", "tolerance")
        if form_values.get(name, "").strip()
    }
    try:
        return KnownAnswersChoice(**fields, keep="keep" in form_values)
    except ValidationError as error:
        names = ", ".join(str(problem["loc"][0]) for problem in error.errors())
        message = (
            f"Check {names}: the number of gold items must be from 1 to {MAX_GOLD_ITEMS_AT_ONCE:,}, and a tolerance a "
            "number of 0 or more. Nothing was changed."
        )
        raise Invalid(message, code="known_answers_choice") from error


@router.post(CAMPAIGN_PATH + "/items/one")
async def submit_one_new_item(
    request: Request, form_values: FormFields, database: Database, settings: AppSettings, slug: str
) -> Response:
    """Add an item that was typed, with an id or the next free number."""
    item_text, item_id = form_values.get("text", ""), form_values.get("id", "").strip()
    row = {"text": item_text} | ({"id": item_id} if item_id else {})
    mapping = ColumnMapping("id" if item_id else None, "text")
    try:
        async with database.begin() as connection:
            file = BytesIO(json.dumps([row]).encode())
            await items.import_items_and_return_receipt(
                connection, slug, file, "item.json", mapping=mapping, max_mb=settings.max_upload_mb
            )
    except NotFound:
        raise
    except Refusal as refusal:
        async with database.begin() as connection:
            return await items_page_response(
                request, connection, slug, status=refusal.status, one_refusal=refusal, entered=form_values
            )
    return redirect_to(campaign_page_url(slug, "/items", notice="item-added") + "#one")


@router.post(CAMPAIGN_PATH + "/items/show-checks")
async def submit_proposed_share_of_checks(connection: Transaction, slug: str) -> Response:
    """Let the proposed share of tasks show the checks of a draft, unless a share was chosen meanwhile."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    require_draft(campaign, "change the share of tasks with a check in its settings. Nothing was changed")
    check_counts = await item_list.count_checks_by_kind(connection, campaign.id)
    proposal = propose_checks_percent_or_none(campaign, campaign.item_count, check_counts)
    if proposal:
        await settings_edits.store_changed_settings_or_refuse(
            connection, slug, lambda settings: settings.model_copy(update={"checks_percent": float(proposal.percent)})
        )
    return redirect_to(campaign_page_url(slug, "/items", notice="saved"))


@router.post(CAMPAIGN_PATH + "/items/unmark")
async def submit_unmarking_of_check(form_values: FormFields, connection: Transaction, slug: str) -> Response:
    """Make a check an item again; delete a check of a segment."""
    campaign = await mark_checks.turn_check_back_into_item_or_refuse(connection, slug, form_values.get("item", ""))
    notice = "check-deleted" if campaign.segment_count else "unmarked"
    return redirect_to(campaign_page_url(slug, "/checks", notice=notice))


@router.get(CAMPAIGN_PATH + "/items/text")
async def item_text_page(
    request: Request,
    connection: Transaction,
    slug: str,
    item: Annotated[str, Query(max_length=1000)],
    segment: Annotated[str | None, Query(max_length=1000)] = None,
) -> HTMLResponse:
    return await item_text_page_response(request, connection, slug, item, segment)


async def item_text_page_response(
    request: Request,
    connection: Transaction,
    slug: str,
    item_id: str,
    segment_id: str | None,
    *,
    refusal: Refusal | None = None,
    entered_text: str | None = None,
) -> HTMLResponse:
    """Show the text of an item or output with a field to correct it, and its former texts."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    text_corrections.require_segment_only_for_systems(campaign, segment_id)
    if segment_id is None:
        (row,) = await item_changes.load_listed_items_or_refuse(connection, campaign, [item_id])
        versions = await text_corrections.load_former_texts_of_item(connection, campaign.id, row.number)
    else:
        row = await text_corrections.load_output_row_or_refuse(connection, campaign, item_id, segment_id)
        versions = await text_corrections.load_former_texts_of_output(connection, campaign.id, row.segment, row.item)
    context = {"campaign": campaign, "item_id": item_id, "segment_id": segment_id, "versions": versions}
    context |= {"refusal": refusal, "text": row.shown if entered_text is None else entered_text}
    context["kind"] = CONTENT_KINDS[campaign.content]
    return render_page(request, "admin/item_text.html", context, status=refusal.status if refusal else 200)


@router.post(CAMPAIGN_PATH + "/items/text")
async def submit_corrected_item_text(
    request: Request, form_values: FormFields, database: Database, slug: str, now: Now
) -> Response:
    """Store the corrected text of an item or output."""
    item_id, new_text = form_values.get("item", ""), form_values.get("text", "")
    segment_id = form_values.get("segment")
    try:
        async with database.begin() as connection:
            await text_corrections.store_corrected_text_returning_version(
                connection, slug, item_id, new_text, now=now, segment_id=segment_id
            )
    except NotFound:
        raise
    except Refusal as refusal:
        async with database.begin() as connection:
            return await item_text_page_response(
                request, connection, slug, item_id, segment_id, refusal=refusal, entered_text=new_text
            )
    if segment_id is not None:
        query = urlencode({"segment": segment_id, "done": "item-corrected"})
        return redirect_to(f"{campaign_page_url(slug, '/items')}?{query}#segment")
    return redirect_to(item_list_url(slug, ItemListView(search=shorten_echo(item_id)), "item-corrected"))
