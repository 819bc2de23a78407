"""Compare the speed of Krippendorff's alpha with the `krippendorff` package: `python -m benchmarks.agreement`.

Scores are on a slider with 101 steps; each item has 5 judgments, by 200 annotators in all. Each implementation gets its
own input format: Easel a list of judgments, the package a table with one row per annotator. The package builds a matrix
of values by values for every item, so it runs in a separate process limited to 4 GB.
"""

import multiprocessing
import resource
import time
from multiprocessing.connection import Connection

import krippendorff as package
import numpy as np
import numpy.typing as npt

from app.inference.agreement import krippendorff

JUDGMENTS_PER_ITEM, ANNOTATORS, STEPS = 5, 200, 101
PACKAGE_MEMORY_BYTES = 4 * 2**30
PACKAGE_TIMEOUT_SECONDS = 120
Judgments = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.float64]]


def simulate_judgments(item_count: int, rng: np.random.Generator) -> Judgments:
    """Return items, annotators and scores of simulated judgments."""
    items = np.repeat(np.arange(item_count), JUDGMENTS_PER_ITEM)
    # Five different annotators: a random one and those at fixed distances from it.
    annotators = (rng.integers(ANNOTATORS, size=(item_count, 1)) + 37 * np.arange(JUDGMENTS_PER_ITEM)) % ANNOTATORS
    truth = rng.random(item_count)[items]
    scores = np.clip(truth + rng.normal(0, 0.2, len(items)), 0, 1)
    return items, annotators.ravel(), np.round(scores * (STEPS - 1))


def seconds_and_alpha_of_easel(judgments: Judgments, draws: int) -> tuple[float, float]:
    """Return the seconds that Easel takes and its alpha, with an interval from `draws` bootstrap draws."""
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    agreement = krippendorff.fit(*judgments, metric="interval", draws=draws, rng=rng)
    return time.perf_counter() - start, agreement.value


def seconds_and_alpha_of_package(judgments: Judgments) -> tuple[float, float] | str:
    """Return the seconds and alpha of the package, without an interval, or the reason why there is no result."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=send_seconds_and_alpha_of_package, args=(judgments, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(PACKAGE_TIMEOUT_SECONDS) else f"not done in {PACKAGE_TIMEOUT_SECONDS} s"
    except EOFError:
        return "killed"
    finally:
        process.terminate()
        process.join()


def send_seconds_and_alpha_of_package(judgments: Judgments, sender: Connection) -> None:
    """Run the package in this process with limited memory, and send its seconds and alpha, or an error message."""
    resource.setrlimit(resource.RLIMIT_AS, (PACKAGE_MEMORY_BYTES, PACKAGE_MEMORY_BYTES))
    items, annotators, scores = judgments
    table = np.full((ANNOTATORS, items.max() + 1), np.nan)
    table[annotators, items] = scores
    start = time.perf_counter()
    try:
        alpha = float(package.alpha(table, level_of_measurement="interval"))
        sender.send((time.perf_counter() - start, alpha))
    except MemoryError:
        sender.send(f"out of memory at {PACKAGE_MEMORY_BYTES // 2**30} GB")


def main() -> None:
    print(f"Krippendorff's alpha (interval), {JUDGMENTS_PER_ITEM} judgments per item, {STEPS} values")
    print()
    print("| items | ours, s | ours with 1000 draws, s | `krippendorff`, s | alpha, ours | alpha, theirs |")
    print("|---|---|---|---|---|---|")
    for item_count in (1_000, 10_000, 100_000):
        judgments = simulate_judgments(item_count, np.random.default_rng(item_count))
        seconds, alpha = seconds_and_alpha_of_easel(judgments, 0)
        seconds_with_interval, _ = seconds_and_alpha_of_easel(judgments, 1000)
        package_result = seconds_and_alpha_of_package(judgments)
        package_seconds, package_alpha = (
            (package_result, "")
            if isinstance(package_result, str)
            else (f"{package_result[0]:.2f}", f"{package_result[1]:.12f}")
        )
        print(
            f"| {item_count:,} | {seconds:.3f} | {seconds_with_interval:.2f} | {package_seconds} | {alpha:.12f} "
            f"| {package_alpha} |"
        )


if __name__ == "__main__":
    main()
