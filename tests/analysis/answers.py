"""Answers made without a database."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.analysis.findings import Answers
from app.inference.online.law import Parameters


def answers(
    hits: list[tuple[int, dict[int, float]]],
    *,
    n_items: int | None = None,
    systems: Sequence[str | None] | None = None,
    segments: Sequence[str | None] | None = None,
    **more: Any,
) -> Answers:
    """From (annotator, {item: score}) per HIT; items are called i0, i1, ... and annotators a0, a1, ..."""
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
        "yields": "points",
        "ids": [f"i{k}" for k in range(count)],
        "shown": [f"text {k}" for k in range(count)],
        "systems": systems or [None] * count,
        "segments": segments or [None] * count,
        "annotators": [f"a{k}" for k in range(max((who for who, _ in hits), default=-1) + 1)],
        "names": [f"A{k + 1}" for k in range(max((who for who, _ in hits), default=-1) + 1)],
        "law": "easl",
        "prior": np.ones((2, count)),
        "state": None,
        "parameters": Parameters(),
        "seed": 7,
    }
    return Answers(**(made | more))


def crowd(
    *, hits: int = 60, size: int = 4, n_items: int = 12, annotators: int = 5, seed: int = 3, **more: Any
) -> Answers:
    """Annotators who see the truth, item k at k / (n - 1), with an error of 8 points."""
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
