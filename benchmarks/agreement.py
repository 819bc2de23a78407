"""How long Krippendorff's alpha takes, beside the `krippendorff` package: `python -m benchmarks.agreement`.

Scores on a slider of 101 steps, 5 judgments per item by 200 annotators. Both take the table they want: ours the
judgments, the package one row per annotator. The package builds a table of values by values for every item, so it is
run in a process of its own that may take 4 GB.
"""

import multiprocessing
import resource
import time
from multiprocessing.connection import Connection

import krippendorff as package
import numpy as np
import numpy.typing as npt

from app.inference.agreement import krippendorff

EACH, ANNOTATORS, STEPS = 5, 200, 101
LIMIT_BYTES = 4 * 2**30
PATIENCE_SECONDS = 120
Judgments = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.float64]]


def judgments_of(units: int, rng: np.random.Generator) -> Judgments:
    items = np.repeat(np.arange(units), EACH)
    # Five different annotators: a random one and those at fixed distances from it.
    annotators = (rng.integers(ANNOTATORS, size=(units, 1)) + 37 * np.arange(EACH)) % ANNOTATORS
    truth = rng.random(units)[items]
    scores = np.clip(truth + rng.normal(0, 0.2, len(items)), 0, 1)
    return items, annotators.ravel(), np.round(scores * (STEPS - 1))


def ours(judgments: Judgments, draws: int) -> tuple[float, float]:
    """Seconds and alpha, with an interval from `draws` draws."""
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    found = krippendorff.fit(*judgments, metric="interval", draws=draws, rng=rng)
    return time.perf_counter() - start, found.value


def theirs(judgments: Judgments) -> tuple[float, float] | str:
    """The same of the package, without an interval; or why it has none."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_theirs, args=(judgments, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(PATIENCE_SECONDS) else f"not done in {PATIENCE_SECONDS} s"
    except EOFError:
        return "killed"
    finally:
        process.terminate()
        process.join()


def _theirs(judgments: Judgments, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    items, annotators, scores = judgments
    table = np.full((ANNOTATORS, items.max() + 1), np.nan)
    table[annotators, items] = scores
    start = time.perf_counter()
    try:
        alpha = float(package.alpha(table, level_of_measurement="interval"))
        sender.send((time.perf_counter() - start, alpha))
    except MemoryError:
        sender.send(f"out of memory at {LIMIT_BYTES // 2**30} GB")


def main() -> None:
    print(f"Krippendorff's alpha (interval), {EACH} judgments per item, {STEPS} values")
    print()
    print("| items | ours, s | ours with 1000 draws, s | `krippendorff`, s | alpha, ours | alpha, theirs |")
    print("|---|---|---|---|---|---|")
    for units in (1_000, 10_000, 100_000):
        judgments = judgments_of(units, np.random.default_rng(units))
        took, alpha = ours(judgments, 0)
        with_interval, _ = ours(judgments, 1000)
        beside = theirs(judgments)
        their_seconds, their_alpha = (
            (beside, "") if isinstance(beside, str) else (f"{beside[0]:.2f}", f"{beside[1]:.12f}")
        )
        print(f"| {units:,} | {took:.3f} | {with_interval:.2f} | {their_seconds} | {alpha:.12f} | {their_alpha} |")


if __name__ == "__main__":
    main()
