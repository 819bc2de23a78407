"""Compare Dawid-Skene with published figures, and with crowd-kit on a million items: `python -m
benchmarks.dawid_skene`.

crowd-kit needs pandas, scikit-learn and transformers (0.8 GB), so it has its own environment:

    python3 -m venv .cache/crowd-kit && .cache/crowd-kit/bin/pip install crowd-kit==1.4.2

`--crowd-kit PATH/bin/python` selects another environment. Without crowd-kit, the second table has only the row of
Easel.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.experiments.passonneau_2014 import load_word_labels_with_fits, share_of_sure_sentences
from app.inference.labels import latent_classes
from app.inference.labels.dawid_skene import fit
from app.inference.labels.latent_classes import ClassParameters

ROOT = Path(__file__).parents[1]
DATA = ROOT / "examples" / "data"
CROWD_KIT = ROOT / ".cache" / "crowd-kit" / "bin" / "python"
ITEMS, LABELS_PER_ITEM, ANNOTATORS = 1_000_000, 5, 1000
Integers = npt.NDArray[np.int64]

# Each program runs in its own process, so that peak memory is its own; reading the labels is not timed.
EASEL_PROGRAM = """
import json, resource, sys, time
import numpy as np
from app.inference.labels.dawid_skene import consensus, fit
given = np.load(sys.argv[1])
start = time.perf_counter()
result = fit(given["items"], given["annotators"], given["labels"])
seconds = time.perf_counter() - start
np.savez(sys.argv[2], prevalence=result.prevalence, response=result.response, consensus=consensus(result)[0])
print(json.dumps([seconds, result.iterations, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6]))
"""
CROWD_KIT_PROGRAM = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
from crowdkit.aggregation import DawidSkene
given = np.load(sys.argv[1])
labels = pd.DataFrame({"task": given["items"], "worker": given["annotators"], "label": given["labels"]})
start = time.perf_counter()
result = DawidSkene().fit(labels)
seconds = time.perf_counter() - start
said = pd.MultiIndex.from_product([range(given["annotators"].max() + 1), [0, 1]])
response = result.errors_.reindex(said)[[0, 1]].to_numpy().reshape(-1, 2, 2).transpose(0, 2, 1)
np.savez(sys.argv[2], prevalence=result.priors_.sort_index(), response=response, consensus=result.labels_.sort_index())
print(json.dumps([seconds, len(result.loss_history_), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6]))
"""


def print_published_figures() -> None:
    """Print published figures next to those of Easel."""
    labels = np.loadtxt(DATA / "anesthesia" / "anesthesia.csv", delimiter=",", skiprows=1, dtype=int).T - 1
    fit_from_votes = fit(*labels, alpha=1.0, beta=1.0)
    best_fit = fit(*labels, alpha=1.0, beta=1.0, restarts=200, rng=np.random.default_rng(1979))
    rows = (
        ("*add*: prevalence of sense 1", ".51", f"{load_word_labels_with_fits('add-v').model_prevalence[0]:.3f}"),
        (
            "*date*: items with a posterior of .99 or more",
            ".97",
            f"{share_of_sure_sentences(load_word_labels_with_fits('date-n').fit_from_accuracy):.3f}",
        ),
        (
            "*help*: items with a posterior of .99 or more",
            ".81",
            f"{share_of_sure_sentences(load_word_labels_with_fits('help-v').fit_from_accuracy):.3f}",
        ),
        ("1979: log-likelihood from shares of votes", "-190.73", f"{fit_from_votes.log_likelihood:.2f}"),
        ("1979: the best of 200 random starts", "-189.41", f"{best_fit.log_likelihood:.3f}"),
    )
    print("| labels | elsewhere | Easel |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def simulate_labels_by_true_class(rng: np.random.Generator) -> tuple[Integers, dict[str, Integers]]:
    """Return the true classes, and columns of items, annotators and labels.

    30 % of items are in the second of two classes. Each annotator's accuracy for each class is Beta(6, 2).
    """
    true_classes = (rng.random(ITEMS) < 0.3).astype(np.int64)
    items, annotators = (
        np.repeat(np.arange(ITEMS), LABELS_PER_ITEM),
        rng.integers(ANNOTATORS, size=ITEMS * LABELS_PER_ITEM),
    )
    is_correct = rng.random(len(items)) < rng.beta(6, 2, (ANNOTATORS, 2))[annotators, true_classes[items]]
    return true_classes, {
        "items": items,
        "annotators": annotators,
        "labels": np.where(is_correct, true_classes[items], 1 - true_classes[items]),
    }


def run_program(python: Path, program: str, folder: Path) -> tuple[list[float], dict[str, Any]]:
    """Run one program and return its seconds, iterations and GB, and the arrays that it found."""
    command = [str(python), "-c", program, str(folder / "labels.npz"), str(folder / "found.npz")]
    process = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    with np.load(folder / "found.npz") as arrays:
        return json.loads(process.stdout), dict(arrays)


def print_speed(crowd_kit: Path) -> None:
    """Print time, memory and accuracy of Easel and of crowd-kit, if installed."""
    true_classes, labels = simulate_labels_by_true_class(np.random.default_rng(2014))
    label_matrix = latent_classes.make_label_matrix(
        labels["items"], labels["annotators"], labels["labels"], ANNOTATORS, 2
    )
    programs = [("Easel, posteriors to 1e-6", Path(sys.executable), EASEL_PROGRAM)]
    if crowd_kit.exists():
        programs.append(("crowd-kit 1.4.2, default settings", crowd_kit, CROWD_KIT_PROGRAM))
    print("| 1,000,000 items x 5 labels, K = 2 | seconds | iterations | peak GB | log-likelihood | items right |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        np.savez(
            Path(folder) / "labels.npz",
            items=labels["items"],
            annotators=labels["annotators"],
            labels=labels["labels"],
        )
        for title, python, program in programs:
            (seconds, iterations, gigabytes), arrays = run_program(python, program, Path(folder))
            log_likelihood = latent_classes.class_posteriors_and_log_likelihood(
                label_matrix, ClassParameters(arrays["prevalence"], arrays["response"])
            )[1]
            correct_share = (arrays["consensus"] == true_classes).mean()
            print(
                f"| {title} | {seconds:.1f} | {iterations:.0f} | {gigabytes:.2f} | {log_likelihood:,.1f} "
                f"| {correct_share:.4f} |"
            )
    if not crowd_kit.exists():
        print(f"\nNot measured: crowd-kit. There is no {crowd_kit}; benchmarks/dawid_skene.py says how to install it.")


def main(crowd_kit: Path = CROWD_KIT) -> None:
    print_published_figures()
    print()
    print_speed(crowd_kit)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Dawid-Skene against published figures and crowd-kit")
    parser.add_argument("--crowd-kit", type=Path, default=CROWD_KIT, help="the Python that has crowd-kit")
    main(parser.parse_args().crowd_kit)
