"""Options that `easel analyse` and `easel export` share."""

import click

from app.analysis.result_types import MAX_CLASSES

classes_option = click.option(
    "--classes",
    type=click.IntRange(2, MAX_CLASSES),
    default=2,
    show_default=True,
    help="Number of labels into which scores are cut; ignored if annotators choose labels.",
)

criterion_option = click.option(
    "--criterion", default="", help="Name of a criterion, if the campaign has several. Default: the first."
)
