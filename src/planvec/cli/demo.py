"""What `planvec demo` shows: a plan made by adding two demonstrations, and the agent that follows it."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from planvec.agents import Agent
from planvec.evaluation.rollouts import rollout
from planvec.evaluation.scores import Score
from planvec.media.filming import film_together
from planvec.media.pictures import save_figure
from planvec.tables import paper
from planvec.worlds.protocol import World

TRIES = 10  # scenes, until one in which the agent succeeds


def film_sum(agent: Agent, world: World, path: Path, seed: int = 0) -> str:
    """Film two references beside the agent acting on the sum of their plans. Returns what there is to see."""
    one, other = world.showcase
    first = world.demonstrate(one, seed=2 * seed)
    second = world.demonstrate(other, seed=2 * seed + 1)
    plan = agent.plan(first) + agent.plan(second)
    horizon = world.horizon([len(one), len(other)])
    for attempt in range(TRIES):
        episode = rollout(agent, plan, world, one + other, seed * TRIES + attempt, horizon=horizon)
        if episode.success:
            break
    titles = ("A, by the expert", "B, by the expert", "A + B, by the agent")
    film_together(world, list(zip(titles, (first, second, episode), strict=True)), path)
    shown = f"A is {' and '.join(one)}, B is {' and '.join(other)}"
    return f"{shown}. Given A + B, {episode.describe()} (try {attempt + 1}). The film: {path}"


def draw_scores(world: str, agent: str, scores: dict[str, Score], path: Path) -> None:
    """A chart of an agent's scores beside the paper's."""
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    place = np.arange(len(scores))
    ours = 100 * np.array([(score.success, *score.ci95) for score in scores.values()]).T
    theirs = np.array([paper.figure(world, agent, name) for name in scores], float).T
    axes.bar(place - 0.2, ours[0], 0.4, yerr=np.abs(ours[1:] - ours[0]), color="#3d6fb0", label="planvec")
    axes.bar(place + 0.2, theirs[0], 0.4, yerr=theirs[1], color="#c9ced6", label="paper")
    axes.set(xticks=place, xticklabels=list(scores), ylim=(0, 100), ylabel="success, %", title=f"{agent}, by condition")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    save_figure(path, figure)
