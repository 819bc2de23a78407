"""Campaigns of a round: every design, and settings on which annotators race for the last judgments."""

import csv
import io
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from app.designs.registry import DESIGNS

ITEMS = 14
SYSTEMS, SEGMENTS = 3, 6


class ChosenCampaign(NamedTuple):
    """Settings of a campaign and its table of items.

    Attributes:
        restores: Whether its owner restores what was excluded; then items may have more judgments than wanted.

    """

    settings: dict[str, Any]
    table: str
    restores: bool = False


def items_table(always_shown: tuple[str, ...] = (), checks: int = 0) -> str:
    """Return a table of items, the last ones gold items that expect 80."""
    rows = [{"id": f"v{k}", "text": f"verb {k}", "check": "", "expected": ""} for k in range(ITEMS)]
    rows += [{"id": name, "text": name, "check": "", "expected": ""} for name in always_shown]
    rows += [{"id": f"g{k}", "text": f"gold {k}", "check": "gold", "expected": "80"} for k in range(checks)]
    columns = list(rows[0]) if checks else ["id", "text"]
    return write_table([{name: row[name] for name in columns} for row in rows])


def outputs_table(*, checks: bool = False) -> str:
    """Return a table of outputs of systems for segments, perhaps with a gold item for each segment that expects 5."""
    rows = [
        {"segment": f"s{segment}", "system": f"m{system}", "output": f"output {system} of {segment}"}
        for segment in range(SEGMENTS)
        for system in range(SYSTEMS)
    ]
    if not checks:
        return write_table(rows)
    no_check = {"check": "", "expected": ""}
    gold = [
        {"segment": f"s{segment}", "system": "bad", "output": f"broken {segment}", "check": "gold", "expected": "5"}
        for segment in range(SEGMENTS)
    ]
    return write_table([*(row | no_check for row in rows), *gold])


def write_table(rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def choose_campaigns(rng: Random) -> list[ChosenCampaign]:
    """Return one campaign of each design and of each kind of settings that changes how HITs are given out."""
    two_criteria = [
        {"name": name, "question": f"How {name}?", "low_label": "low", "high_label": "high"}
        for name in ("clear", "true")
    ]
    designs = [campaign_of_design(name, rng) for name in DESIGNS]
    kinds: list[tuple[Mapping[str, Any], str, bool]] = [
        ({"hits_per_annotator": 2, "judgments_per_item": 6}, items_table(), False),
        ({"repeat_items": False, "judgments_per_item": 4}, items_table(), False),
        ({"selection": "iterations", "judgments_per_item": 6}, items_table(), False),
        ({"update_law": "easl-aware", "judgments_per_item": 12}, items_table(), False),
        ({"checks_percent": 50, "judgments_per_item": 8}, items_table(checks=2), False),
        ({"cannot_be_judged": True, "judgments_per_item": 10}, items_table(), False),
        ({"criteria": two_criteria, "judgments_per_item": 10}, items_table(), False),
        (
            {"goal": "intervals", "goal_width": 45, "when_reached": "release", "judgments_per_item": 8},
            items_table(),
            False,
        ),
        (
            {"goal": "intervals", "goal_width": 45, "when_reached": "pause", "judgments_per_item": 8},
            items_table(),
            False,
        ),
        ({"design": "pairwise", "rule": "pairs", "judgments_per_item": 8}, items_table(), False),
        ({"design": "pairwise", "judgments_per_item": 6}, outputs_table(), False),
        ({"items_per_hit": 3, "checks_percent": 50, "judgments_per_item": 8}, outputs_table(checks=True), False),
        ({"comment_on": "both", "comment_request": "required", "judgments_per_item": 8}, items_table(), False),
        ({"judgments_per_item": 16}, items_table(), True),
    ]
    return [
        *designs,
        *(ChosenCampaign(common_settings(rng, **kind), table, restores) for kind, table, restores in kinds),
    ]


def campaign_for_race(rng: Random) -> ChosenCampaign:
    """Return a campaign in which a HIT too many passes a cap, whichever its items are."""
    return ChosenCampaign(common_settings(rng, judgments_per_item=1), items_table())


def common_settings(rng: Random, **settings: Any) -> dict[str, Any]:
    return {
        "name": f"Chaos {rng.randrange(10**9)}",
        "question": "How much?",
        "welcome": False,
        "repeat_items": True,
        "judgments_per_item": rng.choice((1, 2, 8)),
        "lease_minutes": 1,
        "seed": rng.randrange(10**6),
    } | settings


def campaign_of_design(name: str, rng: Random) -> ChosenCampaign:
    settings: dict[str, Any] = {"design": name}
    always_shown: tuple[str, ...] = ()
    if name == "baseline":
        settings["design_settings"], always_shown = {"baseline": "base"}, ("base",)
    return ChosenCampaign(common_settings(rng, **settings), items_table(always_shown))
