"""How long the analysis page estimates, part by part, as it is first shown: `python -m benchmarks.analysis_page`.

1,000 judgments: 200 HITs of 5 out of 150 items by 12 annotators, who see the truth with a bias and a noise of their
own. Each part in a process of its own, so that what it imports counts; and once more, as after the next answer.
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

ITEMS, HITS, SIZE, ANNOTATORS = 150, 200, 5, 12


def crowd(seed: int = 1) -> Answers:
    rng = np.random.default_rng(seed)
    truth, bias = rng.uniform(0, 100, ITEMS), rng.normal(0, 8, ANNOTATORS)
    hit = np.repeat(np.arange(HITS), SIZE)
    item = np.concatenate([rng.choice(ITEMS, SIZE, replace=False) for _ in range(HITS)])
    annotator = hit % ANNOTATORS
    score = np.clip(np.round(truth[item] + bias[annotator] + rng.normal(0, 12, len(item))), 0, 100)
    names = [str(number) for number in range(ITEMS)]
    return Answers(
        seq=np.arange(HITS) + 1, hit=hit, item=item, annotator=annotator, score=score, value=score,
        ids=names, shown=names,
        systems=[None] * ITEMS, segments=[None] * ITEMS, annotators=names[:ANNOTATORS], names=names[:ANNOTATORS],
        value_kind="points", law="easl",
        prior=np.ones((2, ITEMS)), state=None, parameters=LawParameters(), seed=seed,
    )  # fmt: skip


def estimate(part: str, answers: Answers) -> None:
    if part == "scores":
        compare_scores_by_correlation(
            answers, SCORE_METHODS["easl"].fit(answers), SCORE_METHODS["bradley_terry"].fit(answers)
        )
    for table in (table for table in TABLE_METHODS.values() if table.section.name == part):
        with suppress(Inestimable):  # that it cannot be estimated is what the page shows
            table.fit(answers, Options())


def timed(part: str, answers: Answers) -> float:
    start = time.perf_counter()
    estimate(part, answers)
    return time.perf_counter() - start


def main() -> None:
    print("| part | first, s | again, s |\n|---|---|---|", flush=True)
    for part in page_parts_by_name():
        subprocess.run([sys.executable, "-m", "benchmarks.analysis_page", part], check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        (name,) = sys.argv[1:]
        first, again = (timed(name, crowd(seed)) for seed in (1, 2))
        print(f"| {name} | {first:.2f} | {again:.2f} |", flush=True)
    else:
        main()
