"""Assessments of a campaign's annotators by its rules: the same for findings, pages and the API."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.quality import inputs
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.preference_estimates import estimate_random_answer_probability_by_annotator
from app.quality.rule import AssessmentState, RuleAssessment
from app.quality.settings import RuleChoice, active_rule_choices_by_name

FIRST_STATES: tuple[AssessmentState, ...] = ("flagged", "unknown")  # of several criteria, the first of these decides

AssessmentsOfAnnotators = Mapping[int, Mapping[str, RuleAssessment]]  # by annotator id and name of the rule


class AnnotatorAssessment(NamedTuple):
    """Assessment of an annotator by a rule."""

    annotator_id: int
    rule_name: str
    assessment: RuleAssessment


async def load_assessments_of_annotators(
    connection: AsyncConnection, campaign: Campaign, first_rule_inputs: inputs.RuleInputs
) -> AssessmentsOfAnnotators:
    """Assess all annotators with judgments that count by all active rules, given the inputs for the first criterion."""
    rule_choices = active_rule_choices_by_name(campaign)
    parts: dict[int, dict[str, list[RuleAssessment]]] = {}
    for criterion in campaign.criteria if rule_choices else ():
        rule_inputs = await inputs.load_rule_inputs(connection, criterion) if criterion.number else first_rule_inputs
        for found in await asyncio.to_thread(assess_annotators_by_rules, criterion, rule_inputs, rule_choices):
            parts.setdefault(found.annotator_id, {}).setdefault(found.rule_name, []).append(found.assessment)
    return {
        annotator_id: {name: merge_assessments_of_criteria(several) for name, several in by_rule.items()}
        for annotator_id, by_rule in parts.items()
    }


def merge_assessments_of_criteria(assessments: list[RuleAssessment]) -> RuleAssessment:
    """Return one assessment for those by each criterion: nothing is found if no criterion finds or doubts anything."""
    if len(assessments) == 1:
        return assessments[0]
    states = {assessment.state for assessment in assessments}
    state = next((state for state in FIRST_STATES if state in states), assessments[0].state)
    decisive = [assessment for assessment in assessments if assessment.state == state]
    return decisive[0]._replace(sentence=" ".join(assessment.sentence for assessment in decisive))


def assess_annotators_by_rules(
    criterion: Criterion[Campaign],
    rule_inputs: inputs.RuleInputs,
    rule_choices: Mapping[str, RuleChoice],
    known: Collection[tuple[int, str]] = (),
    annotator_ids: Collection[int] | None = None,
) -> list[AnnotatorAssessment]:
    """Assess annotators by one criterion of a campaign.

    The criteria share a rule's false alarms; a rule that does not read values is applied to the first criterion only.

    Args:
        criterion: The criterion.
        rule_inputs: What was read of the record for it.
        rule_choices: The rules by name.
        known: Annotator ids and names of rules that need no assessment.
        annotator_ids: The annotators to assess; all if None.

    """
    if criterion.design.value_kind == "order" and "at_random" in rule_choices:
        probabilities = estimate_random_answer_probability_by_annotator(criterion.design, rule_inputs.judgments)
        rule_inputs = replace(rule_inputs, random_answer_probabilities=probabilities)
    behaviours = inputs.build_behaviours_by_annotator(criterion.design, rule_inputs)
    criterion_count = len(criterion.campaign.criteria)
    assessments: list[AnnotatorAssessment] = []
    for name, rule_choice in rule_choices.items():
        reads_values = rule_choice.rule.reads_values
        if not reads_values and criterion.number:
            continue
        false_alarm_rate = criterion.campaign.false_alarms / 1000 / (criterion_count if reads_values else 1)
        found = iterate_assessments_by_rule(
            name, rule_choice, behaviours, false_alarm_rate, known=known, annotator_ids=annotator_ids
        )
        assessments += (
            [assessment_with_criterion_name(criterion, one) for one in found]
            if criterion.name and reads_values
            else found
        )
    return assessments


def assessment_with_criterion_name(
    criterion: Criterion[Campaign], assessed: AnnotatorAssessment
) -> AnnotatorAssessment:
    """Return the assessment with the criterion's name before its sentence."""
    sentence = f"{criterion.name}: {assessed.assessment.sentence}"
    return assessed._replace(assessment=assessed.assessment._replace(sentence=sentence))


def iterate_assessments_by_rule(
    rule_name: str,
    rule_choice: RuleChoice,
    behaviours: Mapping[int, AnnotatorBehaviour],
    false_alarm_rate: float,
    *,
    known: Collection[tuple[int, str]] = (),
    annotator_ids: Collection[int] | None = None,
) -> Iterator[AnnotatorAssessment]:
    """Yield the assessments by one rule; `known` and `annotator_ids` are as in `assess_annotators_by_rules`."""
    rule = rule_choice.rule
    measures = np.array([rule.measure_for_comparison(behaviour) for behaviour in behaviours.values()])
    for index, (number, behaviour) in enumerate(behaviours.items()):
        if (number, rule_name) not in known and (annotator_ids is None or number in annotator_ids):
            other_measures = np.delete(measures, index, axis=0)
            assessment = rule.assess_annotator(behaviour, other_measures, false_alarm_rate)
            yield AnnotatorAssessment(number, rule_name, assessment)
