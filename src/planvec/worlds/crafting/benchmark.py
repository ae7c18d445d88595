"""How fast the crafting world is: steps, pictures, demonstrations, and other projects' worlds beside it."""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from planvec.benchmarks.measure import Row, rate
from planvec.data import folders
from planvec.worlds.crafting import rivals
from planvec.worlds.crafting.game import Game, advance_and_reset, begin
from planvec.worlds.crafting.rules import ACTIONS
from planvec.worlds.crafting.world import Crafting

POOL = 4096  # pre-made scenes from which finished episodes begin anew
STEPS = 64  # in one jitted rollout


def run(
    batches: tuple[int, ...] | None = None,
    pairs: int = 40_000,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is told with which other worlds ours is not compared, and why."""
    world = Crafting()
    if batches is None:
        batches = (1024, 4096) if jax.default_backend() == "cpu" else (4096, 65_536, 524_288)
    pool = jax.vmap(partial(_new, world))(jax.random.split(jax.random.key(0), POOL))
    for images in (False, True):
        for fresh in (False, True):
            what = f"planvec crafting, {'with' if images else 'no'} images, {'fresh scenes' if fresh else 'scene pool'}"
            for batch in batches:
                program = partial(rollout, world, batch=batch, images=images, fresh=fresh)
                yield Row(what, "steps/s", batch, rate(program, pool, jax.random.key(1), count=batch * STEPS))
    yield from _demonstrations(world, pairs)
    steps = 8 if jax.default_backend() == "cpu" else STEPS  # some of theirs take a minute otherwise
    for rival in rivals.installed():
        program = rival.rollout(batches[0], steps)
        per_second = rate(program, jax.random.key(0), count=batches[0] * steps)
        yield Row(f"{rival.name} ({rival.package})", "steps/s", batches[0], per_second)
    for package, reason in rivals.missing().items():
        warn(f"not compared with {package}: {reason}")


def _demonstrations(world: Crafting, pairs: int) -> Iterator[Row]:
    """Demonstrations of 2–4 skills at 10% noise, discarded attempts included in the time; and a whole data folder."""
    tasks = [task for task in world.sample_tasks((0,), pairs, 2, 4) for _ in range(2)]
    world.record(tasks, (1,), noise=0.1)
    began = time.perf_counter()
    world.record(tasks, (2,), noise=0.1)
    yield Row(
        "planvec crafting, demonstrations of 2-4 skills",
        "demonstrations/s",
        len(tasks),
        len(tasks) / (time.perf_counter() - began),
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        folders.collect(folders.Recipe("crafting", pairs, (2, 4), 0.1, "discard", 0), Path(folder) / "data", world)
        took = time.perf_counter() - began
    yield Row("planvec collect crafting, files included", "pairs/s", pairs, pairs / took)


@partial(jax.jit, static_argnames=("world", "batch", "images", "fresh"))
def rollout(world: Crafting, pool: Game, key: Array, batch: int, images: bool, fresh: bool) -> Any:
    """Random actions with auto-reset for STEPS steps. The last picture is carried along, so that all are drawn."""
    start_key, step_key = jax.random.split(key)
    new_scenes = jax.vmap(partial(_new, world))
    start = _from_pool(pool, jax.random.bits(start_key, (batch,)))

    def observe(games: Game) -> Any:
        return jax.vmap(world.observe)(games.state) if images else ()

    def advance(game: Game, action: Array, scene: Game) -> tuple[Game, Array]:
        """The game after an action, or a new one where it has ended; and the reward."""
        after, _, outcome = advance_and_reset(world, game, action, lambda: scene)
        return after, outcome.reward

    def step(carry: tuple[Game, Any], key: Array) -> tuple[tuple[Game, Any], Array]:
        games, _ = carry
        words = jax.random.bits(key, (batch,))
        actions = (words % len(ACTIONS)).astype(jnp.uint8)
        scenes = new_scenes(jax.random.split(key, batch)) if fresh else _from_pool(pool, words >> 8)
        games, rewards = jax.vmap(advance)(games, actions, scenes)
        return (games, observe(games)), jnp.sum(rewards)

    return jax.lax.scan(step, (start, observe(start)), jax.random.split(step_key, STEPS))


def _new(world: Crafting, key: Array) -> Game:
    return begin(world, key, world.sample_task(jax.random.fold_in(key, 1), 1, 4))


def _from_pool(pool: Game, words: Array) -> Game:
    return jax.tree.map(lambda leaf: leaf[(words % POOL).astype(jnp.int32)], pool)
