"""One zip with everything that a campaign exports: its files, the tables of its analysis, a codebook and a README."""

import csv
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.available_methods import load_available_methods
from app.analysis.fit_cache import FitCache
from app.analysis.load_answers import has_answers
from app.analysis.methods import ALL_SCORES_EXPORT, TABLE_METHODS, iterate_exports_with_table_names
from app.analysis.result_types import Column
from app.campaigns.campaign_file import format_campaign_file
from app.campaigns.lifecycle import unchecked_settings_with_deliverable_emails
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict
from app.exports.codebook import CODEBOOK_COLUMNS, codebook_rows
from app.exports.export_types import ExportArchive
from app.exports.items import load_uploaded_column_names
from app.exports.methods_paragraph import EASEL_CITATION, EASL_CITATION, load_methods_text
from app.exports.registry import TABLE_EXPORTS, open_export_or_refuse
from app.exports.zip_stream import ZippedFile, stream_zip
from app.quality.adjudications import has_any_adjudication
from app.record import remarks
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.text.table_formats import RowCells, format_csv_rows

EVERYTHING = "everything"
PLATFORM_ID_EXPORTS = ("assignments",)  # only if they are asked for
README = """# {name}

Data of the campaign `{slug}`, exported by Easel {version} on {date} (UTC).

- `METHODS.md` has numbers for the methods section of a paper: people, exclusions, agreement and pay.
- `codebook.csv` explains every column of every CSV file: its meaning, unit and allowed values.
- Annotators have pseudonyms and names such as A1. {platform_ids}
- `responses.csv` has all answers; those with `counts` false are left out of the scores.
- Files are read one after the other. While a campaign is running, a later file can have newer answers.
- Images, recordings and videos are not here: the Export page has them in a zip with the items.
- Read before you publish: `campaign.yaml` and `settings.json` have completion codes and addresses of your study;
  `visits.csv`, `remarks.csv`, `decisions.csv` and `adjudications.csv` have what people answered about themselves or
  wrote; `returning.csv` links annotators with their pseudonyms in earlier campaigns.

## Files

{files}
{missing}
## How to cite

Cite Easel with its version, and the paper behind its method:

> {easel}
>
> {paper}
"""


@dataclass
class Contents:
    """Record of the files written so far: paths, rows of the codebook, and what was left out, with the reason."""

    paths: list[str] = field(default_factory=list)
    codebook: list[RowCells] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Everything:
    """A request for everything.

    Attributes:
        with_platform_ids: Whether to include files with the platforms' ids.
        uploaded_columns: Columns that the researcher uploaded.

    """

    engine: AsyncEngine
    campaign: Campaign
    fits: FitCache
    now: datetime
    with_platform_ids: bool
    uploaded_columns: Sequence[str]
    contents: Contents = field(default_factory=Contents)

    async def iterate_files(self) -> AsyncIterator[ZippedFile]:
        """Yield all files; the codebook and the README, which list the others, come last."""
        settings = unchecked_settings_with_deliverable_emails(self.campaign)
        yield self.text_file("campaign.yaml", format_campaign_file(settings))
        yield self.text_file(
            "METHODS.md", await load_methods_text(self.engine, self.campaign.slug, self.fits, now=self.now)
        )
        async for file in self.iterate_exports():
            yield file
        for criterion in self.campaign.criteria:
            async for file in self.iterate_files_of_criterion(criterion):
                yield file
        codebook = format_csv_rows(CODEBOOK_COLUMNS, [CODEBOOK_COLUMNS, *self.contents.codebook])
        yield self.text_file("codebook.csv", codebook)
        yield self.text_file("README.md", self.readme_text())

    async def iterate_exports(self) -> AsyncIterator[ZippedFile]:
        """Yield the exports that do not depend on a criterion, without those that this campaign cannot have."""
        async with self.engine.connect() as connection:
            has_remarks = await remarks.are_remarks_asked_or_stored(connection, self.campaign)
            is_adjudicated = await has_any_adjudication(connection, self.campaign)
        omitted = {
            *(() if self.with_platform_ids else PLATFORM_ID_EXPORTS),
            *(() if self.campaign.visit_version else ("visits",)),
            *(() if has_remarks else ("remarks",)),
            *(() if is_adjudicated else ("adjudications",)),
            *(() if self.campaign.only_campaigns else ("returning",)),
        }
        for name, export in TABLE_EXPORTS.items():
            if name not in omitted and not export.has_one_criterion:
                try:
                    export.check(self.campaign)
                except Conflict:
                    continue
                yield await self.open_export(f"{name}.csv", name, self.campaign.criteria[0])
        settings = await open_export_or_refuse(self.engine, self.campaign.slug, "settings")
        self.contents.paths.append("settings.json")
        yield ZippedFile("settings.json", settings.chunks)

    async def iterate_files_of_criterion(self, criterion: Criterion[Campaign]) -> AsyncIterator[ZippedFile]:
        """Yield the exports and tables of one criterion, in a folder if there are several criteria.

        What is made of all criteria is not in a folder, and is written with the first criterion that has it.
        """
        async with self.engine.connect() as connection:
            available = await load_available_methods(connection, criterion)
            answered = await has_answers(connection, self.campaign)
        own_folder = f"criterion-{criterion.number + 1}/" if criterion.name else ""
        exports_of_all = {
            one.name for table in available.tables.values() if table.needs_criteria for one in table.exports
        }
        written = {*self.contents.paths, *self.contents.missing}
        names = ["easl", *(export.name for export in (available.exports if answered else ()))]
        for name in names:
            folder = "" if name in exports_of_all else own_folder
            if f"{folder}{name}.csv" in written:
                continue
            try:
                yield await self.open_export(f"{folder}{name}.csv", name, criterion)
            except Conflict as reason:
                if name != "easl":
                    self.contents.missing[f"{folder}{name}.csv"] = reason.message
        for name, method in available.tables.items() if answered else ():
            path = f"{'' if method.needs_criteria else own_folder}tables/{name}.csv"
            if path in written:
                continue
            try:
                table = await self.fits.load_cached_or_fit_table(
                    self.engine, self.campaign.slug, name, criterion=criterion.name
                )
            except Conflict as reason:
                self.contents.missing[path] = reason.message
                continue
            columns = [column.name for column in table.columns]
            self.contents.codebook += codebook_rows(path, columns, criterion, table_columns=table.columns)
            yield self.text_file(path, format_csv_rows(columns, [columns, *table.rows]))

    async def open_export(self, path: str, name: str, criterion: Criterion[Campaign]) -> ZippedFile:
        """Return an export as CSV, whose columns are added to the codebook when it is written."""
        file = await open_export_or_refuse(
            self.engine, self.campaign.slug, name, fits=self.fits, criterion=criterion.name
        )
        table_columns = await self.load_columns_of_table_export(name, criterion)

        async def pieces() -> AsyncIterator[str | bytes]:
            is_head = True
            async for piece in file.chunks:
                if is_head:  # the first piece is the row of names alone
                    is_head = False
                    self.contents.codebook += codebook_rows(
                        path,
                        next(csv.reader([str(piece)])),
                        criterion,
                        uploaded_columns=self.uploaded_columns,
                        table_columns=table_columns,
                    )
                yield piece

        self.contents.paths.append(path)
        return ZippedFile(path, pieces())

    async def load_columns_of_table_export(self, name: str, criterion: Criterion[Campaign]) -> Sequence[Column]:
        """Return the columns of the table that an export writes as it is; none for other exports."""
        tables = {export.name: (table, export) for table, export in iterate_exports_with_table_names(TABLE_METHODS)}
        if name == ALL_SCORES_EXPORT.name or name not in tables or tables[name][1].fit is not None:
            return ()
        table = await self.fits.load_cached_or_fit_table(
            self.engine, self.campaign.slug, tables[name][0], criterion=criterion.name
        )
        return table.columns

    def text_file(self, path: str, content: str) -> ZippedFile:
        async def pieces() -> AsyncIterator[str | bytes]:
            yield content

        self.contents.paths.append(path)
        return ZippedFile(path, pieces())

    def readme_text(self) -> str:
        criteria = [f"- `criterion-{one.number + 1}/`: {one.name}" for one in self.campaign.criteria if one.name]
        missing = [f"- `{path}`: {reason}" for path, reason in self.contents.missing.items()]
        return README.format(
            name=self.campaign.name,
            slug=self.campaign.slug,
            version=version("easel"),
            date=f"{self.now.astimezone(UTC):%Y-%m-%d %H:%M}",
            platform_ids="`assignments.csv` has the platform's ids of assignments: do not publish it."
            if self.with_platform_ids
            else "No file has their ids on a platform.",
            files="\n".join([*criteria, *(f"- `{path}`" for path in self.contents.paths), ""]),
            missing="\n".join(["## Not included", "", *missing, ""]) if missing else "",
            easel=EASEL_CITATION.format(version=version("easel")),
            paper=EASL_CITATION,
        )


async def open_everything_or_refuse(
    engine: AsyncEngine, slug: str, *, now: datetime, fits: FitCache | None = None, with_platform_ids: bool = False
) -> ExportArchive:
    """Open the zip with everything. Each of its files is opened, and its download logged, when its turn comes.

    Raises `NotFound` (`campaign_not_found`).
    """
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        uploaded_columns = await load_uploaded_column_names(connection, campaign.id)
    request = Everything(engine, campaign, fits or FitCache(), now, with_platform_ids, uploaded_columns)

    async def chunks() -> AsyncGenerator[bytes, None]:
        async for piece in stream_zip(request.iterate_files(), now=now):
            yield piece

    return ExportArchive(slug, EVERYTHING, chunks())
