"""What a plan holds: a linear probe that reads off a plan vector how often each skill is in it.

There is no constant in the map: what is read off a sum of plans is the sum of what is read off each, and of the zero
plan nothing. A probe belongs to the weights of one agent, and lies beside them.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.io.checkpoints import load_described, save_described

PROBE = "probe.safetensors"  # its file, beside the weights
FORMAT = "planvec probe"
VERSION = "1"
RIDGES = np.logspace(-9, 0, 10)  # strengths of a fit that are tried, as shares of all variance
HALF = 0.5  # a skill of which less than this is left is done
TINY = 1e-12  # makes a ratio of nothing to nothing 0


class Probe(eqx.Module):
    """A linear map from plan vectors to counts of skills, and how far off it is on demonstrations not fitted to."""

    weights: Array  # float32 [embedding, skill]
    error: Array  # float32 [skill], the root mean square
    skills: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, vectors: Array) -> Array:
        """Counts of skills. [..., skill]"""
        return vectors @ self.weights

    def read(self, vector: Array) -> "Reading":
        """What one plan holds."""
        counts = np.asarray(self(vector)).tolist()
        errors = np.asarray(self.error).tolist()
        return Reading(
            counts=dict(zip(self.skills, counts, strict=True)), errors=dict(zip(self.skills, errors, strict=True))
        )


@dataclass(frozen=True)
class Reading:
    """How often each skill is in a plan, as a probe reads it."""

    counts: dict[str, float]
    errors: dict[str, float]  # of the probe, by skill: the root mean square on demonstrations it was not fitted to

    @property
    def error(self) -> float:
        """The root mean square over all skills."""
        return float(np.sqrt(np.mean(np.square(list(self.errors.values())))))

    @property
    def total(self) -> float:
        """How many skills there are to do in all."""
        return sum(max(count, 0.0) for count in self.counts.values())

    @property
    def most(self) -> float:
        """How often the skill that is in it most is in it."""
        return max(self.counts.values())

    def rounded(self) -> Counter[str]:
        """Whole numbers; skills that are not in the plan are left out, those taken away from it are below zero."""
        return Counter({skill: round(count) for skill, count in self.counts.items() if round(count)})

    def __str__(self) -> str:
        """For people: 2.0 ChopTree, 1.1 MakeBread (±0.2)."""
        held = [f"{count:.1f} {skill}" for skill, count in self.counts.items() if round(count)]
        return f"{', '.join(held) or 'nothing'} (±{self.error:.1f})"


def progress(plan: Array | np.ndarray, left: Array | np.ndarray) -> Array:
    """How much of a plan has been done, from 0 to 1, of its counts and of those that are left. [..., skill]

    A plan with nothing in it has been done.
    """
    whole = jnp.maximum(plan, 0).sum(axis=-1)
    rest = jnp.maximum(left, 0).sum(axis=-1)
    return jnp.where(whole > TINY, jnp.clip(1 - rest / jnp.maximum(whole, TINY), 0, 1), 1.0)


def ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The linear map from x to y, shrunk as much as does best when one row at a time is left out. [in x, in y]"""
    left, size, right = np.linalg.svd(x, full_matrices=False)
    along = left.T @ y

    def left_out(strength: float) -> float:
        """The squared error at rows that a fit has not seen, by the closed formula."""
        shrunk = size**2 / (size**2 + strength)
        residual = y - left @ (shrunk[:, None] * along)
        return float(np.sum((residual / np.maximum(1 - left**2 @ shrunk, TINY)[:, None]) ** 2))

    strength = min(RIDGES * max((size**2).sum(), TINY), key=left_out)
    return right.T @ ((size / (size**2 + strength))[:, None] * along)


def save_probe(folder: Path, probe: Probe, agent: str) -> None:
    """Write a probe beside the weights of the agent with this fingerprint."""
    arrays = {"weights": probe.weights, "error": probe.error}
    save_described(folder / PROBE, arrays, FORMAT, VERSION, agent=agent, skills=json.dumps(probe.skills))


def load_probe(folder: Path, agent: str) -> Probe | None:
    """The probe beside an agent's weights; None where there is none, or one of other weights."""
    path = folder / PROBE
    if not path.exists():
        return None
    described, arrays = load_described(path, "a probe", FORMAT, VERSION)
    if described["agent"] != agent:
        return None
    weights = jnp.asarray(arrays["weights"])
    error = jnp.asarray(arrays["error"])
    return Probe(weights=weights, error=error, skills=tuple(json.loads(described["skills"])))
