"""Published judgments as campaigns: `python examples/published.py NAME FOLDER` writes settings.json, items.csv and
responses.csv, and says the commands that make a campaign of them.

NAME is `arguments`, `senses`, `anesthesia` or `outputs`: see the SOURCE.md of the folders in `data`.
"""

import argparse
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
UKP = DATA / "ukp_convarg1"
PLACES = {1: (1, 2), 0: (1, 1), -1: (2, 1)}  # of the first and the second, by the outcome
NEEDED = ("hit", "annotator", "item", "value")
WINNERS = {"left": 1, "tie": 0, "right": -1}
BASELINE = "Weaver 12k"
REFERENCE = 100  # RankME's
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Campaign:
    """What a campaign is made of; rows of `items` and `responses` as the files have them, below their headers."""

    settings: dict[str, Any]
    columns: tuple[str, ...]
    items: list[Row]
    responses: list[Row]  # hit, annotator, item, value


def arguments(annotators: Iterable[int] | None = None) -> Campaign:
    """Which of two arguments is more convincing: Habernal & Gurevych 2016. By these annotators, or by all."""
    items = [(k, f"{row['topic']}: {row['argument']}") for k, row in enumerate(table(UKP / "arguments.csv"))]
    chosen = None if annotators is None else set(map(str, annotators))
    judged = [
        (row["first"], row["second"], row["annotator"], int(row["outcome"]))
        for row in table(UKP / "judgments.csv.gz")
        if chosen is None or row["annotator"] in chosen
    ]
    return Campaign(
        {"name": "Arguments", "question": "Which argument is more convincing?", "design": "pairwise"},
        ("id", "text"),
        items,
        [row for first, second, who, outcome in judged for row in pair(who, first, second, PLACES[outcome])],
    )


def pair(annotator: str, first: str, second: str, places: tuple[int, int]) -> Iterator[Row]:
    for item, place in zip((first, second), places, strict=True):
        yield f"{first} {second}", annotator, item, place


def senses(word: str = "add-v") -> Campaign:
    """Which of its senses a word has: Passonneau & Carpenter 2014."""
    rows = list(table(DATA / "masc_wordsense" / f"{word}.csv"))
    annotators = [name for name in rows[0] if name != "item"]
    given = [(row["item"], who, int(row[who])) for row in rows for who in annotators if row[who]]
    labels = [f"sense {k}" for k in range(1, max(sense for *_, sense in given) + 1)]
    return Campaign(
        {"name": word, "question": f"Which sense has {word}?", "design": "categories", "items_per_hit": 1}
        | {"design_settings": {"labels": labels}},
        ("id", "text"),
        [(row["item"], f"sentence {row['item']}") for row in rows],
        [(item, who, item, labels[sense - 1]) for item, who, sense in given],
    )


def anesthesia() -> Campaign:
    """How fit patients are for anaesthesia: Dawid & Skene 1979. One of the five judged each patient three times."""
    rows = list(table(DATA / "anesthesia" / "anesthesia.csv"))
    item, annotator, label = rows[0]
    turns: dict[tuple[str, str], int] = {}
    responses: list[Row] = []
    for row in rows:
        whom = row[annotator], row[item]
        turns[whom] = turns.get(whom, 0) + 1
        responses.append((f"{row[item]}, time {turns[whom]}", row[annotator], row[item], row[label]))
    return Campaign(
        {"name": "Anaesthesia", "question": "How fit is the patient?", "design": "ordinal", "items_per_hit": 1}
        | {"design_settings": {"labels": ["1", "2", "3", "4"]}},
        ("id", "text"),
        [(k, f"patient {k}") for k in sorted({int(row[item]) for row in rows})],
        responses,
    )


def outputs(criterion: str = "quality") -> Campaign:
    """How good three systems' sentences are, side by side and beside a reference: Novikova, Dušek & Rieser 2018."""
    rows = [
        row
        for row in table(DATA / "rankme" / "judgments.csv.gz")
        if (row["arm"], row["criterion"]) == ("stp2_rankME", criterion)
    ]
    return Campaign(
        {"name": f"Outputs: {criterion}", "question": f"{criterion.capitalize()}?", "design": "magnitude"}
        | {"items_per_hit": 3, "design_settings": {"reference_value": REFERENCE}},
        ("id", "text"),
        [(k, f"output {k}") for k in sorted({int(row["item"]) for row in rows})],
        [(k // 3, row["annotator"], row["item"], row["score"]) for k, row in enumerate(rows)],
    )


def chatbots(path: Path, prompt: str | None = None) -> Campaign:
    """Answers of chat models beside those of the one that is compared most: llmfao.csv, by Dmitry Ustalov 2023.

    It is no part of Easel: it lies in <https://github.com/dustalov/evalica>, commit 2ebe79e. A baseline is one item, so
    a campaign against it is about one prompt; all prompts together are pairs.
    """
    rows = [row for row in table(path) if BASELINE in (row["left"], row["right"]) and prompt in (None, row["prompt"])]
    made = sorted({(row["prompt"], row[side]) for row in rows for side in ("left", "right")})
    against = {"design": "baseline", "design_settings": {"baseline": f"{prompt} {BASELINE}"}}
    return Campaign(
        {"name": "Chatbots", "question": "Which answer is better?"} | (against if prompt else {"design": "pairwise"}),
        ("id", "text", "system", "segment"),
        [(f"{of} {model}", f"{model} on prompt {of}", model, of) for of, model in made],
        [
            row_of_item
            for row in rows
            for row_of_item in pair(
                row["worker"],
                f"{row['prompt']} {row['left']}",
                f"{row['prompt']} {row['right']}",
                PLACES[WINNERS[row["winner"]]],
            )
        ],
    )


def table(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file, packed or not."""
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    return csv.DictReader(io.StringIO(text, newline=""))


def as_csv(columns: Iterable[str], rows: Iterable[Row]) -> str:
    """A table with a header."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([columns, *rows])
    return file.getvalue()


MADE: dict[str, Callable[[], Campaign]] = {
    "arguments": arguments,
    "senses": senses,
    "anesthesia": anesthesia,
    "outputs": outputs,
}


def main(name: str, folder: Path) -> None:
    """Write the files, and say what to do with them."""
    campaign = MADE[name]()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(campaign.settings, indent=2) + "\n")
    (folder / "items.csv").write_text(as_csv(campaign.columns, campaign.items))
    (folder / "responses.csv").write_text(as_csv(NEEDED, campaign.responses))
    print(f"easel campaign create --settings {folder / 'settings.json'}   # says its SLUG")
    print(f"easel campaign import SLUG {folder / 'items.csv'}")
    print("easel campaign launch SLUG")
    print(f"easel campaign import-responses SLUG {folder / 'responses.csv'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=MADE)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    main(given.name, given.folder)
