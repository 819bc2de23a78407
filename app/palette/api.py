"""API of the search over everything that a researcher can open."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from app.accounts.guards import CurrentAccess, program_router
from app.http.dependencies import Transaction
from app.palette.entries import PaletteQuery, find_palette_entries

router = program_router("/api/v1", "Search")


class SearchEntry(BaseModel):
    """A title, and the page that it opens."""

    group: str = Field(description="For example Campaigns, Items, Annotators, Settings or Help.")
    title: str
    detail: str = Field(description="Words that tell rows of equal titles apart; may be empty.")
    url: str = Field(description="Address of a page for researchers, relative to the server.")


class SearchResult(BaseModel):
    entries: list[SearchEntry]


@router.get("/search")
async def search_everything(
    connection: Transaction, access: CurrentAccess, query: Annotated[PaletteQuery, Query()]
) -> SearchResult:
    """Find campaigns, pages and help, and, in one campaign, settings, items and annotators.

    Finds what you can see with this token. Each group is short.
    """
    entries = await find_palette_entries(connection, access, query)
    return SearchResult(entries=[SearchEntry(**asdict(entry)) for entry in entries])
