"""check_world: does a world keep the promises that collecting, training and evaluation rely on?"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from planvec.data.pairs import PairSet
from planvec.data.recordings import Recording
from planvec.data.tiles import draw_tiles
from planvec.errors import InputError
from planvec.tasks import Task, parse_condition
from planvec.worlds.protocol import HostedWorld, PureWorld, World, no_progress, take
from planvec.worlds.spaces import Images, Objects

TASKS = 4  # tasks to try it on
SEED = (0,)


def check_world(world: World) -> None:
    """Try everything that planvec will ask of a world, as it will ask it, on a few tasks.

    Raises InputError at the first broken promise.

    For whoever brings a world of their own: `check_world(MyWorld())`, before anything is collected.
    """
    _expect(
        isinstance(world, PureWorld | HostedWorld),
        "derive it from PureWorld or HostedWorld of planvec.worlds.protocol",
    )
    for check in (_check_attributes, _check_tasks, _check_recording, _check_episodes, _check_pictures):
        check(world)


def _expect(holds: Any, promise: str) -> None:
    if not holds:
        raise InputError(f"not a world that planvec can use: {promise}")


def _call(who: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives; one that cannot be called as planvec calls it breaks a promise."""
    try:
        return function(*arguments)
    except TypeError as error:
        if error.__traceback__ and error.__traceback__.tb_next:  # it was called, and went wrong inside
            raise
        raise InputError(f"not a world that planvec can use: {who} is called as in the protocol ({error})") from None


def _check_attributes(world: World) -> None:
    for name in ("name", "space", "skills"):
        _expect(hasattr(world, name), f"it has no `{name}`")
    _expect(len(set(world.skills)) == len(world.skills) > 0, "`skills` must be different names")
    _expect(type(world).__hash__, "it can be hashed, as worlds are constants of compiled programs")
    _expect(1 <= world.sizes[0] <= world.sizes[1], "`sizes` is the fewest and the most skills of a task, 1 or more")
    for condition in (*world.conditions, *world.sums, *world.glance):
        _expect(world.horizon(parse_condition(condition)) > 0, f"`horizon` of {condition} must be positive")
    _expect(len(world.examples) == 2, "`examples` are two tasks")


def _check_tasks(world: World) -> None:
    low, high = world.sizes
    tasks = _same_twice("`sample_tasks`", world.sample_tasks, SEED, 64, low, high)
    _expect(len(tasks) == 64 and all(low <= len(task) <= high for task in tasks), f"tasks of {low} to {high} skills")
    _expect(all(skill in world.skills for task in tasks for skill in task), "tasks are made of `skills`")
    for condition in world.conditions:
        sizes = parse_condition(condition)
        parts = _same_twice("`sample_parts`", world.sample_parts, SEED, 8, sizes)
        _expect([len(part) for part in parts] == [8] * len(sizes), "`sample_parts` gives a list of tasks for each part")
        right = all(len(task) == size for part, size in zip(parts, sizes, strict=True) for task in part)
        _expect(right, f"the parts of {condition} have as many skills as it says")


def _check_recording(world: World) -> None:
    tasks = [task for task in _some_tasks(world) for _ in range(2)]
    told: list[int] = []
    demos = _call("`record`", world.record, tasks, SEED, 0.1, "discard", told.append)
    again = _call("`record`", world.record, tasks, SEED, 0.1, "discard", no_progress)
    _call("`record`", world.record, tasks[:1], SEED)  # the rest may be left out
    _expect(_digest(demos) == _digest(again), "`record` gives the same for the same seed")
    _expect(told and told[-1] == len(tasks), "`record` tells how many demonstrations there are")
    _expect(len(demos.lengths) == len(tasks) and (demos.lengths > 0).all(), "a demonstration of each task")
    _expect(len(demos.actions) == demos.lengths.sum(), "`actions` are laid end to end, as many as `lengths` say")
    steps = _call("`replay`", world.replay, demos, no_progress)
    _expect(_same(steps, _call("`replay`", world.replay, demos)), "`replay` gives the same again")
    count = {len(leaf) for leaf in jax.tree.leaves(steps)}
    _expect(count == {demos.lengths.sum() + len(tasks)}, "`replay` gives one step more than actions for each")
    sample = jax.jit(PairSet.sample, static_argnames="batch")
    pairs = PairSet.of(world, steps, demos.actions, demos.lengths)
    _check_observations(world, sample(pairs, jax.random.key(0), batch=4).now, "`decode`")
    _check_ends(world, demos, steps)
    _check_parts(world, demos, steps)


def _check_parts(world: World, demos: Recording, steps: Any) -> None:
    """Contact sheets look at the first demonstrations, and probes at beginnings of all."""
    some = demos.take(slice(2))
    beginning = take(steps, slice(len(some.actions) + 2))
    _expect(_same(world.replay(some), beginning), "`replay` gives the same of some demonstrations as of all")
    first, last, _ = world.ends(demos.cut(np.ones_like(demos.lengths)))
    for seen, index in ((first, demos.first_steps), (last, demos.first_steps + 1)):
        decoded = draw_tiles(jax.vmap(world.decode)(take(steps, index)))
        _expect(_same(seen, decoded), "`ends` gives the ends of demonstrations that were cut short, too")


def _check_ends(world: World, demos: Recording, steps: Any) -> None:
    first, last, asked = _call("`ends`", world.ends, demos)
    for seen, index, name in ((first, demos.first_steps, "first"), (last, demos.last_steps, "last")):
        decoded = draw_tiles(jax.vmap(world.decode)(take(steps, index)))
        _expect(_same(seen, decoded), f"`ends` gives the {name} observation of each demonstration")
    _expect(len(asked) == len(demos.lengths) and asked.any(axis=1).all(), "`ends` says what each demonstration did")
    _expect(
        asked.shape[1:] == _call("`asked`", world.asked, _some_tasks(world)).shape[1:],
        "`asked` has the shape of what `ends` says",
    )


def _check_episodes(world: World) -> None:
    """From the scenes of some tasks, stepped from outside by the expert's first actions; but the first one rests."""
    tasks = _some_tasks(world)
    scenes = _same_twice("`scenes`", world.scenes, tasks, SEED)
    demos = world.record(tasks, SEED)
    with _call("`start`", world.start, scenes) as session:
        _check_observations(world, session.observe(), "`observe`")
        done, _ = session.judge(world.asked(tasks))
        _expect(not done.any(), "nothing is done when an episode begins")
        actions = demos.actions[demos.first_actions]
        going = np.arange(len(tasks)) > 0
        before = jax.tree.map(np.array, session.steps())
        sane = _call("`step` of a session", session.step, actions, going)
        after = jax.tree.map(np.array, session.steps())
        _expect(np.shape(sane) == (len(tasks),), "`step` says whether each simulator survived")
        _expect(_same(take(before, 0), take(after, 0)), "`step` leaves an episode as it is that is not `going` on")
        each = {len(leaf) for leaf in jax.tree.leaves(after)}
        _expect(each == {len(tasks)}, "`steps` gives every episode as it is")
    moved = jax.tree.map(lambda one, other: np.stack([one[-1], other[-1]]), before, after)
    _check_film(world, moved, actions[-1:])  # as the playground does
    if isinstance(world, PureWorld):
        observed = jax.vmap(world.observe)(scenes)
        _check_observations(world, observed, "`observe`")


def _check_pictures(world: World) -> None:
    demo = _call("`demonstrate`", world.demonstrate, world.skills[:1])
    demo = _call("`demonstrate`", world.demonstrate, world.skills[0], 0, 0.0, "discard")
    _check_film(world, demo.steps, demo.actions)


def _check_film(world: World, steps: Any, actions: np.ndarray) -> None:
    frames = list(_call("`film`", world.film, steps, actions))
    shapes = {(picture.shape, picture.dtype) for _, picture in frames}
    _expect(len(shapes) == 1 and next(iter(shapes))[1] == np.uint8, "`film` gives pictures of one size, uint8")
    times = [time for time, _ in frames]
    _expect(times == sorted(times) and (times[0], times[-1]) == (0, len(actions)), "`film` shows all steps, in order")
    still = _call("`draw`", world.draw, take(steps, 0))
    _expect((still.shape, still.dtype) in shapes, "`draw` gives a picture as `film` does")
    events = _call("`events`", world.events, steps, actions)
    _expect(len(events) == len(actions), "`events` has an entry for each action")


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


def _same_twice(who: str, function: Callable[..., Any], *arguments: Any) -> Any:
    given = _call(who, function, *arguments)
    _expect(_same(given, _call(who, function, *arguments)), f"{who} gives the same for the same seed")
    return given


def _same(one: Any, other: Any) -> bool:
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    return jax.tree.all(jax.tree.map(lambda a, b: bool(np.all(np.asarray(a) == np.asarray(b))), one, other))


def _digest(demos: Recording) -> str:
    leaves: Sequence[Any] = jax.tree.leaves((demos.stored, demos.actions, demos.lengths, demos.extras))
    return hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()
