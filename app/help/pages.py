"""Help pages for researchers: the documentation, its pictures, and the search in it."""

import asyncio
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from app.accounts.guards import researcher_router
from app.errors import NotFound
from app.help.documentation import (
    HOME_PAGE,
    HelpPage,
    documentation_page_by_name,
    load_documentation_chapters,
    picture_file_by_documentation_path,
)
from app.help.search import search_documentation
from app.http.dependencies import render_page

router = researcher_router("/admin")

PICTURE_HEADERS = {"Cache-Control": "private, max-age=3600"}


@router.get("/help")
async def help_home_page(request: Request, q: Annotated[str, Query(max_length=200)] = "") -> HTMLResponse:
    """Return the first page, or the results of a search."""
    if not q.strip():
        return render_help_page(request, documentation_page_by_name()[HOME_PAGE])
    results = await asyncio.to_thread(search_documentation, q)  # a tenth of a second, for which annotators would wait
    context = {"query": q, "results": results, "chapters": load_documentation_chapters(), "page": None}
    return render_page(request, "admin/help.html", context)


@router.get("/help/{path:path}")
async def help_page(request: Request, path: str) -> Response:
    """Return a page, or one of its pictures. Raises `NotFound` (`not_found`)."""
    if path in picture_file_by_documentation_path():
        return FileResponse(picture_file_by_documentation_path()[path], headers=PICTURE_HEADERS)
    if path not in documentation_page_by_name():
        raise NotFound("There is no such help page. Search for it, or choose it from the list at /admin/help.")
    return render_help_page(request, documentation_page_by_name()[path])


def render_help_page(request: Request, page: HelpPage) -> HTMLResponse:
    return render_page(request, "admin/help.html", {"page": page, "chapters": load_documentation_chapters()})
