"""Annotators by what they answered to a question that was asked once."""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.questions import QUESTIONS_STEP

SELECT_ENTRY_ANSWERS = text("""
    SELECT annotator_id, said FROM visits
    WHERE campaign_id = :campaign AND step = :step AND outcome = 'passed' ORDER BY annotator_id
""")


async def load_entry_answers(connection: AsyncConnection, campaign_id: int) -> dict[int, Mapping[str, str]]:
    """Of each annotator who was asked, by their row's id, the answers by the names of the questions; one that was left
    empty is not there.
    """
    rows = await connection.execute(SELECT_ENTRY_ANSWERS, {"campaign": campaign_id, "step": QUESTIONS_STEP})
    return {row.annotator_id: row.said for row in rows}
