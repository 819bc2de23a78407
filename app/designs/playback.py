"""Playback of recordings and videos: how often an annotator played each item, and how much of it they heard.

The page's script reports it in hidden values of the form. Without JavaScript nothing is known of it, and nothing can be
demanded.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from app.designs.answer import Form, Playback
from app.designs.item_names import ItemName, item_names
from app.designs.number_parsing import parse_nonnegative_int_or_none, parse_strict_decimal
from app.designs.unjudged import UNJUDGED_PREFIX
from app.errors import Invalid

MustPlay = Literal["none", "start", "end"]
SoundSwitching = Literal["none", "restart", "same position"]

PLAYS_PREFIX, HEARD_PREFIX, LENGTH_PREFIX = "plays-", "seconds_heard-", "seconds_long-"
SWITCHES_PREFIX = "switches-"
PLAYBACK_PREFIXES = (PLAYS_PREFIX, HEARD_PREFIX, LENGTH_PREFIX, SWITCHES_PREFIX)
SCRIPTED_PAGE = "page"  # the source of a form that the script sent
ENOUGH_HEARD = 0.9  # share of the length that counts as all of it: the last moments of a file are often not reported
MAX_SECONDS = 1e6


def parse_playbacks_by_item(form: Mapping[str, str], items: Sequence[ItemName]) -> dict[int, Playback]:
    """Return the playbacks from a form's fields `plays-NAME`, `seconds_heard-NAME` and `switches-NAME`.

    Invalid fields are dropped.
    """
    if not any(field.startswith(PLAYBACK_PREFIXES) for field in form):  # as on all pages without sound or film
        return {}
    playbacks = {
        item: Playback(
            parse_nonnegative_int_or_none(form.get(f"{PLAYS_PREFIX}{item}")),
            parse_seconds_or_none(form.get(f"{HEARD_PREFIX}{item}")),
            parse_nonnegative_int_or_none(form.get(f"{SWITCHES_PREFIX}{item}")),
        )
        for item in items
    }
    return {item: playback for item, playback in playbacks.items() if playback != Playback()}


def parse_seconds_or_none(text: str | None) -> float | None:
    """Return a number of seconds, rounded to hundredths; None for anything else."""
    try:
        seconds = parse_strict_decimal(text or "")
    except ValueError:
        return None
    return round(seconds, 2) if math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS else None


def refuse_form_with_unplayed_items(must_play: str | None, form: Form, item_count: int) -> None:
    """Refuse a form whose script reports an item that was not played as the campaign demands.

    Items without a report, and those that cannot be judged, pass.

    Args:
        must_play: The campaign's setting, None if it has none.
        form: The form as the page sent it.
        item_count: The number of items of the HIT, checks included.

    Raises:
        Invalid: `not_played`.

    """
    if form.source != SCRIPTED_PAGE or must_play not in ("start", "end"):
        return
    names = item_names(item_count)
    unplayed = [
        position
        for position, name in enumerate(names, start=1)
        if is_item_reported_unplayed(must_play, form.fields, name)
    ]
    if not unplayed:
        return
    to_the_end = " to the end" if must_play == "end" else ""
    message = f"Not everything was played{to_the_end} yet. Play it, then submit again. What you entered is kept."
    raise Invalid(message, code="not_played", positions=unplayed)


def is_item_reported_unplayed(must_play: str, fields: Mapping[str, str], name: ItemName) -> bool:
    """Return whether the form reports that the item of this name was played less than is demanded."""
    plays = parse_nonnegative_int_or_none(fields.get(f"{PLAYS_PREFIX}{name}"))
    if plays is None or fields.get(f"{UNJUDGED_PREFIX}{name}"):
        return False
    heard = parse_seconds_or_none(fields.get(f"{HEARD_PREFIX}{name}")) or 0.0
    length = parse_seconds_or_none(fields.get(f"{LENGTH_PREFIX}{name}")) or 0.0
    return plays < 1 or (must_play == "end" and heard < ENOUGH_HEARD * length)
