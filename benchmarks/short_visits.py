"""Measure which careless annotators the pooled-signs rule finds within six HITs: `python -m benchmarks.short_visits`.

In each study, annotators answer six HITs of five out of 40 items. The rule checks one annotator after every HIT; all
others are careful. Careful annotators come from the populations fitted to published translations, and from a crowd that
hardly agrees (noise .35). They fail 10 % of gold items and take between half and twice the usual time. Each line shows
the share of studies in which the annotator is found, by kind.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from app.designs.registry import DEFAULT_DESIGN, DESIGNS, cached_design_with_default_settings
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.inputs import NO_SECONDS, RuleInputs, build_behaviours_by_annotator
from app.quality.rules.pooled_signs import PooledSigns
from app.simulation.annotators import (
    CARELESS_KINDS,
    POPULATIONS,
    CarelessKind,
    HabitAnnotators,
    Habits,
    Population,
)

ITEMS, HITS, ITEMS_PER_HIT = 40, 6, 5
MEDIAN_SECONDS_PER_HIT = 25.0
CROWDS: Mapping[str, Population] = POPULATIONS | {"noisy": Population(0.15, 0.3, 0.35, 0.3, to_10=0.5)}
FALSE_ALARM_RATE = 0.002


def simulate_study(habits: list[Habits], hits: int, rng: np.random.Generator) -> list[AnnotatorBehaviour]:
    """Return the behaviour of each annotator in a simulated study."""
    crowd = HabitAnnotators(habits, rng.random(ITEMS))
    rows = []
    for person in range(len(habits)):
        items = rng.permutation(ITEMS)[: hits * ITEMS_PER_HIT]
        for hit in range(hits):
            shown = items[hit * ITEMS_PER_HIT : (hit + 1) * ITEMS_PER_HIT].tolist()
            scores = crowd.draw_scores_of_annotator(person, shown, rng)
            rows += [
                (person * hits + hit, person, item, 100 * score) for item, score in zip(shown, scores, strict=True)
            ]
    names = ("seq", "annotator", "item", "value")
    columns = dict(zip(names, np.array(rows).T, strict=True))
    behaviours = build_behaviours_by_annotator(
        cached_design_with_default_settings(DESIGNS[DEFAULT_DESIGN]), RuleInputs(columns, NO_SECONDS, {})
    )
    return [add_pace_and_gold(behaviour, hits, rng) for behaviour in behaviours.values()]


def add_pace_and_gold(behaviour: AnnotatorBehaviour, hits: int, rng: np.random.Generator) -> AnnotatorBehaviour:
    """Return the behaviour with times of a careful annotator, and one gold item in about six HITs."""
    seconds_per_hit = MEDIAN_SECONDS_PER_HIT * np.exp(
        rng.uniform(-np.log(2), np.log(2)) + 0.5 * rng.standard_normal(hits)
    )
    return replace(behaviour, seconds=seconds_per_hit, gold_met=rng.random(rng.binomial(hits, 1 / 6)) > 0.1)


def behaviour_after_hits(behaviour: AnnotatorBehaviour, hits: int) -> AnnotatorBehaviour:
    """Return the behaviour as known after the first HITs; gold items are spread evenly over all HITs."""
    judgment_count = hits * ITEMS_PER_HIT
    names = ("hit", "item", "share", "others_share", "other_judge_counts")
    gold = behaviour.gold_met[: len(behaviour.gold_met) * hits // len(behaviour.seconds)]
    judgment_columns = {name: getattr(behaviour, name)[:judgment_count] for name in names}
    return replace(behaviour, **judgment_columns, seconds=behaviour.seconds[:hits], gold_met=gold)


def is_found_after_any_hit(
    behaviours: list[AnnotatorBehaviour], hits: int, false_alarm_rate: float = FALSE_ALARM_RATE
) -> bool:
    """Return whether the rule finds the first annotator in a check after any HIT."""
    rule = PooledSigns()
    measures = np.array([rule.measure_for_comparison(behaviour) for behaviour in behaviours[1:]])
    return any(
        rule.assess_annotator(behaviour_after_hits(behaviours[0], hits_done), measures, false_alarm_rate).state
        == "flagged"
        for hits_done in range(1, hits + 1)
    )


def share_found(
    population: Population,
    others: int,
    careless: CarelessKind | None,
    *,
    hits: int,
    studies: int,
    rng: np.random.Generator,
) -> float:
    """Return the share of studies in which the checked annotator is found; `careless` is None for a careful one."""
    found = 0
    for _ in range(studies):
        habits = population.draw_habits(1 + others, rng)
        habits[0] = replace(habits[0], careless=careless)
        found += is_found_after_any_hit(simulate_study(habits, hits, rng), hits)
    return found / studies


def main() -> None:
    """Print the shares of annotators found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    studies = parser.parse_args().studies
    rng = np.random.default_rng(1)
    print("crowd, others: careful", *CARELESS_KINDS, sep=", ")
    for name, population in CROWDS.items():
        for others in (4, 10, 30):
            shares = [
                share_found(population, others, kind, hits=HITS, studies=studies if kind is None else 100, rng=rng)
                for kind in (None, *CARELESS_KINDS)
            ]
            print(f"{name}, {others}:", *(f"{share:.4f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
