"""What every update law promises, those of the tests too: a new one is checked by being registered."""

import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.lib.introspect import opt_func_info

from app.inference.observations.judgment_kinds import CLASS_KINDS
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from tests.inference.beliefs import Stored, as_text, begun, replayed
from tests.toys.smiles import SMILES

ITEMS = 15
CLASSES_OF_TESTS = 3
TUNED = LawParameters(gamma=0.2, epsilon=0.05, tie_margin=0.02)


@pytest.fixture(params=[*ONLINE_LAWS.values(), SMILES], ids=lambda law: law.name)
def law(request):
    """Those that read classes for three of them."""
    return request.param.for_class_count(CLASSES_OF_TESTS)


def hits_for(law, count, *, seed=1):
    rng = np.random.default_rng(seed)
    highest = CLASSES_OF_TESTS - 1 if law.reads in CLASS_KINDS else 100
    values = rng.integers(0, highest + 1, (count, 4)) / (1 if law.reads in CLASS_KINDS else 100)
    if law.reads == "ratio":
        values = np.clip(values, 0.01, 0.99)  # no ratio has a share of 0 or 1
    return [
        AnsweredHit(k % 5, rng.choice(ITEMS, 4, replace=False).tolist(), row) for k, row in enumerate(values.tolist())
    ]


def digests():
    """By name of each registered law what it makes of the same HITs, by all its bits."""
    laws = [law.for_class_count(CLASSES_OF_TESTS) for law in ONLINE_LAWS.values()]
    return {
        law.name: hashlib.sha256(replayed(law, ITEMS, hits_for(law, 200), TUNED).tobytes()).hexdigest() for law in laws
    }


def instructions():
    """What NumPy can do on this processor that not every processor can."""
    told = [signature["available"].split() for function in opt_func_info().values() for signature in function.values()]
    return " ".join(sorted({name for names in told for name in names if not name.startswith("baseline")}))


@pytest.mark.parametrize(
    "poorer",
    [{"NPY_DISABLE_CPU_FEATURES": instructions()}, {"OPENBLAS_CORETYPE": "Prescott"}],
    ids=lambda poorer: next(iter(poorer)),
)
def test_posteriors_have_the_same_bits_on_a_poorer_processor(poorer):
    script = "from tests.inference.test_every_law import digests; print(digests())"
    found = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | poorer, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(digests())


def test_it_is_registered_by_its_name():
    assert {name: law.name for name, law in ONLINE_LAWS.items()} == {name: name for name in ONLINE_LAWS}


def test_its_own_prior_is_a_valid_one_and_has_a_number_for_each_name(law):
    family = law.family
    assert len(family.default_prior) == len(family.parameter_names)
    assert family.is_valid_prior(*family.default_prior)
    assert not family.is_valid_prior(*[float("nan")] * len(family.parameter_names))


def test_it_can_be_sent_to_another_process(law):
    assert pickle.loads(pickle.dumps(law)) == law


def test_hits_at_once_one_by_one_and_in_pieces_lead_to_the_same_bits(law):
    hits = hits_for(law, 60)
    whole, steps, pieces = (begun(law, ITEMS, TUNED) for _ in range(3))
    whole.apply_hits(hits)
    for _ in steps.iterate_changes(hits):
        pass
    pieces.apply_hits(hits[:17])
    pieces.apply_hits(hits[17:])
    assert whole.state.tobytes() == steps.state.tobytes() == pieces.state.tobytes()


def test_what_a_step_tells_is_what_the_beliefs_hold_then(law):
    beliefs = begun(law, ITEMS, TUNED)
    for hit, change in zip(hits_for(law, 30), beliefs.copy().iterate_changes(hits_for(law, 30)), strict=True):
        beliefs.apply_hits([hit])
        assert list(change.items[: len(hit.items)]) == list(hit.items)
        assert beliefs.state[:, change.items].tolist() == [list(column) for column in change.state]


def test_a_copy_goes_its_own_way(law):
    one = begun(law, ITEMS, TUNED)
    one.apply_hits(hits_for(law, 10))
    before, other = one.state.tobytes(), one.copy()
    other.apply_hits(hits_for(law, 10, seed=2))
    assert one.state.tobytes() == before != other.state.tobytes()


def test_score_and_variance_of_a_few_items_have_the_bits_of_those_of_all(law):
    beliefs = begun(law, ITEMS, TUNED)
    beliefs.apply_hits(hits_for(law, 20))
    family, state = law.family, beliefs.state
    few = family.scores_and_variances(*state[:, :4].tolist())
    assert [list(column) for column in few] == [
        family.score(*state[:, :4]).tolist(),
        family.variance(*state[:, :4]).tolist(),
    ]


def test_the_interval_holds_the_mean_of_what_it_says_and_grows_with_its_level(law):
    beliefs = begun(law, ITEMS, TUNED)
    beliefs.apply_hits(hits_for(law, 40))
    (low, high), (lower, higher) = (law.family.interval(*beliefs.state, level=level) for level in (0.5, 0.95))
    assert (lower < low).all()
    assert (high < higher).all()
    x = np.linspace(lower - 1e-3, higher + 1e-3, 4001)
    held = np.trapezoid(law.family.density(*beliefs.state, x), x, axis=0)
    assert held == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    ("items", "values"),
    [([0, 0], [0.0, 1.0]), ([0, ITEMS], [0.0, 1.0]), ([0, -1], [0.0, 1.0]), ([0, 1], [1.0]), ([0], [7.0])],
)
def test_what_cannot_be_a_hit_is_refused(law, items, values):
    with pytest.raises(ValueError, match=r".+"):
        begun(law, ITEMS, TUNED).apply_hits([AnsweredHit(1, items, values)])


def test_priors_of_the_wrong_shape_are_refused(law):
    with pytest.raises(ValueError, match="prior"):
        law.initial_beliefs([np.ones(3)], TUNED)
    with pytest.raises(ValueError, match="prior"):
        law.initial_beliefs([np.ones((2, 2))] * len(law.family.parameter_names), TUNED)


def test_a_campaign_stored_after_every_hit_has_the_bits_of_one_in_memory(law):
    hits = hits_for(law, 30)
    whole = begun(law, ITEMS, TUNED)
    stored = Stored(law, whole, TUNED)
    for hit in hits:
        stored.take(hit)
    whole.apply_hits(hits)
    assert stored.state == whole.state.tolist()
    assert stored.kept() == as_text(whole.to_law_state())
