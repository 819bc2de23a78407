"""Share of people who guess whom the rules about gold and attention items flag."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.inference.ground.arrays import Array
from app.quality.behaviour import GUESS_CHANCE
from app.quality.check_expectations import criterion_designs, iterate_reasons_expectations_are_impossible
from app.quality.guess_chances import chance_that_guess_meets_check
from app.quality.sequential_limits import is_event_share_above_limit
from app.quality.settings import active_rule_choices_by_name
from app.quality.share_of_cases import text_on_share_of_cases
from app.quality.workload import CHECK_KINDS, AnnotatorWorkload, distribution_of_checks_met

MAX_CHECKS_FOLLOWED = 60  # more checks of one person hardly change who is flagged

LIST_EXPECTED_ANSWERS_BY_KIND = text("SELECT kind, expected FROM check_items WHERE campaign_id = :campaign")


async def load_guess_chance_by_kind(connection: AsyncConnection, campaign: Campaign) -> dict[str, float]:
    """Return the average probability that a random answer meets a check, by the kind of the checks."""
    designs, chances = criterion_designs(campaign), defaultdict[str, list[float]](list)
    for row in await connection.execute(LIST_EXPECTED_ANSWERS_BY_KIND, {"campaign": campaign.id}):
        if not any(iterate_reasons_expectations_are_impossible(designs, row.expected)):
            is_order = campaign.design.value_kind == "order"
            chances[row.kind].append(GUESS_CHANCE if is_order else chance_that_guess_meets_check(designs, row.expected))
    return {kind: float(np.mean(of_kind)) for kind, of_kind in chances.items()}


def sentences_on_caught_guessers_or_empty(
    campaign: Campaign, workload: AnnotatorWorkload, guess_chances: Mapping[str, float]
) -> str:
    """Return how many of the people who guess are flagged for the checks that they fail, for each kind of checks whose
    rule is on; empty without checks, or if no task shows them.
    """
    if not workload.checks_percent:
        return ""
    active_rules = active_rule_choices_by_name(campaign)
    return " ".join(
        f"Someone who guesses passes {100 * guess_chances[kind]:.0f} % of {kind} items by chance, and is caught "
        f"{text_on_share_of_cases(share_of_guessers_flagged(campaign, workload, kind, guess_chances[kind]))}."
        for kind in CHECK_KINDS
        if kind in active_rules and kind in guess_chances and workload.max_checks.get(kind)
    )


def share_of_guessers_flagged(campaign: Campaign, workload: AnnotatorWorkload, kind: str, guess_chance: float) -> float:
    """Return the share of people who guess, and do all their HITs, that the rule about a kind of checks flags.

    Without a limit of HITs, a person meets all checks.
    """
    rule = active_rule_choices_by_name(campaign)[kind].rule
    careful_share = float(rule.model_dump()["careful_percent"]) / 100
    if workload.max_hits is None:
        met = np.eye(workload.max_checks[kind] + 1)[-1]
    else:
        met = distribution_of_checks_met(workload, kind)
    most = min(len(met) - 1, MAX_CHECKS_FOLLOWED)
    flagged = probabilities_of_being_flagged(most, 1.0 - guess_chance, careful_share, campaign.false_alarms / 1000)
    return float(met @ flagged[np.minimum(np.arange(len(met)), most)])


def probabilities_of_being_flagged(
    check_count: int, failure_chance: float, careful_share: float, false_alarm_rate: float
) -> Array:
    """Return the probability of being flagged after at most 0, 1, ..., `check_count` checks, each failed with the same
    probability.
    """
    unflagged, flagged = {0: 1.0}, [0.0]
    for shown in range(1, check_count + 1):
        following, newly_flagged = defaultdict[int, float](float), 0.0
        for failed, probability in unflagged.items():
            following[failed] += probability * (1.0 - failure_chance)
            if is_event_share_above_limit(failed + 1, shown, careful_share, false_alarm_rate):
                newly_flagged += probability * failure_chance
            else:
                following[failed + 1] += probability * failure_chance
        unflagged = following
        flagged.append(flagged[-1] + newly_flagged)
    return np.array(flagged)
