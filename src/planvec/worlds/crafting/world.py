"""The crafting world: a board of things, an agent with one hand, and rules that say what happens.

`reset`, `step` and `observe` are pure functions of one state; `jax.vmap` makes them serve thousands at once.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.data.demonstrations import Demonstration
from planvec.data.recordings import Recording, check_recording
from planvec.data.tiles import Atlas, Tiled
from planvec.errors import InputError
from planvec.tasks import NO_SKILL, Task, check_seed, decode_tasks, encode_tasks, parse_task
from planvec.worlds.crafting import attempts, render
from planvec.worlds.crafting.attempts import pad, round_up
from planvec.worlds.crafting.doable import doable
from planvec.worlds.crafting.rules import ACTIONS, CELLS, KIND, NEIGHBOUR, NOTHING, RULES, SIZE, AnyArray, Rules, State
from planvec.worlds.protocol import Board, Player, Progress, PureWorld, no_progress, take
from planvec.worlds.spaces import Images

FEWEST = 15  # things in a scene …
MOST = 24  # … which is filled up to a number between these
TILE = 16  # the grey of an empty cell in the agent's picture …
AGENT = (110, 110, 110)  # … and what the agent adds at its centre
ON_PAGE = 64  # pixels of a cell on a page's sheet; the page draws them smaller
DENSE = 32  # skills; of 1,000 scenes of 16 there was none that could not be done
REDRAWN = 10  # times at most that a scene is drawn anew
HORIZONS = {1: 90, 2: 90, 4: 160, 8: 280, 16: 550}  # steps allowed, by number of skills; from the paper


@dataclass(frozen=True)
class Crafting(PureWorld):
    """The world with a given set of rules."""

    rules: Rules = RULES
    name = "crafting"
    space: ClassVar[Images] = Images(shape=(3 * (SIZE + 1), 3 * SIZE, 3), actions=len(ACTIONS))
    conditions: ClassVar[tuple[str, ...]] = ("4", "8", "16", "1+1", "2+2", "4+4")
    sums: ClassVar[tuple[str, ...]] = (
        *("2", "3", "4", "2+2", "4+4"),
        *("+".join([part] * count) for count in (4, 8, 16) for part in "24"),
    )
    glance: ClassVar[tuple[str, ...]] = ("4", "2+2")
    pairs = 40_000
    sizes = (2, 4)
    examples: ClassVar[tuple[Task, Task]] = (("ChopTree",), ("MakeBread", "EatBread"))
    showcase: ClassVar[tuple[Task, Task]] = (("ChopTree", "BuildHouse"), ("MakeBread", "EatBread"))
    too_much: ClassVar[str | None] = "8*{0}"

    @property
    def skills(self) -> tuple[str, ...]:
        return self.rules.skills

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever stored scenes and actions would replay differently."""
        return hashlib.sha256(repr((self.rules, SIZE)).encode()).hexdigest()[:16]

    def reset(self, key: Array, task: Array) -> State:
        """A random scene in which the encoded task can be done."""
        shuffle, lottery = jax.random.bits(key, (2, CELLS))
        number = jnp.arange(CELLS)
        needs = jnp.cumsum(jnp.maximum(self._least, self._needs(task)))  # things below number needs[i] are of kind ≤ i
        total = jnp.maximum(needs[-1], FEWEST + lottery[-1] % (MOST + 1 - FEWEST))
        needed = jnp.sum(number[:, None] >= needs, axis=1)
        extra = jnp.asarray(self._lottery)[lottery % len(self._lottery)]
        things = jnp.where(number < needs[-1], needed, jnp.where(number < total, extra, NOTHING))
        shuffled = _permutation(shuffle)  # the last number is always free: the agent's cell
        return State(
            cells=things[shuffled].astype(jnp.uint8),
            agent=jnp.argmax(shuffled == CELLS - 1).astype(jnp.uint8),
            held=jnp.uint8(NOTHING),
        )

    def step(self, state: State, action: Array) -> tuple[State, Array]:
        """Do one action. Returns the next state and the number of the skill that was done, `rules.no_skill` if none."""
        where = state.agent.astype(jnp.int32) * NEIGHBOUR.shape[1] + action
        cell = jnp.asarray(NEIGHBOUR.ravel())[where]
        kind = jnp.asarray(KIND.ravel())[where]
        held, content, enters, skill = self._look_up(kind, state.held, state.cells[cell])
        return State(
            cells=jnp.where(jnp.arange(CELLS, dtype=jnp.uint8) == cell, content, state.cells),
            agent=jnp.where(enters, cell, state.agent),
            held=held,
        ), skill

    def observe(self, state: State) -> Array:
        """What the agent sees: uint8 [33, 30, 3], 3×3 pixels a cell, and a row for "something is held"."""
        return self.tiles(state).draw()

    def tiles(self, state: State) -> Tiled:
        """The same, not drawn yet."""
        kinds = len(self.rules.things)
        here = jnp.arange(CELLS) == state.agent
        cells = state.cells + jnp.where(here, kinds * (1 + state.held.astype(jnp.int32)), 0)
        blank = len(self._atlas) - 2
        white = len(self._atlas) - 1
        hand = jnp.full(SIZE, blank).at[0].set(jnp.where(state.held == NOTHING, blank, white))
        numbers = jnp.concatenate([cells, hand]).astype(self._atlas.numbers)
        return Tiled(numbers.reshape(SIZE + 1, SIZE), self._atlas)

    def decode(self, step: State) -> Tiled:
        """What training sees of a stored step."""
        return self.tiles(step)

    def count_skills(self, task: Array) -> Array:
        """How often an encoded task asks for each skill. uint8 [skill]"""
        return jnp.sum(task[:, None] == jnp.arange(len(self.skills)), axis=0, dtype=jnp.uint8)

    def horizon(self, sizes: Sequence[int]) -> int:
        """By the number of skills: the paper's figures, straight lines between and beyond."""
        known = sorted(HORIZONS)
        skills = sum(sizes)
        if skills <= known[-1]:
            return int(np.interp(skills, known, [HORIZONS[n] for n in known]))
        return -(-HORIZONS[known[-1]] * skills // known[-1])

    def check_size(self, skills: int) -> None:
        """Complain about a number of skills at which a random task may find no room on the board."""
        most = CELLS - 1 - int(self._least.sum())
        if skills > most:
            raise InputError(f"a task of {skills} skills may not fit on the board; ask for {most} at most")

    def check_tasks(self, codes: np.ndarray) -> None:
        """Complain about an encoded task for which no scene has room."""
        needs = np.maximum(self._least, need_many(self, pad(codes))).sum(axis=1)
        if needs.max() >= CELLS:
            raise InputError(
                f"the task needs {needs.max()} things at once, and the board has {CELLS} cells; ask for less"
            )

    def sample_task(self, key: Array, low: int, high: int) -> Array:
        """A random encoded task of `low` to `high` skills, each skill as likely as any other. int8 [high]"""
        words = jax.random.bits(key, (high + 1,))
        skills = (words[1:] % len(self.skills)).astype(jnp.int8)
        return jnp.where(jnp.arange(high) < low + words[0] % (high + 1 - low), skills, NO_SKILL)

    def sample_tasks(self, seed: Sequence[int], count: int, low: int, high: int) -> list[Task]:
        self.check_size(high)
        codes = sample_many(self, random_key(*seed), round_up(count), low, high)
        return decode_tasks(np.asarray(codes)[:count], self.skills)

    def sample_parts(self, seed: Sequence[int], count: int, sizes: Sequence[int]) -> list[list[Task]]:
        return [self.sample_tasks((*seed, i), count, size, size) for i, size in enumerate(sizes)]

    def record(
        self,
        tasks: Sequence[Task],
        seed: Sequence[int],
        noise: float = 0.0,
        extras: str = "discard",
        progress: Progress = no_progress,
    ) -> Recording:
        """A demonstration of each task by the expert; `noise` is the share of its actions replaced by random ones."""
        check_recording(noise, extras)
        codes = encode_tasks(tasks, self.skills)
        self.check_tasks(codes)
        return attempts.record(self, codes, random_key(*seed), noise, extras == "keep", progress)

    def replay(self, demos: Recording, progress: Progress = no_progress) -> State:
        """Every state of every demonstration, end to end. NumPy, [all steps]"""
        return attempts.replay(self, demos, progress)

    def ends(self, demos: Recording) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and last observation of each demonstration, and how often each skill was done. int32 [demo, skill]"""
        final, done = attempts.final(self, demos)
        first = observe_many(self, pad(State(**demos.stored)))
        last = observe_many(self, pad(final))
        return np.asarray(first)[: len(done)], np.asarray(last)[: len(done)], done

    def scenes(self, tasks: Sequence[Task], seed: Sequence[int]) -> State:
        """A random scene for each task, in which there is what it takes. [task]

        On boards so full that an agent may begin walled in, those that an expert cannot do are drawn anew.
        """
        codes = encode_tasks(tasks, self.skills)
        self.check_tasks(codes)
        scenes = self._draw_scenes(codes, seed)
        rows = np.flatnonzero((codes != NO_SKILL).sum(axis=1) >= DENSE)
        for number in range(REDRAWN if len(rows) else 0):
            rows = rows[~self._doable(take(scenes, rows), codes[rows], (*seed, number))]
            if not len(rows):
                break
            fresh = self._draw_scenes(codes[rows], (*seed, number + 1))
            scenes = jax.tree.map(lambda old, new, rows=rows: _put(old, rows, new), scenes, fresh)
        return scenes

    def _doable(self, scenes: State, codes: np.ndarray, seed: Sequence[int]) -> np.ndarray:
        wanted = np.asarray(count_many(self, codes))
        return doable(self, scenes, wanted, self.horizon([codes.shape[1]]), random_key(*seed))

    def _draw_scenes(self, codes: np.ndarray, seed: Sequence[int]) -> State:
        scenes = reset_many(self, random_key(*seed), pad(codes))
        return take(jax.tree.map(np.asarray, scenes), slice(len(codes)))

    def demonstrate(
        self, task: str | Iterable[str], seed: int = 0, noise: float = 0.0, extras: str = "discard"
    ) -> Demonstration:
        """The expert doing one task in a random scene."""
        task = parse_task(task, self.skills)
        demos = self.record([task], (seed,), noise, extras)
        states = self.replay(demos)
        observations = np.asarray(observe_many(self, pad(states)))[: len(demos.actions) + 1]
        return Demonstration(task, observations, demos.actions, states)

    def events(self, states: State, actions: np.ndarray) -> list[str | None]:
        """Which skill each action of a demonstration did, if any."""
        before = take(states, slice(-1))
        _, skills = step_many(self, *pad((before, actions)))
        return [(*self.skills, None)[skill] for skill in np.asarray(skills)[: len(actions)]]

    def draw(self, state: State) -> np.ndarray:
        """The picture for people."""
        return render.draw(self.rules, state)

    @cached_property
    def board(self) -> Board:
        return Board(
            sheet=render.sheet(self.rules, ON_PAGE),
            cell=ON_PAGE,
            size=SIZE,
            ground=render.GROUND.tolist(),
            things=self.rules.names,
            actions=ACTIONS,
            encode=lambda states: np.column_stack([states.cells, states.agent, states.held]).astype(np.uint8),
        )

    def play(self, task: str | Iterable[str] | None, seed: int = 0) -> None:
        from planvec.worlds.crafting import keyboard  # which is for this world

        keyboard.play(self, task or self.sample_tasks((seed,), 1, *self.sizes)[0], seed)

    def player(self, seed: int) -> Player:
        from planvec.worlds.crafting.player import CraftingPlayer

        return CraftingPlayer(self, seed)

    def _needs(self, task: Array) -> Array:
        """How many of each thing must be there at first: tools, and targets that no earlier skill makes."""
        kinds = jnp.arange(len(self.rules.things))
        skill = jnp.maximum(task, 0)
        asked = (task != NO_SKILL)[:, None]
        used = jnp.cumsum((jnp.asarray(self.rules.target)[skill][:, None] == kinds) & asked, axis=0)
        made = (jnp.asarray(self.rules.product)[skill][:, None] == kinds) & asked
        made_before = jnp.cumsum(made, axis=0) - made
        tools = (jnp.asarray(self.rules.tool)[skill][:, None] == kinds) & asked
        return jnp.max(jnp.maximum(used - made_before, tools), axis=0).at[NOTHING].set(0)

    def _look_up(self, kind: Array, held: AnyArray, cell: Array) -> tuple[Array, Array, Array, Array]:
        """A row of the table of outcomes, fetched as one packed word."""
        kinds = len(self.rules.things)
        word = jnp.asarray(self._outcomes)[(kind.astype(jnp.int32) * kinds + held) * kinds + cell]
        held, cell, enters, skill = ((word >> shift).astype(jnp.uint8) for shift in (0, 8, 16, 24))
        return held, cell, enters.astype(bool), skill

    @cached_property
    def _least(self) -> np.ndarray:
        return np.array([thing.least for thing in self.rules.things])

    @cached_property
    def _lottery(self) -> np.ndarray:
        """Each thing as often as its share."""
        return np.repeat(np.arange(len(self.rules.things)), [thing.share for thing in self.rules.things])

    @cached_property
    def _outcomes(self) -> np.ndarray:
        """`rules.outcome`, four bytes packed into a word. uint32 [kind · held · cell]"""
        words = [
            part.astype(np.uint32).ravel() << shift
            for part, shift in zip(self.rules.outcome, (0, 8, 16, 24), strict=True)
        ]
        return np.bitwise_or.reduce(words)

    @cached_property
    def _atlas(self) -> Atlas:
        """All that a cell can show, 3×3 pixels each: (no agent, or what it holds) × what lies there; blank; white."""
        kinds = range(len(self.rules.things))
        pictures = [self._cell_picture(lying, held) for held in (None, *kinds) for lying in kinds]
        if len({picture.tobytes() for picture in pictures}) < len(pictures):
            raise InputError(
                "two contents of a cell look the same to the agent; give each thing its own pixel or colour"
            )
        flat = [np.full((3, 3, 3), shade, np.uint8) for shade in (0, 255)]
        return Atlas(np.stack(pictures + flat))

    def _cell_picture(self, lying: int, held: int | None) -> np.ndarray:
        """The sprites of lying thing, agent and held thing, added; `held` None: the agent is elsewhere.

        The held thing is half as bright: an axe held over logs must not look like logs held over an axe.
        """
        picture = np.full((9, 3), TILE)
        picture[self.rules.things[lying].pixel] += self.rules.things[lying].colour
        if held is not None:
            picture[4] += AGENT
            picture[self.rules.things[held].pixel] += np.array(self.rules.things[held].colour) // 2
        return picture.astype(np.uint8).reshape(3, 3, 3)


@partial(jax.jit, static_argnames="world")
def reset_many(world: Crafting, key: Array, tasks: Array) -> State:
    return jax.vmap(world.reset)(jax.random.split(key, len(tasks)), tasks)


@partial(jax.jit, static_argnames="world")
def need_many(world: Crafting, tasks: Array) -> Array:
    return jax.vmap(world._needs)(tasks)


@partial(jax.jit, static_argnames=("world", "count", "low", "high"))
def sample_many(world: Crafting, key: Array, count: int, low: int, high: int) -> Array:
    return jax.vmap(partial(world.sample_task, low=low, high=high))(jax.random.split(key, count))


@partial(jax.jit, static_argnames="world")
def step_many(world: Crafting, states: State, actions: Array) -> tuple[State, Array]:
    return jax.vmap(world.step)(states, actions)


@partial(jax.jit, static_argnames="world")
def observe_many(world: Crafting, states: State) -> Array:
    return jax.vmap(world.observe)(states)


@partial(jax.jit, static_argnames="world")
def count_many(world: Crafting, tasks: Array) -> Array:
    return jax.vmap(world.count_skills)(tasks)


def _put(rows: np.ndarray, where: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Rows, some of them replaced."""
    changed = rows.copy()
    changed[where] = others
    return changed


def random_key(*numbers: int) -> Array:
    """A random key that depends on all the numbers, the first of which is a seed."""
    check_seed(numbers[0])
    key = jax.random.key(numbers[0])
    for number in numbers[1:]:
        key = jax.random.fold_in(key, number)
    return key


def _permutation(words: Array) -> Array:
    """A permutation of the cells from as many random words: sorted by their high bits, the low ones being the cell."""
    low = jnp.uint32(127)
    return (jnp.sort((words & ~low) | jnp.arange(CELLS, dtype=jnp.uint32)) & low).astype(jnp.int32)
