"""`easel experiment`."""

from pathlib import Path

import click
import numpy as np

from app.campaigns.demo import verbs
from app.simulation.annotators import POPULATIONS
from app.simulation.experiment_report import OfContext, Part, write
from app.simulation.experiment_table import write_table
from app.simulation.experiments import AfterRound, Experiment, found, runs_of

NO_TABLE = "Results are not written as Parquet, which needs pyarrow: pip install 'easel[experiments]'."
CONTEXTS = 0.0, 0.25, 0.5, 0.75, 1.0  # by what share the noise falls
OUT_HELP = "Folder for results, figures and report; runs that are there already are not done again."
CONTEXT_HELP = "By what share the noise of answers falls where the same value stands beside, in the second part."


@click.group()
def experiment() -> None:
    """Repeat an experiment of the papers on made-up annotators."""


@experiment.command("lexical-frequency")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help=OUT_HELP)
@click.option("--runs", type=click.IntRange(2), default=100, show_default=True, help="How many campaigns of each arm.")
@click.option("--like", type=click.Choice([*POPULATIONS]), default="mlqe-et-en", show_default=True, help="Whom.")
@click.option(
    "--context", type=click.FloatRange(0, 1, min_open=True), default=0.5, show_default=True, help=CONTEXT_HELP
)
@click.option("--seed", type=click.IntRange(0), default=2018, show_default=True, help="Start of all random choices.")
def lexical_frequency(out: Path, runs: int, like: str, context: float, seed: int) -> None:
    """150 verbs, asked about by direct assessment, RA, TrueSkill and EASL (Sakaguchi & Van Durme 2018, section 5)."""
    out.mkdir(parents=True, exist_ok=True)
    truth = verbs()
    with_context = (context, f"With a context effect of {context:.0%}", WITH_CONTEXT)
    parts, all_found = [], []
    for effect, title, said in ((0.0, "Without a context effect", WITHOUT_CONTEXT), with_context):
        mine = Experiment(f"lexical-frequency-context-{effect:g}", tuple(truth), POPULATIONS[like], effect, seed)
        all_found.append((mine, done(mine, out, runs, title)))
        parts.append(Part(title, said, mine.name, all_found[-1][1], np.array(truth)))
    contexts = []
    for effect in CONTEXTS:
        mine = Experiment(f"context-{effect:g}", tuple(truth), POPULATIONS[like], effect, seed, ("da", "easl"))
        all_found.append((mine, done(mine, out, runs, f"A context effect of {effect:.0%}")))
        contexts.append(OfContext(effect, all_found[-1][1]))
    if not write_table(out / "lexical-frequency.parquet", all_found):
        click.echo(NO_TABLE, err=True)
    command = f"easel experiment lexical-frequency --runs {runs} --like {like} --context {context:g} --seed {seed}"
    report = out / "lexical-frequency.md"
    write(report, "Lexical frequency", ABOUT, parts, contexts=contexts, command=command, seed=seed)
    click.echo(report)


def done(experiment: Experiment, out: Path, runs: int, label: str) -> list[list[AfterRound]]:
    """What the runs found, those that were missing with a progress bar."""
    with click.progressbar(length=runs, label=label) as bar:
        for there in runs_of(experiment, out, runs):
            bar.update(there - bar.pos)
    return found(experiment, out, runs)


ABOUT = (
    "150 verbs, whose true values are their logarithmic frequencies in film subtitles; HITs of 5, each by one of 30 "
    "made-up annotators. Every arm asks the same people anew. Direct assessment asks about all verbs as often, in a "
    "random order; RA, TrueSkill and EASL choose by Algorithm 1 and learn by their own law; the last arm asks as "
    "direct assessment does and learns who can be relied on. The figures answer to Figure 6 of Sakaguchi & Van Durme "
    "(2018), whose verbs and answers were not published: with other verbs and made-up people the heights differ, and "
    "what can be compared is the order of the curves."
)
WITHOUT_CONTEXT = (
    "Annotators answer the same whatever stands beside an item: what is gained here comes from choosing items, and "
    "from knowing annotators, alone."
)
WITH_CONTEXT = (
    "Annotators err less where a similar item stands beside, which is what match quality brings together: what is "
    "gained here beyond the part above comes from that."
)
