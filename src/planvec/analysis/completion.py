"""How well an agent tells that its task is done, against the truth at every moment of episodes.

The plan is that of references, added up where the condition says so; the episodes are the expert's, and the agent's
own to the horizon. It says "done" when of no skill half a turn or more is left.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from planvec.agents.agent import EmbeddingAgent
from planvec.agents.probe import HALF, Probe, progress
from planvec.analysis.corpus import Corpus, check_vectors, encode, encode_batch
from planvec.errors import InputError
from planvec.evaluation.episodes import episodes, stack
from planvec.tasks import FRESH, Task, parse_condition
from planvec.worlds.protocol import World
from planvec.worlds.trials import Trial, make_trial

EPISODES = 64  # of each condition, unless told otherwise


class Told(NamedTuple):
    """How figures tell moments at which the task is done from those before. None: there were none of one kind."""

    auc: float | None  # area under the ROC of what is left most of any skill: 1 at best, 0.5 by chance
    progress: float | None  # the same of `progress`
    norm: float | None  # the same of 1 − ‖what is left‖ / ‖plan‖
    early: float | None  # share of the moments before at which it says done
    missed: float | None  # share of the moments after at which it does not
    moments: int


def measure(
    agent: EmbeddingAgent,
    world: World,
    episodes: int = EPISODES,
    seed: int = 0,
    watch: Callable[[int, int], None] = lambda finished, total: None,
) -> dict[str, dict[str, Told]]:
    """For each condition of the world's table: in the "expert" 's episodes, and in the agent's "own"."""
    agent = check_vectors(agent)
    probe = agent.probe
    if probe is None:
        raise InputError("fit a probe first: planvec probe RUN")
    if episodes < 1:
        raise InputError(f"watch at least one episode; got {episodes}")
    told = {}
    for number, condition in enumerate(world.conditions):
        watch(number, len(world.conditions))
        parts = world.sample_parts((seed, FRESH + 31), episodes, parse_condition(condition))
        trial = make_trial(world, parts, seed)
        plans = np.sum([encode(agent, first, last) for first, last in trial.shown], axis=0)
        told[condition] = {
            "expert": compare(probe, watch_expert(agent, world, trial.tasks, plans, seed)),
            "own": compare(probe, watch_agent(agent, world, trial, plans, seed)),
        }
    watch(len(world.conditions), len(world.conditions))
    return told


class Moments(NamedTuple):
    plans: np.ndarray  # [moment, embedding]
    left: np.ndarray  # what is left of them [moment, embedding]
    truth: np.ndarray  # bool [moment], whether the task is done


def compare(probe: Probe, moments: Moments) -> Told:
    """How figures that are read off the plans tell the moments at which the task is done."""
    plans, left, truth = moments
    whole = np.asarray(probe(jnp.asarray(plans)))
    counts = np.asarray(probe(jnp.asarray(left)))
    most = counts.max(axis=1)
    shares = np.linalg.norm(left, axis=1) / np.maximum(np.linalg.norm(plans, axis=1), 1e-12)
    return Told(
        auc=auc(-most, truth),
        progress=auc(np.asarray(progress(whole, counts)), truth),
        norm=auc(-shares, truth),
        early=float(np.mean(most[~truth] < HALF)) if not truth.all() else None,
        missed=float(np.mean(most[truth] >= HALF)) if truth.any() else None,
        moments=len(truth),
    )


def auc(scores: np.ndarray, truth: np.ndarray) -> float | None:
    """How often a true one has the higher score of a true and a false one; ties count half. None without either."""
    positives = int(truth.sum())
    if positives in (0, len(truth)):
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # from 1; equal scores share their mean
    return float((ranks[truth].mean() - (positives + 1) / 2) / (len(truth) - positives))


def watch_expert(agent: EmbeddingAgent, world: World, tasks: Sequence[Task], plans: np.ndarray, seed: int) -> Moments:
    """The expert's episodes are over as soon as the task is done."""
    demos = Corpus(world, tasks, (seed, FRESH + 32), lambda finished: None)
    done, which = demos.done(agent)
    truth = np.append(which[1:] != which[:-1], True)
    return Moments(plans[which], plans[which] - done, truth)


def watch_agent(agent: EmbeddingAgent, world: World, trial: Trial, plans: np.ndarray, seed: int) -> Moments:
    """Episodes of the agent acting on the plans, to the horizon."""
    done = []
    truth = []
    first = None
    agents = stack([agent])
    plans_of_each = jnp.float32(plans)[None]
    key = jax.random.key(seed)
    for moment in episodes(agents, world, plans_of_each, trial.scenes, trial.wanted, key, trial.horizon, stop="never"):
        now = moment.session.observe()
        if moment.time == 0:
            first = now
        done.append(np.asarray(encode_batch(agent, first, now), np.float64))
        truth.append(moment.done & moment.sane if moment.time else np.zeros(len(plans), bool))
    repeated = np.tile(plans, (len(done), 1))
    return Moments(repeated, repeated - np.concatenate(done), np.concatenate(truth))
