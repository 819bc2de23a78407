"""Background work that continues interrupted imports of answers. The stored files are the queue, so none is lost.

An import is interrupted if its process ends, its browser leaves, or the database is lost. A background loop of any
process continues it once no other process holds the imports of its campaign.
"""

import logging
from collections.abc import Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from app.background.health import log_background_failure
from app.database.exclusive_work import hold_work_during_block_if_free
from app.imports.responses_import import continue_interrupted_response_import_or_none, response_import_work_name
from app.imports.unfinished_imports import list_campaign_ids_with_unfinished_import
from app.record.campaign import load_campaign

log = logging.getLogger(__name__)

INTERRUPTED_IMPORTS_PAUSE_SECONDS = 20.0


class InterruptedImports:
    """Continues interrupted imports, one after another."""

    def __init__(self, database: AsyncEngine, request_scan: Callable[[int], None]) -> None:
        self.database = database
        self.request_scan = request_scan

    async def continue_imports(self) -> None:
        """Continue all interrupted imports. A failure stops no other import; the last one is raised."""
        failure: Exception | None = None
        for campaign_id in await list_campaign_ids_with_unfinished_import(self.database):
            try:
                await self.continue_import_if_interrupted(campaign_id)
            except Exception as problem:  # noqa: BLE001  (raised after the others)
                log_background_failure(log, f"an import into campaign {campaign_id} is tried again", problem)
                failure = problem
        if failure is not None:
            raise failure

    async def continue_import_if_interrupted(self, campaign_id: int) -> None:
        """Continue the import into a campaign, unless it is under way."""
        async with hold_work_during_block_if_free(self.database, response_import_work_name(campaign_id)) as claim:
            if claim is None:
                return
            async with self.database.connect() as connection:
                campaign = await load_campaign(connection, campaign_id)
            await continue_interrupted_response_import_or_none(self.database, campaign, claim, self.request_scan)
