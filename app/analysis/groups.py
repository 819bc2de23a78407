"""Groups of annotators by what they chose when they were asked something once: their answers alone.

A group is written `question=answer`, and `question!=answer` are those who answered otherwise. Whoever left the question
open is in neither.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.findings import Answers
from app.errors import NotFound, listed, shortened
from app.visit.asked_once import MAX_ENTRY_ANSWER_CHARACTERS, questions_with_choices
from app.visit.groups import load_entry_answers

LONGEST_GROUP = MAX_ENTRY_ANSWER_CHARACTERS + 50  # characters
GROUP = re.compile(r"(?P<question>[A-Za-z][A-Za-z0-9_]*)(?P<other>!?)=(?P<answer>.*)", re.DOTALL)


def in_group(answers: Answers, group: str) -> Answers:
    """What a group's annotators answered. The campaign's posteriors are not theirs, so they are made anew.

    Raises `NotFound` (`group_not_found`).
    """
    found = GROUP.fullmatch(group)
    if found is None or found["question"] not in answers.asked:
        questions = [f"{name}=ANSWER" for name in answers.asked] or ["none"]
        raise not_found(group, f"a group is written {listed(questions)}")
    said = answers.asked[found["question"]]
    keep = np.array([one is not None and (one == found["answer"]) != bool(found["other"]) for one in said])
    if not keep.any():
        raise not_found(group, "nobody whose answers count is in it")
    return of_annotators(answers, keep)


def not_found(group: str, there: str) -> NotFound:
    return NotFound(f"There is no group “{shortened(group)}” here: {there}.", code="group_not_found")


def of_annotators(answers: Answers, keep: npt.NDArray[np.bool_]) -> Answers:
    """The judgments of some annotators, (A,), one at least, about the same items."""
    kept = keep[answers.annotator]
    hits, hit = np.unique(answers.hit[kept], return_inverse=True)
    those = np.flatnonzero(keep).tolist()
    return replace(
        answers,
        seq=answers.seq[hits],
        hit=hit,
        item=answers.item[kept],
        annotator=np.cumsum(keep)[answers.annotator[kept]] - 1,
        score=answers.score[kept],
        value=answers.value[kept],
        annotators=[answers.annotators[one] for one in those],
        names=[answers.names[one] for one in those],
        state=None,
        unjudged=None if answers.unjudged is None else answers.unjudged[those],
        judged_nothing=(),
        criteria={name: scores[kept] for name, scores in answers.criteria.items()},
        asked={name: [said[one] for one in those] for name, said in answers.asked.items()},
    )


def groups_among(asked: Mapping[str, Sequence[str | None]]) -> list[tuple[str, str, int]]:
    """Of each question its answers, the most frequent first: question, answer, how many annotators gave it."""
    return [
        (question, answer, count)
        for question, said in asked.items()
        for answer, count in Counter(one for one in said if one is not None).most_common()
    ]


async def choices(connection: AsyncConnection, campaign: Any) -> list[tuple[str, str]]:
    """The groups that can be chosen on a page, and what they are called."""
    if not campaign.questions:
        return []
    said = (await load_entry_answers(connection, campaign.id)).values()
    found: list[tuple[str, str]] = []
    for name in [question.name for question in questions_with_choices(campaign.questions)]:
        given = groups_among({name: [one.get(name) for one in said]})
        found += [(f"{name}={answer}", f"{name}: {answer} ({count:,})") for _, answer, count in given]
        total = sum(count for *_, count in given)
        if len(given) > 2:
            found += [(f"{name}!={one}", f"{name}: not {one} ({total - count:,})") for _, one, count in given]
    return found
