"""`easel experiment ...`: published experiments with simulated annotators or with people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from app.cli.command_group import CommandGroup
from app.cli.run_command import current_utc_time, given_or_likely_server_url, run_in_transaction, run_with_engine
from app.errors import Conflict
from app.simulation.annotators import POPULATIONS

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.experiments import arm_comparison, sakaguchi_2018
    from app.experiments import human_arms as with_arms
    from app.experiments.runs import Experiment, RunExperiment, RunResults

OUT_HELP = "Folder for results, figures and report; finished runs in it are not repeated."
CONTEXT_HELP = (
    "In the second part: share of an answer's noise that disappears if the HIT shows another item of the same value."
)
COMPARISONS_HELP = "Table of comparisons: first, second, winner, judge, segment."
OUTPUTS_HELP = "Table of outputs: system, segment, score."
PEOPLE_HELP = (
    "Repeat the experiment with people: create a campaign for each of the arms DA, RA and EASL, and one link for all."
)
LAUNCH_HELP = "With --people: launch the campaigns at once. Default: leave them as drafts."
PER_ANNOTATOR_HELP = (
    "With --people: maximum number of judgments per person, in HITs of one or five items. Default: no limit."
)
REQUIRED_PACKAGES = ("pyarrow", "matplotlib")
CommandFunction = Callable[..., Any]


@click.group(cls=CommandGroup)
def experiment() -> None:
    """Repeat an experiment of the papers with simulated annotators, or with people."""


def make_option_of_results_folder(
    *, is_required: bool = True, help_text: str = OUT_HELP
) -> Callable[[CommandFunction], CommandFunction]:
    """Return the option for the folder of results."""
    folder = click.Path(file_okay=False, writable=True, path_type=Path)
    return click.option("--out", type=folder, required=is_required, help=help_text)


def with_run_options(command: CommandFunction, *, out_required: bool = True) -> CommandFunction:
    """Add the options of every experiment that is run many times."""
    for option in (
        click.option(
            "--seed", type=click.IntRange(0), default=2018, show_default=True, help=("Seed of the random numbers.")
        ),
        click.option(
            "--runs",
            type=click.IntRange(2),
            default=100,
            show_default=True,
            help="Number of simulated campaigns per arm.",
        ),
        make_option_of_results_folder(is_required=out_required),
    ):
        command = option(command)
    return command


def with_rating_scale_options(command: CommandFunction, *, out_required: bool = True) -> CommandFunction:
    """Add the options of experiments with items on a scale."""
    for option in (
        click.option(
            "--context", type=click.FloatRange(0, 1, min_open=True), default=0.5, show_default=True, help=CONTEXT_HELP
        ),
        click.option(
            "--like",
            type=click.Choice([*POPULATIONS]),
            default="mlqe-et-en",
            show_default=True,
            help="Annotators to simulate.",
        ),
    ):
        command = option(command)
    return with_run_options(command, out_required=out_required)


def with_experiment_campaign_options(command: CommandFunction) -> CommandFunction:
    """Add the options of an experiment whose arms can be campaigns."""
    for option in (
        click.option("--launch", is_flag=True, help=LAUNCH_HELP),
        click.option("--judgments-per-annotator", type=click.IntRange(1, 1_000_000), help=PER_ANNOTATOR_HELP),
        click.option(
            "--judgments-per-item", type=click.IntRange(1, 10_000), default=10, show_default=True,
            help="With --people: judgments per item in each arm.",
        ),
        click.option("--name", default="Lexical frequency", show_default=True, help=("With --people: name of the "
                                                                                    "experiment.")),
        click.option("--people", is_flag=True, help=PEOPLE_HELP),
    ):  # fmt: skip
        command = option(command)
    return with_rating_scale_options(command, out_required=False)


@experiment.command("lexical-frequency")
@with_experiment_campaign_options
def run_lexical_frequency(
    out: Path | None,
    runs: int,
    like: str,
    context: float,
    seed: int,
    *,
    people: bool,
    launch: bool,
    **people_options: Any,
) -> None:
    """Scale 150 verbs (Sakaguchi & Van Durme 2018, section 5.1) with simulated annotators or, with --people, with
    people.
    """
    from app.experiments import human_arms as with_arms
    from app.experiments import sakaguchi_2018

    if people is (out is not None):
        raise click.UsageError("Give either --out, for simulated annotators, or --people.")
    if out is None:
        create_experiment_campaigns_and_print_links(
            with_arms.ExperimentRequest(**people_options), launches_at_once=launch
        )
    else:
        run_scale_experiment(
            sakaguchi_2018.load_lexical_frequency_material(),
            out,
            runs,
            population_name=like,
            noise_share=context,
            seed=seed,
        )


def create_experiment_campaigns_and_print_links(
    experiment_settings: with_arms.ExperimentRequest, *, launches_at_once: bool
) -> None:
    """Create the campaigns of its arms, and print the link for annotators."""
    from app.annotation.platforms.registry import EXPERIMENT_PATH_PREFIX, open_link_url_of_campaign
    from app.experiments import human_arms as with_arms

    experiment_row = run_in_transaction(
        partial(
            with_arms.create_experiment,
            request=experiment_settings,
            is_launched=launches_at_once,
            now=current_utc_time(),
        )
    )
    click.echo(f"The experiment {experiment_row.name} has these arms:")
    for arm, row in experiment_row.campaigns.items():
        click.echo(f"  {arm:5} {given_or_likely_server_url()}/admin/campaigns/{row.slug} ({row.status})")
    annotator_link = open_link_url_of_campaign(
        given_or_likely_server_url() + EXPERIMENT_PATH_PREFIX, experiment_row.link_key
    )
    click.echo(f"Annotators: {annotator_link} (while Easel is running)")
    click.echo(f"When they have answered: easel experiment compare {experiment_row.name} --out FOLDER")


@experiment.command("compare")
@click.argument("name")
@make_option_of_results_folder(
    help_text="Folder for figures, tables and report; earlier files of this experiment are replaced."
)
def compare_experiment_arms(name: str, out: Path) -> None:
    """Compare the arms of NAME, an experiment with people, with the truth and with each other."""
    from app.database.bulk import open_snapshot
    from app.experiments import arm_comparison

    require_packages_and_create_out_folder(out)

    async def work(engine: AsyncEngine) -> arm_comparison.AnsweredExperiment:
        async with open_snapshot(engine) as connection:
            return await arm_comparison.load_comparable_arms_of_experiment(connection, name)

    click.echo(
        arm_comparison.write_arm_comparison_report(
            run_with_engine(work), out, f"easel experiment compare {name}", now=current_utc_time()
        )
    )


@experiment.command("political-spectrum")
@with_rating_scale_options
@click.option("--items", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Table of statements.")
@click.option("--text", default="text", show_default=True, help="Column with the statements.")
@click.option("--value", default="value", show_default=True, help="Column with the values.")
@click.option(
    "--ends", type=(float, float), default=(-2.0, 2.0), show_default=True, help="Lowest and highest possible value."
)
def run_political_spectrum(  # noqa: PLR0917
    out: Path, runs: int, like: str, context: float, seed: int, items: Path | None, text: str, value: str,
    ends: tuple[float, float],
) -> None:  # fmt: skip
    """Scale 150 political statements from a file, or simulated ones (Sakaguchi & Van Durme 2018, section 5.2)."""
    from app.experiments import sakaguchi_2018

    rows = sakaguchi_2018.load_texts_with_shares_of_scale(items, text, value, ends) if items else None
    material = sakaguchi_2018.load_or_simulate_political_material(rows, seed)
    run_scale_experiment(material, out, runs, population_name=like, noise_share=context, seed=seed)


@experiment.command("translation-systems")
@with_run_options
@click.option(
    "--like", type=click.Choice([*POPULATIONS]), default="mlqe-et-en", show_default=True, help="Annotators to simulate."
)
@click.option("--outputs", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=OUTPUTS_HELP)
@click.option(
    "--ends", type=(float, float), default=(0.0, 100.0), show_default=True, help="Lowest and highest possible score."
)
def run_translation_systems(  # noqa: PLR0917
    out: Path, runs: int, seed: int, like: str, outputs: Path | None, ends: tuple[float, float]
) -> None:
    """Rank 10 systems by their translations, from a file or simulated (Sakaguchi & Van Durme 2018, section 5.3)."""
    from app.experiments import sakaguchi_2018_systems

    require_packages_and_create_out_folder(out)
    names, quality = (
        sakaguchi_2018_systems.load_system_names_and_output_quality(outputs, ends)
        if outputs
        else sakaguchi_2018_systems.simulate_system_names_and_output_quality(seed)
    )
    source_text = sakaguchi_2018_systems.FILE_OUTPUTS_TEXT if outputs else sakaguchi_2018_systems.SIMULATED_OUTPUTS_TEXT
    system_experiment = sakaguchi_2018_systems.SystemsExperiment(
        "translation-systems", quality, POPULATIONS[like], seed
    )
    command = f"easel experiment {system_experiment.name} --runs {runs} --like {like} --seed {seed}"
    click.echo(
        sakaguchi_2018_systems.run_systems_experiment_and_write_report(
            names, system_experiment, out, make_experiment_runner(out, runs), source_text, command
        )
    )


@experiment.command("random-judges")
@with_run_options
@click.option(
    "--judgments",
    type=click.IntRange(100, 1_000_000),
    default=1600,
    show_default=True,
    help="Number of comparisons per run.",
)
@click.option("--comparisons", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=COMPARISONS_HELP)
@click.option("--baseline", help="Baseline system. Default: the system compared most often.")
def run_random_judges(  # noqa: PLR0917
    out: Path, runs: int, seed: int, judgments: int, comparisons: Path | None, baseline: str | None
) -> None:
    """Study judges who answer at random, and the choice of a baseline (Otani et al. 2016, sections 6.3 and 6.4)."""
    from app.experiments import otani_2016
    from app.experiments.comparison_file import load_comparison_file

    if baseline is not None and comparisons is None:
        raise click.UsageError("--baseline is a system of --comparisons.")
    require_packages_and_create_out_folder(out)
    judging = (
        load_comparison_file(comparisons, baseline, judgments)
        if comparisons
        else otani_2016.SimulatedJudging(judgments=judgments)
    )
    command = f"easel experiment random-judges --runs {runs} --judgments {judgments} --seed {seed}"
    command += f" --comparisons {quote(comparisons.name)}" if comparisons else ""
    command += f" --baseline {quote(baseline)}" if baseline else ""
    click.echo(
        otani_2016.run_judge_experiments_and_write_report(
            judging, seed, out, make_experiment_runner(out, runs), command
        )
    )


@experiment.command("comparison-counts")
@with_run_options
def run_comparison_counts(out: Path, runs: int, seed: int) -> None:
    """Study the number of comparisons, and what segments can tell (Otani et al. 2016, Figures 3 and 5)."""
    from app.experiments import otani_2016, otani_2016_counts

    require_packages_and_create_out_folder(out)
    command = f"easel experiment comparison-counts --runs {runs} --seed {seed}"
    click.echo(
        otani_2016_counts.run_comparison_count_experiment_and_write_report(
            otani_2016.SimulatedJudging(), seed, out, make_experiment_runner(out, runs), command
        )
    )


@experiment.command("word-senses")
@make_option_of_results_folder()
def run_word_senses(out: Path) -> None:
    """Label the senses of four words with Dawid-Skene and by voting (Passonneau & Carpenter 2014)."""
    from app.experiments import passonneau_2014

    require_packages_and_create_out_folder(out)
    click.echo(passonneau_2014.run_word_sense_experiment_and_write_report(out, "easel experiment word-senses"))


@experiment.command("transitivity")
@with_run_options
def run_transitivity(out: Path, runs: int, seed: int) -> None:
    """Measure annotators' consistency, and questions saved by implied pairs (Amidei 2020, Table 2 and section 4)."""
    from app.experiments import amidei_2020

    require_packages_and_create_out_folder(out)
    command = f"easel experiment transitivity --runs {runs} --seed {seed}"
    click.echo(
        amidei_2020.run_transitivity_experiment_and_write_report(seed, out, make_experiment_runner(out, runs), command)
    )


def run_scale_experiment(
    material: sakaguchi_2018.ScaleMaterial,
    out_folder: Path,
    runs: int,
    *,
    population_name: str,
    noise_share: float,
    seed: int,
) -> None:
    """Run the experiment, and print where the report is."""
    from app.experiments import sakaguchi_2018

    if not noise_share > 0:  # Click lets NaN pass
        raise click.UsageError("--context is a share: more than 0, 1 at most.")
    require_packages_and_create_out_folder(out_folder)
    option_text = f"--runs {runs} --like {population_name} --context {noise_share:g} --seed {seed}"
    command = f"easel experiment {material.name} {option_text}"
    run_experiment = make_experiment_runner(out_folder, runs)
    click.echo(
        sakaguchi_2018.run_scale_experiments_and_write_report(
            material, POPULATIONS[population_name], noise_share, seed, out_folder, run_experiment, command
        )
    )


def require_packages_and_create_out_folder(out_folder: Path) -> None:
    """Create the folder, before any long computation whose result could not be written.

    Raises:
        Conflict: `no_extra`, `file_not_written`.

    """
    if missing := [name for name in REQUIRED_PACKAGES if find_spec(name) is None]:
        raise Conflict(f"{missing[0]} is missing: pip install 'easel[experiments]'.", code="no_extra")
    try:
        out_folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Conflict(f"{out_folder} cannot be created: {problem.strerror}.", code="file_not_written") from problem


def make_experiment_runner(out_folder: Path, runs: int) -> RunExperiment:
    """Return a function that runs what is missing, with a progress bar, and returns all results."""
    from app.experiments.runs import load_runs, run_missing_and_iterate_finished_counts

    def run_with_progress(planned_experiment: Experiment, label: str) -> RunResults:
        with click.progressbar(length=runs, label=label) as bar:
            for finished_runs in run_missing_and_iterate_finished_counts(planned_experiment, out_folder, runs):
                bar.update(finished_runs - bar.pos)
        return load_runs(planned_experiment, out_folder, runs)

    return run_with_progress
