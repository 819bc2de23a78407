"""Researchers' pages of people's data: find a person, download their data, erase them, and the receipts."""

from collections.abc import Sequence

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.annotation.platforms.registry import PLATFORMS
from app.errors import Invalid, Refusal
from app.http.dependencies import Database, FormFields, Now, Transaction, content_disposition_headers, render_page
from app.privacy.dependencies import Erasures, PersonPathName, ReceiptNumber
from app.privacy.erasure_rule import RULE_SENTENCES
from app.privacy.erasures import erase_person_and_return_erasure, list_erasures, load_erasure_or_refuse
from app.privacy.person_export import build_person_zip_and_log
from app.privacy.person_search import (
    MAX_PEOPLE_FOUND,
    Person,
    find_people_and_log_search,
    load_person_by_name_or_refuse,
)
from app.privacy.unpaid_work import load_unpaid_work_by_annotator
from app.record.campaign import load_campaign_for_page_or_refuse

router = researcher_router("/admin/campaigns/{slug}")

ERASURE_WAIT_SECONDS = 5.0  # then the receipt says that the rest follows


@router.get("/privacy")
async def show_privacy_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return await render_privacy_page(request, connection, slug)


@router.post("/privacy")
async def submit_person_search(request: Request, form: FormFields, connection: Transaction, slug: str) -> HTMLResponse:
    """Show the annotators whom the term names. It is in the body of the request, so that no log of addresses has it."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    term = form.get("term", "")
    try:
        people = await find_people_and_log_search(connection, campaign, term)
    except Invalid as refusal:
        return await render_privacy_page(request, connection, slug, refusal=refusal)
    return await render_privacy_page(request, connection, slug, people=people, term=term)


async def render_privacy_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    people: Sequence[Person] | None = None,
    term: str = "",
    refusal: Refusal | None = None,
) -> HTMLResponse:
    """Show the search form, and the people found; None before a search."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    context = {
        "campaign": campaign,
        "people": people,
        "unpaid_work": await load_unpaid_work_by_annotator(connection, campaign, people or ()),
        "term": term,
        "most": MAX_PEOPLE_FOUND,
        "platform_titles": {name: platform.title for name, platform in PLATFORMS.items()},
        "rule_sentences": RULE_SENTENCES,
        "erasures": await list_erasures(connection, campaign),
        "refusal": refusal,
    }
    return render_page(request, "admin/privacy.html", context, status=refusal.status if refusal else 200)


@router.get("/privacy/{person}/export")
async def download_person_zip(connection: Transaction, slug: str, person: PersonPathName, now: Now) -> Response:
    """Download all data about a person as a ZIP."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    found = await load_person_by_name_or_refuse(connection, campaign, person)
    content = await build_person_zip_and_log(connection, campaign, found, now=now)
    headers = content_disposition_headers(slug, f"person-{found.name}", "zip", now=now) | {"Cache-Control": "no-store"}
    return Response(content, media_type="application/zip", headers=headers)


@router.post("/privacy/{person}/erase")
async def submit_person_erasure(
    form: FormFields, database: Database, erasures: Erasures, slug: str, person: PersonPathName, *, now: Now
) -> Response:
    """Erase a person, and show the receipt. If the scores take long to follow, they do so after the reply."""
    if not form.get("sure"):
        raise Invalid("Tick the box to confirm that you are sure. Nothing was erased.", code="not_sure")
    erasure = await erase_person_and_return_erasure(database, slug, person, form.get("rule", ""), now=now)
    await erasures.start_and_wait(erasure, now=now, wait_seconds=ERASURE_WAIT_SECONDS)
    return RedirectResponse(f"/admin/campaigns/{slug}/privacy/receipts/{erasure.receipt}", status_code=303)


@router.get("/privacy/receipts/{receipt}")
async def show_erasure_receipt_page(
    request: Request, connection: Transaction, slug: str, receipt: ReceiptNumber
) -> HTMLResponse:
    """Show the receipt of an erasure, to print or to send."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    erasure = await load_erasure_or_refuse(connection, campaign, receipt)
    return render_page(request, "admin/erasure_receipt.html", {"campaign": campaign, "erasure": erasure})
