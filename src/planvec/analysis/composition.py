"""How compositional an agent's plans are, measured on fresh demonstrations by the expert.

Sums: is the plan of A then B what the plans of A and of B add up to? Parts: do what is done and what is left add up to
the whole? Nothing: is the plan of doing nothing no plan? Counts: how well does a linear map read off a plan how often
each skill is in it, and what else is in it?
Leaks: how far apart are plans of the same skills, which should depend neither on the scene nor on the order?

Plans are compared as the policy uses them: those of an agent that uses unit vectors (tecnet) are made so.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from planvec.agents import Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.agents.probe import TINY, ridge
from planvec.analysis.corpus import Corpus, check_vectors, count_names
from planvec.data.recordings import ends_of
from planvec.errors import InputError
from planvec.tasks import FRESH, Task
from planvec.worlds.protocol import World

TASKS = 512  # that are demonstrated, unless told otherwise
SCENES = 4  # for each of them
FEWEST = 8
COMPARED = 2048  # demonstrations at most, each with each other


class Sums(NamedTuple):
    """g(AB) beside g(A) + g(B), each in a scene of its own."""

    retrieval: float  # how often g(AB) is nearer to its own sum than to all others
    candidates: int  # how many sums there are, no two of the same skills; chance is one in so many
    error: float  # mean ‖g(AB) − g(A) − g(B)‖ / ‖g(AB)‖
    again: float  # the same with g(AB) in another scene for the sum: what scenes alone make of it
    unrelated: float  # the same with the sum of another pair


class Parts(NamedTuple):
    """g(first, now) + g(now, last) beside g(first, last), at a random moment of each demonstration."""

    error: float  # mean ‖whole − done − left‖ / ‖whole‖
    unrelated: float  # the same with the whole of another demonstration


class Nothing(NamedTuple):
    """g(first, first), the plan of doing nothing. If it is not zero, it is in all plans, and in a sum it is twice."""

    mean: float  # ‖mean g(first, first)‖ over the mean length of a plan A


class Counts(NamedTuple):
    """Linear maps between plans and counts of skills, fitted to some demonstrations and judged on others."""

    r2: float  # share of the counts' variance that plans explain
    r2_by_skill: dict[str, float | None]  # None: the count never varied
    explained: float  # share of the plans' variance that counts explain; the rest is scene and order


class Leaks(NamedTuple):
    """Mean distance between plans of the same skills over that between plans of different ones. None: never seen."""

    scene: float | None  # in different scenes, done in the same order
    order: float | None  # in different scenes, done in another order


class Measures(NamedTuple):
    sums: Sums
    parts: Parts
    nothing: Nothing
    counts: Counts
    leaks: Leaks
    demonstrations: int

    def as_dict(self) -> dict[str, Any]:
        return {name: part if isinstance(part, int) else part._asdict() for name, part in self._asdict().items()}


def measure(
    agent: Agent,
    world: World,
    tasks: int = TASKS,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda finished, total: None,
) -> Measures:
    """Measure an agent that has plan vectors. `progress` is told how many demonstrations there are, and will be."""
    agent = check_vectors(agent)
    if tasks < FEWEST:
        raise InputError(f"measure at least {FEWEST} tasks; got {tasks}")
    groups = draw_tasks(world, tasks, seed)
    ends = ends_of([len(group) for group in groups])
    first, second, whole, mixed = (np.arange(end - len(group), end) for end, group in zip(ends, groups, strict=True))
    total = int(ends[-1])
    demos = Corpus(world, list(chain(*groups)), (seed, FRESH + 13), lambda finished: progress(finished, total))
    plans = demos.plans(agent)
    used = _as_used(agent, plans)
    compared = mixed[:COMPARED]
    return Measures(
        sums=measure_sums(_as_used(agent, plans[first] + plans[second]), used[whole], len(whole) // SCENES),
        parts=measure_parts(agent, demos, whole, used[whole], seed),
        nothing=measure_nothing(demos.nothing(agent), plans[first]),
        counts=measure_counts(used[mixed], demos.counts[mixed], world.skills),
        leaks=measure_leaks(used[compared], demos.counts[compared], [demos.order(demo) for demo in compared]),
        demonstrations=total,
    )


def draw_tasks(world: World, count: int, seed: int) -> tuple[list[Task], ...]:
    """What is demonstrated: tasks A, B, and A then B, scene after scene; and tasks in one order and another."""
    firsts, seconds = draw_pairs(world, count, seed)
    wholes = [first + second for first, second in zip(firsts, seconds, strict=True)]
    drawn = world.sample_tasks((seed, FRESH + 12), count, *world.sizes)
    mixed = [task[:: (-1) ** scene] for task in drawn for scene in range(SCENES)]  # forwards, backwards, by turns
    return firsts * SCENES, seconds * SCENES, wholes * SCENES, mixed


def draw_pairs(world: World, count: int, seed: int) -> tuple[list[Task], list[Task]]:
    """Tasks A and B that can be done together, half as long as training's longest, no two pairs asking for the same."""
    size = max(1, world.sizes[1] // 2)
    firsts, seconds = world.sample_parts((seed, FRESH + 11), count, (size, size))
    asked = world.asked([first + second for first, second in zip(firsts, seconds, strict=True)])
    _, kept = np.unique(asked.reshape(count, -1), axis=0, return_index=True)
    kept = np.sort(kept)  # as they were drawn, so that neighbours have nothing to do with each other
    return [firsts[i] for i in kept], [seconds[i] for i in kept]


def measure_sums(sums: np.ndarray, wholes: np.ndarray, candidates: int) -> Sums:
    """Of sums and wholes in several scenes. [scene · pair, embedding] each"""
    by_scene = (part.reshape(-1, candidates, part.shape[-1]) for part in (wholes, sums))
    nearest = np.array([_distances(*scene).argmin(axis=1) for scene in zip(*by_scene, strict=True)])
    return Sums(
        retrieval=float(np.mean(nearest == np.arange(candidates))),
        candidates=candidates,
        error=_error(sums, wholes),
        again=_error(np.roll(wholes, candidates, axis=0), wholes),
        unrelated=_error(np.roll(sums, 1, axis=0), wholes),
    )


def measure_parts(agent: EmbeddingAgent, demos: Corpus, which: np.ndarray, wholes: np.ndarray, seed: int) -> Parts:
    """At a moment between the first and the last, of all demonstrations that have one."""
    longer = demos.lengths[which] > 1
    times = np.random.default_rng((seed, FRESH + 14)).integers(1, demos.lengths[which[longer]])
    sums = _as_used(agent, demos.parts(agent, which[longer], times))
    return Parts(error=_error(sums, wholes[longer]), unrelated=_error(np.roll(sums, 1, axis=0), wholes[longer]))


def measure_nothing(nothing: np.ndarray, plans: np.ndarray) -> Nothing:
    """Of plans as they are added, which is before the policy uses them. [demonstration, embedding] each"""
    return Nothing(mean=float(_length(nothing.mean(axis=0)) / max(_length(plans).mean(), TINY)))


def measure_counts(plans: np.ndarray, counts: np.ndarray, skills: Sequence[str]) -> Counts:
    """Fitted to the first half, judged on the second. Of skills alone: what has no name is left out."""
    names = count_names(skills, counts.shape[1])[: len(skills)]
    counts = counts[:, : len(names)]
    half = len(plans) // 2
    errors = counts[half:] - fit(plans[:half], counts[:half])(plans[half:])
    spread = counts[half:].var(axis=0)
    missed = (errors**2).mean(axis=0)
    shares = [1 - float(miss / var) if var else None for miss, var in zip(missed, spread, strict=True)]
    others = plans[half:] - fit(counts[:half], plans[:half])(counts[half:])
    return Counts(
        r2=1 - float(missed.sum() / max(spread.sum(), TINY)),
        r2_by_skill=dict(zip(names, shares, strict=True)),
        explained=1 - float((others**2).sum() / max(plans[half:].var(axis=0).sum() * len(others), TINY)),
    )


def measure_leaks(plans: np.ndarray, counts: np.ndarray, orders: Sequence[tuple[str, ...]]) -> Leaks:
    """Between all pairs of plans."""
    skills = np.unique(counts, axis=0, return_inverse=True)[1].ravel()
    numbers = {order: number for number, order in enumerate(dict.fromkeys(orders))}
    order = np.array([numbers[order] for order in orders])
    same_skills = skills[:, None] == skills
    same_order = order[:, None] == order
    apart = _distances(plans, plans)
    other = ~np.eye(len(plans), dtype=bool)

    def mean(which: np.ndarray) -> float | None:
        return float(apart[which].mean()) if which.any() else None

    def leak(which: np.ndarray) -> float | None:
        near = mean(which & same_skills & other)
        far = mean(~same_skills)
        return None if near is None or far is None else near / max(far, TINY)

    return Leaks(scene=leak(same_order), order=leak(~same_order))


def fit(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The ridge regression of y on x, both about their means."""
    at = x.mean(axis=0)
    mean = y.mean(axis=0)
    weights = ridge(x - at, y - mean)
    return lambda rows: mean + (rows - at) @ weights


def _error(found: np.ndarray, true: np.ndarray) -> float:
    """The mean relative error of rows."""
    return float(np.mean(_length(found - true) / np.maximum(_length(true), TINY)))


def _length(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows, axis=-1)


def _distances(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Between every row of one and every row of the other."""
    squared = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1) - 2 * rows @ columns.T
    return np.sqrt(np.maximum(squared, 0))


def _as_used(agent: EmbeddingAgent, plans: np.ndarray) -> np.ndarray:
    """Plans as the policy uses them: of unit length, where it normalises."""
    return plans / np.maximum(_length(plans)[:, None], TINY) if getattr(agent, "normalise", False) else plans


def table(title: str, measures: dict[str, Any]) -> Table:
    """The figures (of `as_dict`) for people, each with a line that says what it is."""
    lines = Table("measure", "figure", "compare", "what it says", title=title)
    for name, figure, compare, meaning in _lines(measures):
        lines.add_row(name, "never seen" if figure is None else f"{figure:.3f}", compare, meaning)
    return lines


def _lines(measures: dict[str, Any]) -> Iterator[tuple[str, float | None, str, str]]:
    sums = Sums(**measures["sums"])
    parts = Parts(**measures["parts"])
    nothing = Nothing(**measures.get("nothing", {"mean": None}))  # older files do not say
    counts = Counts(**measures["counts"])
    leaks = Leaks(**measures["leaks"])
    chance = f"{1 / sums.candidates:.3f} by chance"
    apart = "{:.3f} unrelated".format
    yield "retrieval", sums.retrieval, chance, f"how often g(AB) is nearest to g(A) + g(B), of {sums.candidates} sums"
    yield "sums", sums.error, apart(sums.unrelated), "relative error of g(A) + g(B) as g(AB), each in its own scene"
    yield "again", sums.again, "", "the same of g(AB) in another scene: what scenes alone make of it"
    yield "parts", parts.error, apart(parts.unrelated), "relative error of done + left as the whole, at a random moment"
    yield "nothing", nothing.mean, "0 at best", "length of the plan of doing nothing, g(o, o), in lengths of a plan A"
    yield "counts", counts.r2, "1 at best", "R² of skill counts, read off plans by a linear map"
    for skill, share in counts.r2_by_skill.items():
        yield f"  {skill}", share, "", ""
    yield "explained", counts.explained, "1 at best", "share of the plans' variance that skill counts explain"
    yield "scene leak", leaks.scene, "0 at best", "distance between plans of the same skills in the same order …"
    yield "order leak", leaks.order, "0 at best", "… and in another order, over that between different skills"
