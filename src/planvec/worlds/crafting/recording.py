"""Recording the crafting expert: thousands of attempts at once on the accelerator, and their replay."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.tasks import NO_SKILL
from planvec.worlds.crafting.expert import choose, tick_off
from planvec.worlds.crafting.rules import ACTIONS, State
from planvec.worlds.world import Recording

if TYPE_CHECKING:
    from planvec.worlds.crafting.world import Crafting

RUNNING, DONE, EXTRAS, FAILED = range(4)  # EXTRAS: did something that the task did not ask for
CHUNK = 16  # steps between two looks at which attempts have ended
ROUND = 64  # lengths are rounded up to multiples of this, so that few programs are ever compiled
TRIES = 200  # attempts at one demonstration before giving up


class Attempt(NamedTuple):
    """One try at a demonstration."""

    first: State
    state: State
    task: Array  # int8 [skills], padded
    left: Array  # bool [skills], which entries of the task are still to do
    events: Array  # int32 [], how many skills have been done, asked for or not
    key: Array
    time: Array  # int32 []
    status: Array  # uint8 []


def _begin(world: "Crafting", seed: Array, item: Array, attempt: Array, task: Array) -> Attempt:
    """Everything random about an attempt follows from the seed, which demonstration it is for, and which try it is."""
    key = jax.random.fold_in(jax.random.fold_in(seed, item), attempt)
    state = world.reset(key, task)
    return Attempt(state, state, task, task != NO_SKILL, jnp.int32(0), key, jnp.int32(0), jnp.uint8(RUNNING))


def _advance(
    world: "Crafting", attempt: Attempt, noise: Array, limit: Array, keep_extras: bool
) -> tuple[Attempt, Array]:
    """One step of an attempt; it stays as it is once it has ended."""
    tie, chance, other = jax.random.bits(jax.random.fold_in(attempt.key, attempt.time), (3,))
    action, possible = choose(world, attempt.state, attempt.task, attempt.left, tie, keep_extras)
    action = jnp.where(chance < noise, (other % len(ACTIONS)).astype(jnp.uint8), action)
    state, skill = world.step(attempt.state, action)
    happened, time = skill != world.rules.no_skill, attempt.time + 1
    left = tick_off(attempt.task, attempt.left, skill, keep_extras)
    extra = happened & jnp.all(left == attempt.left)
    status = jnp.select(
        [extra & (not keep_extras), ~jnp.any(left), ~possible | (time >= limit)],
        [EXTRAS, DONE, FAILED],
        RUNNING,
    )
    moved = attempt._replace(
        state=state, left=left, events=attempt.events + happened, time=time, status=status.astype(jnp.uint8)
    )
    running = attempt.status == RUNNING
    return jax.tree.map(lambda new, old: jnp.where(running, new, old), moved, attempt), action


@partial(jax.jit, static_argnames=("world", "keep_extras"))
def _chunk(
    world: "Crafting",
    seed: Array,
    attempts: Attempt,
    fresh: Array,
    items: Array,
    tries: Array,
    tasks: Array,
    noise: Array,
    limits: Array,
    keep_extras: bool,
) -> tuple[Attempt, Array]:
    """Begin the attempts marked fresh, then advance all by CHUNK steps. Actions come back as uint8 [step, attempt]."""
    begun = jax.vmap(partial(_begin, world, seed))(items, tries, tasks)
    attempts = jax.vmap(lambda pick, new, old: jax.tree.map(lambda n, o: jnp.where(pick, n, o), new, old))(
        fresh, begun, attempts
    )

    def advance(attempts: Attempt, _: None) -> tuple[Attempt, Array]:
        return jax.vmap(lambda one, limit: _advance(world, one, noise, limit, keep_extras))(attempts, limits)

    return jax.lax.scan(advance, attempts, length=CHUNK)


def record(
    world: "Crafting",
    tasks: np.ndarray,
    seed: Array,
    noise: float = 0.0,
    keep_extras: bool = False,
    progress: Callable[[int], None] = lambda finished: None,
) -> Recording:
    """One demonstration of each encoded task; attempts that fail are made again in another scene.

    A pool of attempts runs in lockstep on the accelerator; whenever some have ended, the next ones take their places.
    What comes out depends on (seed, demonstration, attempt) alone, not on the size of the pool.
    """
    count, lanes = len(tasks), _lanes(len(tasks))
    tasks = _widen(tasks)
    limits = np.array([world.horizon(max(1, n)) for n in np.sum(tasks != NO_SKILL, axis=1)], np.int32)
    threshold = jnp.uint32(min(round(noise * 2**32), 2**32 - 1))

    item, tries = np.full(lanes, -1), np.zeros(lanes, np.int32)
    ended, upcoming, finished = np.ones(lanes, bool), 0, 0
    attempts = jax.vmap(partial(_begin, world, seed))(item, tries, np.full((lanes, tasks.shape[1]), NO_SKILL, np.int8))
    buffer = np.zeros((lanes, -(-limits.max() // CHUNK) * CHUNK), np.uint8)
    actions: list[np.ndarray] = [buffer[0, :0]] * count
    first = jax.tree.map(lambda x: np.zeros((count, *x.shape[1:]), x.dtype), attempts.first)
    extras, tried = np.zeros(count, np.int32), np.zeros((count, 4), np.int64)

    while finished < count:
        vacant = np.flatnonzero(ended & (item < 0))[: count - upcoming]
        item[vacant], tries[vacant] = np.arange(upcoming, upcoming + len(vacant)), 0
        upcoming += len(vacant)
        fresh = ended & (item >= 0)
        time = np.where(fresh, 0, np.asarray(attempts.time))

        attempts, moves = _chunk(
            world, seed, attempts, fresh, item, tries, tasks[item], threshold, limits[item], keep_extras
        )
        columns = np.minimum(time[:, None] + np.arange(CHUNK), buffer.shape[1] - 1)
        np.put_along_axis(buffer, columns, np.asarray(moves).T, axis=1)

        status = np.where(item >= 0, np.asarray(attempts.status), FAILED)
        ended = status != RUNNING
        for kind in (DONE, EXTRAS, FAILED):
            np.add.at(tried[:, kind], item[(status == kind) & (item >= 0)], 1)
        tries += ended
        if tries[item >= 0].max(initial=0) >= TRIES:
            raise RuntimeError(f"the expert failed {TRIES} times at a task; it may be impossible in this world")
        done = np.flatnonzero(status == DONE)
        lengths, events = np.asarray(attempts.time), np.asarray(attempts.events)
        for lane in done:
            actions[item[lane]] = buffer[lane, : lengths[lane]].copy()
        for kept, start in zip(first, attempts.first, strict=True):
            kept[item[done]] = np.asarray(start)[done]
        extras[item[done]] = events[done] - np.sum(tasks[item[done]] != NO_SKILL, axis=1)
        item[done] = -1
        finished += len(done)
        progress(finished)

    return Recording(
        stored=dict(first._asdict()),
        actions=np.concatenate(actions),
        lengths=np.array([len(moves) for moves in actions], np.int32),
        extras=extras,
        attempts=tried[:, [DONE, EXTRAS, FAILED]],
    )


def replay(world: "Crafting", demos: Recording, most: int = 4096) -> State:
    """Every state of every demonstration, end to end, by doing the recorded actions again."""
    parts = []
    for begin in range(0, len(demos.lengths), most):
        part = slice(begin, begin + most)
        first, actions = _padded(demos, part)
        states, _ = _replay(world, first, actions)
        inside = np.arange(len(actions) + 1) <= demos.lengths[part][:, None]
        parts.append(jax.tree.map(lambda leaf, inside=inside: np.asarray(leaf).swapaxes(0, 1)[inside], states))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def final(world: "Crafting", demos: Recording) -> tuple[State, np.ndarray]:
    """The last state of each demonstration, and how often each skill was done. int32 [demonstration, skill]"""
    states, skills = _replay(world, *_padded(demos, slice(None)))
    demo = np.arange(len(demos.lengths))
    last = jax.tree.map(lambda leaf: np.asarray(leaf)[demos.lengths, demo], states)
    inside = np.arange(len(skills))[:, None] < demos.lengths
    events = (np.asarray(skills)[..., None] == np.arange(len(world.skills))) & inside[..., None]
    return last, events.sum(axis=0, dtype=np.int32)


def _padded(demos: Recording, part: slice) -> tuple[State, np.ndarray]:
    """First states and actions [step, demonstration] of some demonstrations, the actions running over the end."""
    longest = -(-int(demos.lengths.max()) // ROUND) * ROUND
    starts = (np.cumsum(demos.lengths) - demos.lengths)[part]
    columns = np.minimum(starts[:, None] + np.arange(longest), len(demos.actions) - 1)
    return State(**{name: field[part] for name, field in demos.stored.items()}), demos.actions[columns].T


@partial(jax.jit, static_argnames="world")
def _replay(world: "Crafting", first: State, actions: Array) -> tuple[State, Array]:
    """All states of a batch of demonstrations, and the skill that each action did. [step, demonstration]"""

    def advance(states: State, action: Array) -> tuple[State, tuple[State, Array]]:
        after, skill = jax.vmap(world.step)(states, action)
        return after, (after, skill)

    _, (states, skills) = jax.lax.scan(advance, first, actions)
    return jax.tree.map(lambda start, rest: jnp.concatenate([start[None], rest]), first, states), skills


def _lanes(count: int) -> int:
    """How many attempts to run at once: a power of two, so that few programs are ever compiled."""
    most = 2048 if jax.default_backend() == "cpu" else 16384
    return min(most, 1 << max(0, count - 1).bit_length())


def _widen(tasks: np.ndarray) -> np.ndarray:
    """Pad encoded tasks to 4, 8, 16 … skills, so that few programs are ever compiled."""
    width = max(4, 1 << (tasks.shape[1] - 1).bit_length())
    return np.pad(tasks, ((0, 0), (0, width - tasks.shape[1])), constant_values=NO_SKILL)


def pad(tree: Any) -> Any:
    """Repeat the last row of all arrays up to a round length."""
    return jax.tree.map(lambda leaf: np.pad(leaf, ((0, -len(leaf) % ROUND), *[(0, 0)] * (leaf.ndim - 1)), "edge"), tree)
