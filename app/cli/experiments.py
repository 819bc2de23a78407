"""`easel experiment`."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncEngine

from app.cli.running import base_of, in_transaction, now, on_engine
from app.crowd.places import EXPERIMENT_PATH_PREFIX
from app.crowd.registry import public_link
from app.database.bulk import snapshot
from app.errors import Conflict
from app.experiments import compared, judges, on_a_scale, senses, systems, transitive
from app.experiments import people as with_arms
from app.experiments.judges_of_a_file import judges_of
from app.experiments.runs import Courses, Experiment, Run, found, runs_of
from app.simulation.annotators import POPULATIONS

OUT_HELP = "Folder for results, figures and report; runs that are there already are not done again."
CONTEXT_HELP = "By what share the noise of answers falls where the same value stands beside, in the second part."
COMPARISONS_HELP = "Table of comparisons: first, second, winner, judge, segment."
OUTPUTS_HELP = "Table of outputs: system, segment, score."
PEOPLE_HELP = "Repeat it with people: a campaign for each of the arms DA, RA and EASL, and one link to all of them."
PER_ANNOTATOR_HELP = "With --people: the most that one person gives, in HITs of one or five items. Default: no limit."
NEEDED = ("pyarrow", "matplotlib")
Command = Callable[..., Any]


@click.group()
def experiment() -> None:
    """Repeat an experiment of the papers on made-up annotators, or with people."""


def into_folder(*, required: bool = True, words: str = OUT_HELP) -> Callable[[Command], Command]:
    """Where it writes what it finds."""
    folder = click.Path(file_okay=False, writable=True, path_type=Path)
    return click.option("--out", type=folder, required=required, help=words)


def repeated(command: Command, *, out_required: bool = True) -> Command:
    """What every experiment that is run many times can be told."""
    for option in (
        click.option("--seed", type=click.IntRange(0), default=2018, show_default=True, help="Start of all chances."),
        click.option("--runs", type=click.IntRange(2), default=100, show_default=True, help="Campaigns of each arm."),
        into_folder(required=out_required),
    ):
        command = option(command)
    return command


def on_a_scale_(command: Command, *, out_required: bool = True) -> Command:
    """What experiments with items on a scale can be told."""
    for option in (
        click.option(
            "--context", type=click.FloatRange(0, 1, min_open=True), default=0.5, show_default=True, help=CONTEXT_HELP
        ),
        click.option(
            "--like", type=click.Choice([*POPULATIONS]), default="mlqe-et-en", show_default=True, help="Annotators."
        ),
    ):
        command = option(command)
    return repeated(command, out_required=out_required)


def with_people(command: Command) -> Command:
    """What an experiment can be told whose arms can be campaigns."""
    for option in (
        click.option("--launch", is_flag=True, help="With --people: open the campaigns at once; otherwise drafts."),
        click.option("--judgments-per-annotator", type=click.IntRange(1, 1_000_000), help=PER_ANNOTATOR_HELP),
        click.option(
            "--judgments-per-item", type=click.IntRange(1, 10_000), default=10, show_default=True,
            help="With --people: judgments wanted of each item, in each arm.",
        ),
        click.option("--name", default="Lexical frequency", show_default=True, help="With --people: its name."),
        click.option("--people", is_flag=True, help=PEOPLE_HELP),
    ):  # fmt: skip
        command = option(command)
    return on_a_scale_(command, out_required=False)


@experiment.command("lexical-frequency")
@with_people
def lexical_frequency(
    out: Path | None, runs: int, like: str, context: float, seed: int, *, people: bool, launch: bool, **wanted: Any
) -> None:
    """150 verbs (Sakaguchi & Van Durme 2018, section 5.1); with --people as campaigns, which `compare` compares."""
    if people is (out is not None):
        raise click.UsageError("Name one of --out, for made-up annotators, and --people.")
    if out is None:
        set_up(with_arms.ExperimentWanted(**wanted), launch=launch)
    else:
        conduct(on_a_scale.lexical_frequency(), out, runs, like, context, seed)


def set_up(wanted: with_arms.ExperimentWanted, *, launch: bool) -> None:
    """Make the campaigns of its arms, and say where people come in."""
    made = in_transaction(partial(with_arms.set_up, wanted=wanted, launch=launch, now=now()))
    click.echo(f"The experiment {made.name} has these arms:")
    for arm, row in made.campaigns.items():
        click.echo(f"  {arm:5} {base_of()}/admin/campaigns/{row.slug} ({row.status})")
    click.echo(f"Annotators: {public_link(base_of() + EXPERIMENT_PATH_PREFIX, made.link_key)} (while Easel is running)")
    click.echo(f"When they have answered: easel experiment compare {made.name} --out FOLDER")


@experiment.command()
@click.argument("name")
@into_folder(words="Folder for figures, tables and report; what is there of this experiment is written anew.")
def compare(name: str, out: Path) -> None:
    """What people answered in the arms of the experiment NAME, with the figures of the made-up one."""
    begin(out)

    async def work(engine: AsyncEngine) -> compared.AnsweredExperiment:
        async with snapshot(engine) as connection:
            return await compared.found(connection, name)

    click.echo(compared.compare(on_engine(work), out, f"easel experiment compare {name}", now=now()))


@experiment.command("political-spectrum")
@on_a_scale_
@click.option("--items", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Table of statements.")
@click.option("--text", default="text", show_default=True, help="Its column of statements.")
@click.option("--value", default="value", show_default=True, help="Its column of values.")
@click.option("--ends", type=(float, float), default=(-2.0, 2.0), show_default=True, help="Ends of the values.")
def political_spectrum(  # noqa: PLR0917
    out: Path, runs: int, like: str, context: float, seed: int, items: Path | None, text: str, value: str,
    ends: tuple[float, float],
) -> None:  # fmt: skip
    """150 political statements from a file, or made-up ones (Sakaguchi & Van Durme 2018, section 5.2)."""
    rows = on_a_scale.values_of(items, text, value, ends) if items else None
    conduct(on_a_scale.political_spectrum(rows, seed), out, runs, like, context, seed)


@experiment.command("translation-systems")
@repeated
@click.option("--like", type=click.Choice([*POPULATIONS]), default="mlqe-et-en", show_default=True, help="Annotators.")
@click.option("--outputs", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=OUTPUTS_HELP)
@click.option("--ends", type=(float, float), default=(0.0, 100.0), show_default=True, help="Ends of their scores.")
def translation_systems(  # noqa: PLR0917
    out: Path, runs: int, seed: int, like: str, outputs: Path | None, ends: tuple[float, float]
) -> None:
    """10 systems and their translations, from a file or made-up (Sakaguchi & Van Durme 2018, section 5.3)."""
    begin(out)
    names, quality = systems.outputs_of(outputs, ends) if outputs else systems.made_up(seed)
    about = systems.FROM_A_FILE if outputs else systems.MADE_UP
    one = systems.OfSystems("translation-systems", quality, POPULATIONS[like], seed)
    command = f"easel experiment {one.name} --runs {runs} --like {like} --seed {seed}"
    click.echo(systems.conduct(names, one, out, runner(out, runs), about, command))


@experiment.command("random-judges")
@repeated
@click.option(
    "--judgments", type=click.IntRange(100, 1_000_000), default=1600, show_default=True, help="Comparisons in a run."
)
@click.option("--comparisons", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=COMPARISONS_HELP)
@click.option("--baseline", help="One of its systems; without it the one that is compared most.")
def random_judges(  # noqa: PLR0917
    out: Path, runs: int, seed: int, judgments: int, comparisons: Path | None, baseline: str | None
) -> None:
    """Judges who answer at random, and the choice of a baseline (Otani et al. 2016, sections 6.3 and 6.4)."""
    if baseline is not None and comparisons is None:
        raise click.UsageError("--baseline is a system of --comparisons.")
    begin(out)
    of = judges_of(comparisons, baseline, judgments) if comparisons else judges.JudgingOfSystems(judgments=judgments)
    command = f"easel experiment random-judges --runs {runs} --judgments {judgments} --seed {seed}"
    command += f" --comparisons {quote(comparisons.name)}" if comparisons else ""
    command += f" --baseline {quote(baseline)}" if baseline else ""
    click.echo(judges.conduct(of, seed, out, runner(out, runs), command))


@experiment.command("word-senses")
@into_folder()
def word_senses(out: Path) -> None:
    """Four words and their senses by Dawid-Skene and by votes (Passonneau & Carpenter 2014)."""
    begin(out)
    click.echo(senses.conduct(out, "easel experiment word-senses"))


@experiment.command("transitivity")
@repeated
def transitivity(out: Path, runs: int, seed: int) -> None:
    """How consistent annotators are, and what implied pairs save (Amidei 2020, Table 2 and section 4)."""
    begin(out)
    command = f"easel experiment transitivity --runs {runs} --seed {seed}"
    click.echo(transitive.conduct(seed, out, runner(out, runs), command))


def conduct(material: on_a_scale.Material, out: Path, runs: int, like: str, context: float, seed: int) -> None:  # noqa: PLR0917
    """Do all of it, and say where the report is."""
    if not context > 0:  # Click lets NaN pass
        raise click.UsageError("--context is a share: more than 0, 1 at most.")
    begin(out)
    told = f"--runs {runs} --like {like} --context {context:g} --seed {seed}"
    command = f"easel experiment {material.name} {told}"
    done = runner(out, runs)
    click.echo(on_a_scale.conduct(material, POPULATIONS[like], context, seed, out, done, command))


def begin(out: Path) -> None:
    """Raises `Conflict` (`no_extra`, `file_not_written`) before anything is worked out that could not be written."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise Conflict(f"{missing[0]} is missing: pip install 'easel[experiments]'.", code="no_extra")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Conflict(f"{out} cannot be made: {problem.strerror}.", code="file_not_written") from problem


def runner(out: Path, runs: int) -> Run:
    """What the runs of an experiment found, those that were missing with a progress bar."""

    def done(one: Experiment, label: str) -> Courses:
        with click.progressbar(length=runs, label=label) as bar:
            for there in runs_of(one, out, runs):
                bar.update(there - bar.pos)
        return found(one, out, runs)

    return done
