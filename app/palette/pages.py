"""The search over everything: a page with a form, and the same rows as JSON for the dialog of Ctrl+K."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse

from app.accounts.guards import CurrentAccess, researcher_router
from app.http.dependencies import Transaction, is_json_wanted, render_page
from app.palette.entries import PaletteQuery, find_palette_entries, group_names_with_palette_entries

router = researcher_router("/admin")


@router.get("/search")
async def search_page_or_json_response(
    request: Request, connection: Transaction, access: CurrentAccess, query: Annotated[PaletteQuery, Query()]
) -> Response:
    """Return the matching entries as a page, or as JSON to clients that accept JSON but not HTML."""
    entries = await find_palette_entries(connection, access, query)
    if is_json_wanted(request):
        return JSONResponse({"entries": [asdict(entry) for entry in entries]}, headers={"Vary": "Accept"})
    context = {"query": query, "palette_groups": group_names_with_palette_entries(entries)}
    return render_page(request, "admin/search.html", context, headers={"Vary": "Accept"})
