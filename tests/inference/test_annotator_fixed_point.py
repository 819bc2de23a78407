"""Where rounds of the fit of `annotator_aware` are extrapolated to."""

import numpy as np

from app.inference.ratings.annotator_aware import fit
from app.simulation.annotators import HabitAnnotators, Population


def test_a_leap_beyond_where_numbers_end_is_taken_back():
    """Before, it went on from there, and ended in an error of linear algebra."""
    rng = np.random.default_rng(698)  # of a thousand cases drawn so, one that leaps
    count, annotators = int(rng.choice([4, 8, 20])), int(rng.choice([4, 8, 12]))
    crowd = Population(bias_sd=0.05, noise=float(rng.choice([0.02, 0.05, 0.12])), careless={"random": 0.2})
    people = HabitAnnotators(crowd.draw_habits(annotators, rng), rng.beta(2, 2, count))
    items = np.repeat(np.arange(count), rng.choice([5, 20, 200], count, p=[0.4, 0.4, 0.2]))
    who = rng.integers(annotators, size=len(items))
    scores = [people.answer(w, [item], rng)[0] for item, w in zip(items.tolist(), who.tolist(), strict=True)]
    assert np.isfinite(fit(items, who, scores, max_iterations=200, tolerance=1e-4).score).all()
