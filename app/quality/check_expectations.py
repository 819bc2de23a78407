"""Expected answers of a check by each criterion of a campaign; pure.

A campaign with one question has one expected answer for each check. With several criteria, a check has an expected
answer by at least one of them, and an annotator meets the check if they meet all of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.designs.criteria import AskedCampaign
from app.designs.design import Design
from app.errors import Invalid, join_names, shorten_echo
from app.quality.expected_answers import (
    ExpectedAnswer,
    Feedback,
    answer_and_tolerance_cells,
    expected_answer_of_cells_or_none,
    feedback_on_check_answers,
    iterate_reasons_expectation_is_impossible,
)

EXPECTED_COLUMN, TOLERANCE_COLUMN = "expected", "tolerance"
SET_COLUMN = "check_set"  # names checks that are shown together, if the answer is an order
BY_CRITERION_KEY = "criteria"  # of the stored expected answers by criterion

CriterionDesigns = tuple[tuple[str, Design], ...]  # names and designs of criteria; one without a name for one question


def criterion_designs(campaign: AskedCampaign) -> CriterionDesigns:
    return tuple((criterion.name, criterion.design) for criterion in campaign.criteria)


def expected_and_tolerance_column_names(criterion: str) -> tuple[str, str]:
    """Return the columns of a table with the expected answers by a criterion, and with their tolerances."""
    return f"{EXPECTED_COLUMN} {criterion}".strip(), f"{TOLERANCE_COLUMN} {criterion}".strip()


def cells_of_expected_choice(
    item_ids: Sequence[str], better_by_criterion: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the cells of two checks that are shown together, by their ids, given the better one by each criterion.

    The expected answer stays empty if the better one is neither of them.
    """
    set_name = " | ".join(item_ids)
    places = {better: {item_id: "1" if item_id == better else "2" for item_id in item_ids} for better in item_ids}
    return {
        item_id: {SET_COLUMN: set_name}
        | {
            expected_and_tolerance_column_names(name)[0]: places.get(better, {}).get(item_id, "")
            for name, better in better_by_criterion.items()
        }
        for item_id in item_ids
    }


def names_of_all_expectation_columns(designs: CriterionDesigns) -> list[str]:
    """Return all columns with expected answers and tolerances."""
    return [column for name, _ in designs for column in expected_and_tolerance_column_names(name)]


def parse_expectations_or_refuse(designs: CriterionDesigns, cells: Mapping[str, str]) -> dict[str, Any]:
    """Return the expected answers in the cells of a row, as they are stored.

    Raises:
        Invalid: `expected_missing`, `expected_unreadable`, `expected_impossible`, `expected_misplaced`.

    """
    refuse_expectations_in_other_columns(designs, cells)
    expected = {name: expected_answer_of_criterion_or_none(name, design, cells) for name, design in designs}
    missing = [expected_and_tolerance_column_names(name)[0] for name, answer in expected.items() if answer is None]
    needs_all = designs[0][1].value_kind == "order"
    if len(missing) == len(designs) or (needs_all and missing):
        if len(designs) == 1:
            message = "A check needs its expected answer in the column “expected”."
        else:
            columns = join_names([expected_and_tolerance_column_names(name)[0] for name, _ in designs])
            message = f"A check needs an expected answer in {'each' if needs_all else 'one'} of the columns {columns}."
        raise Invalid(message, code="expected_missing")
    stored = {name: answer.model_dump(exclude_defaults=True) for name, answer in expected.items() if answer}
    return {BY_CRITERION_KEY: stored} if designs[0][0] else stored[""]


def refuse_expectations_in_other_columns(designs: CriterionDesigns, cells: Mapping[str, str]) -> None:
    """Raise `Invalid` (`expected_misplaced`) if a cell has an answer that this campaign would not read."""
    columns = names_of_all_expectation_columns(designs)
    for column, cell in cells.items():
        if cell.strip() and column not in columns and column != SET_COLUMN:
            raise Invalid(
                f"This campaign does not use “{shorten_echo(column)}”. It reads expected answers from "
                f"{join_names(columns)}.",
                code="expected_misplaced",
                columns=columns,
            )


def expected_answer_of_criterion_or_none(name: str, design: Design, cells: Mapping[str, str]) -> ExpectedAnswer | None:
    """Return the expected answer by a criterion. Raises `Invalid`, which names the criterion."""
    try:
        return expected_answer_of_cells_or_none(
            design, *(cells.get(column, "") for column in expected_and_tolerance_column_names(name))
        )
    except Invalid as refusal:
        if not name:
            raise
        raise Invalid(f"{name}: {refusal}", code=refusal.code, **refusal.details) from None


def stored_expected_answers_by_criterion_name(stored_expectations: Mapping[str, Any]) -> dict[str, ExpectedAnswer]:
    """Return stored expected answers by the name of the criterion, which is empty for one question."""
    by_name = stored_expectations.get(BY_CRITERION_KEY, {"": stored_expectations})
    return {name: ExpectedAnswer.model_validate(answer) for name, answer in by_name.items()}


def expected_answer_or_none_of_each_criterion(
    designs: CriterionDesigns, stored_expectations: Mapping[str, Any]
) -> list[ExpectedAnswer | None]:
    """Return the expected answer by each criterion, None where there is none."""
    by_name = stored_expected_answers_by_criterion_name(stored_expectations)
    return [by_name.get(name) for name, _ in designs]


def expectation_cells(stored_expectations: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a table that `parse_expectations_or_refuse` reads as these expected answers."""
    return {
        column: cell
        for name, answer in stored_expected_answers_by_criterion_name(stored_expectations).items()
        for column, cell in zip(
            expected_and_tolerance_column_names(name), answer_and_tolerance_cells(answer), strict=True
        )
    }


def iterate_reasons_expectations_are_impossible(
    designs: CriterionDesigns, stored_expectations: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the reasons why no answer can meet the expected ones, without a full stop."""
    by_name, design_by_name = stored_expected_answers_by_criterion_name(stored_expectations), dict(designs)
    for name, answer in by_name.items():
        if name not in design_by_name:
            asked = f"the criteria {join_names(list(design_by_name))}" if designs[0][0] else "one question"
            about = f"the criterion “{name}”" if name else "one question"
            yield f"It is about {about}, but the campaign has {asked}"
            continue
        for reason in iterate_reasons_expectation_is_impossible(design_by_name[name], answer):
            yield f"{name}: {reason}" if name else reason


def feedback_of_each_criterion(
    designs: CriterionDesigns, stored: Sequence[Mapping[str, Any]], values: Sequence[Sequence[float]]
) -> list[list[Feedback]]:
    """Return the feedback on the checks of a HIT by each criterion.

    Args:
        designs: The criteria.
        stored: The expected answers of each check.
        values: The values of each check, by each criterion.

    """
    expected = [expected_answer_or_none_of_each_criterion(designs, one) for one in stored]
    return [
        feedback_on_check_answers(design, [answers[number] for answers in expected], [row[number] for row in values])
        for number, (_, design) in enumerate(designs)
    ]


def expected_place_or_none_of_each_criterion(stored_expectations: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Return the expected place by each criterion, for designs whose answer is an order."""
    return tuple(
        answer.place for _, answer in sorted(stored_expected_answers_by_criterion_name(stored_expectations).items())
    )
