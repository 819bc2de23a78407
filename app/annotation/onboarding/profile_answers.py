"""Annotators' answers to the entry questions."""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.questions import QUESTIONS_STEP

SELECT_ENTRY_ANSWERS = text("""
    SELECT annotator_id, said FROM visits
    WHERE campaign_id = :campaign AND step = :step AND outcome = 'passed' ORDER BY annotator_id
""")


async def load_entry_answers_by_annotator(
    connection: AsyncConnection, campaign_id: int
) -> dict[int, Mapping[str, str]]:
    """Return the entry answers by annotator id and name of the question. Empty answers are left out."""
    rows = await connection.execute(SELECT_ENTRY_ANSWERS, {"campaign": campaign_id, "step": QUESTIONS_STEP})
    return {row.annotator_id: row.said for row in rows}
