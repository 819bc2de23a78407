"""Check at the launch that every item that is only for some people has people who can judge it."""

import asyncio

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.item_audiences import parse_audiences
from app.annotation.onboarding.entry_questions import EntryQuestion, parse_question_lines
from app.annotation.onboarding.participant_lists import count_listed_people_by_list
from app.annotation.onboarding.questions import entry_answer_or_refuse
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, shorten_echo

# SQL: the cell of an item that is only for some people.
CELL = "fields ->> CAST(:column AS text)"
IS_ASSIGNED = f"campaign_id = :campaign AND btrim({CELL}, ' |') <> ''"

SELECT_CELLS = text(f"SELECT DISTINCT {CELL} FROM items WHERE {IS_ASSIGNED} ORDER BY 1")
SELECT_ASSIGNED_NUMBERS = text(f"SELECT number FROM items WHERE {IS_ASSIGNED}")


async def load_item_numbers_reserved_for_people(connection: AsyncConnection, campaign: Campaign) -> list[int]:
    """Return the items that are only for some people; none if no column says so."""
    key = {"campaign": campaign.id, "column": campaign.assigned_column}
    return [*await connection.scalars(SELECT_ASSIGNED_NUMBERS, key)] if campaign.assigned_column is not None else []


async def refuse_items_for_nobody(connection: AsyncConnection, campaign: Campaign) -> None:
    """Refuse a launch in which the column that says who judges an item is empty, or names people who cannot exist.

    A rehearsal has no groups: its annotators are simulated.

    Raises:
        Conflict: `assigned_column_missing`, `assigned_group_empty`, `assigned_answer_unknown`, `not_for_systems`.

    """
    if campaign.assigned_column is None:
        return
    if campaign.segment_count:
        raise Conflict(
            f"“{campaign.name}” compares systems, which everyone judges. Empty the column of groups, then launch.",
            code="not_for_systems",
        )
    column = shorten_echo(campaign.assigned_column)
    key = {"campaign": campaign.id, "column": campaign.assigned_column}
    cells = (await connection.scalars(SELECT_CELLS, key)).all()
    if not cells:
        raise Conflict(
            f"The column “{column}”, which says who judges, is empty for every item. Upload the items with this "
            "column, or empty the setting, then launch.",
            code="assigned_column_missing",
            setting="assigned_column",
        )
    audiences = await asyncio.to_thread(lambda: sorted({name for cell in cells for name in parse_audiences(cell)}))
    groups = (await count_listed_people_by_list(connection, campaign.id)).keys() - {"allow", "block"}
    questions = {question.name: question for question in parse_question_lines(campaign.questions)}
    for audience in audiences:
        name, equals_sign, answer = audience.partition("=")
        if equals_sign and not can_participants_give_answer(questions.get(name), answer):
            raise Conflict(
                f"Items are for people who answer “{shorten_echo(f'{name} = {answer}')}”, but no question has this "
                f"answer. Correct the column “{column}” or the questions, then launch.",
                code="assigned_answer_unknown",
                setting="assigned_column",
            )
        if not equals_sign and audience not in groups and campaign.rehearsal_of is None:
            raise Conflict(
                f"Items are for the group “{shorten_echo(audience)}”, but nobody is in it. Add people to the group, or "
                f"correct the column “{column}”, then launch.",
                code="assigned_group_empty",
                setting="assigned_column",
            )


def can_participants_give_answer(question: EntryQuestion | None, answer: str) -> bool:
    """Return whether people who take part can give this answer to the question."""
    if question is None or not answer:
        return False
    try:
        return entry_answer_or_refuse(question, answer) == answer and not question.screens_out(answer)
    except Invalid:
        return False
