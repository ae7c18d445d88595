"""Fitting a probe: fresh demonstrations by the expert, their plans, and how often each skill was done in them."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from planvec.agents import Agent
from planvec.errors import InputError
from planvec.reading import Probe, ridge
from planvec.recordings import Demonstrations, check_vectors, count_names
from planvec.tasks import FRESH, parse_condition
from planvec.worlds.world import World

DEMOS, FEWEST = 2560, 10  # demonstrations unless told otherwise
HELD_OUT = 5  # one in so many is not fitted to, and tells the error


def fit_probe(
    agent: Agent,
    world: World,
    demos: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda finished, total: None,
) -> Probe:
    """Fit a probe to an agent that has plan vectors. `progress` is told how many demonstrations there are, of all."""
    check_vectors(agent)
    demos = DEMOS if demos is None else demos
    if demos < FEWEST:
        raise InputError(f"fit a probe to at least {FEWEST} demonstrations; got {demos}")
    tasks = world.sample_tasks((seed, FRESH + 21), demos, 1, longest(world))
    recorded = Demonstrations(world, tasks, (seed, FRESH + 22), lambda finished: progress(finished, demos))
    names = count_names(world.skills, recorded.counts.shape[1])[: len(world.skills)]
    return fit(recorded.plans(agent), recorded.counts[:, : len(names)], tuple(names))


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
