"""Least-squares effects of systems from differences within HITs, for many weightings of the HITs at once.

The normal equations (Yates 1936) of one weighting w are A x = s. With N the HITs' systems (H, n) and k their sizes,
A = diag(N' w) - N' diag(w / k) N, and s sums the weighted differences from the means of the HITs. A is singular: only
differences within connected systems are known, and x is the shortest solution, whose mean is 0 in each connected group.

For up to `MAX_DENSE_SYSTEMS` systems each A is inverted. That takes n^3 steps for each weighting; with more systems the
equations are solved by conjugate gradients with the diagonal as preconditioner (Saad 2003, algorithm 9.1), for all
weightings side by side and without ever forming A.

Yates, F. Incomplete randomized blocks. Annals of Eugenics 7; Saad, Y. Iterative methods for sparse linear systems. 2nd
edition, SIAM.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ground.inestimable import Inestimable

MAX_DENSE_SYSTEMS = 20  # more are faster by conjugate gradients: 100,000 judgments of 30 take half the time
EIGENVALUE_ROUNDING = 1e-9  # of eigenvalues that are nothing but that
RESIDUAL_TOLERANCE = 1e-10  # of the residual relative to the right-hand side
MAX_GRADIENT_STEPS = 300  # about ten are needed where each system meets many others


@dataclass(frozen=True, eq=False)
class BlockDesign:
    """Which systems each of H HITs shows, and how far their values are from the mean of the HIT.

    Attributes:
        shares: How often each HIT shows each system, (H, n).
        sums: Sums of the systems' differences from the mean of the HIT, (H, n); where all HITs show one system, from
            the mean of all values.
        inverse_size: 1 / the size of each HIT, (H,); 0 where all HITs show one system.

    """

    shares: "csr_array"
    sums: "csr_array"
    inverse_size: Array

    @cached_property
    def transposed_shares(self) -> "csr_array":
        """The systems' HITs, (n, H)."""
        return self.shares.T.tocsr()

    @cached_property
    def normal_matrices(self) -> "csr_array":
        """Contribution of each HIT to the normal matrix, (H, n * n)."""
        count, n_systems = self.shares.shape
        entries = self.shares.tocoo()
        diagonal = coo_array(
            (entries.data, (entries.row, entries.col * (n_systems + 1))), shape=(count, n_systems * n_systems)
        )
        hit, first, second = rows_and_ordered_pairs_of_entries(self.shares)
        data = -self.inverse_size[hit] * self.shares.data[first] * self.shares.data[second]
        cells = self.shares.indices[first].astype(np.intp) * n_systems + self.shares.indices[second]
        return (diagonal + coo_array((data, (hit, cells)), shape=diagonal.shape)).tocsr()


def make_block_design(hit: Integers, system: Integers, value: Array, n_systems: int) -> BlockDesign:
    """Return the design of judgments (J,): their HITs from 0 without gaps, their systems and their values.

    Raises:
        Inestimable: `systems_unconnected`.

    """
    size = np.bincount(hit)
    shape = (len(size), n_systems)
    shares = coo_array((np.ones(len(hit)), (hit, system)), shape=shape).tocsr()
    if (size == 1).all():
        sums = coo_array((value - value.mean(), (hit, system)), shape=shape).tocsr()
        return BlockDesign(shares, sums, np.zeros(len(size)))
    if connected_components(shares.T @ shares)[0] > 1:
        raise Inestimable(
            "Some systems are not connected to the others by any tasks, so they cannot be ranked together.",
            code="systems_unconnected",
        )
    difference = value - (np.bincount(hit, value) / size)[hit]
    return BlockDesign(shares, coo_array((difference, (hit, system)), shape=shape).tocsr(), 1.0 / size)


def rows_and_ordered_pairs_of_entries(matrix: "csr_array") -> tuple[Integers, Integers, Integers]:
    """Return all ordered pairs of stored entries of each row, each also with itself: the row and both positions."""
    counts = np.diff(matrix.indptr)
    row_of_entry = np.repeat(np.arange(len(counts)), counts)
    repeats = counts[row_of_entry]
    first = np.repeat(np.arange(len(row_of_entry)), repeats)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return row_of_entry[first], first, matrix.indptr[row_of_entry[first]] + offset


def system_effects_of_weighted_hits(design: BlockDesign, weights: Array) -> Array:
    """Return the effects (D, n) of the systems where each HIT counts as often as `weights` (D, H) say."""
    sums = weights @ design.sums
    if not design.inverse_size.any():
        counts = weights @ design.shares
        means: Array = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0)
        return means
    if sums.shape[1] <= MAX_DENSE_SYSTEMS:
        return system_effects_by_inverse(weights @ design.normal_matrices, sums)
    effects = system_effects_by_conjugate_gradients(
        design, np.ascontiguousarray(weights.T), np.ascontiguousarray(sums.T)
    )
    return effects.T


def system_effects_by_inverse(matrices_flat: Array, sums: Array) -> Array:
    """Return the shortest solutions (D, n) of D equations with matrices (D, n * n)."""
    n_systems = sums.shape[1]
    inverses = np.linalg.pinv(
        matrices_flat.reshape(-1, n_systems, n_systems), rcond=EIGENVALUE_ROUNDING, hermitian=True
    )
    effects: Array = (inverses @ sums[:, :, None])[:, :, 0]
    return effects


def system_effects_by_conjugate_gradients(design: BlockDesign, weights: Array, sums: Array) -> Array:
    """Return the shortest solutions (n, D) where HITs have weights (H, D) and the right-hand sides are (n, D).

    Weightings that need more than `MAX_GRADIENT_STEPS` steps, such as chains of systems, are solved by the inverse.
    """
    by_size = weights * design.inverse_size[:, None]
    counts = design.transposed_shares @ weights
    diagonal = counts - design.transposed_shares.power(2) @ by_size
    inverse_diagonal = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > EIGENVALUE_ROUNDING)
    effects, residual = np.zeros_like(sums), sums.copy()
    direction = inverse_diagonal * residual
    length = np.einsum("nd,nd->d", residual, direction)
    enough = RESIDUAL_TOLERANCE**2 * length
    for _ in range(MAX_GRADIENT_STEPS):
        is_open = length > enough
        if not is_open.any():
            break
        image = counts * direction - design.transposed_shares @ (by_size * (design.shares @ direction))
        curvature = np.einsum("nd,nd->d", direction, image)
        step = np.divide(length, curvature, out=np.zeros_like(length), where=is_open)
        effects += step * direction
        residual -= step * image
        scaled = inverse_diagonal * residual
        length_before, length = length, np.einsum("nd,nd->d", residual, scaled)
        direction = scaled + np.divide(length, length_before, out=np.zeros_like(length), where=is_open) * direction
    is_drawn = diagonal > EIGENVALUE_ROUNDING
    effects -= is_drawn * (effects.sum(axis=0) / np.maximum(is_drawn.sum(axis=0), 1))
    for draw in np.flatnonzero(length > enough):
        normal = np.diag(counts[:, draw]) - (design.transposed_shares @ (design.shares * by_size[:, [draw]])).toarray()
        effects[:, draw] = system_effects_by_inverse(normal.reshape(1, -1), sums[None, :, draw])[0]
    for draw in np.flatnonzero(~mask_of_draws_with_connected_systems(design, weights > 0.0, is_drawn)):
        group = connected_components(design.transposed_shares @ (design.shares * (weights[:, [draw]] > 0.0)))[1]
        effects[:, draw] -= (np.bincount(group, effects[:, draw]) / np.bincount(group))[group]
    return effects


def mask_of_draws_with_connected_systems(design: BlockDesign, is_hit_drawn: Mask, is_system_drawn: Mask) -> Mask:
    """Return whether drawn HITs, (H, D), connect all drawn systems, (n, D), with each other; (D,)."""
    first = is_system_drawn.argmax(axis=0)
    reached = np.arange(len(is_system_drawn))[:, None] == first
    while True:
        is_hit_reached = is_hit_drawn & (design.shares @ reached.astype(np.float64) > 0.0)
        wider = design.transposed_shares @ is_hit_reached.astype(np.float64) > 0.0
        if (wider <= reached).all():
            connected: Mask = (reached >= is_system_drawn).all(axis=0)
            return connected
        reached |= wider
