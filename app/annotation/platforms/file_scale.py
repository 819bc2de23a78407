"""Values of a file whose scale has other ends than the campaign's, such as 1 to 7 for points. Pure."""

import math

from app.annotation.platforms.result_format import ValueReader
from app.designs.number_parsing import parse_strict_decimal
from app.errors import shorten_echo
from app.uploads import raise_upload_refusal_at_line


def campaign_value_of_file_scale_text_or_refuse(
    line: int, text: str, scale: tuple[float, float], value_reader: ValueReader
) -> float:
    """Return a value of a file's scale on the campaign's scale, by linear interpolation between both scales' ends.

    Args:
        line: Line of the value.
        text: The value, in the notation of programs.
        scale: Values of the file that mean the lowest and the highest value of the campaign; the first may be larger.
        value_reader: Reader of the campaign's values.

    Raises:
        Invalid: `scale_not_possible`, `score_not_a_number`, `score_outside_file_scale`, `score_between_classes`.

    """
    if (ends := value_reader.scale_ends_or_none) is None:
        message = "annotators of this campaign do not give values on a scale, so scale_from and scale_to do not apply."
        raise_upload_refusal_at_line("scale_not_possible", line, message)
    try:
        number = parse_strict_decimal(text)
    except ValueError:
        message = f"the value “{shorten_echo(text)}” is not a number, and scale_from and scale_to need numbers."
        raise_upload_refusal_at_line("score_not_a_number", line, message)
    first, last = scale
    if not min(scale) <= number <= max(scale):
        message = f"the value {shorten_echo(text)} is not on the file’s scale, {first:g} to {last:g}."
        raise_upload_refusal_at_line("score_outside_file_scale", line, message)
    lowest, highest = ends
    value = lowest + (number - first) / (last - first) * (highest - lowest)
    if not value_reader.classes:
        return value
    if not math.isclose(value, round(value), abs_tol=1e-9):
        message = (
            f"the value {shorten_echo(text)} of a scale from {first:g} to {last:g} falls between two of the campaign’s "
            f"{len(value_reader.classes)} classes."
        )
        raise_upload_refusal_at_line("score_between_classes", line, message)
    return float(round(value))
