"""Page Adjudicate: researchers choose final labels, item by item."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.analysis.adjudicated_item import QueueRow, load_item_view, load_rows_with_current_texts
from app.analysis.adjudication_state import AdjudicationQuery, AdjudicationState, load_adjudication_state
from app.analysis.dependencies import ProcessFits
from app.analysis.queue_filter import QUEUE_FILTER_TITLES
from app.errors import Conflict, Invalid, NotFound, shorten_echo
from app.http.dependencies import (
    Database,
    FormFields,
    Now,
    ReadingDatabase,
    allow_https_media_if_campaign_does,
    render_page,
)
from app.http.paging import Page
from app.media.thumbnails import load_image_html_by_item_id
from app.quality.adjudications import adjudicate_item_or_refuse
from app.quality.decisions import MAX_REASON_CHARACTERS
from app.quality.replaced_adjudications import load_replaced_label_and_reason
from app.record.campaign import load_campaign_by_slug_or_refuse

router = researcher_router("/admin/campaigns/{slug}")

QUEUE_ROWS_PER_PAGE = 25
MAX_LISTED_ANNOTATORS = 50
MAX_ADJUDICATION_ID_DIGITS = 18


@router.get("/adjudicate")
async def show_adjudication_page(
    *,
    request: Request,
    database: Database,
    reading: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    query: Annotated[AdjudicationQuery, Query()],
) -> HTMLResponse:
    """Show an item with its votes, and the queue of items, the worst first."""
    return await render_adjudication_page(request, database, reading, fits, slug=slug, query=query)


async def render_adjudication_page(
    request: Request,
    database: Database,
    reading: ReadingDatabase,
    fits: ProcessFits,
    *,
    slug: str,
    query: AdjudicationQuery,
    refusal: Conflict | Invalid | None = None,
    entered_reason: str = "",
) -> HTMLResponse:
    is_going_on = bool(query.after or query.item)
    state = await load_adjudication_state(fits, database, reading, slug, query.criterion, may_lag=is_going_on)
    campaign = state.criterion.campaign
    allow_https_media_if_campaign_does(request, campaign)
    listed = state.item_numbers(query.show)
    page: Page[Any] = Page(query.page, QUEUE_ROWS_PER_PAGE, len(listed))
    rows = state.rows(listed[page.offset : page.offset + page.size])
    disputed, settled_disputed = state.disputed_and_settled_counts
    shown_number = number_of_shown_item_or_none(state, query)
    shown_id = "" if shown_number is None else state.answers.ids[shown_number]
    next_number = None if query.show == "settled" else state.next_open_item_or_none(query.show, shown_id)
    agreements = [] if query.blind else state.agreement_with_final_labels()
    settled_row = row_just_settled_or_none(state, query)
    async with database.connect() as connection:
        (shown_row,) = state.rows([shown_number]) if shown_number is not None else (None,)
        rows = await load_rows_with_current_texts(connection, campaign, rows)
        context: dict[str, Any] = {
            "item": shown_row and await load_item_view(connection, state.criterion, state.answers, shown_row),
            "thumbnails": await load_image_html_by_item_id(connection, campaign, [row.id for row in rows]),
        }
    context |= {
        "campaign": campaign,
        "criterion": state.criterion,
        "view": query,
        "rows": rows,
        "page": page,
        "filters": QUEUE_FILTER_TITLES,
        "disputed_count": disputed,
        "settled_disputed_count": settled_disputed,
        "settled_row": settled_row,
        "skip_to": state.answers.ids[next_number] if next_number not in {None, shown_number} else "",
        "votes_are_hidden": query.blind and not (shown_row and shown_row.final_label),
        "agreements": agreements[:MAX_LISTED_ANNOTATORS],
        "agreement_count": len(agreements),
        "max_listed_annotators": MAX_LISTED_ANNOTATORS,
        "max_reason_length": MAX_REASON_CHARACTERS,
        "entered_reason": entered_reason,
    }
    return render_page(request, "admin/adjudicate.html", context, refusal=refusal)


def number_of_shown_item_or_none(state: AdjudicationState, query: AdjudicationQuery) -> int | None:
    """Return the item that is asked for, else the next open one; None if there is none.

    Raises:
        NotFound: `item_not_found`.

    """
    if not query.item and query.show == "settled":
        return None
    if not query.item:
        return state.next_open_item_or_none(query.show, query.after)
    number = state.number_of_id_or_none(query.item)
    if number is None:
        shown_id = shorten_echo(query.item)
        raise NotFound(
            f"“{state.criterion.campaign.name}” has no item “{shown_id}”.", code="item_not_found", item=shown_id
        )
    return number


def row_just_settled_or_none(state: AdjudicationState, query: AdjudicationQuery) -> QueueRow | None:
    """Return the row of the item that was settled just now; None without one, or if it was decided again since."""
    number = state.number_of_id_or_none(query.after) if query.after else None
    if number is None or number not in state.settled_items:
        return None
    (row,) = state.rows([number])
    return row if row.adjudication and row.adjudication.id == query.decision else None


@router.post("/adjudicate")
async def submit_adjudication(
    *,
    request: Request,
    form: FormFields,
    database: Database,
    reading: ReadingDatabase,
    fits: ProcessFits,
    slug: str,
    query: Annotated[AdjudicationQuery, Query()],
    now: Now,
) -> Response:
    """Store a final label and show the next item.

    An empty label takes the present one back, and Undo restores the decision before: both show the item again.
    If another researcher decided meanwhile, the item is shown with that decision.
    """
    item_id, label, reason = form.get("item", ""), form.get("label") or None, form.get("reason", "")
    replaces, is_undo = parse_adjudication_id_or_zero(form.get("replaces", "")), bool(form.get("undo"))
    try:
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            if is_undo:
                label, reason = await load_replaced_label_and_reason(connection, campaign, replaces)
            made = await adjudicate_item_or_refuse(
                connection,
                campaign.find_criterion_or_refuse(query.criterion),
                item_id,
                label,
                reason=reason,
                replaces=replaces,
                now=now,
            )
    except (Conflict, Invalid) as refusal:
        if refusal.code in {"no_labels", "not_launched"}:
            raise
        return await render_adjudication_page(
            request,
            database,
            reading,
            fits,
            slug=slug,
            query=query.model_copy(update={"item": item_id, "after": "", "decision": 0}),
            refusal=refusal,
            entered_reason="" if is_undo else reason[:MAX_REASON_CHARACTERS],
        )
    if label and not is_undo:
        fields = query.query_fields(item="", after=item_id, decision=made.id)
    else:
        notice = "label-restored" if label else "label-reopened"
        fields = [*query.query_fields(item=item_id, after="", decision=0), ("done", notice)]
    return RedirectResponse(f"/admin/campaigns/{slug}/adjudicate?{urlencode(fields)}", status_code=303)


def parse_adjudication_id_or_zero(text: str) -> int:
    """Return the id in a hidden field; 0, which stands for no decision, for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_ADJUDICATION_ID_DIGITS else 0
