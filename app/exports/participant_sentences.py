"""Sentences about the participants of a study for its methods paragraph: their answers, and who was not admitted."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.entry_questions import EntryQuestion, parse_question_lines
from app.designs.campaign import Campaign
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.text.numbers import format_with_places

# Answers to the entry questions of annotators with an answer that counts.
LIST_ENTRY_ANSWERS = text(f"""
    SELECT said FROM visits
    WHERE campaign_id = :campaign AND step = 'questions' AND outcome = 'passed' AND annotator_id IN (
        SELECT annotator_id FROM (
            SELECT annotator_id, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign
        ) AS r WHERE counts)
""")

COUNT_PEOPLE_NOT_ADMITTED = text("""
    SELECT step, outcome, count(DISTINCT annotator_id) AS people FROM visits
    WHERE campaign_id = :campaign AND outcome IN ('failed', 'full', 'declined') GROUP BY step, outcome
""")

REASON_BY_STEP_AND_OUTCOME = {
    ("consent", "declined"): "did not consent",
    ("questions", "failed"): "screened out by an answer",
    ("questions", "full"): "quota full",
    ("training", "failed"): "did not pass the training",
    ("qualification", "failed"): "did not qualify",
}


async def load_participant_sentences(connection: AsyncConnection, campaign: Campaign) -> list[str]:
    """Return a sentence per entry question, without free text, and one on people who were not admitted."""
    parameters = {"campaign": campaign.id}
    answers: Sequence[Mapping[str, str]] = (await connection.scalars(LIST_ENTRY_ANSWERS, parameters)).all()
    sentences = [
        sentence_on_answers_or_empty(question, [given[question.name] for given in answers if given.get(question.name)])
        for question in parse_question_lines(campaign.questions)
    ]
    counts = {
        REASON_BY_STEP_AND_OUTCOME.get((row.step, row.outcome), ""): row.people
        for row in await connection.execute(COUNT_PEOPLE_NOT_ADMITTED, parameters)
    }
    parts = [f"{counts[reason]:,}: {reason}" for reason in REASON_BY_STEP_AND_OUTCOME.values() if reason in counts]
    not_admitted = f"Not admitted to the tasks: {'; '.join(parts)}." if parts else ""
    return [sentence for sentence in (*sentences, not_admitted) if sentence]


def sentence_on_answers_or_empty(question: EntryQuestion, answers: Sequence[str]) -> str:
    """Return how often each choice was given, or the mean, standard deviation and range of numbers."""
    if not answers or not (question.choices or question.number):
        return ""
    if question.choices:
        counts = Counter(answers)
        summary = ", ".join(f"{choice} {counts[choice]:,}" for choice in question.choices if counts[choice])
    else:
        numbers = np.array([float(answer.replace(",", ".")) for answer in answers])
        spread = f"SD {format_with_places(float(numbers.std(ddof=1)), 1)}, " if len(numbers) > 1 else ""
        summary = (
            f"mean {format_with_places(float(numbers.mean()), 1)} ({spread}{numbers.min():g} to {numbers.max():g})"
        )
    return f"{question.question} – {summary}."
