"""Groups of annotators by their answers to profile questions, and the groups' own `Answers`.

A group is written `question=answer`; `question!=answer` is the group of annotators with another answer. Annotators
without an answer are in neither.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.result_types import Answers
from app.annotation.onboarding.entry_questions import MAX_ENTRY_ANSWER_CHARACTERS, parse_only_questions_with_choices
from app.annotation.onboarding.profile_answers import load_entry_answers_by_annotator
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import NotFound, join_names, shorten_echo
from app.record.responses import COUNTING_RESPONSES_CONDITION

# Annotators with an answer that counts.
FIND_ANNOTATORS_WHO_COUNT = text(f"""
    SELECT a.id FROM annotators a WHERE a.campaign_id = :campaign AND EXISTS (
        SELECT FROM (
            SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign
        ) AS r WHERE r.annotator_id = a.id AND r.counts)
""")

MAX_GROUP_CHARACTERS = MAX_ENTRY_ANSWER_CHARACTERS + 50  # characters
GROUP_PATTERN = re.compile(r"(?P<question>[A-Za-z][A-Za-z0-9_]*)(?P<other>!?)=(?P<answer>.*)", re.DOTALL)


def answers_of_group_or_refuse(answers: Answers, group_text: str) -> Answers:
    """Return the answers of a group's annotators. The campaign's stored posteriors do not apply, so they are omitted.

    Raises:
        NotFound: `group_not_found`.

    """
    match = GROUP_PATTERN.fullmatch(group_text)
    if match is None or match["question"] not in answers.profile_answers:
        questions = [f"{name}=ANSWER" for name in answers.profile_answers] or ["none"]
        raise group_not_found_error(group_text, f"write a group as {join_names(questions)}")
    question_answers = answers.profile_answers[match["question"]]
    is_member = np.array(
        [answer is not None and (answer == match["answer"]) != bool(match["other"]) for answer in question_answers]
    )
    if not is_member.any():
        raise group_not_found_error(group_text, "no annotator in it has answers that count")
    return answers_of_annotators(answers, is_member)


def group_not_found_error(group_text: str, reason: str) -> NotFound:
    return NotFound(f"There is no group “{shorten_echo(group_text)}” here: {reason}.", code="group_not_found")


def answers_of_annotators(answers: Answers, is_member: npt.NDArray[np.bool_]) -> Answers:
    """Return the judgments of some annotators, (A,), at least one, about the same items."""
    is_kept_judgment = is_member[answers.annotator]
    hits, hit = np.unique(answers.hit[is_kept_judgment], return_inverse=True)
    annotator_numbers = np.flatnonzero(is_member).tolist()
    return replace(
        answers,
        seq=answers.seq[hits],
        hit=hit,
        item=answers.item[is_kept_judgment],
        annotator=np.cumsum(is_member)[answers.annotator[is_kept_judgment]] - 1,
        score=answers.score[is_kept_judgment],
        hit_segments=None if answers.hit_segments is None else answers.hit_segments[hits],
        seconds=None if answers.seconds is None else answers.seconds[hits],
        value=answers.value[is_kept_judgment],
        annotators=[answers.annotators[number] for number in annotator_numbers],
        names=[answers.names[number] for number in annotator_numbers],
        state=None,
        unjudged_counts=None if answers.unjudged_counts is None else answers.unjudged_counts[annotator_numbers],
        names_without_judgment=(),
        scores_by_criterion={name: scores[is_kept_judgment] for name, scores in answers.scores_by_criterion.items()},
        profile_answers={
            name: [given[number] for number in annotator_numbers] for name, given in answers.profile_answers.items()
        },
    )


def list_profile_groups_with_sizes_largest_first(
    profile_answers: Mapping[str, Sequence[str | None]],
) -> list[tuple[str, str, int]]:
    """Return question, answer and number of annotators; the most frequent answers of each question come first."""
    return [
        (question, answer, count)
        for question, given in profile_answers.items()
        for answer, count in Counter(answer for answer in given if answer is not None).most_common()
    ]


async def load_group_choices(connection: AsyncConnection, criterion: Criterion[Campaign]) -> list[tuple[str, str]]:
    """Return the groups that can be chosen on a page, with their names."""
    if not criterion.campaign.questions:
        return []
    answers_by_annotator = await load_entry_answers_by_annotator(connection, criterion.campaign.id)
    counted = await connection.scalars(FIND_ANNOTATORS_WHO_COUNT, {"campaign": criterion.campaign.id})
    profile_answers = [answers_by_annotator[annotator] for annotator in counted if annotator in answers_by_annotator]
    group_choices: list[tuple[str, str]] = []
    for name in [question.name for question in parse_only_questions_with_choices(criterion.campaign.questions)]:
        answer_counts = list_profile_groups_with_sizes_largest_first(
            {name: [given.get(name) for given in profile_answers]}
        )
        group_choices += [(f"{name}={answer}", f"{name}: {answer} ({count:,})") for _, answer, count in answer_counts]
        total = sum(count for *_, count in answer_counts)
        if len(answer_counts) > 2:
            group_choices += [
                (f"{name}!={one}", f"{name}: not {one} ({total - count:,})") for _, one, count in answer_counts
            ]
    return group_choices
