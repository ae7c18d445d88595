"""Optimisers: Adam as in the paper, and Muon (Jordan et al. 2024), whose steps are near orthogonal matrices."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

NARROWEST = 8  # outputs of a layer whose weights Muon takes
ROUNDS = 5  # of Muon's iteration


def make_optimizer(
    kind: str, schedule: optax.Schedule, weight_decay: float, dtype: Any
) -> optax.GradientTransformation:
    """`kind`: adam or muon; `dtype`: what Muon's iteration computes in, which needs no more than the networks have."""
    adam = optax.adamw(schedule, weight_decay=weight_decay)
    if kind == "adam":
        return adam
    muon = optax.chain(
        optax.trace(decay=0.95, nesterov=True),
        optax.stateless(lambda momenta, _: orthogonal(momenta, dtype)),
        optax.add_decayed_weights(weight_decay),
        optax.scale_by_learning_rate(schedule),
    )
    return optax.partition({"muon": muon, "adam": adam}, partial(jax.tree.map, _optimizer_of))


def make_schedule(kind: str, peak: float, warmup: int, updates: int) -> optax.Schedule:
    """The step size: up to its peak along a line, then along half a cosine to zero, or constant."""
    after = optax.cosine_decay_schedule(peak, updates - warmup) if kind == "cosine" else optax.constant_schedule(peak)
    return optax.join_schedules([optax.linear_schedule(0.0, peak, warmup), after], [warmup])


def _optimizer_of(weight: Array) -> str:
    """Muon takes matrices and kernels; Adam takes biases, and layers so narrow that they choose the action."""
    return "muon" if weight.ndim > 1 and weight.shape[-1] >= NARROWEST else "adam"


def orthogonal(momenta: Any, dtype: Any) -> Any:
    """Muon's steps: near the closest orthogonal matrices, made as large as Adam's so that one step size serves both.

    A kernel (…, inputs, outputs) is one matrix. Matrices of about the same size go together, filled up with zeros,
    which stay zeros: on a GPU many small products cost more to start than to compute.
    """
    leaves, structure = jax.tree.flatten(momenta)
    matrices = [leaf.reshape(-1, leaf.shape[-1]) for leaf in leaves]
    tall = [matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T for matrix in matrices]
    groups: dict[int, list[int]] = {}
    for i, matrix in enumerate(tall):
        groups.setdefault(max(64, 1 << (matrix.shape[1] - 1).bit_length()), []).append(i)
    steps = [jnp.zeros(0)] * len(leaves)
    for members in groups.values():
        together = _orthogonal_together([tall[member] for member in members], dtype)
        for i, found in zip(members, together, strict=True):
            step = found if matrices[i].shape == found.shape else found.T
            steps[i] = (0.2 * max(step.shape) ** 0.5 * step.astype(leaves[i].dtype)).reshape(leaves[i].shape)
    return jax.tree.unflatten(structure, steps)


def _orthogonal_together(matrices: list[Array], dtype: Any) -> list[Array]:
    """Newton and Schulz's iteration on tall matrices, with Jordan's coefficients."""
    rows = max(len(matrix) for matrix in matrices)
    columns = max(matrix.shape[1] for matrix in matrices)
    filled = [jnp.pad(m, ((0, rows - m.shape[0]), (0, columns - m.shape[1]))) for m in matrices]
    x = jnp.stack(filled)
    x = (x / (jnp.linalg.norm(x, axis=(1, 2), keepdims=True) + 1e-8)).astype(dtype)
    a = 3.4445  # with these, all singular values come near 1
    b = -4.7750
    c = 2.0315
    for _ in range(ROUNDS):
        gram = x.swapaxes(1, 2) @ x
        x = a * x + x @ (b * gram + c * gram @ gram)
    return [y[: m.shape[0], : m.shape[1]] for y, m in zip(x, matrices, strict=True)]
