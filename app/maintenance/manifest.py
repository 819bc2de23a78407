"""The manifest of a backup: what is in the dump, so that a restored database can be compared with it."""

import hashlib
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import StartupProblem

MANIFEST_FORMAT = 1

# The newest number of the record shows the last answer or decision that is in the backup.
COUNT_ROWS_BY_CAMPAIGN = text("""
    SELECT c.slug, c.status,
           coalesce(i.count, 0) AS items, coalesce(h.count, 0) AS hits, coalesce(r.count, 0) AS responses,
           r.newest AS newest_response
    FROM campaigns c
    LEFT JOIN (SELECT campaign_id, count(*) FROM items GROUP BY 1) AS i ON i.campaign_id = c.id
    LEFT JOIN (SELECT campaign_id, count(*) FROM hits GROUP BY 1) AS h ON h.campaign_id = c.id
    LEFT JOIN (SELECT campaign_id, count(*), max(seq) AS newest FROM responses GROUP BY 1) AS r ON r.campaign_id = c.id
    ORDER BY c.id
""")


class CampaignCounts(BaseModel):
    """Status and number of rows of one campaign, and the number in the record of its newest response."""

    slug: str
    status: str
    items: int
    hits: int
    responses: int
    newest_response: int | None


class Manifest(BaseModel):
    """Description of a dump, stored next to it.

    Args:
        format: Version of this description.
        created_at: Time at which the backup began: later changes are not in it.
        easel_version: Version of Easel that wrote it.
        schema_revision: Revision of the schema in the dump.
        postgresql_version: Major version of the server that was dumped.
        size_bytes: Size of the dump.
        sha256: Hash of the dump.
        campaigns: Counts of each campaign.

    """

    format: int = MANIFEST_FORMAT
    created_at: datetime
    easel_version: str
    schema_revision: str
    postgresql_version: int
    size_bytes: int
    sha256: str
    campaigns: list[CampaignCounts]


async def load_row_counts_of_campaigns(connection: AsyncConnection) -> list[CampaignCounts]:
    rows = await connection.execute(COUNT_ROWS_BY_CAMPAIGN)
    return [CampaignCounts.model_validate(row) for row in rows.mappings()]


def manifest_path_of_dump(dump: Path) -> Path:
    return dump.with_suffix(".json")


def hash_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest_of_dump(dump: Path) -> Manifest:
    """Return the manifest next to a dump whose size and hash agree with it.

    Raises StartupProblem: `backup_unreadable` if the dump or its manifest is missing or no manifest; `backup_damaged`
    if the dump is not the one that the manifest describes.
    """
    path = manifest_path_of_dump(dump)
    try:
        size = dump.stat().st_size
        manifest = Manifest.model_validate_json(path.read_bytes())
    except ValidationError:
        raise StartupProblem(f"{path} is not a manifest of a backup.", code="backup_unreadable") from None
    except OSError as problem:
        raise StartupProblem(
            f"{problem.filename} cannot be read: {problem.strerror}. A backup is two files, such as {dump.name} and "
            f"{path.name}.",
            code="backup_unreadable",
        ) from None
    if manifest.format > MANIFEST_FORMAT:
        raise StartupProblem(
            f"A newer Easel ({manifest.easel_version}) wrote {path}. Restore with that version.",
            code="backup_unreadable",
        )
    if size != manifest.size_bytes or hash_of_file(dump) != manifest.sha256:
        raise StartupProblem(
            f"{dump} has changed since it was written: {size:,} of {manifest.size_bytes:,} bytes, or other contents. "
            "Use another backup, or copy this one again. Nothing was changed.",
            code="backup_damaged",
        )
    return manifest
