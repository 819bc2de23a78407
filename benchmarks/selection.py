"""How long choosing one HIT takes, and how that grows with the number of items: `python -m benchmarks.selection`.

A campaign in the middle of its life: Beta posteriors after 0 to 12 judgments per item. Every HIT is drawn for an
annotator who has seen 50 items (of few a quarter), while 8 other HITs are open, and then answered: so each draw comes
after an update of 5 items. Algorithm 1 is beside the rules for a goal, and, in the same run, beside the same draw done
literally: match quality with all items and `rng.choice`.
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

N, WANTED, GAMMA = 5, 20, 0.1
SYSTEMS_COMPARED = 40  # all of which one campaign compares
T = TypeVar("T")
Floats = npt.NDArray[np.float64]


def posteriors(items: int, rng: np.random.Generator) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """alpha, beta and judgments of items whose true scores are Beta(2, 2), scored on a slider of 101 steps."""
    judgments = rng.poisson(5, items).clip(0, 12)
    total = rng.binomial(judgments * 100, rng.beta(2, 2, items)) / 100
    return 1.0 + total, 1.0 + judgments - total, judgments


def score(alpha: Floats, beta: Floats) -> Floats:
    new = alpha + beta == 2.0
    return np.where(new, 0.5, (alpha - 1.0) / np.where(new, 1.0, alpha + beta - 2.0))


def variance(alpha: Floats, beta: Floats) -> Floats:
    return alpha * beta / ((alpha + beta) ** 2 * (alpha + beta + 1.0))


def literal_draw(scores: Floats, variances: Floats, rng: np.random.Generator) -> list[int]:
    """One HIT as Algorithm 1 has it: the highest variance, then all match qualities."""
    leader = int(rng.choice(np.flatnonzero(variances == variances.max())))
    quality = match_quality(scores[leader], variances[leader], scores, variances, GAMMA)
    quality[leader] = 0.0
    companions = rng.choice(len(scores), N - 1, replace=False, p=quality / quality.sum())
    return [leader, *companions.tolist()]


def timed(action: Callable[..., T], *arguments: Any, **named: Any) -> tuple[float, T]:
    """Microseconds, and what came out."""
    start = time.perf_counter()
    answer = action(*arguments, **named)
    return (time.perf_counter() - start) * 1e6, answer


def measure(items: int, rule: AlgorithmOne, draws: int = 2000) -> None:
    seen = min(50, items // 4)
    rng = np.random.default_rng(items)
    alpha, beta, judgments = posteriors(items, rng)
    scores, variances = score(alpha, beta), variance(alpha, beta)
    asking = SelectionSettings(
        judgments_per_item=WANTED, items_per_hit=N, gamma=GAMMA, best_count=max(15, items // 100), threshold=0.5
    )
    build, index = timed(rule.make_selection_index, ItemValues(scores, variances, judgments), asking)
    open_hits: deque[Draw] = deque(maxlen=8)
    draw_times, update_times = [], []
    for _ in range(draws):
        around = {
            "seen": set(rng.integers(items, size=seen).tolist()),
            "full": index.full_items(dict.fromkeys((item for hit in open_hits for item in hit.items), 1)),
            "leaders_to_avoid": {hit.leader for hit in open_hits},
        }
        took, hit = timed(index.draw_hit_or_none, N, **around, seen_as_last_resort=True, rng=rng)
        assert hit is not None
        draw_times.append(took)
        open_hits.append(hit)
        shown, answer = np.array(hit.items), rng.random(N).round(2)
        alpha[shown] += answer
        beta[shown] += 1.0 - answer
        judgments[shown] += 1
        done = shown[judgments[shown] == WANTED]  # others take their place, or nothing were left to ask
        alpha[done], beta[done], judgments[done] = 1.0, 1.0, 0
        news = shown, score(alpha[shown], beta[shown]), variance(alpha[shown], beta[shown]), judgments[shown]
        update_times.append(timed(index.update, *(column.tolist() for column in news))[0])
    literal = [timed(literal_draw, index.score, index.variance, rng)[0] for _ in range(20)]
    print(
        f"{items:>9,} {rule.name:<10}{build / 1e6:>8.2f} {np.median(draw_times):>10.0f}"
        f" {np.percentile(draw_times, 95):>8.0f} {np.median(update_times):>13.0f} {np.median(literal):>15.0f}"
    )


def main() -> None:
    print("Choosing one HIT of 5, microseconds (build: seconds)")
    print(
        f"{'items':>9} {'rule':<10}{'build':>8} {'draw p50':>10} {'p95':>8} {'update of 5':>13} {'full pass p50':>15}"
    )
    measure(SYSTEMS_COMPARED, AlgorithmOne())
    measure(SYSTEMS_COMPARED, SYSTEMS_RULE)
    for items in (150, 10_000, 1_000_000):
        for rule in (AlgorithmOne(), EVEN_RULE, BEST_ITEMS_RULE, THRESHOLD_RULE):
            measure(items, rule)


if __name__ == "__main__":
    main()
