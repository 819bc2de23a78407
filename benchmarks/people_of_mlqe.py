"""People behind the lists of MLQE: `python -m benchmarks.people_of_mlqe FOLDER`, 10 seconds.

FOLDER holds test20.eten.df.short.tsv and test20.roen.df.short.tsv of the repository facebookresearch/mlqe (commit
49510b1). The program adds the column `person` to examples/data/mlqe/judgments.csv.gz and prints who was found.

The files list six scores of each sentence without names, and a place in the list need not be one person. But the files
also give each score as z, which is (score - mean) / standard deviation of its annotator. So the judgments of one person
lie on a straight line, exactly, and each line of three or more different scores is a person.
"""

import ast
import csv
import gzip
import sys
from pathlib import Path

import numpy as np

from app.inference.ground.arrays import Array, Integers, Mask
from benchmarks.annotator_aware import DATA, judgments

FILES = {"et-en": "test20.eten.df.short.tsv", "ro-en": "test20.roen.df.short.tsv"}
UNKNOWN = -1
MIN_POINTS = 3  # different scores on a line
MIN_JUDGMENTS = 30  # of a person whose bias is counted
LINE_WIDTH, RAW_LINE_WIDTH = 1e-6, 1e-5


def recover_people(scores: Array, z_scores: Array) -> Integers:
    """Return the person of each judgment, (n,), numbered from 0; -1 where no line of `MIN_POINTS` scores holds it."""
    points, point_of_judgment = np.unique(np.column_stack([scores, z_scores.round(9)]), axis=0, return_inverse=True)
    person, left = np.full(len(points), UNKNOWN), np.arange(len(points))
    for number in range(len(points)):
        is_on_line = longest_line(*points[left].T)
        if is_on_line.sum() < MIN_POINTS:
            break
        person[left[is_on_line]] = number
        left = left[~is_on_line]
    people: Integers = person[point_of_judgment.ravel()]
    return people


def longest_line(scores: Array, z_scores: Array) -> Mask:
    """Return which points, (n,), are on the rising line with the most points."""
    first, second = np.triu_indices(len(scores), 1)
    run, rise = scores[second] - scores[first], z_scores[second] - z_scores[first]
    is_rising = run * rise > 0.0
    slope = rise[is_rising] / run[is_rising]
    if not len(slope):
        return np.zeros(len(scores), np.bool_)
    height = z_scores[first[is_rising]] - slope * scores[first[is_rising]]
    _, line, pair_count = np.unique(
        np.column_stack([slope.round(6), height.round(3)]), axis=0, return_inverse=True, return_counts=True
    )
    is_best = line.ravel() == pair_count.argmax()
    middle = np.median(height[is_best]) + np.median(slope[is_best]) * scores
    near = np.abs(z_scores - middle) < RAW_LINE_WIDTH
    if near.sum() < MIN_POINTS:
        return np.asarray(near)
    exact = np.polyval(np.polyfit(scores[near], z_scores[near], 1), scores)
    on_line: Mask = np.abs(z_scores - exact) < LINE_WIDTH
    return on_line


def bias_spread(scores: Array, people: Integers) -> float:
    """Standard deviation of people's biases, on a scale of 1, from differences from the means of sentences.

    Args:
        scores: (sentences, 6), 0 to 100.
        people: The same.

    """
    return spread_of_people((scores - scores.mean(axis=1, keepdims=True)) / 100.0, people)


def spread_of_people(apart: Array, people: Integers) -> float:
    """Return the standard deviation of people's mean differences from their items, of people with many judgments."""
    numbers, counts = np.unique(people, return_counts=True)
    many = numbers[(counts >= MIN_JUDGMENTS) & (numbers != UNKNOWN)]
    return float(np.std([apart[people == person].mean() for person in many], ddof=1))


def read_lists(path: Path) -> tuple[Array, Array]:
    """Scores and z-scores, (sentences, 6)."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    scores, z_scores = (np.array([ast.literal_eval(row[name]) for row in rows]) for name in ("scores", "z_scores"))
    return scores.astype(np.float64), z_scores


def main(folder: Path) -> None:
    rows = judgments("mlqe")
    print(
        "| data | people | judgments of nobody | SD of biases, people | SD of biases, places |\n|---|---|---|---|---|"
    )
    for languages, name in FILES.items():
        scores, z_scores = read_lists(folder / name)
        people = recover_people(scores.ravel(), z_scores.ravel()).reshape(scores.shape)
        places = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        figures = f"{bias_spread(scores, people):.3f} | {bias_spread(scores, places):.3f}"
        print(f"| {languages} | {people.max() + 1} | {np.count_nonzero(people == UNKNOWN)} | {figures} |")
        for row in rows:
            if row["languages"] == languages:
                person = int(people[int(row["item"]), int(row["annotator"])])
                row["person"] = "" if person == UNKNOWN else str(person)
    path = DATA / "mlqe" / "judgments.csv.gz"
    lines = [",".join(cells) for cells in ([*rows[0]], *(row.values() for row in rows))]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
