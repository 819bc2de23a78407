"""The experiment of Passonneau & Carpenter (2014): senses of four words, by Dawid-Skene and by votes."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from app.experiments import report
from app.experiments.figures import plot_annotator_histograms, plot_class_share_bars, plot_label_probability_heatmaps
from app.experiments.result_tables import write_parquet_rows
from app.inference.agreement import krippendorff, label_agreement
from app.inference.ground.arrays import Array, Integers
from app.inference.labels import dawid_skene
from app.inference.labels.dawid_skene import DawidSkeneResult
from app.settings import project_folder

WORD_SENSE_FOLDER = project_folder() / "examples" / "data" / "masc_wordsense"
SENSE_WORDS = ("add-v", "ask-v", "date-n", "help-v")
START_ACCURACY = 0.7  # on the diagonal of every response matrix
SURE_POSTERIOR, LIKELY_POSTERIOR = 0.99, 0.75
MAX_SENSES = 9
LABELS_TITLE, MAJORITY_TITLE, MODEL_TITLE, MODEL_FROM_VOTES_TITLE = (
    "labels",
    "majority of a sentence",
    "Dawid-Skene",
    "Dawid-Skene, from votes",
)
AGREEMENT_DRAWS, AGREEMENT_SEED = 1000, 2014
# Alpha of trained annotators in the paper, which gives none for “ask”.
TRAINED_ALPHA = {"add-v": "0.55", "date-n": "0.47", "help-v": "0.26"}
# Mean accuracy of annotators by sense, from 1, as far as the paper gives it.
PAPER_ACCURACY = {
    "add-v": {1: 0.90, 2: 0.79, 6: 0.29, 7: 0.19},
    "help-v": {1: 0.73, 4: 0.64, 5: 0.11, 7: 0.11, 9: 0.11},
}

# Annotators in heatmaps of responses: those that the paper names, and then those with most labels.
NAMED_ANNOTATORS: dict[str, tuple[int, ...]] = {"add-v": (), "help-v": (8, 9, 41)}
HEATMAP_COUNT = 4
MIN_EVIDENCE = 1.0  # expected labels of items of a class, below which a row of responses says nothing
INFORMATION_BIN = 0.2  # bits

NO_DIFFERENCE = "no difference"
SMOOTHING_REASON = "Lower posteriors depend on the smoothing, and the paper only calls it “very weak”."
SENSE_NUMBERS_REASON = (
    "The paper’s values for 6 and 7 are found for 5 and 6 here: it seems to number the senses differently there."
)
UNUSED_SENSES_REASON = (
    "no difference, but this means nothing: no sentence has these senses, so each of nine senses gets a ninth"
)


@dataclass(frozen=True)
class SenseLabels:
    """Labels of a word: (n,) each, from 0."""

    items: Integers
    annotators: Integers
    senses: Integers


@dataclass(frozen=True)
class SenseWord:
    """A word of I sentences and K senses, with two fits of Dawid-Skene.

    Attributes:
        votes: Votes for each sense, (I, K).
        fit_from_accuracy: Fit that starts from annotators who are right seven times out of ten.
        fit_from_votes: Fit that starts from the shares of votes.

    """

    name: str
    labels: SenseLabels
    votes: Array
    fit_from_accuracy: DawidSkeneResult
    fit_from_votes: DawidSkeneResult

    @property
    def sense_frequencies(self) -> Array:
        """Prevalence of each sense as the share of labels, (K,)."""
        total = self.votes.sum(axis=0)
        return np.asarray(total / total.sum())

    @cached_property
    def majority_shares(self) -> Array:
        """Prevalence of each sense as the share of sentences with most votes for it, shared where votes tie, (K,)."""
        most = self.votes == self.votes.max(axis=1, keepdims=True)
        return np.asarray((most / most.sum(axis=1, keepdims=True)).mean(axis=0))

    @property
    def model_prevalence(self) -> Array:
        """Prevalence of each sense by Dawid-Skene, (K,)."""
        return self.fit_from_accuracy.prevalence

    @property
    def share_against_majority(self) -> float:
        """Share of sentences whose most probable sense is not the one with most votes."""
        return share_of_different_senses(self.fit_from_accuracy.posterior, self.votes)

    @property
    def accuracy(self) -> Array:
        """Mean accuracy of annotators on sentences of each sense, (K,)."""
        return np.asarray(np.nanmean(self.fit_from_accuracy.class_accuracy, axis=0))


def share_of_different_senses(posteriors_or_votes: Array, other_posteriors_or_votes: Array) -> float:
    """Share of sentences to which two tables, (I, K), give different senses."""
    return float((posteriors_or_votes.argmax(axis=1) != other_posteriors_or_votes.argmax(axis=1)).mean())


def share_of_sure_sentences(fit: DawidSkeneResult, min_posterior: float = SURE_POSTERIOR) -> float:
    """Share of sentences with a sense whose posterior is at least `min_posterior`."""
    return float((fit.posterior.max(axis=1) >= min_posterior).mean())


def load_sense_labels(name: str) -> SenseLabels:
    """Load the labels of a word from a table with a row for each item and a column for each annotator."""
    with (WORD_SENSE_FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    labels = [(k, j, int(cell) - 1) for k, (_, *cells) in enumerate(rows) for j, cell in enumerate(cells) if cell]
    items, annotators, senses = np.array(labels).T
    return SenseLabels(items, annotators, senses)


def load_word_labels_with_fits(name: str) -> SenseWord:
    """Load the labels of a word, and fit Dawid-Skene from both starts."""
    labels = load_sense_labels(name)
    columns = labels.items, labels.annotators, labels.senses
    fit_from_accuracy, fit_from_votes = dawid_skene.fit(*columns, start=START_ACCURACY), dawid_skene.fit(*columns)
    votes = np.zeros(fit_from_accuracy.posterior.shape)
    np.add.at(votes, (labels.items, labels.senses), 1)
    return SenseWord(name, labels, votes, fit_from_accuracy, fit_from_votes)


def run_word_sense_experiment_and_write_report(folder: Path, command: str) -> Path:
    """Fit the words, write figures, a table and the report, and return the file of the report."""
    words = [load_word_labels_with_fits(name) for name in SENSE_WORDS]
    rows = [
        {"word": word.name, "by": method, "sense": k, "prevalence": share}
        for word in words
        for method, shares in prevalence_arrays_by_title(word).items()
        for k, share in enumerate(shares.tolist(), start=1)
    ]
    write_parquet_rows(folder / "word-senses.parquet", rows, {})
    for word in words:
        plot_class_share_bars(
            folder / f"word-senses-{word.name}.svg",
            prevalence_arrays_by_title(word),
            x_title=f"sense of {word.name}",
            y_title="prevalence",
        )
    plot_annotator_responses_of_words(words, folder)
    path = folder / "word-senses.md"
    report.write_report(
        path,
        "senses.md",
        command=command,
        words=[(word.name, f"word-senses-{word.name}.svg") for word in words],
        heatmaps=[(word, response_heatmap_name(word)) for word in NAMED_ANNOTATORS],
        information=[table_row_of_information(word) for word in words],
        rows=[table_row_of_sense_word(word) for word in words],
        starts=[table_row_of_fit_starts(word) for word in words],
        senses=range(1, MAX_SENSES + 1),
        accuracies=rows_padded_to_most_senses(
            [row for word in words for row in table_rows_comparing_paper_accuracies(word)]
        ),
        agreements=[table_row_of_agreement(word) for word in words],
        compared=table_rows_of_paper_comparison({word.name: word for word in words}),
    )
    return path


def plot_annotator_responses_of_words(words: Sequence[SenseWord], folder: Path) -> None:
    """Draw the responses of four annotators of two words, and the information in the labels of all annotators."""
    for word in words:
        if word.name in NAMED_ANNOTATORS:
            plot_label_probability_heatmaps(
                folder / response_heatmap_name(word.name),
                {
                    f"annotator {number}": label_probabilities_of_each_known_sense(word, number)
                    for number in drawn_annotator_numbers(word)
                },
            )
    plot_annotator_histograms(
        folder / "word-senses-information.svg",
        {word.name: word.fit_from_accuracy.mutual_information for word in words},
        INFORMATION_BIN,
        x_title="bits in a label",
    )


def response_heatmap_name(word_name: str) -> str:
    return f"word-senses-responses-{word_name}.svg"


def drawn_annotator_numbers(word: SenseWord) -> list[int]:
    """Return the annotators whose responses are drawn, numbered from 1 as in the data."""
    label_counts = np.bincount(word.labels.annotators)
    named = NAMED_ANNOTATORS[word.name]
    by_count = (np.argsort(-label_counts, kind="stable") + 1).tolist()
    return sorted([*named, *(number for number in by_count if number not in named)][:HEATMAP_COUNT])


def label_probabilities_of_each_known_sense(word: SenseWord, annotator_number: int) -> Array:
    """Return the probability of each label by sense, (K, K); NaN for senses that the annotator hardly saw."""
    fit = word.fit_from_accuracy
    is_known = fit.evidence[annotator_number - 1] >= MIN_EVIDENCE
    return np.where(is_known[:, None], fit.response[annotator_number - 1], np.nan)


def table_row_of_information(word: SenseWord) -> list[str]:
    """Return the lowest, median and highest information in a label of an annotator, in bits."""
    bits = np.nanpercentile(word.fit_from_accuracy.mutual_information, (0, 50, 100))
    return [word.name, *(f"{number:.2f}" for number in bits)]


def prevalence_arrays_by_title(word: SenseWord) -> dict[str, Array]:
    return {
        LABELS_TITLE: word.sense_frequencies,
        MAJORITY_TITLE: word.majority_shares,
        MODEL_TITLE: word.model_prevalence,
        MODEL_FROM_VOTES_TITLE: word.fit_from_votes.prevalence,
    }


def table_row_of_sense_word(word: SenseWord) -> list[str]:
    accuracies = np.nanpercentile(word.fit_from_accuracy.accuracy, (0, 50, 100))  # the lowest, the median, the highest
    uninformative = int(np.sum(word.fit_from_accuracy.mutual_information < 0.1))
    return [
        word.name,
        f"{len(word.votes):,}",
        f"{len(word.labels.items):,}",
        str(len(word.fit_from_accuracy.accuracy)),
        f"{word.sense_frequencies[0]:.3f}",
        f"{word.majority_shares[0]:.3f}",
        f"{word.model_prevalence[0]:.3f}",
        f"{share_of_sure_sentences(word.fit_from_accuracy):.3f}",
        f"{word.share_against_majority:.3f}",
        " / ".join(f"{share:.2f}" for share in accuracies),
        str(uninformative),
    ]


def table_row_of_fit_starts(word: SenseWord) -> list[str]:
    """Return where the fit ends, by where it starts."""
    fits = word.fit_from_accuracy, word.fit_from_votes
    cells = [
        *(f"{fit.prevalence[0]:.3f}" for fit in fits),
        *(f"{share_of_sure_sentences(fit):.3f}" for fit in fits),
        *(f"{fit.log_likelihood:,.0f}" for fit in fits),
    ]
    return [
        word.name,
        *cells,
        f"{share_of_different_senses(word.fit_from_accuracy.posterior, word.fit_from_votes.posterior):.3f}",
    ]


def table_rows_comparing_paper_accuracies(word: SenseWord) -> list[list[str]]:
    """Return accuracies by sense, here and in the paper, with the number of sentences."""
    paper_accuracy, sentences = PAPER_ACCURACY.get(word.name, {}), word.fit_from_accuracy.posterior.sum(axis=0)
    rows = [
        [
            f"{word.name}, in the paper",
            *(format_two_decimals_or_empty(paper_accuracy.get(k)) for k in range(1, len(sentences) + 1)),
        ],
        [f"{word.name}, here", *(f"{accuracy:.2f}" for accuracy in word.accuracy)],
        [f"{word.name}, sentences here", *(f"{count:.0f}" for count in sentences)],
    ]
    return rows if paper_accuracy else rows[1:]


def rows_padded_to_most_senses(rows: Sequence[list[str]]) -> list[list[str]]:
    """Add empty cells for senses that a word does not have."""
    return [row + [""] * (MAX_SENSES + 1 - len(row)) for row in rows]


def format_two_decimals_or_empty(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"


def table_row_of_agreement(word: SenseWord) -> list[str]:
    """Return the agreement of a word's annotators, and how far the model's prevalences are from those by majority."""
    columns = word.labels.items, word.labels.annotators, word.labels.senses
    rng = np.random.default_rng(AGREEMENT_SEED)
    alpha = krippendorff.fit(*columns, draws=AGREEMENT_DRAWS, rng=rng)
    same_label = label_agreement.pairwise_agreement(*columns, draws=AGREEMENT_DRAWS, rng=rng)
    kappa = label_agreement.cohens_kappa(*columns, draws=1, rng=rng)
    moved = np.abs(word.model_prevalence - word.majority_shares).sum() / 2
    return [
        word.name,
        TRAINED_ALPHA.get(word.name, "not in the text"),
        f"{alpha.value:.3f} ({alpha.low:.3f} to {alpha.high:.3f})",
        f"{kappa.value:.3f}",
        f"{same_label.value:.3f} ({same_label.low:.3f} to {same_label.high:.3f})",
        f"{moved:.3f}",
        f"{share_of_sure_sentences(word.fit_from_accuracy):.3f}",
    ]


def table_rows_of_paper_comparison(words: dict[str, SenseWord]) -> Sequence[Sequence[str]]:
    """Return figures of the paper, the same figures here, and reason for the difference."""
    add, date, helped = (words[name] for name in ("add-v", "date-n", "help-v"))
    likely = share_of_sure_sentences(helped.fit_from_accuracy, LIKELY_POSTERIOR) - share_of_sure_sentences(
        helped.fit_from_accuracy
    )
    return [
        ("prevalence of sense 1 of add-v (Figure 4)", "0.51", f"{add.model_prevalence[0]:.2f}", NO_DIFFERENCE),
        (
            f"sentences of date-n with a posterior of {SURE_POSTERIOR} or more (Figure 5)",
            "97%",
            f"{share_of_sure_sentences(date.fit_from_accuracy):.0%}",
            NO_DIFFERENCE,
        ),
        (
            f"sentences of help-v with a posterior of {SURE_POSTERIOR} or more",
            "81%",
            f"{share_of_sure_sentences(helped.fit_from_accuracy):.0%}",
            NO_DIFFERENCE,
        ),
        (
            f"sentences of help-v with one of {LIKELY_POSTERIOR} to {SURE_POSTERIOR}",
            "13%",
            f"{likely:.0%}",
            SMOOTHING_REASON,
        ),
        ("mean accuracy on senses 1 and 2 of add-v", "0.90, 0.79", format_accuracies(add, 1, 2), NO_DIFFERENCE),
        ("on its senses 6 and 7", "0.29, 0.19", format_accuracies(add, 6, 7), SENSE_NUMBERS_REASON),
        ("on senses 1 and 4 of help-v", "0.73, 0.64", format_accuracies(helped, 1, 4), NO_DIFFERENCE),
        ("on its senses 5, 7 and other", "0.11 each", format_accuracies(helped, 5, 7, 9), UNUSED_SENSES_REASON),
    ]


def format_accuracies(word: SenseWord, *senses: int) -> str:
    return ", ".join(f"{word.accuracy[k - 1]:.2f}" for k in senses)
