"""Dawid-Skene on real labels against published figures, and on a million items against crowd-kit, in one run:
`python -m benchmarks.dawid_skene`.

crowd-kit brings pandas, scikit-learn and transformers (0.8 GB), so it lives in an environment of its own:

    python3 -m venv .cache/crowd-kit && .cache/crowd-kit/bin/pip install crowd-kit==1.4.2

Another place is given as `--crowd-kit PATH/bin/python`. Without it the table has Easel's row alone, and says so.
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
ITEMS, PER_ITEM, ANNOTATORS = 1_000_000, 5, 1000
Integers = npt.NDArray[np.int64]

# Each runs in a process of its own, so that its peak of memory is its own; reading the labels is not timed.
EASEL = """
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
OTHER = """
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


def figures() -> None:
    labels = np.loadtxt(DATA / "anesthesia" / "anesthesia.csv", delimiter=",", skiprows=1, dtype=int).T - 1
    votes = fit(*labels, alpha=1.0, beta=1.0)
    best = fit(*labels, alpha=1.0, beta=1.0, restarts=200, rng=np.random.default_rng(1979))
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
        ("1979: log-likelihood from shares of votes", "-190.73", f"{votes.log_likelihood:.2f}"),
        ("1979: the best of 200 random starts", "-189.41", f"{best.log_likelihood:.3f}"),
    )
    print("| labels | elsewhere | Easel |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def simulated(rng: np.random.Generator) -> tuple[Integers, dict[str, Integers]]:
    """Two classes, 30 % of the second; annotators are right with a probability of their own, Beta(6, 2), per class."""
    truth = (rng.random(ITEMS) < 0.3).astype(np.int64)
    items, annotators = np.repeat(np.arange(ITEMS), PER_ITEM), rng.integers(ANNOTATORS, size=ITEMS * PER_ITEM)
    right = rng.random(len(items)) < rng.beta(6, 2, (ANNOTATORS, 2))[annotators, truth[items]]
    return truth, {"items": items, "annotators": annotators, "labels": np.where(right, truth[items], 1 - truth[items])}


def run(python: Path, program: str, folder: Path) -> tuple[list[float], dict[str, Any]]:
    """Seconds, iterations and GB of one program, and what it found."""
    command = [str(python), "-c", program, str(folder / "labels.npz"), str(folder / "found.npz")]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    with np.load(folder / "found.npz") as found:
        return json.loads(told.stdout), dict(found)


def speed(crowd_kit: Path) -> None:
    truth, labels = simulated(np.random.default_rng(2014))
    data = latent_classes.make_label_matrix(labels["items"], labels["annotators"], labels["labels"], ANNOTATORS, 2)
    programs = [("Easel, posteriors to 1e-6", Path(sys.executable), EASEL)]
    if crowd_kit.exists():
        programs.append(("crowd-kit 1.4.2, as it comes", crowd_kit, OTHER))
    print("| 1,000,000 items x 5 labels, K = 2 | seconds | iterations | peak GB | log-likelihood | items right |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        np.savez(
            Path(name) / "labels.npz",
            items=labels["items"],
            annotators=labels["annotators"],
            labels=labels["labels"],
        )
        for title, python, program in programs:
            (seconds, iterations, gigabytes), found = run(python, program, Path(name))
            height = latent_classes.class_posteriors_and_log_likelihood(
                data, ClassParameters(found["prevalence"], found["response"])
            )[1]
            right = (found["consensus"] == truth).mean()
            print(f"| {title} | {seconds:.1f} | {iterations:.0f} | {gigabytes:.2f} | {height:,.1f} | {right:.4f} |")
    if not crowd_kit.exists():
        print(f"\nNot measured: crowd-kit. There is no {crowd_kit}; benchmarks/dawid_skene.py says how to install it.")


def main(crowd_kit: Path = CROWD_KIT) -> None:
    figures()
    print()
    speed(crowd_kit)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Dawid-Skene against published figures and crowd-kit")
    parser.add_argument("--crowd-kit", type=Path, default=CROWD_KIT, help="the Python that has crowd-kit")
    main(parser.parse_args().crowd_kit)
