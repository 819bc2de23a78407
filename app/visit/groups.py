"""Annotators by what they answered to a question that was asked once."""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.visit.questions import NAME

ANSWERED = text("""
    SELECT annotator_id, said FROM visits
    WHERE campaign_id = :campaign AND step = :step AND outcome = 'passed' ORDER BY annotator_id
""")


async def answers_by_annotator(connection: AsyncConnection, campaign_id: int) -> dict[int, Mapping[str, str]]:
    """Of each annotator who was asked, by their row's id, the answers by the names of the questions; one that was left
    empty is not there.
    """
    rows = await connection.execute(ANSWERED, {"campaign": campaign_id, "step": NAME})
    return {row.annotator_id: row.said for row in rows}


async def groups(connection: AsyncConnection, campaign_id: int, question: str) -> dict[str, list[int]]:
    """The annotators, by their rows' ids in order, who gave each answer to a question; those who gave none are in no
    group. The answers are in the order of the first who gave each.
    """
    found: dict[str, list[int]] = {}
    for annotator, said in (await answers_by_annotator(connection, campaign_id)).items():
        if question in said:
            found.setdefault(said[question], []).append(annotator)
    return found
