"""Measure how long the analysis page takes to compute each of its parts: `python -m benchmarks.analysis_page`.

The data are 1,000 simulated judgments: 200 HITs of 5 out of 150 items, by 12 annotators with individual biases and
noise. Each part runs in its own process, so that *first* includes imports. *Again* computes the same part for new
answers.
"""

import subprocess
import sys
import time
from contextlib import suppress

import numpy as np

from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.page_parts import page_parts_by_name
from app.analysis.result_types import Answers, Options
from app.analysis.scores import compare_scores_by_correlation
from app.inference.ground.inestimable import Inestimable
from app.inference.online.law import LawParameters

ITEMS, HITS, ITEMS_PER_HIT, ANNOTATORS = 150, 200, 5, 12


def simulate_answers(seed: int = 1) -> Answers:
    """Return simulated answers of annotators with individual biases."""
    rng = np.random.default_rng(seed)
    true_scores, bias = rng.uniform(0, 100, ITEMS), rng.normal(0, 8, ANNOTATORS)
    hit = np.repeat(np.arange(HITS), ITEMS_PER_HIT)
    item = np.concatenate([rng.choice(ITEMS, ITEMS_PER_HIT, replace=False) for _ in range(HITS)])
    annotator = hit % ANNOTATORS
    score = np.clip(np.round(true_scores[item] + bias[annotator] + rng.normal(0, 12, len(item))), 0, 100)
    names = [str(number) for number in range(ITEMS)]
    return Answers(
        seq=np.arange(HITS) + 1, hit=hit, item=item, annotator=annotator, score=score, value=score,
        ids=names, shown=names,
        systems=[None] * ITEMS, segments=[None] * ITEMS, annotators=names[:ANNOTATORS], names=names[:ANNOTATORS],
        value_kind="points", law="easl",
        prior=np.ones((2, ITEMS)), state=None, parameters=LawParameters(), seed=seed,
    )  # fmt: skip


def compute_part(part: str, answers: Answers) -> None:
    """Compute one part of the analysis page, including tables that cannot be estimated."""
    if part == "scores":
        compare_scores_by_correlation(
            answers, SCORE_METHODS["easl"].fit(answers), SCORE_METHODS["bradley_terry"].fit(answers)
        )
    for table in (table for table in TABLE_METHODS.values() if table.section.name == part):
        with suppress(Inestimable):  # the page shows this reason
            table.fit(answers, Options())


def seconds_to_compute(part: str, answers: Answers) -> float:
    start = time.perf_counter()
    compute_part(part, answers)
    return time.perf_counter() - start


def main() -> None:
    print("| part | first, s | again, s |\n|---|---|---|", flush=True)
    for part in page_parts_by_name():
        subprocess.run([sys.executable, "-m", "benchmarks.analysis_page", part], check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        (name,) = sys.argv[1:]
        first_seconds, second_seconds = (seconds_to_compute(name, simulate_answers(seed)) for seed in (1, 2))
        print(f"| {name} | {first_seconds:.2f} | {second_seconds:.2f} |", flush=True)
    else:
        main()
