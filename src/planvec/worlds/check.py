"""check_world: does a world keep the promises that collecting, training and evaluation rely on?"""

import hashlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from planvec.data.pairs import PairSet
from planvec.data.recordings import Recording
from planvec.data.tiles import Tiled
from planvec.errors import InputError
from planvec.tasks import Task, parse_condition
from planvec.worlds.protocol import World, is_hosted
from planvec.worlds.spaces import Images, Objects

TASKS = 4  # tasks to try it on
SEED = (0,)


def check_world(world: World) -> None:
    """Try everything that planvec will ask of a world, on a few tasks. Raises InputError at the first broken promise.

    For whoever brings a world of their own: `check_world(MyWorld())`, before anything is collected.
    """
    for check in (_check_attributes, _check_tasks, _check_recording, _check_scenes, _check_pictures):
        check(world)


def _expect(holds: Any, promise: str) -> None:
    if not holds:
        raise InputError(f"not a world that planvec can use: {promise}")


def _check_attributes(world: World) -> None:
    for name in ("name", "space", "conditions", "glance", "pairs", "sizes", "fps", "skills", "fingerprint"):
        _expect(hasattr(world, name), f"it has no `{name}`")
    _expect(len(set(world.skills)) == len(world.skills) > 0, "`skills` must be different names")
    _expect(1 <= world.sizes[0] <= world.sizes[1], "`sizes` is the fewest and the most skills of a task, 1 or more")
    for condition in (*world.conditions, *world.glance):
        _expect(world.horizon(parse_condition(condition)) > 0, f"`horizon` of {condition} must be positive")
    stepped = is_hosted(world) or (hasattr(world, "step") and hasattr(world, "observe"))
    _expect(stepped, "it needs `start` (a hosted world), or `step` and `observe` (a pure one)")


def _check_tasks(world: World) -> None:
    low, high = world.sizes
    tasks = _same_twice(lambda: world.sample_tasks(SEED, 64, low, high), "`sample_tasks`")
    _expect(len(tasks) == 64 and all(low <= len(task) <= high for task in tasks), f"tasks of {low} to {high} skills")
    _expect(all(skill in world.skills for task in tasks for skill in task), "tasks are made of `skills`")
    for condition in world.conditions:
        sizes = parse_condition(condition)
        parts = _same_twice(lambda sizes=sizes: world.sample_parts(SEED, 8, sizes), "`sample_parts`")
        _expect([len(part) for part in parts] == [8] * len(sizes), "`sample_parts` gives a list of tasks for each part")
        right = all(len(task) == size for part, size in zip(parts, sizes, strict=True) for task in part)
        _expect(right, f"the parts of {condition} have as many skills as it says")


def _check_recording(world: World) -> None:
    tasks = [task for task in _some_tasks(world) for _ in range(2)]
    demos = world.record(tasks, SEED, 0.1, "discard", lambda finished: None)
    again = world.record(tasks, SEED, 0.1, "discard", lambda finished: None)
    _expect(_digest(demos) == _digest(again), "`record` gives the same for the same seed")
    _expect(len(demos.lengths) == len(tasks) and (demos.lengths > 0).all(), "a demonstration of each task")
    _expect(len(demos.actions) == demos.lengths.sum(), "`actions` are laid end to end, as many as `lengths` say")
    steps = world.replay(demos, lambda replayed: None)
    count = {len(leaf) for leaf in jax.tree.leaves(steps)}
    _expect(count == {demos.lengths.sum() + len(tasks)}, "`replay` gives one step more than actions for each")
    batch = jax.jit(PairSet.sample, static_argnames="batch")(
        PairSet.of(world, steps, demos.actions, demos.lengths), jax.random.key(0), batch=4
    )
    _check_observations(world, batch.now, "`decode`")
    _check_ends(world, demos, steps)


def _check_ends(world: World, demos: Recording, steps: Any) -> None:
    first, last, asked = world.ends(demos)
    for seen, index, name in ((first, demos.first_steps, "first"), (last, demos.last_steps, "last")):
        decoded = jax.vmap(world.decode)(jax.tree.map(lambda leaf, index=index: leaf[index], steps))
        decoded = decoded.draw() if isinstance(decoded, Tiled) else decoded
        _expect(_same(seen, decoded), f"`ends` gives the {name} observation of each demonstration")
    _expect(len(asked) == len(demos.lengths) and asked.any(axis=1).all(), "`ends` says what each demonstration did")
    _expect(asked.shape[1:] == world.asked(_some_tasks(world)).shape[1:], "`asked` has the shape of what `ends` says")


def _check_scenes(world: World) -> None:
    tasks = _some_tasks(world)
    scenes = _same_twice(lambda: world.scenes(tasks, SEED), "`scenes`")
    if not is_hosted(world):
        _check_observations(world, jax.vmap(world.observe)(scenes), "`observe`")
        return
    with world.start(scenes) as session:
        _check_observations(world, session.observe(), "`observe`")
        done, _ = session.judge(world.asked(tasks))
        _expect(not done.any(), "nothing is done when an episode begins")
        demos = world.record(tasks, SEED, 0.0, "discard", lambda finished: None)
        _expect(
            session.step(demos.actions[demos.first_actions]).shape == (len(tasks),),
            "`step` says whether each simulator survived",
        )


def _check_pictures(world: World) -> None:
    demo = world.demonstrate(world.skills[:1], seed=0)
    frames = list(world.film(demo.steps, demo.actions))
    shapes = {(picture.shape, picture.dtype) for _, picture in frames}
    _expect(len(shapes) == 1 and next(iter(shapes))[1] == np.uint8, "`film` gives pictures of one size, uint8")
    times = [time for time, _ in frames]
    _expect(times == sorted(times) and (times[0], times[-1]) == (0, len(demo)), "`film` shows all steps, in order")
    _expect(len(world.events(demo.steps, demo.actions)) == len(demo), "`events` has an entry for each action")


def _check_observations(world: World, observations: Any, who: str) -> None:
    """Batched observations must be what agents for the world's space expect."""
    match world.space:
        case Images(shape=shape):
            right = observations.shape[1:] == shape and observations.dtype == np.uint8
        case Objects():
            right = observations.shape[1:] == (world.space.size,) and observations.dtype == np.float32
        case _:
            right = True
    _expect(right, f"{who} gives what its `space`, {world.space}, says")


def _some_tasks(world: World) -> list[Task]:
    return world.sample_tasks(SEED, TASKS, *world.sizes)


def _same_twice(make: Callable[[], Any], who: str) -> Any:
    first, second = make(), make()
    _expect(_same(first, second), f"{who} gives the same for the same seed")
    return first


def _same(one: Any, other: Any) -> bool:
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    return jax.tree.all(jax.tree.map(lambda a, b: bool(np.all(np.asarray(a) == np.asarray(b))), one, other))


def _digest(demos: Recording) -> str:
    leaves = map(np.asarray, jax.tree.leaves(demos._replace(attempts=None)))
    return hashlib.sha256(b"".join(leaf.tobytes() for leaf in leaves)).hexdigest()
