"""Simulated annotators as rules see them: what they answer, and in what time."""

import numpy as np

from app.quality.behaviour import AnnotatorBehaviour

NOTHING = np.zeros(0, np.bool_)


def annotator_behaviour(share, others=None, *, n=5, yields="points", classes=0, ties=True, seconds=None, **known):
    """Return behaviour with n items per answer; the others agree unless `others` is given."""
    share = np.asarray(share, np.float64)
    hits = np.repeat(np.arange(len(share)), n)[: len(share)]
    return AnnotatorBehaviour(
        answer_kind=yields,
        class_count=classes,
        ties=ties,
        hit=hits,
        item=known.pop("item", np.arange(len(share))),
        share=share,
        others_share=share if others is None else np.asarray(others, np.float64),
        other_judge_counts=known.pop("other_judge_counts", np.full(len(share), 9)),
        seconds=np.full(len(share) // n, 25.0) if seconds is None else np.asarray(seconds, np.float64),
        **known,
    )


def careful_crowd(rng, count=30, judgments=150, *, noise=0.15):
    """Return careful people who agree more or less; some are quick, and some use little of the scale."""
    return [careful_annotator(rng, judgments, noise=noise * rng.uniform(0.5, 1.5)) for _ in range(count)]


def careful_annotator(rng, judgments=150, *, noise=0.15):
    worth, width = rng.random(judgments), rng.uniform(0.5, 1.1)
    said = 0.5 + width * (worth - 0.5) + rng.normal(0, 0.08) + noise * rng.standard_normal(judgments)
    pace = 25 * np.exp(rng.normal(0, 0.35) + rng.normal(0, 0.5, judgments // 5))
    others = worth + 0.08 * rng.standard_normal(judgments)
    checks = {"gold_met": rng.random(judgments // 25) > 0.1, "attention_met": rng.random(judgments // 50) > 0.02}
    return annotator_behaviour(np.clip(said, 0, 1), others, seconds=pace, **checks)
