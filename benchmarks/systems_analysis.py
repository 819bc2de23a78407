"""Measure processor time and memory of the ranking of systems: `python -m benchmarks.systems_analysis`.

Answers are simulated: each HIT shows a random subset of the systems, and its values share an effect of the HIT. Each
size runs in its own process, because peak memory belongs to a process.
"""

import subprocess
import sys

import numpy as np

from app.inference.systems import system_clusters
from benchmarks.processes import peak_mb_of_this_process, processor_seconds_of_this_process

JUDGMENTS_SYSTEMS_AND_HIT_SIZES = (
    (10_000, 30, 5),
    (100_000, 30, 5),
    (100_000, 150, 5),
    (100_000, 1_000, 5),
    (100_000, 1_000, 2),
    (100_000, 1_000, 1),
)


def fit_and_print(judgments: int, systems: int, hit_size: int) -> None:
    """Rank simulated systems and print a table row."""
    rng = np.random.default_rng(1)
    hits = judgments // hit_size
    system = np.concatenate([rng.choice(systems, hit_size, replace=False) for _ in range(hits)])
    hit = np.repeat(np.arange(hits), hit_size)
    noise = rng.normal(0, 10, hits)[hit] + rng.normal(0, 15, len(hit))
    values = np.clip(rng.uniform(30, 70, systems)[system] + noise, 0, 100)
    del noise
    seconds_before = processor_seconds_of_this_process()
    ranking = system_clusters.fit(hit, system, values, n_systems=systems, rng=np.random.default_rng(1))
    seconds, megabytes = processor_seconds_of_this_process() - seconds_before, peak_mb_of_this_process()
    print(
        f"| {judgments:,} | {systems:,} | {hit_size} | {seconds:.1f} | {megabytes:.0f} "
        f"| {ranking.low.sum():.9f} | {ranking.cluster.max()} |",
        flush=True,
    )


def main() -> None:
    print("| judgments | systems | systems of a HIT | CPU s | peak MB | sum of lower ends | clusters |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for sizes in JUDGMENTS_SYSTEMS_AND_HIT_SIZES:
        subprocess.run([sys.executable, "-m", "benchmarks.systems_analysis", *map(str, sizes)], check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        fit_and_print(*map(int, sys.argv[1:]))
    else:
        main()
