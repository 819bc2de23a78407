"""Answers made without a database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.analysis.available_methods import available_methods_for_design
from app.analysis.result_types import Answers
from app.designs.design import Design
from app.designs.slider import Slider
from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS

REACHED = available_methods_for_design(Slider())
# What a campaign of scores reaches that asks by one criterion, and its annotators nothing.
OFFERED = replace(
    REACHED,
    tables={
        name: one
        for name, one in REACHED.tables.items()
        if not (one.needs_criteria or one.needs_groups or one.compares_systems_or_pairs)
    },
)


def answers(
    hits: list[tuple[int, dict[int, float]]],
    *,
    n_items: int | None = None,
    systems: Sequence[str | None] | None = None,
    segments: Sequence[str | None] | None = None,
    **more: Any,
) -> Answers:
    """Return answers from (annotator, {item: score}) per HIT; items are called i0, i1, ... and annotators a0, a1,
    ...
    """
    sizes = [len(scores) for _, scores in hits]
    item = np.array([item for _, scores in hits for item in scores], np.intp)
    count = n_items or int(item.max(initial=-1)) + 1
    score = np.array([score for _, scores in hits for score in scores.values()], float)
    made: dict[str, Any] = {
        "seq": np.arange(len(hits)) + 1,
        "hit": np.repeat(np.arange(len(hits)), sizes),
        "item": item,
        "annotator": np.repeat(np.array([who for who, _ in hits], np.intp), sizes),
        "score": score,
        "value": score,
        "value_kind": "points",
        "ids": [f"i{k}" for k in range(count)],
        "shown": [f"text {k}" for k in range(count)],
        "systems": systems or [None] * count,
        "segments": segments or [None] * count,
        "annotators": [f"a{k}" for k in range(max((who for who, _ in hits), default=-1) + 1)],
        "names": [f"A{k + 1}" for k in range(max((who for who, _ in hits), default=-1) + 1)],
        "law": "easl",
        "prior": np.ones((2, count)),
        "state": None,
        "parameters": LawParameters(),
        "seed": 7,
    }
    return Answers(**(made | more))


def crowd_answers(
    *, hits: int = 60, size: int = 4, n_items: int = 12, annotators: int = 5, seed: int = 3, **more: Any
) -> Answers:
    """Return answers of annotators who see the truth, k / (n - 1) for item k, with an error of 8 points."""
    rng = np.random.default_rng(3)
    truth = 100.0 * np.arange(n_items) / (n_items - 1)
    return answers(
        [
            (
                number % annotators,
                {int(k): float(np.clip(round(truth[k] + rng.normal(0, 8)), 0, 100)) for k in shown},
            )
            for number, shown in enumerate(rng.permutation(n_items)[:size] for _ in range(hits))
        ],
        n_items=n_items,
        **more,
    )


def simulated_answers(
    design: Design, *, hits: int = 80, n_items: int = 12, annotators: int = 6, size: int | None = None, **more: Any
) -> Answers:
    """As a campaign of the design has them in which annotators see item k at k / (n - 1) with some error. Items are the
    outputs of three systems.
    """
    rng = np.random.default_rng(5)
    size = size or design.default_items
    shown = [rng.permutation(n_items)[:size] for _ in range(hits)]
    seen = [np.arange(n_items)[some] / (n_items - 1) + rng.normal(0, 0.1, size) for some in shown]
    values = np.array([design.simulate_answer_values(shares.tolist()) for shares in seen])
    made = answers(
        [
            (k % annotators, dict(zip(some.tolist(), row, strict=True)))
            for k, (some, row) in enumerate(zip(shown, values.tolist(), strict=True))
        ],
        n_items=n_items,
        systems=["xyz"[k % 3] for k in range(n_items)],
        segments=[str(k // 3) for k in range(n_items)],
    )
    law = ONLINE_LAWS.get(design.default_law, ONLINE_LAWS["easl"])  # toys are registered by a test alone
    family = (law.law_with_class_count(len(design.classes)) if law.reads in CLASS_KINDS else law).family
    told: dict[str, Any] = {
        "score": design.values_to_points(made.value, made.hit),
        "value_kind": design.value_kind,
        "classes": design.classes,
        "law": law.name,
        "prior": family.columns_of_item_states([family.default_prior] * n_items),
        "parameters": LawParameters(ties=design.equal_means == "tie"),
        "compares_pairs": design.compares_pairs,
    }
    return replace(made, **(told | more))
