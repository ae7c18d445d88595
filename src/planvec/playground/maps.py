"""The map: plan vectors of many demonstrations, projected onto a plane."""

from typing import Any, NamedTuple

import numpy as np

from planvec.agents.agent import EmbeddingAgent
from planvec.agents.probe import Probe
from planvec.analysis.corpus import encode
from planvec.plans import Plan
from planvec.playground.actors import Actor
from planvec.tasks import Task

POINTS = 192  # demonstrations
FAN = 10  # degrees between the map's outermost skills and the horizontal


class Map(NamedTuple):
    """Demonstrations on a plane, and the directions of that. The zero plan is at its origin; sums are sums."""

    tasks: list[Task]
    points: np.ndarray  # [demonstration, 2]
    axes: np.ndarray  # [embedding, 2]

    def place(self, plan: Plan) -> list[float]:
        return np.round(np.asarray(plan.vector, float) @ self.axes, 3).tolist()

    def as_dict(self) -> dict[str, Any]:
        return {"tasks": self.tasks, "points": np.round(self.points.astype(float), 3).tolist()}


def draw_map(actor: Actor) -> Map:
    """Demonstrations of one and two skills, projected so that each skill points its own way."""
    tasks = actor.world.sample_tasks((0, 7), POINTS, 1, 2)
    demos = actor.world.record(tasks, (0, 8))
    first, last, _ = actor.world.ends(demos)
    assert isinstance(actor.agent, EmbeddingAgent)  # whose plans are vectors
    vectors = encode(actor.agent, first, last)
    axes = plane(actor.probe, vectors)
    return Map(tasks, vectors @ axes, axes)


def plane(probe: Probe | None, vectors: np.ndarray) -> np.ndarray:
    """The directions of plan vectors that are drawn, along x and along y (down). [embedding, 2]

    Where plans can be read, what is read off them is laid out like a fan that opens upwards, a direction for each
    skill: no two pairs of a few skills add up to the same. Elsewhere it is the plane in which the vectors differ most.
    """
    if probe is None:
        axes = np.linalg.svd(vectors, full_matrices=False)[2][:2].T
        return axes / np.abs(vectors @ axes).max()
    angles = np.pi + np.deg2rad(np.linspace(FAN, 180 - FAN, len(probe.skills)))
    return np.asarray(probe.weights) @ np.stack([np.cos(angles), np.sin(angles)], axis=1)
