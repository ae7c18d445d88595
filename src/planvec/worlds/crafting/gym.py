"""The crafting world as gymnasium environments: one at a time, or thousands in one jitted call."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from jax import Array

from planvec.errors import InputError
from planvec.tasks import Task, decode_tasks, encode_tasks, parse_range, parse_task
from planvec.worlds.crafting import render
from planvec.worlds.crafting.game import Game, Outcome, advance, begin
from planvec.worlds.crafting.rules import ACTIONS, RULES, Rules
from planvec.worlds.crafting.world import Crafting, observe_many

CLEAR = "\x1b[2J\x1b[H"  # clears a terminal


class CraftingEnv(gymnasium.Env):
    """One world. Reward 1 for each of the task's skills done; terminated when all are, truncated at the horizon."""

    metadata = {"render_modes": ["rgb_array", "human", "ansi"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        task: str | Sequence[str] | None = None,
        skills: str = "1-4",
        render_mode: str | None = None,
        rules: Rules = RULES,
    ) -> None:
        """`task`: what to do in every episode; without it each episode draws a task of so many `skills`."""
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode is one of {self.metadata['render_modes']}, not '{render_mode}'")
        self.world = Crafting(rules)
        self.task = None if task is None else parse_task(task, self.world.skills)
        self.skills = parse_range(skills)
        self.world.check_size(self.skills[1])
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.world)
        self._game: Game | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """`options={"task": ["ChopTree", "MakeBread"]}` asks for a task."""
        super().reset(seed=seed)
        key = jax.random.key(int(self.np_random.integers(2**32)))
        wanted = (options or {}).get("task", self.task)
        self._task = self._random_task(key) if wanted is None else parse_task(wanted, self.world.skills)
        code = encode_tasks([self._task], self.world.skills)
        self.world.check_tasks(code)
        game = _begin(self.world, key, code[0])
        self._game = game
        self._show(game)
        return np.asarray(_observe(self.world, game.state)), self._info(game)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        if self._game is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise InputError(
                f"an action is a whole number from 0 to {len(ACTIONS) - 1} ({', '.join(ACTIONS)}), not {action!r}"
            )
        game, outcome = _advance(self.world, self._game, action)
        self._game = game
        self._show(game)
        return (
            np.asarray(_observe(self.world, game.state)),
            float(outcome.reward),
            bool(outcome.terminated),
            bool(outcome.truncated),
            self._info(game),
        )

    def render(self) -> np.ndarray | str | None:
        if self._game is None:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        if self.render_mode == "rgb_array":
            return self.world.draw(jax.device_get(self._game.state))
        if self.render_mode == "ansi":
            return render.text(self.world.rules, jax.device_get(self._game.state))
        return None

    def _show(self, game: Game) -> None:
        """In human mode, draw the board into the terminal."""
        if self.render_mode == "human":
            print(CLEAR + render.text(self.world.rules, jax.device_get(game.state)), flush=True)

    def _random_task(self, key: Array) -> Task:
        code = self.world.sample_task(jax.random.fold_in(key, 1), *self.skills)
        return decode_tasks(np.asarray(code)[None], self.world.skills)[0]

    def _info(self, game: Game) -> dict[str, Any]:
        done = np.asarray(game.done)
        return {
            "task": self._task,
            "skills_done": {s: int(n) for s, n in zip(self.world.skills, done, strict=True)},
        }


class CraftingVectorEnv(gymnasium.vector.VectorEnv):
    """Many worlds in one jitted call. Episodes that end begin anew as `autoreset_mode` says (next step by default)."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        task: str | Sequence[str] | None = None,
        skills: str = "1-4",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: None = None,
        rules: Rules = RULES,
    ) -> None:
        if render_mode is not None:
            raise InputError("the batched world draws no pictures; make a single one, or draw env.states yourself")
        if num_envs < 1:
            raise InputError(f"num_envs is at least 1; got {num_envs}")
        self.mode = AutoresetMode(autoreset_mode)
        if self.mode is AutoresetMode.DISABLED:
            raise InputError("the batched world always resets by itself: autoreset_mode is NextStep or SameStep")
        self.metadata = self.metadata | {"autoreset_mode": self.mode}
        self.world = Crafting(rules)
        self.num_envs = num_envs
        self.skills = parse_range(skills)
        self.world.check_size(self.skills[1])
        self.task = None if task is None else parse_task(task, self.world.skills)
        self._games: Game | None = None
        self.single_observation_space, self.single_action_space = _spaces(self.world)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    @property
    def states(self) -> Any:
        """The worlds as they are, on the accelerator."""
        if self._games is None:
            raise gymnasium.error.ResetNeeded("call reset() before asking for states")
        return self._games.state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """`options={"task": […]}` asks for a task, in all worlds and from now on."""
        super().reset(seed=seed)
        self._key = jax.random.key(int(self.np_random.integers(2**32)))
        wanted = (options or {}).get("task", self.task)
        self._wanted = None
        if wanted is not None:
            code = encode_tasks([parse_task(wanted, self.world.skills)], self.world.skills)
            self.world.check_tasks(code)
            self._wanted = code[0]
        self._time = 0
        self._over = np.zeros(self.num_envs, bool)
        games = _begin_many(self.world, self.skills, self._next_key(), self._wanted, self.num_envs)
        self._games = games
        return np.asarray(observe_many(self.world, games.state)), self._info(games)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        if self._games is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        actions = np.asarray(actions)
        whole = actions.shape == (self.num_envs,) and np.issubdtype(actions.dtype, np.integer)
        if not whole or actions.min() < 0 or actions.max() >= len(ACTIONS):
            raise InputError(f"actions are {self.num_envs} whole numbers from 0 to {len(ACTIONS) - 1}")
        games, final, outcome, seen = _step_many(
            self.world,
            self.skills,
            self._next_key(),
            self._wanted,
            self._games,
            actions,
            self._over,
            self.mode,
        )
        self._games = games
        reward, terminated, truncated = (np.asarray(part) for part in outcome)
        over = terminated | truncated
        info = self._info(games)
        if self.mode is AutoresetMode.NEXT_STEP:
            self._over = over
        elif over.any():
            observations = np.asarray(observe_many(self.world, final.state))
            info |= {
                "final_obs": observations,
                "_final_obs": over,
                "final_info": self._info(final),
                "_final_info": over,
            }
        return np.asarray(seen), reward, terminated, truncated, info

    def _next_key(self) -> Array:
        self._time += 1
        return jax.random.fold_in(self._key, self._time)

    def _info(self, games: Game) -> dict[str, Any]:
        """How often each skill has been done, and how often the task asks for it, in each world."""
        done = np.asarray(games.done)
        asked = np.asarray(games.asked)
        counts = {
            "skills_done": {skill: done[:, i] for i, skill in enumerate(self.world.skills)},
            "skills_asked": {skill: asked[:, i] for i, skill in enumerate(self.world.skills)},
        }
        return counts | {f"_{name}": np.ones(self.num_envs, bool) for name in counts}


_begin = jax.jit(begin, static_argnames="world")
_advance = jax.jit(advance, static_argnames="world")


@partial(jax.jit, static_argnames="world")
def _observe(world: Crafting, state: Any) -> Array:
    return world.observe(state)


def _fresh(world: Crafting, skills: tuple[int, int], key: Array, wanted: Array | None) -> Game:
    """A new episode, of the wanted task or of a random one."""
    task = world.sample_task(jax.random.fold_in(key, 1), *skills) if wanted is None else wanted
    return begin(world, key, task)


@partial(jax.jit, static_argnames=("world", "skills", "count"))
def _begin_many(world: Crafting, skills: tuple[int, int], key: Array, wanted: Array | None, count: int) -> Game:
    return jax.vmap(lambda one: _fresh(world, skills, one, wanted))(jax.random.split(key, count))


@partial(jax.jit, static_argnames=("world", "skills", "mode"))
def _step_many(
    world: Crafting,
    skills: tuple[int, int],
    key: Array,
    wanted: Array | None,
    games: Game,
    actions: Array,
    over: Array,
    mode: AutoresetMode,
) -> tuple[Game, Game, Outcome, Array]:
    """Step all worlds; `over` are those whose last step ended an episode, so that this one begins the next."""

    moved, outcome = jax.vmap(partial(advance, world))(games, actions)
    if mode is AutoresetMode.NEXT_STEP:  # where an episode ended before, this step's action is not done
        outcome = jax.tree.map(lambda part: jnp.where(over, jnp.zeros_like(part), part), outcome)
    else:
        over = outcome.terminated | outcome.truncated

    def begin_anew() -> Game:
        keys = jax.random.split(key, len(actions))
        fresh = jax.vmap(lambda one: _fresh(world, skills, one, wanted))(keys)
        return jax.vmap(lambda end, new, old: jax.tree.map(partial(jnp.where, end), new, old))(over, fresh, moved)

    after = jax.lax.cond(jnp.any(over), begin_anew, lambda: moved)
    return after, moved, outcome, jax.vmap(world.observe)(after.state)


def _spaces(world: Crafting) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    """What an agent observes, and what it can do."""
    return gymnasium.spaces.Box(0, 255, world.space.shape, np.uint8), gymnasium.spaces.Discrete(world.space.actions)
