"""Episodes: agents acting in a world, moment by moment. Whoever wants scores, films or frames looks at the moments.

There is one loop. In pure worlds its steps run on the accelerator with the policy inside, some at a time. In hosted
worlds a call of the policy serves all episodes, then their simulators take a step. An episode ends when its agent says
that nothing is left to do: nothing is done in it any more. Who may say so:

    own     the agent itself, where its head can; other agents go on to the horizon
    probe   `agent.finished`, what its metric or its probe reads in what is left of the plan
    never   nobody
"""

from collections.abc import Generator, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents import Agent
from planvec.agents.kernels import on_cpu
from planvec.errors import InputError
from planvec.worlds.protocol import PureWorld, Session, World, take
from planvec.worlds.sessions import NOTHING, PureSession, chosen

STOPS = ("own", "probe", "never")
BLOCK = 16  # episodes that a CPU's policy looks at together, where it leaves out those that have stopped
CHUNK = 10  # steps in one call of a pure world's program; horizons are mostly multiples of it


class Moment(NamedTuple):
    """Episodes of one or several agents as they are after some actions. [agent · episode, …]"""

    time: int  # how many actions
    actions: Any  # the last of them; None at first. What stands there for episodes that have stopped was not done
    session: Session  # what can be observed, and the steps, now: not once the next moment has come
    done: np.ndarray  # bool, whether all that is asked for has come about
    clean: np.ndarray  # bool, whether nothing else has
    sane: np.ndarray  # bool, whether the simulator has not broken down
    stopped: np.ndarray  # bool, whether the agent has said that nothing is left to do: nothing was done there since
    can_stop: bool  # whether it can say so at all


def episodes(
    agents: Agent,
    world: World,
    plans: Any,
    scenes: Any,
    asked: np.ndarray,
    key: Array,
    horizon: int,
    greedy: bool = False,
    stop: str = "own",
) -> Generator[Moment, None, None]:
    """Let agents (stacked) act on plans [agent, episode, …], the same scenes and demands for each agent [episode, …].

    The first moment is before any action, the last one at the horizon, or as soon as all have stopped. Whoever has seen
    enough stops asking.
    """
    can_stop = may_stop(agents, stop)
    count = len(jax.tree.leaves(agents)[0])
    scenes, asked = jax.tree.map(lambda leaf: np.concatenate([leaf] * count), (scenes, asked))
    with world.start(scenes) as session:
        first = _divide(session.observe(), count)
        sane = np.ones(len(asked), bool)
        yield Moment(0, None, session, *session.judge(asked), sane, ~sane, can_stop)
        acting = _Acting(agents, jax.device_put(first), plans, key, greedy, stop)
        if isinstance(session, PureSession):
            steps = _compute(acting, session, scenes, horizon)
        else:
            steps = _simulate(acting, session, sane, horizon)
        for time, (actions, stopped, survived) in enumerate(steps, start=1):
            sane = sane & survived
            yield Moment(time, actions, session, *session.judge(asked), sane, stopped, can_stop)
            if stopped.all():
                return


def may_stop(agents: Agent, stop: str) -> bool:
    """Whether agents can end their episodes. Complains where they cannot do so in the way that is asked for."""
    if stop not in STOPS:
        raise InputError(f"agents stop by {', '.join(STOPS)}; got '{stop}'")
    if stop == "probe" and agents.metric is None:
        _ = agents.reader  # complains where there is none
    return stop == "probe" or (stop == "own" and agents.can_stop)


class _Acting(eqx.Module):
    """Agents, and what they act on. [agent, episode, …]"""

    agents: Agent  # stacked
    first: Any
    plans: Any
    key: Array
    greedy: bool = eqx.field(static=True)
    stop: str = eqx.field(static=True)

    def choose(self, now: Any, time: Array | np.int32, going: Any) -> tuple[Any, Array]:
        """The actions after so many others, and which agents say that nothing is left to do. Takes and gives [agent ·
        episode, …]; what it gives for episodes that do not go on means nothing."""
        own = jax.random.fold_in(self.key, time)
        some = on_cpu() and may_stop(self.agents, self.stop)

        def choose(agent: Agent, first: Any, now: Any, plans: Any, going: Any) -> tuple[Any, Array]:
            if some and len(going) > BLOCK:
                action, stop = agent.decide(_look_in_blocks(agent, (first, now, plans), going), own, self.greedy)
            else:
                action, stop = agent.choose(first, now, plans, own, self.greedy)
            match self.stop:
                case "probe":
                    stop = agent.finished(first, now, plans)
                case "never":
                    stop = jnp.zeros_like(stop)
            return action, stop

        now, going = _divide((now, going), len(jax.tree.leaves(self.agents)[0]))
        return _join(jax.vmap(choose)(self.agents, self.first, now, self.plans, going))


def _look_in_blocks(agent: Agent, seen: tuple[Any, Any, Any], going: Any) -> Any:
    """The head's outputs for the episodes that go on, BLOCK at a time; zeros for the others. A few outlast most by far,
    and on a CPU a network costs as much for each."""
    order = jnp.argsort(~going)

    def block(number: Array, outputs: Any) -> Any:
        rows = jax.lax.dynamic_slice(order, (number * BLOCK,), (BLOCK,))
        part = agent.outputs(*take(seen, rows))
        return jax.tree.map(lambda whole, some: whole.at[rows].set(some), outputs, part)

    outline = jax.eval_shape(agent.outputs, *seen)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), outline)
    return jax.lax.fori_loop(0, (jnp.sum(going) + BLOCK - 1) // BLOCK, block, zeros)


Steps = Iterator[
    tuple[Any, np.ndarray, np.ndarray]
]  # the actions, which episodes have stopped, which simulators survived


def _simulate(acting: _Acting, session: Session, going: np.ndarray, horizon: int) -> Steps:
    """One jitted call for the actions of all, then the simulators of those that go on."""
    for time in range(horizon):
        actions, stop = jax.tree.map(np.asarray, _choose(acting, session.observe(), np.int32(time), going))
        going = going & ~stop
        survived = session.step(actions, going) if going.any() else np.ones(len(going), bool)
        yield actions, ~going, survived


def _compute(acting: _Acting, session: PureSession, states: Any, horizon: int) -> Steps:
    """CHUNK steps of all in one program."""
    survived = np.ones(len(jax.tree.leaves(states)[0]), bool)
    going: Any = survived
    for begin in range(0, horizon, CHUNK):
        (states, going), (after, *rows) = _chunk(acting, session.world, states, going, np.int32(begin))
        actions, stopped, skills = jax.device_get(rows)
        fetch = cache(partial(jax.device_get, after))  # once, and only if somebody wants to see the states
        for step in range(min(CHUNK, horizon - begin)):
            session.follow(lambda fetch=fetch, step=step: take(fetch(), step), skills[step])
            yield take(actions, step), stopped[step], survived


_choose = eqx.filter_jit(_Acting.choose)


@eqx.filter_jit
def _chunk(acting: _Acting, world: PureWorld, states: Any, going: Any, begin: np.int32) -> tuple[Any, tuple[Any, ...]]:
    """The states after CHUNK steps, and which episodes still go on; and of each step the states, the actions, which
    episodes have stopped, and the skills done. [step, …]"""

    def step(before: tuple[Any, Array], time: Array) -> tuple[Any, tuple[Any, ...]]:
        states, going = before
        actions, stop = acting.choose(jax.vmap(world.observe)(states), time, going)
        going = going & ~stop
        after, skills = jax.vmap(world.step)(states, actions)
        states = chosen(going, after, states)
        return (states, going), (states, actions, ~going, jnp.where(going, jnp.int32(skills), NOTHING))

    return jax.lax.scan(step, (states, going), begin + jnp.arange(CHUNK))


def stack(agents: Sequence[Agent], stop: str = "own") -> Agent:
    """Agents of one kind as one, each array with a row for each. Probes and metrics are left out, as not all may have
    one; unless they are to say when to stop."""
    if stop != "probe":
        agents = [agent.bare for agent in agents]
    elif any(agent.metric is None for agent in agents):
        _ = [agent.reader for agent in agents]  # complains where there is none
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents)


def _divide(tree: Any, count: int) -> Any:
    """[agent · episode, …] to [agent, episode, …]"""
    return jax.tree.map(lambda leaf: leaf.reshape(count, -1, *leaf.shape[1:]), tree)


def _join(tree: Any) -> Any:
    """[agent, episode, …] to [agent · episode, …]"""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree)
