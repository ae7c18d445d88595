"""How fast the tabletop world is: pick-and-places on one core and on several, demonstrations, pictures."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from planvec.benchmarks.measure import Row, numbers_of_workers, rate
from planvec.errors import InputError
from planvec.worlds.tabletop.attempts import attempt
from planvec.worlds.tabletop.pool import Pool
from planvec.worlds.tabletop.simulator import Simulator
from planvec.worlds.tabletop.world import PICTURE, Tabletop

NOISE = 0.1  # the error of the expert's hand, as in the paper's data
PICTURES = 64
UNIT = "pick-and-places/s"


def run(
    batches: tuple[int, ...] | None = None,
    workers: Sequence[int] | None = None,
    demonstrations: int = 1000,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Row]:
    """Measure everything, a row at a time. `warn` is told what could not be measured, and why.

    `batches`: how many pick-and-places each core is given at once.
    """
    world = Tabletop()
    try:
        for batch in batches or (256,):
            yield from _pick_and_places(world, batch, workers or numbers_of_workers(world.pool.workers))
        yield _demonstrations(world, demonstrations)
        yield from _pictures(world, warn)
    finally:
        world.pool.close()
        world.simulator.close()


def _pick_and_places(world: Tabletop, batch: int, workers: Sequence[int]) -> Iterator[Row]:
    """The expert's actions: by a single simulator, then by pools, each of whose workers has as much to do."""
    states, actions = expert_actions(world, batch)
    alone = rate(_step_all, world.simulator, states, actions, count=batch)
    yield Row("planvec tabletop, one simulator", UNIT, batch, alone)
    for number in workers:
        what = f"planvec tabletop, a pool of {number}"
        total = number * batch
        with Pool(number) as pool:
            together = rate(pool.step, np.tile(states, (number, 1)), np.tile(actions, (number, 1)), count=total)
        yield Row(what, UNIT, total, together)
        yield Row(f"{what} / one simulator", "×", total, together / alone)


def expert_actions(world: Tabletop, least: int) -> tuple[np.ndarray, np.ndarray]:
    """So many states, and what the expert does in them, from tasks of one and two skills. [least, state], [least, 4]"""
    states: list[np.ndarray] = []
    actions: list[np.ndarray] = []
    number = 0
    while len(actions) < least:
        [task] = world.sample_tasks((0, number), 1, *world.sizes)
        made = attempt(world.simulator, task, (1, number), NOISE)
        states += list(made.states[:-1])
        actions += list(made.actions)
        number += 1
    return np.stack(states[:least]), np.stack(actions[:least])


def _step_all(simulator: Simulator, states: np.ndarray, actions: np.ndarray) -> None:
    for state, action in zip(states, actions, strict=True):
        simulator.pick_and_place(state, action)


def _demonstrations(world: Tabletop, number: int) -> Row:
    """On all cores, discarded attempts included in the time."""
    tasks = world.sample_tasks((0,), number, *world.sizes)
    world.record(tasks[:1], (1,), NOISE)  # the workers have started
    began = time.perf_counter()
    world.record(tasks, (2,), NOISE)
    what = f"planvec tabletop, demonstrations of 1-2 skills, a pool of {world.pool.workers}"
    return Row(what, "demonstrations/s", number, number / (time.perf_counter() - began))


def _pictures(world: Tabletop, warn: Callable[[str], None]) -> Iterator[Row]:
    """Where pictures can be drawn at all."""
    states, _ = expert_actions(world, PICTURES)
    try:
        per_second = rate(lambda: [world.draw(state) for state in states], count=PICTURES)
    except InputError as error:
        warn(f"pictures were not measured: {error}")
        return
    yield Row("planvec tabletop, pictures of {}×{}".format(*PICTURE), "pictures/s", 1, per_second)
