"""Compare reliability figures of comparisons with the true reliability, by selection rule.

Run `python -m benchmarks.reliability_of_pairs [RUNS]`; the default is 10 runs.

Simulated annotators prefer one of two items with Bradley-Terry probabilities. The true reliability is the squared
correlation of the scores with the truth; it is 0 when all items are equally good.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.preferences import bradley_terry
from app.inference.preferences.scale_reliability import correlate_scores_of_annotator_halves_or_raise, scale_separation
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.campaign import SimulatedCampaign

ITEMS, ANNOTATORS, SPLITS = 40, 20, 20
JUDGMENTS_PER_ITEM = (5, 10, 20)
TRUE_SPREADS = (0.0, 1.0)  # standard deviation of the items in log odds
RULE_NAMES = ("random pairs", "balanced", "scores", "easl")


@dataclass(frozen=True)
class SimulatedPairs:
    """Comparisons of one run as columns, (judgments,) each."""

    first: Integers
    second: Integers
    outcomes: Integers
    annotators: Integers


def simulate_comparisons(
    rule_name: str, true_scores: Array, judgments_per_item: int, rng: np.random.Generator
) -> SimulatedPairs:
    """Simulate a campaign under a rule, or with random pairs."""
    count = len(true_scores) * judgments_per_item // 2
    choose_pair, record_answer = pair_chooser_and_answer_recorder(rule_name, true_scores, judgments_per_item, rng)
    rows = []
    for _ in range(count):
        pair, annotator = choose_pair(), int(rng.integers(ANNOTATORS))
        first_wins = rng.random() < 1.0 / (1.0 + np.exp(true_scores[pair[1]] - true_scores[pair[0]]))
        rows.append((*pair, 1 if first_wins else -1, annotator))
        record_answer(AnsweredHit(annotator, pair, [1.0, 0.0] if first_wins else [0.0, 1.0]))
    return SimulatedPairs(*np.array(rows, np.intp).T)


def pair_chooser_and_answer_recorder(
    rule_name: str, true_scores: Array, judgments_per_item: int, rng: np.random.Generator
) -> tuple[Callable[[], list[int]], Callable[[AnsweredHit], None]]:
    """Return a function that chooses the next pair, and a function that records an answer."""
    if rule_name not in SELECTION_RULES:

        def choose_at_random() -> list[int]:
            pair: list[int] = rng.permutation(len(true_scores))[:2].tolist()
            return pair

        return choose_at_random, lambda _hit: None
    campaign = SimulatedCampaign(
        SELECTION_RULES[rule_name],
        ONLINE_LAWS["trueskill"],
        SelectionSettings(judgments_per_item=2 * judgments_per_item, items_per_hit=2, gamma=0.1),
        LawParameters(),
        len(true_scores),
        rng,
    )

    def choose_by_rule() -> list[int]:
        campaign.seen.clear()
        draw = campaign.draw_next_hit_or_none(0)
        assert draw is not None, "every item wants more judgments"
        return draw.items

    return choose_by_rule, campaign.update_campaign_by_answer


def measure_run(rule_name: str, spread: float, judgments_per_item: int, seed: int) -> tuple[float, float, float]:
    """Return the scale separation reliability, the split-half reliability and the true reliability of a simulated
    campaign.
    """
    rng = np.random.default_rng(seed)
    true_scores = spread * rng.standard_normal(ITEMS)
    pairs = simulate_comparisons(rule_name, true_scores, judgments_per_item, rng)
    fit = bradley_terry.fit(pairs.first, pairs.second, pairs.outcomes, n_items=ITEMS)
    split_halves = correlate_scores_of_annotator_halves_or_raise(
        pairs.first, pairs.second, pairs.outcomes, pairs.annotators, n_items=ITEMS, splits=SPLITS, rng=rng
    )
    judged = np.isfinite(fit.score)
    true_reliability = float(np.corrcoef(true_scores[judged], fit.score[judged])[0, 1] ** 2) if spread else 0.0
    return scale_separation(fit.score, fit.standard_error).reliability, split_halves.full_length, true_reliability


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| true spread | judgments per item | pairs by | scale separation | split halves | truth |")
    print("|---|---|---|---|---|---|")
    for spread in TRUE_SPREADS:
        for judgments in JUDGMENTS_PER_ITEM:
            for rule_name in RULE_NAMES:
                figures = np.mean([measure_run(rule_name, spread, judgments, seed) for seed in range(runs)], axis=0)
                print(f"| {spread:g} | {judgments} | {rule_name} |", *(f"{figure:.2f} |" for figure in figures))


if __name__ == "__main__":
    main()
