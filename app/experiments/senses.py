"""The experiment of Passonneau & Carpenter (2014): the senses of four words, by Dawid-Skene and by votes."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from app.experiments import report
from app.experiments.figures import bars
from app.experiments.parquet import write_table
from app.inference.agreement import krippendorff, label_agreement
from app.inference.ground.arrays import Array, Integers
from app.inference.labels import dawid_skene
from app.inference.labels.dawid_skene import Result

DATA = Path(__file__).resolve().parents[2] / "examples" / "data" / "masc_wordsense"
WORDS = ("add-v", "ask-v", "date-n", "help-v")
START = 0.7  # on the diagonal of every response matrix
SURE, LIKELY = 0.99, 0.75
MOST_SENSES = 9  # of a word
LABELS, MAJORITY, MODEL, BY_VOTES = "labels", "majority of a sentence", "Dawid-Skene", "Dawid-Skene, from votes"
DRAWS, SEED = 1000, 2014  # of intervals of agreement
TRAINED = {"add-v": "0.55", "date-n": "0.47", "help-v": "0.26"}  # alpha of trained annotators; of ask the text has none
# Mean accuracy of annotators by sense, from 1, as far as the text has it.
ACCURACY = {"add-v": {1: 0.90, 2: 0.79, 6: 0.29, 7: 0.19}, "help-v": {1: 0.73, 4: 0.64, 5: 0.11, 7: 0.11, 9: 0.11}}

SAME = "They do not."
SMOOTHED = "Posteriors below that hang on how much is smoothed, and the paper says no more of it than “very weak”."
OTHERWISE = "What the paper says of 6 and 7 is found of 5 and 6 here: it seems to count the senses otherwise there."
UNKNOWN = (
    "They do not, but it is no finding: no sentence has these senses, and of nine unknown answers each has a ninth."
)


@dataclass(frozen=True)
class SenseLabels:
    """Of a word: (n,) each, from 0."""

    items: Integers
    annotators: Integers
    senses: Integers


@dataclass(frozen=True)
class Word:
    """A word of I sentences and K senses. votes: (I, K). found: the fit from a start at which annotators are right
    seven times of ten; from_votes: that from the shares of votes.
    """

    name: str
    labels: SenseLabels
    votes: Array
    found: Result
    from_votes: Result

    @property
    def by_labels(self) -> Array:
        """The prevalence of each sense as the share of labels, (K,)."""
        total = self.votes.sum(axis=0)
        return np.asarray(total / total.sum())

    @cached_property
    def by_majority(self) -> Array:
        """As that of sentences with most votes for it, shared where votes tie, (K,)."""
        most = self.votes == self.votes.max(axis=1, keepdims=True)
        return np.asarray((most / most.sum(axis=1, keepdims=True)).mean(axis=0))

    @property
    def by_model(self) -> Array:
        """By Dawid-Skene, (K,)."""
        return self.found.prevalence

    @property
    def otherwise(self) -> float:
        """The share of sentences whose most probable sense is not the one with most votes."""
        return apart(self.found.posterior, self.votes)

    @property
    def accuracy(self) -> Array:
        """How often annotators are right about a sentence of each sense, in the mean of annotators, (K,)."""
        return np.asarray(np.nanmean(self.found.class_accuracy, axis=0))


def apart(one: Array, other: Array) -> float:
    """The share of sentences that two tables, (I, K), give different senses."""
    return float((one.argmax(axis=1) != other.argmax(axis=1)).mean())


def sure(found: Result, at_least: float = SURE) -> float:
    """The share of sentences one of whose senses has such a posterior."""
    return float((found.posterior.max(axis=1) >= at_least).mean())


def labels_of(name: str) -> SenseLabels:
    """As annotators gave them: a row for each item, a column for each annotator."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    given = [(k, j, int(cell) - 1) for k, (_, *cells) in enumerate(rows) for j, cell in enumerate(cells) if cell]
    items, annotators, senses = np.array(given).T
    return SenseLabels(items, annotators, senses)


def word(name: str) -> Word:
    """Its labels, with both fits."""
    labels = labels_of(name)
    columns = labels.items, labels.annotators, labels.senses
    found, from_votes = dawid_skene.fit(*columns, start=START), dawid_skene.fit(*columns)
    votes = np.zeros(found.posterior.shape)
    np.add.at(votes, (labels.items, labels.senses), 1)
    return Word(name, labels, votes, found, from_votes)


def conduct(out: Path, command: str) -> Path:
    """Fit the words, and write figures, a table and the report; the file of the report."""
    words = [word(name) for name in WORDS]
    rows = [
        {"word": one.name, "by": how, "sense": k, "prevalence": share}
        for one in words
        for how, shares in shown(one).items()
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
        starts=[starts_of(one) for one in words],
        senses=range(1, MOST_SENSES + 1),
        accuracies=whole([row for one in words for row in accuracies_of(one)]),
        agreements=[agreement_of(one) for one in words],
        compared=compared({one.name: one for one in words}),
    )
    return path


def shown(one: Word) -> dict[str, Array]:
    """Its prevalences."""
    return {
        LABELS: one.by_labels,
        MAJORITY: one.by_majority,
        MODEL: one.by_model,
        BY_VOTES: one.from_votes.prevalence,
    }


def row_of(one: Word) -> list[str]:
    accuracies = np.nanpercentile(one.found.accuracy, (0, 50, 100))  # the lowest, the median, the highest
    none = int(np.sum(one.found.mutual_information < 0.1))
    return [
        one.name, f"{len(one.votes):,}", f"{len(one.labels.items):,}", str(len(one.found.accuracy)),
        f"{one.by_labels[0]:.3f}", f"{one.by_majority[0]:.3f}", f"{one.by_model[0]:.3f}", f"{sure(one.found):.3f}",
        f"{one.otherwise:.3f}", " / ".join(f"{share:.2f}" for share in accuracies), str(none),
    ]  # fmt: skip


def starts_of(one: Word) -> list[str]:
    """Where the fit ends by where it starts."""
    both = one.found, one.from_votes
    told = [
        *(f"{fit.prevalence[0]:.3f}" for fit in both),
        *(f"{sure(fit):.3f}" for fit in both),
        *(f"{fit.log_likelihood:,.0f}" for fit in both),
    ]
    return [one.name, *told, f"{apart(one.found.posterior, one.from_votes.posterior):.3f}"]


def accuracies_of(one: Word) -> list[list[str]]:
    """By sense, here and in the paper; with the number of sentences."""
    said, sentences = ACCURACY.get(one.name, {}), one.found.posterior.sum(axis=0)
    rows = [
        [f"{one.name}, in the paper", *(two_decimals(said.get(k)) for k in range(1, len(sentences) + 1))],
        [f"{one.name}, here", *(f"{right:.2f}" for right in one.accuracy)],
        [f"{one.name}, sentences here", *(f"{many:.0f}" for many in sentences)],
    ]
    return rows if said else rows[1:]


def whole(rows: Sequence[list[str]]) -> list[list[str]]:
    """With empty cells for senses that a word does not have."""
    return [row + [""] * (MOST_SENSES + 1 - len(row)) for row in rows]


def two_decimals(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"


def agreement_of(one: Word) -> list[str]:
    """How far the annotators of a word agree, and how far the model's prevalences are from those by majority."""
    columns = one.labels.items, one.labels.annotators, one.labels.senses
    rng = np.random.default_rng(SEED)
    alpha = krippendorff.fit(*columns, draws=DRAWS, rng=rng)
    same = label_agreement.pairwise(*columns, draws=DRAWS, rng=rng)
    kappa = label_agreement.cohens_kappa(*columns, draws=1, rng=rng)
    moved = np.abs(one.by_model - one.by_majority).sum() / 2
    return [
        one.name, TRAINED.get(one.name, "not in the text"), f"{alpha.value:.3f} ({alpha.low:.3f} to {alpha.high:.3f})",
        f"{kappa.value:.3f}", f"{same.value:.3f} ({same.low:.3f} to {same.high:.3f})", f"{moved:.3f}",
        f"{sure(one.found):.3f}",
    ]  # fmt: skip


def compared(words: dict[str, Word]) -> Sequence[Sequence[str]]:
    """What the paper says, what is found here, and why they differ."""
    add, date, helped = (words[name] for name in ("add-v", "date-n", "help-v"))
    likely = sure(helped.found, LIKELY) - sure(helped.found)
    return [
        ("prevalence of sense 1 of add-v (Figure 4)", "0.51", f"{add.by_model[0]:.2f}", SAME),
        (f"sentences of date-n with a posterior of {SURE} or more (Figure 5)", "97%", f"{sure(date.found):.0%}", SAME),
        (f"sentences of help-v with a posterior of {SURE} or more", "81%", f"{sure(helped.found):.0%}", SAME),
        (f"sentences of help-v with one of {LIKELY} to {SURE}", "13%", f"{likely:.0%}", SMOOTHED),
        ("mean accuracy on senses 1 and 2 of add-v", "0.90, 0.79", joined(add, 1, 2), SAME),
        ("on its senses 6 and 7", "0.29, 0.19", joined(add, 6, 7), OTHERWISE),
        ("on senses 1 and 4 of help-v", "0.73, 0.64", joined(helped, 1, 4), SAME),
        ("on its senses 5, 7 and other", "0.11 each", joined(helped, 5, 7, 9), UNKNOWN),
    ]


def joined(one: Word, *senses: int) -> str:
    return ", ".join(f"{one.accuracy[k - 1]:.2f}" for k in senses)
