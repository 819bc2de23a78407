"""Recover which person gave each MLQE judgment: `python -m benchmarks.people_of_mlqe FOLDER`, 10 seconds.

FOLDER contains test20.eten.df.short.tsv and test20.roen.df.short.tsv from the repository facebookresearch/mlqe (commit
49510b1). The program adds the column `person` to examples/data/mlqe/judgments.csv.gz and prints a summary.

The files list six scores per sentence without names, and a place in the list can belong to several people. But they
also contain each score as z = (score - mean) / standard deviation of its annotator. All judgments of a person are
therefore exactly on a straight line, and each line with three or more different scores is a person.
"""

import ast
import csv
import gzip
import sys
from pathlib import Path

import numpy as np

from app.inference.ground.arrays import Array, Integers, Mask
from benchmarks.annotator_aware import DATA, load_judgment_rows

FILES = {"et-en": "test20.eten.df.short.tsv", "ro-en": "test20.roen.df.short.tsv"}
UNKNOWN = -1
MIN_POINTS = 3  # different scores on the line of a person
MIN_JUDGMENTS = 30  # for a person's bias to count
LINE_WIDTH, RAW_LINE_WIDTH = 1e-6, 1e-5


def recover_people(scores: Array, z_scores: Array) -> Integers:
    """Return the person of each judgment, (n,), numbered from 0; -1 if the judgment is on no line of `MIN_POINTS`
    scores.
    """
    points, point_of_judgment = np.unique(np.column_stack([scores, z_scores.round(9)]), axis=0, return_inverse=True)
    person, remaining = np.full(len(points), UNKNOWN), np.arange(len(points))
    for number in range(len(points)):
        is_on_line = longest_line(*points[remaining].T)
        if is_on_line.sum() < MIN_POINTS:
            break
        person[remaining[is_on_line]] = number
        remaining = remaining[~is_on_line]
    people: Integers = person[point_of_judgment.ravel()]
    return people


def longest_line(scores: Array, z_scores: Array) -> Mask:
    """Return which points, (n,), are on the rising line with the most points."""
    first, second = np.triu_indices(len(scores), 1)
    score_differences, z_differences = scores[second] - scores[first], z_scores[second] - z_scores[first]
    is_rising = score_differences * z_differences > 0.0
    slope = z_differences[is_rising] / score_differences[is_rising]
    if not len(slope):
        return np.zeros(len(scores), np.bool_)
    height = z_scores[first[is_rising]] - slope * scores[first[is_rising]]
    _, line, pair_count = np.unique(
        np.column_stack([slope.round(6), height.round(3)]), axis=0, return_inverse=True, return_counts=True
    )
    is_best = line.ravel() == pair_count.argmax()
    expected_z = np.median(height[is_best]) + np.median(slope[is_best]) * scores
    is_near = np.abs(z_scores - expected_z) < RAW_LINE_WIDTH
    if is_near.sum() < MIN_POINTS:
        return np.asarray(is_near)
    refitted_z = np.polyval(np.polyfit(scores[is_near], z_scores[is_near], 1), scores)
    is_on_line: Mask = np.abs(z_scores - refitted_z) < LINE_WIDTH
    return is_on_line


def bias_spread(scores: Array, people: Integers) -> float:
    """Return the standard deviation of people's biases on a scale of 1, relative to the means of sentences.

    Args:
        scores: Scores from 0 to 100, (sentences, 6).
        people: Person of each score, (sentences, 6).

    """
    return spread_of_people((scores - scores.mean(axis=1, keepdims=True)) / 100.0, people)


def spread_of_people(deviations: Array, people: Integers) -> float:
    """Return the standard deviation of people's mean deviations from their items, for people with many judgments."""
    numbers, counts = np.unique(people, return_counts=True)
    numbers_with_many = numbers[(counts >= MIN_JUDGMENTS) & (numbers != UNKNOWN)]
    return float(np.std([deviations[people == person].mean() for person in numbers_with_many], ddof=1))


def read_lists(path: Path) -> tuple[Array, Array]:
    """Return scores and z-scores of a file, (sentences, 6) each."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    scores, z_scores = (np.array([ast.literal_eval(row[name]) for row in rows]) for name in ("scores", "z_scores"))
    return scores.astype(np.float64), z_scores


def main(folder: Path) -> None:
    rows = load_judgment_rows("mlqe")
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
