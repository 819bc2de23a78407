"""Effects of systems from weighted HITs, for few systems and for many."""

import numpy as np
import pytest

from app.inference.systems.intrablock import MAX_DENSE_SYSTEMS, make_block_design, system_effects_of_weighted_hits

MANY = MAX_DENSE_SYSTEMS + 20


def rows_of_hits(hits, rng):
    hit = np.repeat(np.arange(len(hits)), [len(systems) for systems in hits])
    return hit, np.concatenate(hits), rng.normal(50, 20, len(hit))


def effects_by_pseudoinverse(hit, system, value, n_systems, weights):
    """Return the shortest solution of the normal equations for differences from HIT means."""
    chosen, blocks = np.eye(n_systems)[system], np.eye(hit.max() + 1)[hit]
    within = chosen - blocks @ (blocks.T @ chosen / blocks.sum(axis=0)[:, None])
    weighted = within * weights[hit][:, None]
    return np.linalg.pinv(within.T @ weighted, rcond=1e-9, hermitian=True) @ (weighted.T @ value)


@pytest.mark.parametrize("n_systems", [10, MANY])
def test_effects_are_those_of_the_pseudoinverse(n_systems):
    rng = np.random.default_rng(1)
    share = 1.0 / np.arange(1, n_systems + 1)
    hits = [
        rng.choice(n_systems, rng.integers(1, 6), replace=False, p=share / share.sum()) for _ in range(30 * n_systems)
    ]
    hit, system, value = rows_of_hits(hits, rng)
    weights = rng.integers(0, 4, (6, len(hits))).astype(np.float64)
    effects = system_effects_of_weighted_hits(make_block_design(hit, system, value, n_systems), weights)
    expected = [effects_by_pseudoinverse(hit, system, value, n_systems, weight) for weight in weights]
    assert effects == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("n_systems", [10, MANY])
def test_each_connected_group_of_a_draw_has_mean_zero_and_a_missing_system_none(n_systems):
    """A draw without the HIT that joins two halves compares within halves; the last system is in no drawn HIT."""
    rng = np.random.default_rng(2)
    half = n_systems // 2
    inside = [rng.choice(half, 3, replace=False) + side * half for side in (0, 1) for _ in range(15 * half)]
    inside = [systems[systems != n_systems - 1] for systems in inside]
    hits = [*inside, np.array([0, half]), np.array([0, n_systems - 1])]
    hit, system, value = rows_of_hits(hits, rng)
    weights = np.ones((3, len(hits)))
    weights[1, -2:] = 0.0
    weights[2, -1] = 0.0
    effects = system_effects_of_weighted_hits(make_block_design(hit, system, value, n_systems), weights)
    expected = [effects_by_pseudoinverse(hit, system, value, n_systems, weight) for weight in weights]
    assert effects == pytest.approx(np.array(expected), abs=1e-6)
    assert effects[1, :half].mean() == pytest.approx(0.0, abs=1e-9)
    assert effects[1:, -1] == pytest.approx(0.0, abs=1e-9)


def test_a_chain_of_many_systems_is_solved():
    """Each system is compared with the next one alone, so nothing but all comparisons connects the ends."""
    rng = np.random.default_rng(3)
    hits = [np.array([k, k + 1]) for k in range(MANY - 1) for _ in range(2)]
    hit, system, value = rows_of_hits(hits, rng)
    weights = np.ones((2, len(hits)))
    weights[1, ::2] = 3.0
    effects = system_effects_of_weighted_hits(make_block_design(hit, system, value, MANY), weights)
    expected = [effects_by_pseudoinverse(hit, system, value, MANY, weight) for weight in weights]
    assert effects == pytest.approx(np.array(expected), abs=1e-5)


@pytest.mark.parametrize("n_systems", [10, MANY])
def test_where_hits_show_one_system_effects_are_weighted_means_around_the_mean(n_systems):
    rng = np.random.default_rng(4)
    hits = [np.array([k % n_systems]) for k in range(3 * n_systems)]
    hit, system, value = rows_of_hits(hits, rng)
    weights = rng.integers(1, 4, (2, len(hits))).astype(np.float64)
    effects = system_effects_of_weighted_hits(make_block_design(hit, system, value, n_systems), weights)
    expected = [
        np.bincount(system, weight * (value - value.mean())) / np.bincount(system, weight) for weight in weights
    ]
    assert effects == pytest.approx(np.array(expected))
