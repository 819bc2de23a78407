"""Measure how long it takes to choose a HIT, by number of items: `python -m benchmarks.selection`.

A campaign is half finished: Beta posteriors after 0 to 12 judgments per item. Each HIT is drawn for an annotator who
has seen 50 items (a quarter of the items in small campaigns), while 8 other HITs are open. Then it is answered, so each
draw follows an update of 5 items. The table has Algorithm 1, the rules for a goal, and, for comparison, Algorithm 1 in
its literal form: match quality with all items and `rng.choice`.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from app.selection.even_rule import EVEN_RULE
from app.selection.goal_rules import BEST_ITEMS_RULE, THRESHOLD_RULE
from app.selection.index import AlgorithmOne
from app.selection.match_quality import match_quality
from app.selection.rule import Draw, ItemValues, SelectionSettings
from app.selection.systems_rule import SYSTEMS_RULE

ITEMS_PER_HIT, JUDGMENTS_PER_ITEM, GAMMA = 5, 20, 0.1
SYSTEMS_COMPARED = 40  # in one campaign
T = TypeVar("T")
Floats = npt.NDArray[np.float64]


def simulate_beta_posteriors(items: int, rng: np.random.Generator) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Return alpha, beta and number of judgments of each item; true scores are Beta(2, 2), on a slider of 101 steps."""
    judgments = rng.poisson(5, items).clip(0, 12)
    total = rng.binomial(judgments * 100, rng.beta(2, 2, items)) / 100
    return 1.0 + total, 1.0 + judgments - total, judgments


def beta_score(alpha: Floats, beta: Floats) -> Floats:
    is_unjudged = alpha + beta == 2.0
    return np.where(is_unjudged, 0.5, (alpha - 1.0) / np.where(is_unjudged, 1.0, alpha + beta - 2.0))


def beta_variance(alpha: Floats, beta: Floats) -> Floats:
    return alpha * beta / ((alpha + beta) ** 2 * (alpha + beta + 1.0))


def draw_hit_by_literal_algorithm_one(scores: Floats, variances: Floats, rng: np.random.Generator) -> list[int]:
    """Draw one HIT as Algorithm 1 is published: the highest variance leads, and all match qualities are computed."""
    leader = int(rng.choice(np.flatnonzero(variances == variances.max())))
    quality = match_quality(scores[leader], variances[leader], scores, variances, GAMMA)
    quality[leader] = 0.0
    companions = rng.choice(len(scores), ITEMS_PER_HIT - 1, replace=False, p=quality / quality.sum())
    return [leader, *companions.tolist()]


def microseconds_and_result(action: Callable[..., T], *arguments: Any, **keywords: Any) -> tuple[float, T]:
    """Run an action and return the microseconds it takes and its result."""
    start = time.perf_counter()
    result = action(*arguments, **keywords)
    return (time.perf_counter() - start) * 1e6, result


def measure_and_print_draw_times(items: int, rule: AlgorithmOne, draws: int = 2000) -> None:
    """Draw and answer HITs by a rule, and print a table row."""
    seen_count = min(50, items // 4)
    rng = np.random.default_rng(items)
    alpha, beta, judgments = simulate_beta_posteriors(items, rng)
    scores, variances = beta_score(alpha, beta), beta_variance(alpha, beta)
    settings = SelectionSettings(
        judgments_per_item=JUDGMENTS_PER_ITEM,
        items_per_hit=ITEMS_PER_HIT,
        gamma=GAMMA,
        best_count=max(15, items // 100),
        threshold=0.5,
    )
    build_time, index = microseconds_and_result(
        rule.make_selection_index, ItemValues(scores, variances, judgments), settings
    )
    open_hits: deque[Draw] = deque(maxlen=8)
    draw_times, update_times = [], []
    for _ in range(draws):
        draw_options = {
            "seen": set(rng.integers(items, size=seen_count).tolist()),
            "full": index.full_items(dict.fromkeys((item for hit in open_hits for item in hit.items), 1)),
            "leaders_to_avoid": {hit.leader for hit in open_hits},
        }
        draw_time, hit = microseconds_and_result(
            index.draw_hit_or_none, ITEMS_PER_HIT, **draw_options, seen_as_last_resort=True, rng=rng
        )
        assert hit is not None
        draw_times.append(draw_time)
        open_hits.append(hit)
        shown_items, scores_of_answer = np.array(hit.items), rng.random(ITEMS_PER_HIT).round(2)
        alpha[shown_items] += scores_of_answer
        beta[shown_items] += 1.0 - scores_of_answer
        judgments[shown_items] += 1
        finished_items = shown_items[
            judgments[shown_items] == JUDGMENTS_PER_ITEM
        ]  # new items replace them, so that items remain to choose from
        alpha[finished_items], beta[finished_items], judgments[finished_items] = 1.0, 1.0, 0
        update_columns = (
            shown_items,
            beta_score(alpha[shown_items], beta[shown_items]),
            beta_variance(alpha[shown_items], beta[shown_items]),
            judgments[shown_items],
        )
        update_times.append(microseconds_and_result(index.update, *(column.tolist() for column in update_columns))[0])
    literal_times = [
        microseconds_and_result(draw_hit_by_literal_algorithm_one, index.score, index.variance, rng)[0]
        for _ in range(20)
    ]
    print(
        f"{items:>9,} {rule.name:<10}{build_time / 1e6:>8.2f} {np.median(draw_times):>10.0f}"
        f" {np.percentile(draw_times, 95):>8.0f} {np.median(update_times):>13.0f} {np.median(literal_times):>15.0f}"
    )


def main() -> None:
    print("Choosing one HIT of 5, microseconds (build: seconds)")
    print(
        f"{'items':>9} {'rule':<10}{'build':>8} {'draw p50':>10} {'p95':>8} {'update of 5':>13} {'full pass p50':>15}"
    )
    measure_and_print_draw_times(SYSTEMS_COMPARED, AlgorithmOne())
    measure_and_print_draw_times(SYSTEMS_COMPARED, SYSTEMS_RULE)
    for items in (150, 10_000, 1_000_000):
        for rule in (AlgorithmOne(), EVEN_RULE, BEST_ITEMS_RULE, THRESHOLD_RULE):
            measure_and_print_draw_times(items, rule)


if __name__ == "__main__":
    main()
