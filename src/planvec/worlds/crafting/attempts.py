"""The crafting expert at work: thousands of attempts at once on the accelerator, and their replay."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.data.recordings import Recording
from planvec.errors import InputError
from planvec.tasks import NO_SKILL
from planvec.worlds.crafting.expert import choose, tick_off
from planvec.worlds.crafting.rules import ACTIONS, State

if TYPE_CHECKING:
    from planvec.worlds.crafting.world import Crafting

RUNNING, DONE, EXTRAS, FAILED = range(4)  # EXTRAS: did something that the task did not ask for
CHUNK = 16  # steps between two looks at which attempts have ended
ROUND = 64  # lengths are rounded up, at least to this, so that few programs are ever compiled
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


@partial(jax.jit, static_argnames="world")
def _begin_many(world: "Crafting", seed: Array, items: Array, tries: Array, tasks: Array) -> Attempt:
    return jax.vmap(partial(_begin, world, seed))(items, tries, tasks)


def _advance(
    world: "Crafting", attempt: Attempt, noise: Array, limit: Array, keep_extras: bool
) -> tuple[Attempt, Array]:
    """One step of an attempt; it stays as it is once it has ended."""
    tie, chance, other = jax.random.bits(jax.random.fold_in(attempt.key, attempt.time), (3,))
    action, possible = choose(world, attempt.state, attempt.task, attempt.left, tie, keep_extras)
    action = jnp.where(chance < noise, (other % len(ACTIONS)).astype(jnp.uint8), action)
    state, skill = world.step(attempt.state, action)
    happened = skill != world.rules.no_skill
    time = attempt.time + 1
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
    begun = _begin_many(world, seed, items, tries, tasks)
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
    tasks = _widen(tasks)
    threshold = jnp.uint32(min(round(noise * 2**32), 2**32 - 1))  # random words below it are noise
    limits = np.array([world.horizon([max(1, n)]) for n in np.sum(tasks != NO_SKILL, axis=1)], np.int32)
    pool = _Pool(_lanes(len(tasks)), int(limits.max()))
    kept = _Kept(tasks)
    nothing = np.full((len(pool.item), tasks.shape[1]), NO_SKILL, np.int8)
    attempts = _begin_many(world, seed, pool.item, pool.tries, nothing)
    while kept.count < len(tasks):
        fresh = pool.fill(len(tasks))
        attempts, moves = _chunk(
            world,
            seed,
            attempts,
            fresh,
            items=pool.item,
            tries=pool.tries,
            tasks=tasks[pool.item],
            noise=threshold,
            limits=limits[pool.item],
            keep_extras=keep_extras,
        )
        seen = jax.tree.map(np.asarray, attempts._replace(key=None))
        pool.note(np.asarray(moves), seen)
        kept.take(pool, seen)
        progress(kept.count)
    return kept.recording()


class _Pool:
    """Which demonstration each lane is working on, and what it has done so far."""

    def __init__(self, lanes: int, longest: int) -> None:
        self.item = np.full(lanes, -1)  # -1: none
        self.tries = np.zeros(lanes, np.int32)
        self.time = np.zeros(lanes, np.int32)
        self.ended = np.ones(lanes, bool)
        self.actions = np.zeros((lanes, longest + CHUNK), np.uint8)
        self.upcoming = 0

    def fill(self, count: int) -> np.ndarray:
        """Give the next demonstrations to idle lanes. Returns which lanes begin an attempt."""
        idle = np.flatnonzero(self.item < 0)[: count - self.upcoming]
        self.item[idle] = np.arange(self.upcoming, self.upcoming + len(idle))
        self.tries[idle] = 0
        self.upcoming += len(idle)
        fresh = self.ended & (self.item >= 0)
        self.time[fresh] = 0
        return fresh

    def note(self, moves: np.ndarray, attempts: Attempt) -> None:
        """Take down a chunk of actions [step, lane], and who is done with an attempt."""
        np.put_along_axis(self.actions, self.time[:, None] + np.arange(CHUNK), moves.T, axis=1)
        self.time = np.array(attempts.time)
        self.ended = np.asarray(attempts.status) != RUNNING
        self.tries += self.ended
        if self.tries[self.item >= 0].max(initial=0) > TRIES:
            raise InputError(f"the expert failed {TRIES} times at one task; ask for less noise, or for fewer skills")


class _Kept:
    """The demonstrations that are there, and a tally of all attempts."""

    def __init__(self, tasks: np.ndarray) -> None:
        self.sizes = np.sum(tasks != NO_SKILL, axis=1)
        self.actions: list[np.ndarray] = [np.empty(0, np.uint8)] * len(tasks)
        self.first: dict[str, np.ndarray] = {}  # states, by the parts that they have
        self.extras = np.zeros(len(tasks), np.int32)
        self.attempts = np.zeros((len(tasks), 4), np.int64)
        self.count = 0

    def take(self, pool: _Pool, attempts: Attempt) -> None:
        """Keep what was done as it should be, and free its lanes."""
        busy = pool.item >= 0
        for status in (DONE, EXTRAS, FAILED):
            np.add.at(self.attempts[:, status], pool.item[busy & (attempts.status == status)], 1)
        lanes = np.flatnonzero(busy & (attempts.status == DONE))
        items = pool.item[lanes]
        for lane, item in zip(lanes, items, strict=True):
            self.actions[item] = pool.actions[lane, : attempts.time[lane]].copy()
        for name, part in attempts.first._asdict().items():
            if name not in self.first:
                self.first[name] = np.zeros((len(self.sizes), *part.shape[1:]), part.dtype)
            self.first[name][items] = part[lanes]
        self.extras[items] = attempts.events[lanes] - self.sizes[items]
        pool.item[lanes] = -1
        self.count += len(lanes)

    def recording(self) -> Recording:
        lengths = np.array([len(actions) for actions in self.actions], np.int32)
        return Recording(
            stored=self.first,
            actions=np.concatenate(self.actions),
            lengths=lengths,
            extras=self.extras,
            attempts=self.attempts[:, [DONE, EXTRAS, FAILED]],
        )


def replay(world: "Crafting", demos: Recording, progress: Callable[[int], None], most: int = 4096) -> State:
    """Every state of every demonstration, end to end, by doing the recorded actions again, for `most` at a time."""
    parts = []
    for begin in range(0, len(demos.lengths), most):
        part = slice(begin, begin + most)
        first, actions = _padded(demos, part)
        states, _ = _replay(world, first, actions)
        inside = np.zeros((actions.shape[1], len(actions) + 1), bool)  # [demonstration, step]
        inside[: len(demos.lengths[part])] = np.arange(len(actions) + 1) <= demos.lengths[part][:, None]
        parts.append(jax.tree.map(lambda leaf, inside=inside: np.asarray(leaf).swapaxes(0, 1)[inside], states))
        progress(int((demos.lengths[: part.stop] + 1).sum()))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def final(world: "Crafting", demos: Recording) -> tuple[State, np.ndarray]:
    """The last state of each demonstration, and how often each skill was done. int32 [demonstration, skill]"""
    states, skills = _replay(world, *_padded(demos, slice(None)))
    demo = np.arange(len(demos.lengths))
    last = jax.tree.map(lambda leaf: np.asarray(leaf)[demos.lengths, demo], states)
    inside = np.arange(len(skills))[:, None] < demos.lengths
    events = (np.asarray(skills)[:, demo, None] == np.arange(len(world.skills))) & inside[..., None]
    return last, events.sum(axis=0, dtype=np.int32)


def _padded(demos: Recording, part: slice) -> tuple[State, np.ndarray]:
    """First states and actions [step, demonstration] of some demonstrations, the actions running over the end, and the
    demonstrations too: the last one fills up to a round number."""
    longest = -(-int(demos.lengths.max()) // ROUND) * ROUND
    columns = np.minimum(demos.first_actions[part, None] + np.arange(longest), len(demos.actions) - 1)
    first = State(**{name: field[part] for name, field in demos.stored.items()})
    first, actions = pad((first, demos.actions[columns]))
    return first, actions.T


@partial(jax.jit, static_argnames="world")
def _replay(world: "Crafting", first: State, actions: Array) -> tuple[State, Array]:
    """All states of a batch of demonstrations, and the skill that each action did. [step, demonstration]"""

    def advance(states: State, action: Array) -> tuple[State, tuple[State, Array]]:
        after, skill = jax.vmap(world.step)(states, action)
        return after, (after, skill)

    _, (states, skills) = jax.lax.scan(advance, first, actions)
    return jax.tree.map(lambda start, rest: jnp.concatenate([start[None], rest]), first, states), skills


def _lanes(count: int) -> int:
    """How many attempts to run at once: a round number, so that few programs are ever compiled."""
    most = 2048 if jax.default_backend() == "cpu" else 16384
    return min(most, round_up(count))


def _widen(tasks: np.ndarray) -> np.ndarray:
    """Pad encoded tasks to 4, 8, 16 … skills, so that few programs are ever compiled."""
    width = max(4, 1 << (tasks.shape[1] - 1).bit_length())
    return np.pad(tasks, ((0, 0), (0, width - tasks.shape[1])), constant_values=NO_SKILL)


def round_up(count: int) -> int:
    """To a power of two, 64 at least."""
    return max(ROUND, 1 << (count - 1).bit_length())


def pad(tree: Any) -> Any:
    """Repeat the last row of all arrays up to a round number of rows."""

    def padded(leaf: Any) -> np.ndarray:
        return np.pad(leaf, ((0, round_up(len(leaf)) - len(leaf)), *[(0, 0)] * (leaf.ndim - 1)), "edge")

    return jax.tree.map(padded, tree)
