"""What `planvec demo` shows: a plan made by adding two demonstrations, and the agent that follows it."""

from pathlib import Path

import jax
import numpy as np

from planvec import pictures, reproduce
from planvec.agents import Agent
from planvec.evaluation import Score
from planvec.filming import frames
from planvec.rollouts import rollout
from planvec.worlds.world import World

A, B = ("ChopTree", "BuildHouse"), ("MakeBread", "EatBread")
TRIES = 10  # scenes, until one in which the agent succeeds


def film_sum(agent: Agent, world: World, path: Path, seed: int = 0) -> str:
    """Film two references beside the agent acting on the sum of their plans. Returns what there is to see."""
    first, second = world.demonstrate(A, seed=2 * seed), world.demonstrate(B, seed=2 * seed + 1)
    plan = agent.plan(first) + agent.plan(second)
    for attempt in range(TRIES):
        episode = rollout(agent, plan, world, A + B, seed=seed * TRIES + attempt)
        if episode.success:
            break
    panels = [
        _stacked(world, first, "A, by the expert"),
        _stacked(world, second, "B, by the expert"),
        _stacked(world, episode, "the agent does A + B"),
    ]
    length = max(map(len, panels))
    padded = [panel + [panel[-1]] * (length - len(panel)) for panel in panels]
    pictures.save_gif(path, [np.concatenate(row, axis=1) for row in zip(*padded, strict=True)], fps=10)
    how = f"did {', '.join(episode.skills_done)} in {len(episode)} steps" if episode.success else "did not succeed"
    return f"A is {' and '.join(A)}, B is {' and '.join(B)}; the agent, given A + B, {how} (try {attempt + 1}): {path}"


def draw_scores(agent: str, scores: dict[str, Score], path: Path) -> None:
    """A chart of an agent's scores beside the paper's."""
    rows = [{"agent": agent, "seed": 0, "condition": name, **score.as_dict()} for name, score in scores.items()]
    reproduce.chart({"rows": rows}, path)


def _stacked(world: World, demo: object, title: str) -> list[np.ndarray]:
    """Frames of a demonstration with its text below, not beside."""
    shown = frames(world, demo, title)
    width = world.draw(jax.tree.map(lambda leaf: leaf[0], demo.steps)).shape[1]
    return [np.concatenate([frame[:, :width], _below(frame[:, width:], width)]) for frame in shown]


def _below(panel: np.ndarray, width: int) -> np.ndarray:
    """A text panel cut to its upper part and brought to a frame's width."""
    upper = panel[: panel.shape[0] // 2]
    return np.pad(upper, ((0, 0), (0, width - upper.shape[1]), (0, 0)), "edge")
