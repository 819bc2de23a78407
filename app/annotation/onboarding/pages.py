"""Researchers' pages of the people with personal links, and of those who may take part."""

import asyncio
import csv
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from typing import Annotated, Any, cast, get_args

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import UploadFile

from app.accounts.guards import researcher_router
from app.annotation.onboarding import participant_lists, personal_links
from app.annotation.onboarding.list_action import ListAction
from app.annotation.onboarding.participant_lists import ParticipantList
from app.annotation.onboarding.quotas import count_places_in_quotas
from app.database.audit_log import log_change
from app.errors import Invalid, Refusal, join_names, shorten_echo
from app.http.dependencies import (
    MAX_FORM_FIELD_BYTES,
    AppSettings,
    Database,
    Now,
    Transaction,
    content_disposition_headers,
    form_text_by_name_refusing_repeats,
    render_page,
    request_base_url,
)
from app.http.paging import Page
from app.record.campaign import load_campaign_for_page_or_refuse
from app.text.spreadsheets import guard_against_formula
from app.uploads import ReadOptions, can_choices_make_table_readable

router = researcher_router("/admin/campaigns/{slug}")
PEOPLE_PER_PAGE = 100
PEOPLE_FILE_HEADER = ("name", "link", "opened_at", "sets_answered")


@router.get("/people")
async def show_personal_links(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    number: Annotated[int, Query(alias="page", ge=1, le=personal_links.MAX_PERSONAL_LINKS)] = 1,
) -> HTMLResponse:
    return await log_read_and_render_personal_links(request, connection, slug, page_number=number)


async def log_read_and_render_personal_links(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    page_number: int = 1,
    refusal: Refusal | None = None,
    entered_lines: str = "",
) -> HTMLResponse:
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    count, used = await personal_links.count_created_and_used_personal_links(connection, campaign.id)
    page: Page[Any] = Page(page_number, PEOPLE_PER_PAGE, count)
    rows = await personal_links.list_personal_links(connection, campaign.id, limit=page.size, offset=page.offset)
    if rows:
        await log_change(connection, "people.seen", campaign, about="people")
    base = request_base_url(request)
    links = [personal_links.personal_link_url(base, campaign.link_key, row.link) for row in rows]
    context = {"campaign": campaign, "people": list(zip(rows, links, strict=True)), "count": count, "used_count": used}
    context |= {
        "page": page,
        "refusal": refusal,
        "entered": entered_lines,
        "invited_people_note": await personal_links.sentence_on_invited_people_or_empty(
            connection, campaign.id, campaign.only_campaigns
        ),
        "max_people": personal_links.MAX_PERSONAL_LINKS,
    }
    context |= {"asks_how": isinstance(refusal, Invalid) and can_choices_make_table_readable(refusal)}
    return render_page(request, "admin/people.html", context, status=refusal.status if refusal else 200)


@router.post("/people")
async def submit_new_personal_links(
    request: Request, database: Database, settings: AppSettings, slug: str, now: Now
) -> Response:
    """Create personal links for the people in an uploaded file, or on the lines of the form."""
    form = await request.form(max_part_size=MAX_FORM_FIELD_BYTES)
    file, typed = form.get("file"), str(form.get("names") or "")
    try:
        form_text_by_name_refusing_repeats(form)
        names: Iterable[str] = [line.strip() for line in typed.splitlines()]
        if isinstance(file, UploadFile) and file.filename:
            content = BytesIO(await file.read())
            read_options = ReadOptions(*(str(form.get(name) or "") or None for name in ("encoding", "quotes", "sheet")))
            names = await asyncio.to_thread(
                personal_links.read_person_names,
                content,
                file.filename,
                None,
                max_mb=settings.max_upload_mb,
                read_options=read_options,
            )
        async with database.begin() as connection:
            added = await personal_links.create_missing_links_and_count_them(
                connection, await load_campaign_for_page_or_refuse(connection, slug), names, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await log_read_and_render_personal_links(
                request, connection, slug, refusal=refusal, entered_lines=typed
            )
    done = "people" if added else "people-known"
    return RedirectResponse(f"/admin/campaigns/{slug}/people?done={done}", status_code=303)


@router.get("/people.csv")
async def download_personal_links_csv(request: Request, connection: Transaction, slug: str, now: Now) -> Response:
    """Return all people with their links as CSV, for a mail merge."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    await log_change(connection, "people.downloaded", campaign, about="people.csv")
    base, file = request_base_url(request), StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(PEOPLE_FILE_HEADER)
    for row in await personal_links.list_personal_links(connection, campaign.id):
        link = personal_links.personal_link_url(base, campaign.link_key, row.link)
        writer.writerow(
            [guard_against_formula(row.name), link, row.opened_at.isoformat() if row.opened_at else "", row.answered]
        )
    headers = content_disposition_headers(slug, "people", "csv", now=now) | {"Cache-Control": "no-store"}
    return Response(file.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/participants")
async def show_participant_lists(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    list_name: Annotated[ParticipantList, Query(alias="list")] = "allow",
    number: Annotated[int, Query(alias="page", ge=1, le=participant_lists.MAX_LISTED_PEOPLE)] = 1,
) -> HTMLResponse:
    """Show who may take part."""
    return await log_read_and_render_participant_lists(request, connection, slug, list_name, page_number=number)


async def log_read_and_render_participant_lists(
    request: Request,
    connection: Transaction,
    slug: str,
    list_name: str,
    *,
    page_number: int = 1,
    refusal: Refusal | None = None,
    entered_lines: str = "",
    action: ListAction = "add",
) -> HTMLResponse:
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    counts = await participant_lists.count_listed_people_by_list(connection, campaign.id)
    page: Page[str] = Page(
        page_number, PEOPLE_PER_PAGE, counts.get(list_name, participant_lists.ListedPeopleCount()).shown
    )
    people = await participant_lists.list_participant_ids(
        connection, campaign.id, list_name, limit=page.size, offset=page.offset
    )
    if people:
        await log_change(connection, "people.seen", campaign, about=f"participants: {list_name}")
    context = {
        "campaign": campaign,
        "counts": counts,
        "quotas": await count_places_in_quotas(connection, campaign),
        "list_name": list_name,
        "people": people,
        "page": page,
        "refusal": refusal,
        "entered": entered_lines,
        "action": action,
        "max_people": participant_lists.MAX_LISTED_PEOPLE,
        "asks_how": isinstance(refusal, Invalid) and can_choices_make_table_readable(refusal),
    }
    return render_page(request, "admin/participants.html", context, status=refusal.status if refusal else 200)


async def refuse_unknown_list_or_action(connection: Transaction, slug: str, fields: Mapping[str, str]) -> None:
    """Raise `Invalid` (`invalid`, with the field) unless a form names a list of the campaign and what to do with it.

    The field `group` may name a new group instead.
    """
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    known_lists = await participant_lists.count_listed_people_by_list(connection, campaign.id)
    for field, known_values in (("list", [*known_lists]), ("action", [*get_args(ListAction)])):
        value = fields.get(field, "").strip()
        names_group = field == "list" and fields.get("group", "").strip()
        if value not in known_values and not names_group:
            raise Invalid(
                f"`{field}` must be one of {join_names(known_values)}, but is “{shorten_echo(value)}”. Nothing was "
                "changed.",
                code="invalid",
                field=field,
            )


@router.post("/participants")
async def submit_participant_list_change(
    request: Request, database: Database, settings: AppSettings, slug: str, now: Now
) -> Response:
    """Change a list by the ids in an uploaded file, or on the lines of the form."""
    form = await request.form(max_part_size=MAX_FORM_FIELD_BYTES)
    file, typed = form.get("file"), str(form.get("people") or "")
    list_name = str(form.get("list", "")).strip()
    action: ListAction = "add"
    try:
        fields = form_text_by_name_refusing_repeats(form)
        async with database.begin() as connection:
            await refuse_unknown_list_or_action(connection, slug, fields)
        list_name, action = fields.get("group", "").strip() or list_name, cast("ListAction", fields["action"])
        people: Iterable[str] = typed.splitlines()
        if isinstance(file, UploadFile) and file.filename:
            content = BytesIO(await file.read())
            read_options = ReadOptions(*(str(form.get(name) or "") or None for name in ("encoding", "quotes", "sheet")))
            people = await asyncio.to_thread(
                participant_lists.read_person_ids,
                content,
                file.filename,
                max_mb=settings.max_upload_mb,
                read_options=read_options,
            )
        async with database.begin() as connection:
            campaign = await load_campaign_for_page_or_refuse(connection, slug)
            await participant_lists.change_participant_list_and_count_changes(
                connection, campaign, list_name, people, action, now=now, may_open_to_everyone=bool(form.get("sure"))
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await log_read_and_render_participant_lists(
                request, connection, slug, list_name, refusal=refusal, entered_lines=typed, action=action
            )
    return RedirectResponse(f"/admin/campaigns/{slug}/participants?list={list_name}&done=listed", status_code=303)
