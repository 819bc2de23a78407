"""Types of exports: the file, the request for it, and the entry of the registry."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis.fit_cache import FitCache
from app.analysis.result_types import Options
from app.database.bulk import StatementTable, open_snapshot
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.text.table_formats import EXPORT_MEDIA_TYPES, ExportFormat, TableStream, stream_table_text

Pieces = AsyncGenerator[str, None]
CampaignCheck = Callable[[Campaign], None]
T = TypeVar("T")  # Python 3.11 has no other way


@dataclass(frozen=True)
class ExportFile:
    """A file to send, piece by piece.

    Attributes:
        name: Name of the export.
        extension: `csv`, `jsonl` or `json`.
        criterion: The criterion of the export, empty if it covers all of them.

    """

    slug: str
    name: str
    extension: str
    chunks: Pieces
    criterion: str = ""

    @property
    def media_type(self) -> str:
        return EXPORT_MEDIA_TYPES[self.extension]


@dataclass(frozen=True)
class ExportArchive:
    """A zip of files to send, piece by piece."""

    slug: str
    name: str
    chunks: AsyncGenerator[bytes, None]
    extension: str = "zip"
    criterion: str = ""
    media_type: str = "application/zip"


@dataclass(frozen=True)
class ExportRequest:
    """Request for an export.

    Attributes:
        criterion: Name of the chosen criterion; the first if empty.
        spreadsheet: Whether to guard cells that spreadsheet programs would change.
        options: Options of exports that need a fit.

    """

    engine: AsyncEngine
    campaign: Campaign
    criterion: str
    chosen: Criterion[Campaign]
    format: ExportFormat
    spreadsheet: bool
    fits: FitCache
    options: Options

    @property
    def slug(self) -> str:
        return self.campaign.slug


def accept_every_campaign(_campaign: Campaign) -> None:
    """Raise no refusal, for exports that every campaign has."""


@dataclass(frozen=True)
class Export:
    """An export of a campaign.

    Attributes:
        open: Returns the pieces of the file. It raises all refusals of a fit.
        check: Raises the refusal for a campaign that has no such export.
        is_about_annotators: True if it tells about single annotators. The audit log records its downloads.
        has_one_criterion: True if it has only the chosen criterion.
        only_format: The format of every file, whatever is asked for.

    """

    open: Callable[[ExportRequest], Awaitable[Pieces]]
    check: CampaignCheck = accept_every_campaign
    is_about_annotators: bool = False
    has_one_criterion: bool = False
    only_format: ExportFormat | None = None


async def stream_table_from_own_snapshot(
    request: ExportRequest, open_table: Callable[[AsyncConnection, T], Awaitable[TableStream]], subject: T
) -> Pieces:
    """Stream the table of a campaign or criterion from its own snapshot: a request's transaction ends before its reply
    is sent.
    """
    async with open_snapshot(request.engine) as connection:
        table = await open_table(connection, subject)
        async for piece in stream_table_text(table, request.format, spreadsheet=request.spreadsheet):
            yield piece


def define_campaign_table_export(
    open_table: Callable[[AsyncConnection, Campaign], Awaitable[TableStream]],
    check: CampaignCheck = accept_every_campaign,
    *,
    is_about_annotators: bool = False,
) -> Export:
    """Return an export of a table about a campaign."""

    async def open_pieces(request: ExportRequest) -> Pieces:
        return stream_table_from_own_snapshot(request, open_table, request.campaign)

    return Export(open_pieces, check, is_about_annotators)


def define_annotator_table_export(table: StatementTable) -> Export:
    """Return an export of the rows of a statement about the annotators of a campaign."""

    async def open_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
        return await table.open(connection, {"campaign": campaign.id})

    return define_campaign_table_export(open_table, is_about_annotators=True)


def define_criterion_table_export(
    open_table: Callable[[AsyncConnection, Criterion[Campaign]], Awaitable[TableStream]],
    check: CampaignCheck,
    only_format: ExportFormat,
) -> Export:
    """Return an export of a table about the chosen criterion."""

    async def open_pieces(request: ExportRequest) -> Pieces:
        return stream_table_from_own_snapshot(request, open_table, request.chosen)

    return Export(open_pieces, check, has_one_criterion=True, only_format=only_format)


def define_fitted_export(open_fitted_table: Callable[[ExportRequest], Awaitable[TableStream]]) -> Export:
    """Return an export that needs a fit, which is made when it is opened."""

    async def open_pieces(request: ExportRequest) -> Pieces:
        return stream_table_text(await open_fitted_table(request), request.format, spreadsheet=request.spreadsheet)

    return Export(open_pieces, has_one_criterion=True)
