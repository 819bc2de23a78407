"""The experiment of Passonneau & Carpenter (2014): the senses of four words, by Dawid-Skene and by votes."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.experiments import report
from app.experiments.figures import bars
from app.experiments.parquet import write_table
from app.inference.ground.arrays import Array, Integers
from app.inference.labels import dawid_skene

DATA = Path(__file__).resolve().parents[2] / "examples" / "data" / "masc_wordsense"
WORDS = ("add-v", "ask-v", "date-n", "help-v")
START = 0.7  # on the diagonal of every response matrix
SURE = 0.99
LABELS, MAJORITY, MODEL = "labels", "majority of a sentence", "Dawid-Skene"
# Of Passonneau & Carpenter: the prevalence of the first sense, and the share of items of which one is as sure as that.
PAPER: dict[str, tuple[float | None, float | None]] = {
    "add-v": (0.51, None),
    "ask-v": (None, None),
    "date-n": (None, 0.97),
    "help-v": (None, 0.81),
}


@dataclass(frozen=True)
class SenseLabels:
    """Of a word: (n,) each, from 0."""

    items: Integers
    annotators: Integers
    senses: Integers


@dataclass(frozen=True)
class Word:
    """What is found of a word. by_...: the prevalence of each of K senses, (K,), as the share of labels; as that of
    sentences with most votes for it, shared where votes tie; and by Dawid-Skene. sure: the share of
    items one of whose senses has a posterior of `SURE` or more. otherwise: that of items whose most probable sense is
    not the one with most votes. accuracy, bits: of annotators, (J,), as `dawid_skene.Result` has them.
    """

    name: str
    items: int
    labels: int
    by_labels: Array
    by_majority: Array
    by_model: Array
    sure: float
    otherwise: float
    accuracy: Array
    bits: Array


def labels_of(name: str) -> SenseLabels:
    """As annotators gave them: a row for each item, a column for each annotator."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    given = [(k, j, int(cell) - 1) for k, (_, *cells) in enumerate(rows) for j, cell in enumerate(cells) if cell]
    items, annotators, senses = np.array(given).T
    return SenseLabels(items, annotators, senses)


def word(name: str) -> Word:
    """The fit from a start at which annotators are right seven times of ten."""
    labels = labels_of(name)
    found = dawid_skene.fit(labels.items, labels.annotators, labels.senses, start=START)
    size = len(found.prevalence)
    votes = np.zeros((len(found.posterior), size))
    np.add.at(votes, (labels.items, labels.senses), 1)
    most = votes == votes.max(axis=1, keepdims=True)
    return Word(
        name,
        len(votes),
        len(labels.items),
        np.bincount(labels.senses, minlength=size) / len(labels.senses),
        (most / most.sum(axis=1, keepdims=True)).mean(axis=0),
        found.prevalence,
        float((found.posterior.max(axis=1) >= SURE).mean()),
        float((found.posterior.argmax(axis=1) != votes.argmax(axis=1)).mean()),
        found.accuracy,
        found.mutual_information,
    )


def conduct(out: Path, command: str) -> Path:
    """Fit the words, and write figures, a table and the report; the file of the report."""
    words = [word(name) for name in WORDS]
    prevalences = [(one.name, how, shares) for one in words for how, shares in shown(one).items()]
    rows = [
        {"word": name, "by": how, "sense": k, "prevalence": share}
        for name, how, shares in prevalences
        for k, share in enumerate(shares.tolist(), start=1)
    ]
    write_table(out / "word-senses.parquet", rows, {})
    for one in words:
        bars(out / f"word-senses-{one.name}.svg", shown(one), x_title=f"sense of {one.name}", y_title="prevalence")
    path = out / "word-senses.md"
    report.write(
        path,
        "senses.md",
        command=command,
        words=[(one.name, f"word-senses-{one.name}.svg") for one in words],
        rows=[row_of(one) for one in words],
        compared=[row for one in words for row in compared(one)],
    )
    return path


def shown(one: Word) -> dict[str, Array]:
    """Its prevalences."""
    return {LABELS: one.by_labels, MAJORITY: one.by_majority, MODEL: one.by_model}


def row_of(one: Word) -> list[str]:
    quartiles = np.nanpercentile(one.accuracy, (0, 50, 100))
    none = int(np.sum(one.bits < 0.1))
    return [
        one.name, f"{one.items:,}", f"{one.labels:,}", str(len(one.accuracy)), f"{one.by_labels[0]:.3f}",
        f"{one.by_majority[0]:.3f}", f"{one.by_model[0]:.3f}", f"{one.sure:.3f}", f"{one.otherwise:.3f}",
        " / ".join(f"{share:.2f}" for share in quartiles), str(none),
    ]  # fmt: skip


def compared(one: Word) -> Sequence[Sequence[Any]]:
    """What the paper says of it, and what is found here."""
    prevalence, sure = PAPER[one.name]
    rows = []
    if prevalence is not None:
        rows.append((f"prevalence of sense 1 of {one.name}", f"{prevalence:.2f}", f"{one.by_model[0]:.2f}"))
    if sure is not None:
        rows.append((f"sentences of {one.name} with a posterior of {SURE} or more", f"{sure:.0%}", f"{one.sure:.0%}"))
    return rows
