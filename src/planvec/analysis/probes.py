"""Fitting a probe: fresh demonstrations by the expert, their plans, and how often each skill was done in them.

Half of them are cut off at a random moment: what is left of a plan is read in the middle of things, with the box open.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from planvec.agents import Agent
from planvec.agents.probe import Probe, ridge
from planvec.analysis.corpus import check_vectors, count_names, encode
from planvec.errors import InputError
from planvec.tasks import FRESH, parse_condition
from planvec.worlds.protocol import World

DEMOS = 2560  # demonstrations, unless told otherwise
FEWEST = 10
HELD_OUT = 5  # one in so many is not fitted to, and tells the error


def fit_probe(
    agent: Agent,
    world: World,
    demos: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda finished, total: None,
) -> Probe:
    """Fit a probe to an agent that has plan vectors. `progress` is told how many demonstrations there are, of all."""
    agent = check_vectors(agent)
    demos = DEMOS if demos is None else demos
    if demos < FEWEST:
        raise InputError(f"fit a probe to at least {FEWEST} demonstrations; got {demos}")
    tasks = world.sample_tasks((seed, FRESH + 21), demos, 1, longest(world))
    seed_of_demos = (seed, FRESH + 22)
    recording = world.record(tasks, seed_of_demos, 0.0, "discard", lambda finished: progress(finished, demos))
    lengths = recording.lengths.copy()
    lengths[1::2] = np.random.default_rng(seed_of_demos).integers(1, lengths[1::2] + 1)
    first, last, counts = world.ends(recording.cut(lengths))
    counts = counts.reshape(demos, -1)
    names = count_names(world.skills, counts.shape[1])[: len(world.skills)]
    return fit(encode(agent, first, last), counts[:, : len(names)], tuple(names))


def fit(plans: np.ndarray, counts: np.ndarray, skills: tuple[str, ...]) -> Probe:
    """Fitted to most rows, judged on the last ones."""
    kept = len(plans) - len(plans) // HELD_OUT
    weights = ridge(plans[:kept], counts[:kept])
    errors = counts[kept:] - plans[kept:] @ weights
    error = np.sqrt(np.mean(errors**2, axis=0))
    return Probe(weights=jnp.float32(weights), error=jnp.float32(error), skills=skills)


def longest(world: World) -> int:
    """The skills of the longest task: twice training's, if single references of the world's table are as long."""
    asked = max(max(parse_condition(condition)) for condition in world.conditions)
    return max(world.sizes[1], min(asked, 2 * world.sizes[1]))
