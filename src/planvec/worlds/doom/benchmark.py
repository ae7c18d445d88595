"""How fast the doom world is: actions without and with images, by one engine and by several; demonstrations, replay."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from planvec.benchmarks.measure import Row, numbers_of_workers, rate
from planvec.worlds.doom.engine import Engine
from planvec.worlds.doom.motion import ACTIONS, State, step
from planvec.worlds.doom.world import Doom

NOISE = 0.1  # as in the data
UNIT = "actions/s"


def run(
    batches: tuple[int, ...] | None = None,
    workers: Sequence[int] | None = None,
    demonstrations: int = 500,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is never told anything: all can be measured, or nothing.

    `batches`: how many episodes each engine is given at once.
    """
    world = Doom()
    try:
        for batch in batches or (256,):
            yield from _actions(world, batch, workers or numbers_of_workers(world.pool.workers))
        yield from _demonstrations(world, demonstrations)
    finally:
        world.close()


def _actions(world: Doom, batch: int, workers: Sequence[int]) -> Iterator[Row]:
    """Random ones: by one process, then by pools, each of whose engines has as much to do."""
    tasks = world.sample_tasks((0,), batch, *world.sizes)
    scenes = world.scenes(tasks, (1,))
    actions = np.random.default_rng(0).integers(len(ACTIONS), size=batch)
    blind = rate(step, world.level, scenes, actions, count=batch)
    yield Row("planvec doom, no images, one process", UNIT, batch, blind)
    engine = Engine(world.level.name)
    try:
        alone = rate(lambda: engine.draw(step(world.level, scenes, actions)), count=batch)
    finally:
        engine.close()
    yield Row("planvec doom, with images, one process and its engine", UNIT, batch, alone)
    for number in workers:
        what = f"planvec doom, with images, a pool of {number}"
        total = number * batch
        many = State._make(np.concatenate([part] * number) for part in scenes)
        together = _by_pool(number, many, np.tile(actions, number))
        yield Row(what, UNIT, total, together)
        yield Row(f"{what} / one engine", "×", total, together / alone)


def _by_pool(workers: int, scenes: State, actions: np.ndarray) -> float:
    world = Doom(workers=workers)
    try:
        all_of_them = np.ones(len(actions), bool)
        with world.start(scenes) as session:
            return rate(lambda: (session.step(actions, all_of_them), session.observe()), count=len(actions))
    finally:
        world.close()


def _demonstrations(world: Doom, number: int) -> Iterator[Row]:
    """The expert's, without images, as they are collected; then all their images, as when they are loaded."""
    tasks = world.sample_tasks((0,), number, *world.sizes)
    demos = world.record(tasks, (2,), NOISE)
    made = rate(world.record, tasks, (2,), NOISE, count=number)
    yield Row("planvec doom, demonstrations of 1-3 skills, one process", "demonstrations/s", number, made)
    images = int(demos.lengths.sum()) + number
    drawn = rate(world.replay, demos, count=images)
    yield Row(f"planvec doom, demonstrations replayed, a pool of {world.pool.workers}", "images/s", images, drawn)
