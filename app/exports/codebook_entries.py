"""Meaning, unit and allowed values of the columns that exports write, by name.

`{score}` and `{mean}` in a unit are the campaign's units of scores and of means. A column that means something else in
one file has an entry under the file's name, too. To add a column to an export, add its entry: a test fails until then.
"""

from dataclasses import dataclass

UTC_TIME = "ISO 8601, UTC"
FLAG = "true, false"
SCORE_UNIT, MEAN_UNIT = "{score}", "{mean}"
# Advice on intervals, as in docs/statistics/intervals.md.
NOT_FOR_REPORTS = "it rests on the update law's assumptions: do not report it as the precision of a score"
REPORT_IF_EVEN = "report it, except for items that were selected by their scores"
REPORT_IF_SELECTED = "report it for items that were selected by their scores"


@dataclass(frozen=True)
class ColumnEntry:
    """An entry of the codebook."""

    meaning: str
    unit: str = ""
    values: str = ""


ITEM_ENTRIES = {
    "id": ColumnEntry("Id of the item, from the uploaded table"),
    "shown": ColumnEntry("Text of the item, or the name of its file"),
    "criterion": ColumnEntry("Criterion to which the row belongs"),
    "alpha": ColumnEntry("First parameter of the posterior, a Beta distribution on 0 to 1", values="above 0"),
    "beta": ColumnEntry("Second parameter of the posterior, a Beta distribution on 0 to 1", values="above 0"),
    "mu": ColumnEntry("Mean of the posterior, a Gaussian, on the law's own scale"),
    "sigma2": ColumnEntry("Variance of the posterior, a Gaussian, on the law's own scale", values="above 0"),
    "mode": ColumnEntry("Score: the most likely value; empty without judgments", SCORE_UNIT),
    "mean": ColumnEntry("Score: the mean of the posterior; empty without judgments", SCORE_UNIT),
    "ratio": ColumnEntry("Score: ratio to the reference; empty without judgments", SCORE_UNIT, "above 0"),
    "label": ColumnEntry(
        "Final label: the adjudicated one, else the likeliest; empty without judgments, or if two are as likely",
        values="the labels",
    ),
    "adjudicated": ColumnEntry("Label that a researcher chose; empty if none did", values="the labels"),
    "label_source": ColumnEntry(
        "Where the label is from: a researcher or the annotators' answers; empty without a label",
        values="adjudicated, answers",
    ),
    "label_percent": ColumnEntry(
        "Share of annotators expected to give the likeliest label, which may differ from an adjudicated one",
        "%",
        "0 to 100",
    ),
    "standard_deviation": ColumnEntry("Standard deviation of the posterior", SCORE_UNIT, "0 or more"),
    "low_95": ColumnEntry(f"Lower end of the posterior's central 95 % interval; {NOT_FOR_REPORTS}", SCORE_UNIT),
    "high_95": ColumnEntry(f"Upper end of the posterior's central 95 % interval; {NOT_FOR_REPORTS}", SCORE_UNIT),
    "judgments": ColumnEntry("Judgments that count", "judgments", "0, 1, 2, ..."),
    "mean_score": ColumnEntry("Mean of the values given", MEAN_UNIT),
    "mean_ratio": ColumnEntry("Mean of the ratios given; a ratio r counts as r / (1 + r)", MEAN_UNIT),
    "mean_percent_beaten": ColumnEntry(
        "Mean share of the other items of its tasks that the item beats", "%", "0 to 100"
    ),
    "standard_error": ColumnEntry("Standard error of that mean", MEAN_UNIT, "0 or more"),
    "calibrated_low_95": ColumnEntry(
        f"Lower end of the calibrated 95 % interval of that mean; {REPORT_IF_EVEN}", MEAN_UNIT
    ),
    "calibrated_high_95": ColumnEntry(
        f"Upper end of the calibrated 95 % interval of that mean; {REPORT_IF_EVEN}", MEAN_UNIT
    ),
    "shrunken_score": ColumnEntry("Mean, moved towards the means of all items", MEAN_UNIT),
    "shrunken_low_95": ColumnEntry(f"Lower end of its 95 % interval; {REPORT_IF_SELECTED}", MEAN_UNIT),
    "shrunken_high_95": ColumnEntry(f"Upper end of its 95 % interval; {REPORT_IF_SELECTED}", MEAN_UNIT),
    "unjudged_by": ColumnEntry("Annotators who said that the item cannot be judged", "annotators", "0, 1, 2, ..."),
    "unjudged_reasons": ColumnEntry("Their reasons, each with its count"),
    "left_pool": ColumnEntry("Whether the item is no longer asked about for that reason", values=FLAG),
    "settled": ColumnEntry("Whether the item is no longer asked about because the goal settled it", values=FLAG),
    "among_best": ColumnEntry("Whether the item is among the best by its score", values=FLAG),
    "above_threshold": ColumnEntry("Whether the item's mean is above the threshold", values=FLAG),
    "side_probability": ColumnEntry("Probability that this is right", "probability", "0 to 1"),
    "goal_score": ColumnEntry("Score by which the goal is measured", "points", "0 to 100"),
    "goal_standard_error": ColumnEntry("Standard error of that score", "points", "0 or more"),
    "goal_low_95": ColumnEntry("Lower end of its 95 % interval", "points", "0 to 100"),
    "goal_high_95": ColumnEntry("Upper end of its 95 % interval", "points", "0 to 100"),
    "var": ColumnEntry("Variance of the posterior, on 0 to 1", values="above 0"),
}

ANSWER_ENTRIES = {
    "seq": ColumnEntry(
        "Number of the answer in the campaign's record; the rows of one task share it", values="1, 2, ..."
    ),
    "annotator": ColumnEntry("Pseudonym of the annotator"),
    "name": ColumnEntry("Name of the annotator on Easel's pages", values="A1, A2, ..."),
    "source": ColumnEntry("Where the answer came from", values="a platform, import or simulation"),
    "platform": ColumnEntry("Platform from which the annotator came"),
    "assignment": ColumnEntry(
        "The platform's id of the assignment, or the id that a program gave the annotator; do not publish it"
    ),
    "hit": ColumnEntry("Number of the task", values="1, 2, ..."),
    "iteration": ColumnEntry("Iteration of the task; empty without iterations", values="0, 1, ..."),
    "position": ColumnEntry("Place of the item in the task", values="1, 2, ..."),
    "item": ColumnEntry("Id of the item"),
    "leader": ColumnEntry("Whether the selection rule chose the item first", values=FLAG),
    "criterion_position": ColumnEntry("Which of the criteria was asked first, second, ...", values="1, 2, ..."),
    "score": ColumnEntry("Value that the annotator gave; for labels the label's number", "that of the design"),
    "rank": ColumnEntry("Rank of the item in its task; empty if values have no order", values="1 for the best"),
    "issued_at": ColumnEntry("When the task was handed out", values=UTC_TIME),
    "received_at": ColumnEntry("When the answer arrived", values=UTC_TIME),
    "first_touch_ms": ColumnEntry(
        "Time from the display of the task to the first touch of the item", "ms", "0 or more"
    ),
    "changes": ColumnEntry("How often the value was changed", "changes", "0, 1, 2, ..."),
    "input_kind": ColumnEntry("Kind of input", values="mouse, touch, keyboard, ..."),
    "viewport": ColumnEntry("Size of the browser's window", "px", "width x height"),
    "not_applicable": ColumnEntry("Whether the annotator said that the item cannot be judged", values=FLAG),
    "counts": ColumnEntry("Whether the answer counts at present", values=FLAG),
    "replaces": ColumnEntry("seq of the answer that this one replaces"),
    "drawn_because": ColumnEntry("Why the task was drawn"),
    "leader_probability": ColumnEntry("Probability with which its first item was drawn", "probability", "0 to 1"),
    "left_out": ColumnEntry(
        "Why the answer does not count", values="annotator_excluded, answer_excluded, replaced, not_yet"
    ),
    "left_out_reason": ColumnEntry("Reason that was given for this decision"),
    "left_out_at": ColumnEntry("Time of this decision", values=UTC_TIME),
    "barred": ColumnEntry(
        "Whether the annotator is held or excluded; empty otherwise", values="held, excluded, erased"
    ),
    "revision": ColumnEntry("Number of the version of all scores; each decision raises it", values="0, 1, 2, ..."),
    "item_version": ColumnEntry("Version of the item's text that the task showed", values="1, 2, ..."),
    "segment": ColumnEntry("Id of the segment, the text that all systems worked on"),
    "shown_as": ColumnEntry("System under which an output that several systems share was shown"),
    "reason": ColumnEntry("Why the item cannot be judged"),
    "flag": ColumnEntry("Problem that the annotator reported, one of the campaign's reasons"),
    "comment": ColumnEntry("The annotator's comment, or reason for the answer"),
    "hit_flag": ColumnEntry("Problem that the annotator reported about the whole task"),
    "hit_comment": ColumnEntry("The annotator's comment on the whole task, or reason for the answer"),
    "plays": ColumnEntry("How often the recording or video was started", "plays", "0, 1, 2, ..."),
    "seconds_heard": ColumnEntry("Seconds that were played", "s", "0 or more"),
    "switches": ColumnEntry("How often the annotator switched to this recording", "switches", "0, 1, 2, ..."),
    "condition": ColumnEntry("Condition of the item, from the uploaded table"),
    "block": ColumnEntry("Block in which the annotator met this condition", values="1, 2, ..."),
    "condition_list": ColumnEntry("List of conditions that the annotator has", values="1, 2, ..."),
    "state": ColumnEntry("What became of the task", values="open, expired, given_up"),
    "expires_at": ColumnEntry("Until when the task was reserved", values=UTC_TIME),
    "closed_at": ColumnEntry("When the task was closed without an answer", values=UTC_TIME),
    "entered": ColumnEntry("Whether values were entered but not sent", values=FLAG),
    "check": ColumnEntry("Whether the item is a gold or attention item", values=FLAG),
    "flagged": ColumnEntry("Whether the remark reports a problem", values=FLAG),
}

ANNOTATOR_ENTRIES = {
    "arrived_at": ColumnEntry("When the annotator arrived", values=UTC_TIME),
    "hits_answered": ColumnEntry("Tasks answered", "tasks", "0, 1, 2, ..."),
    "hits_counted": ColumnEntry("Answered tasks that count", "tasks", "0, 1, 2, ..."),
    "last_answer_at": ColumnEntry("When the last answer arrived", values=UTC_TIME),
    "earlier_campaign": ColumnEntry("Campaign in which the same person took part before, by its name in addresses"),
    "earlier_annotator": ColumnEntry("Pseudonym of the same person in the exports of that campaign"),
    "completed_at": ColumnEntry("When the annotator was told that they are done", values=UTC_TIME),
    "step": ColumnEntry("Step before the first task", values="welcome, consent, questions, training, qualification"),
    "version": ColumnEntry("Version of what the step showed", values="1, 2, ..."),
    "outcome": ColumnEntry("How the step ended", values="passed, failed, ..."),
    "said": ColumnEntry("What the annotator answered, as JSON"),
    "sha256": ColumnEntry("Hash of the consent text"),
    "taken_at": ColumnEntry("When the step ended", values=UTC_TIME),
    "kind": ColumnEntry(
        "The decision; withdraw: the annotator replaced the answer", values="exclude, include, withdraw, erased"
    ),
    "answer": ColumnEntry("seq of the answer that the decision is about; empty if it is about the annotator"),
    "decided_at": ColumnEntry("Time of the decision", values=UTC_TIME),
}

FITTED_ENTRIES = {
    "confidence": ColumnEntry("Probability that the label is right", "probability", "0 to 1"),
    "item_label": ColumnEntry("Most probable label of the item"),
    "item_confidence": ColumnEntry("Probability that the item's label is right", "probability", "0 to 1"),
    "first": ColumnEntry("Id of the first item or system of the pair"),
    "second": ColumnEntry("Id of the second item or system of the pair"),
    "preferred": ColumnEntry("Id of the preferred one; empty for a tie"),
    "implied": ColumnEntry("Whether the annotator's other answers imply this pair, which was not asked", values=FLAG),
    "implied_before": ColumnEntry("What earlier answers implied about the pair before it was asked"),
    "judge": ColumnEntry("Pseudonym of the annotator"),
    "candidate_chosen": ColumnEntry("Id of the preferred item"),
    "candidate_not_chosen": ColumnEntry("Id of the other item"),
    "time_taken": ColumnEntry("Time from handing out the task to its answer", "s", "0 or more"),
    "wins": ColumnEntry("How often the first won", "comparisons", "0, 1, 2, ..."),
    "ties": ColumnEntry("Ties", "comparisons", "0, 1, 2, ..."),
    "losses": ColumnEntry("How often the first lost", "comparisons", "0, 1, 2, ..."),
    "share_won": ColumnEntry("Share of wins of the first; a tie counts as half", "share", "0 to 1"),
}

SEGMENT_ENTRIES = {
    "system": ColumnEntry("Name of the system"),
    "output": ColumnEntry("Output of the system for the segment"),
    "source": ColumnEntry("Source text of the segment"),
    "reference": ColumnEntry("Reference text of the segment"),
}

COMMON_ENTRIES = ITEM_ENTRIES | ANSWER_ENTRIES | ANNOTATOR_ENTRIES | FITTED_ENTRIES | SEGMENT_ENTRIES | {
    "source": ANSWER_ENTRIES["source"],
}  # fmt: skip

# Entries of columns that mean something else in one file.
ENTRIES_BY_FILE: dict[str, dict[str, ColumnEntry]] = {
    "responses": {"label": ColumnEntry("Label that the annotator gave", values="the labels")},
    "labels": {"label": ColumnEntry("Label of the judgment")},
    "segments": SEGMENT_ENTRIES,
    "easl": {
        "mode": ColumnEntry("Mode of the posterior, on 0 to 1", values="0 to 1"),
    },
    "decisions": {"reason": ColumnEntry("Reason that was given for the decision")},
    "adjudications": {
        "adjudication": ColumnEntry("Number of the decision", values="1, 2, ..."),
        "label": ColumnEntry("Label that the researcher chose; empty if the label was taken back", values="the labels"),
        "reason": ColumnEntry("Reason that the researcher gave; empty if none"),
        "replaces": ColumnEntry("Number of the earlier decision that this one replaces; empty for the first"),
        "latest": ColumnEntry("Whether it is the latest decision on the item", values=FLAG),
    },
}

# Columns of the analysis whose title alone says too little: those of all tables, and those of one.
PROBABILITY, SHARE, BITS, ONE_AT_MOST, ZERO_OR_MORE = "probability", "share", "bits", "0 to 1", "0 or more"
COUNT_VALUES, NUMBER_VALUES = "0, 1, 2, ...", "a number; empty if it cannot be estimated"
TABLE_ENTRIES = {
    "id": ColumnEntry("Id of the item"),
    "text": ColumnEntry("Text of the item, or the name of its file"),
    "low": ColumnEntry("Lower end of the 95 % interval", values=NUMBER_VALUES),
    "high": ColumnEntry("Upper end of the 95 % interval", values=NUMBER_VALUES),
    "measure": ColumnEntry("Name of the measure for programs"),
}
LABEL_ITEM_ENTRIES = {
    "judgments": ColumnEntry("Judgments that count", "judgments", COUNT_VALUES),
    "label": ColumnEntry("Most probable label by Dawid and Skene’s model", values="the labels"),
    "confidence": FITTED_ENTRIES["confidence"],
    "entropy": ColumnEntry("Uncertainty about the label: entropy of the labels’ probabilities", BITS, ZERO_OR_MORE),
    "expected_information": ColumnEntry("Information that one more label is expected to give", BITS, ZERO_OR_MORE),
}
TABLE_ENTRIES_BY_FILE = {
    "item_labels": LABEL_ITEM_ENTRIES
    | {
        "label": ColumnEntry(
            "Final label: the adjudicated one, else the most probable by Dawid and Skene’s model", values="the labels"
        ),
        "confidence": ColumnEntry(
            "Probability that the most probable label is right, which may differ from an adjudicated one",
            "probability",
            "0 to 1",
        ),
    },
    "label_items": LABEL_ITEM_ENTRIES,
    "labels": {
        "label": ColumnEntry("The label", values="the labels"),
        "prevalence": ColumnEntry("Share of items with this label by Dawid and Skene’s model", SHARE, ONE_AT_MOST),
        "share": ColumnEntry("Share of the judgments that gave this label", SHARE, ONE_AT_MOST),
        "items": ColumnEntry("Items whose most probable label this is", "items", COUNT_VALUES),
        "accuracy": ColumnEntry(
            "Probability that a typical annotator gives this label to such items", PROBABILITY, ONE_AT_MOST
        ),
    },
    "label_annotators": {
        "labels": ColumnEntry("Labels that the annotator gave", "labels", COUNT_VALUES),
        "accuracy": ColumnEntry("Probability that the annotator gives exactly the right label", PROBABILITY, "0 to 1"),
        "information": ColumnEntry("Information that a label of this annotator gives on average", BITS, ZERO_OR_MORE),
    },
    "agreement": {
        "pairs": ColumnEntry("Pairs of judgments of the same item", "pairs of judgments", COUNT_VALUES),
    },
}
PROBABILITY_PREFIXES = ("probability_", "accuracy_")  # before the number of a label
