"""Episodes: agents acting in a world, moment by moment. Whoever wants scores, films or frames looks at the moments.

There is one loop. In pure worlds its steps run on the accelerator with the policy inside, some at a time. In hosted
worlds a call of the policy serves all episodes, then all simulators take a step.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.worlds.protocol import PureWorld, Session, World, take
from planvec.worlds.sessions import PureSession

CHUNK = 10  # steps in one call of a pure world's program; horizons are mostly multiples of it


class Moment(NamedTuple):
    """Episodes of one or several agents as they are after some actions. [agent · episode, …]"""

    time: int  # how many actions
    actions: Any  # the last of them; None at first
    session: Session  # what can be observed, and the steps, now: not once the next moment has come
    done: np.ndarray  # bool, whether all that is asked for has come about
    clean: np.ndarray  # bool, whether nothing else has
    sane: np.ndarray  # bool, whether the simulator has not broken down


def episodes(
    agents: Agent,
    world: World,
    plans: Any,
    scenes: Any,
    asked: np.ndarray,
    key: Array,
    horizon: int,
    greedy: bool = False,
) -> Generator[Moment, None, None]:
    """Let agents (stacked) act on plans [agent, episode, …], the same scenes and demands for each agent [episode, …].

    The first moment is before any action, the last one at the horizon. Whoever has seen enough stops asking.
    """
    count = len(jax.tree.leaves(agents)[0])
    scenes, asked = jax.tree.map(lambda leaf: np.concatenate([leaf] * count), (scenes, asked))
    with world.start(scenes) as session:
        first = _divide(session.observe(), count)
        sane = np.ones(len(asked), bool)
        yield Moment(0, None, session, *session.judge(asked), sane)
        if isinstance(session, PureSession):
            steps = _compute(agents, session, scenes, first, plans, key, horizon, greedy)
        else:
            steps = _simulate(agents, session, first, plans, key, horizon, greedy)
        for time, (actions, survived) in enumerate(steps, start=1):
            sane = sane & survived
            yield Moment(time, actions, session, *session.judge(asked), sane)


Steps = Iterator[tuple[Any, np.ndarray]]  # the actions of all episodes, and which simulators survived them


def _simulate(agents: Agent, session: Session, first: Any, plans: Any, key: Array, horizon: int, greedy: bool) -> Steps:
    """One jitted call for the actions of all, then the simulators."""
    count = len(jax.tree.leaves(agents)[0])
    first = jax.device_put(first)
    for time in range(horizon):
        now = _divide(session.observe(), count)
        actions = jax.tree.map(np.asarray, _join(_choose_at(agents, first, now, plans, key, np.int32(time), greedy)))
        yield actions, session.step(actions)


def _compute(
    agents: Agent, session: PureSession, states: Any, first: Any, plans: Any, key: Array, horizon: int, greedy: bool
) -> Steps:
    """CHUNK steps of all in one program."""
    survived = np.ones(len(jax.tree.leaves(states)[0]), bool)
    for begin in range(0, horizon, CHUNK):
        begun = np.int32(begin)
        states, (after, actions, skills) = _chunk(agents, session.world, first, states, plans, key, begun, greedy)
        actions, skills = jax.device_get((actions, skills))
        fetch = cache(partial(jax.device_get, after))  # once, and only if somebody wants to see the states
        for step in range(min(CHUNK, horizon - begin)):
            session.follow(lambda fetch=fetch, step=step: take(fetch(), step), skills[step])
            yield take(actions, step), survived


@eqx.filter_jit
def _chunk(
    agents: Agent, world: PureWorld, first: Any, states: Any, plans: Any, key: Array, begin: np.int32, greedy: bool
) -> tuple[Any, tuple[Any, Any, Array]]:
    """The states after CHUNK steps; and of each step the states, the actions and the skills done. [step, …]"""
    count = len(jax.tree.leaves(agents)[0])

    def step(states: Any, time: Array) -> tuple[Any, tuple[Any, Any, Array]]:
        now = _divide(jax.vmap(world.observe)(states), count)
        actions = _join(_choose_at(agents, first, now, plans, key, time, greedy))
        states, skills = jax.vmap(world.step)(states, actions)
        return states, (states, actions, skills)

    return jax.lax.scan(step, states, begin + jnp.arange(CHUNK))


@eqx.filter_jit
def _choose_at(
    agents: Agent, first: Any, now: Any, plans: Any, key: Array, time: Array | np.int32, greedy: bool
) -> Any:
    """The actions after so many others. [agent, episode, …]"""
    own = jax.random.fold_in(key, time)
    return jax.vmap(lambda agent, *seen: agent.choose(*seen, own, greedy))(agents, first, now, plans)


def stack(agents: Sequence[Agent]) -> Agent:
    """Agents of one kind as one, each array with a row for each. Probes are left out: not all may have one."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[replace(agent, probe=None) for agent in agents])


def _divide(tree: Any, count: int) -> Any:
    """[agent · episode, …] to [agent, episode, …]"""
    return jax.tree.map(lambda leaf: leaf.reshape(count, -1, *leaf.shape[1:]), tree)


def _join(tree: Any) -> Any:
    """[agent, episode, …] to [agent · episode, …]"""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree)
