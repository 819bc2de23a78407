"""Findings of rules and answers to checks, as pages and programs show them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.design import Design
from app.quality.check_expectations import (
    CriterionDesigns,
    criterion_designs,
    expected_answer_or_none_of_each_criterion,
)
from app.quality.checks import (
    LIST_CHECK_ANSWERS,
    answer_values_of_check_row,
    load_check_outcomes,
    outcomes_of_checks_in_hit_rows,
)
from app.quality.expected_answers import ExpectedAnswer, labels_of_accepted_classes, lowest_and_highest_accepted_value
from app.quality.inputs import probably_wrong_check_numbers
from app.quality.listing_options import MAX_FINDINGS_SHOWN
from app.quality.value_histograms import histogram_bin_count_or_zero, value_counts_of_bins

LIST_FINDINGS = text("""
    SELECT f.id, n.name, n.pseudonym, f.rule, f.action, f.seen, f.said, f.found_at, a.barred
    FROM findings f JOIN named_annotators n ON n.campaign_id = f.campaign_id AND n.id = f.annotator_id
    JOIN annotators a ON a.campaign_id = f.campaign_id AND a.id = f.annotator_id
    WHERE f.campaign_id = :campaign ORDER BY f.id DESC LIMIT :limit
""")

LIST_ANNOTATORS_TO_REVIEW = text("""
    SELECT DISTINCT ON (f.annotator_id) n.name, f.said
    FROM findings f JOIN named_annotators n ON n.campaign_id = f.campaign_id AND n.id = f.annotator_id
    JOIN annotators a ON a.campaign_id = f.campaign_id AND a.id = f.annotator_id
    WHERE f.campaign_id = :campaign AND coalesce(a.barred, '') NOT IN ('excluded', 'erased')
    ORDER BY f.annotator_id, f.rule NOT IN ('gold', 'attention'), f.id DESC
""")

LIST_CHECKS_WITH_REPORTS = text("""
    SELECT k.number, k.external_id, k.kind, k.shown, k.expected, s.external_id AS segment,
           (SELECT count(*) FROM check_reports r WHERE r.campaign_id = :campaign AND r.check_number = k.number)
           AS not_loaded
    FROM check_items k LEFT JOIN segments s ON s.campaign_id = k.campaign_id AND s.number = k.segment
    WHERE k.campaign_id = :campaign ORDER BY k.number
""")


class CriterionHistogram(NamedTuple):
    """Number of answers to a check in each tenth of the scale, or of each class.

    Attributes:
        name: Name of the criterion; empty for one question.
        counts: The numbers of answers.
        classes: The classes; empty for tenths.

    """

    name: str
    counts: Sequence[int]
    classes: Sequence[str]


@dataclass(frozen=True)
class CheckLine:
    """A check as researchers see it.

    Attributes:
        answers: Number of answers.
        failed: Number of failed answers.
        probably_wrong: Whether most annotators failed the check, so that it is probably wrong itself.
        not_loaded: Number of annotators who reported that its file did not load.
        histograms: Histogram of the answers by each criterion that expects one; none where the answer is a place.
        segment: The segment for which the check is an output; None if items are not systems.

    """

    external_id: str
    kind: str
    shown: str
    expected: str
    answers: int
    failed: int
    probably_wrong: bool
    not_loaded: int
    histograms: Sequence[CriterionHistogram] = ()
    segment: str | None = None


async def load_newest_findings(
    connection: AsyncConnection, campaign_id: int, limit: int = MAX_FINDINGS_SHOWN
) -> Sequence[Row[Any]]:
    """Return the newest findings, newest first, each with `barred`, the state of its annotator now."""
    return (await connection.execute(LIST_FINDINGS, {"campaign": campaign_id, "limit": limit})).all()


async def load_annotators_to_review(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return annotators with a finding, neither excluded nor erased, with `name` and a finding, `said`.

    A finding about gold or attention items comes first, because it is the easiest to judge; then the newest one.
    """
    return (await connection.execute(LIST_ANNOTATORS_TO_REVIEW, {"campaign": campaign_id})).all()


async def load_check_lines_with_outcome_counts(connection: AsyncConnection, campaign: Campaign) -> list[CheckLine]:
    """Return all checks of a campaign."""
    outcomes = await load_check_outcomes(connection, campaign)
    histograms = await load_answer_histograms_by_check(connection, campaign)
    answer_counts = Counter(number for outcome in outcomes for number in outcome.check_numbers)
    failure_counts = Counter(number for outcome in outcomes if not outcome.met for number in outcome.check_numbers)
    wrong_checks, designs = probably_wrong_check_numbers(outcomes), criterion_designs(campaign)
    return [
        CheckLine(
            row.external_id,
            row.kind,
            row.shown,
            describe_expected_answers(designs, row.expected),
            answer_counts[row.number],
            failure_counts[row.number],
            row.number in wrong_checks,
            row.not_loaded,
            histograms.get(row.number, ()),
            row.segment,
        )
        for row in await connection.execute(LIST_CHECKS_WITH_REPORTS, {"campaign": campaign.id})
    ]


async def load_answer_histograms_by_check(
    connection: AsyncConnection, campaign: Campaign
) -> dict[int, list[CriterionHistogram]]:
    """Return the histograms of the given answers by number of the check."""
    if not campaign.has_checks or not histogram_bin_count_or_zero(campaign.design):
        return {}
    rows = (await connection.execute(LIST_CHECK_ANSWERS, {"campaign": campaign.id, "those": None})).all()
    rows_by_check = groupby(sorted(rows, key=lambda row: row.check_number), key=lambda row: row.check_number)
    designs = criterion_designs(campaign)
    return {number: answer_histograms_of_check(designs, list(check_rows)) for number, check_rows in rows_by_check}


def answer_histograms_of_check(designs: CriterionDesigns, rows: Sequence[Row[Any]]) -> list[CriterionHistogram]:
    """Return how many answers to one check are in each bin, by each criterion that expects an answer."""
    expected = expected_answer_or_none_of_each_criterion(designs, rows[0].expected)
    values = [answer_values_of_check_row(row) for row in rows]
    positions = range(len(values))
    return [
        CriterionHistogram(
            name,
            value_counts_of_bins(design, [by_criterion[number] for by_criterion in values], positions),
            design.classes,
        )
        for number, (name, design) in enumerate(designs)
        if expected[number]
    ]


class CheckAnswerLine(NamedTuple):
    """An answer to a check: the researcher's id of the check, its kind, the expected answer and the given one as text,
    and whether it was met.
    """

    name: str
    kind: str
    expected: str
    answer_text: str
    met: bool


async def load_check_answer_lines_of_annotator(
    connection: AsyncConnection, campaign: Campaign, annotator_id: int
) -> list[CheckAnswerLine]:
    """Return the checks that an annotator answered, in the order of their answers."""
    if not campaign.has_checks:
        return []
    designs = criterion_designs(campaign)
    rows = (await connection.execute(LIST_CHECK_ANSWERS, {"campaign": campaign.id, "those": [annotator_id]})).all()
    return [
        line
        for _, hit_rows in groupby(rows, key=lambda row: row.hit_id)
        for line in lines_of_check_answers_in_hit_rows(designs, list(hit_rows))
    ]


def lines_of_check_answers_in_hit_rows(designs: CriterionDesigns, rows: Sequence[Row[Any]]) -> list[CheckAnswerLine]:
    """Return the lines for the checks of one HIT. An expected order is met by all of its checks or by none."""
    failed_checks = {
        number
        for outcome in outcomes_of_checks_in_hit_rows(designs, rows)
        if not outcome.met
        for number in outcome.check_numbers
    }
    values_by_row = [answer_values_of_check_row(row) for row in rows]
    return [
        CheckAnswerLine(
            row.external_id,
            row.kind,
            describe_expected_answers(designs, row.expected),
            "cannot be judged"
            if math.isnan(row.value)
            else text_of_given_answers_at_place(designs, values_by_row, place),
            row.check_number not in failed_checks,
        )
        for place, row in enumerate(rows)
    ]


def text_of_given_answers_at_place(designs: CriterionDesigns, values: Sequence[Sequence[float]], place: int) -> str:
    """Return the answers to the check at a place of a HIT, by all criteria."""
    return "; ".join(
        text_after_criterion_name(
            name, design.format_value_at_position([by_criterion[number] for by_criterion in values], place)
        )
        for number, (name, design) in enumerate(designs)
    )


def describe_expected_answers(designs: CriterionDesigns, stored_expectations: Mapping[str, Any]) -> str:
    """Return the expected answers to a check as text, for a cell of a table."""
    answers = zip(designs, expected_answer_or_none_of_each_criterion(designs, stored_expectations), strict=True)
    return "; ".join(
        text_after_criterion_name(name, describe_expected_answer(design, answer))
        for (name, design), answer in answers
        if answer
    )


def expected_answers_by_check_id(campaign: Campaign, checks: Sequence[Row[Any]]) -> dict[str, str]:
    """Return the expected answers to checks as text, by the researcher's ids."""
    designs = criterion_designs(campaign)
    return {check.external_id: describe_expected_answers(designs, check.expected) for check in checks}


def text_after_criterion_name(name: str, text: str) -> str:
    """Return a text after the name of a criterion, which is empty for one question."""
    return f"{name}: {text}" if name else text


def describe_expected_answer(design: Design, expected: ExpectedAnswer) -> str:
    """Return the expected answer as text, for a cell of a table."""
    if expected.place is not None:
        return f"place {expected.place}"
    if expected.labels:
        return " or ".join(labels_of_accepted_classes(design, expected))
    low, high = lowest_and_highest_accepted_value(design, expected)
    return f"{low:g} to {high:g}"
