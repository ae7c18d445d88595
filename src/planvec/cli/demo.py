"""What `planvec demo` shows: a sum of eight demonstrations, the agent that does it, and what such agents score."""

from pathlib import Path
from string import ascii_uppercase

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from planvec.agents import Agent
from planvec.evaluation.acting import act
from planvec.evaluation.scores import Score
from planvec.media.pictures import save_figure
from planvec.tables import paper
from planvec.worlds.protocol import World

REFERENCES = 8  # whose plans are added
Scores = dict[str, Score]  # by condition


def film_sum(agent: Agent, world: World, path: Path, seed: int = 0) -> str:
    """Film an agent acting on the sum of eight plans, each of one skill. Returns what there is to see."""
    skills = [world.skills[number % len(world.skills)] for number in range(REFERENCES)]
    demos = dict(zip(ascii_uppercase, ([skill] for skill in skills), strict=False))
    performance = act(agent, world, " + ".join(demos), demos, seed)
    performance.save(path)
    return f"Given the sum of {REFERENCES} plans, {performance.episode.describe()}. The film: {path}"


def table(world: str, model: str, papers: Scores, new: Scores, episodes: int) -> Table:
    """The paper's figures, those of its method here, and those of the agent past it. `model`: the paper's method."""
    title = f"% of {episodes} episodes; ours are the best of three trainings by validation, the paper's a mean"
    result = Table(title=title, caption="success / exact: and nothing else before / stops: nor after it")
    for column in ("condition", "the paper's figure", "its method, here", "and after practice"):
        result.add_column(column, justify="right")
    for name in papers:
        known = paper.figure(world, model, name)
        result.add_row(name, str(known or ""), _figures(papers[name]), _figures(new[name]))
    return result


def _figures(score: Score) -> str:
    return " / ".join(f"{100 * share:.0f}" for share in (score.success, score.exact, score.stops))


def chart(world: str, model: str, papers: Scores, new: Scores, path: Path) -> None:
    """The same as bars: success, and as the full part of a bar how often exactly that was done, and nothing after."""
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(papers))
    known = np.array([(paper.figure(world, model, name) or paper.Figure(np.nan)).mean for name in papers])
    axes.bar(places - 0.27, known, 0.24, color="#c9ced6", label="the paper's success")
    for scores, offset, colour, label in (
        (papers, 0.0, "#3d6fb0", "its method, here"),
        (new, 0.27, "#3d8b4f", "after practice"),
    ):
        success, stops = (
            100 * np.array([getattr(score, what) for score in scores.values()]) for what in ("success", "stops")
        )
        axes.bar(places + offset, success, 0.24, color=colour, alpha=0.35)
        axes.bar(places + offset, stops, 0.24, color=colour, label=label)
    axes.set(xticks=places, xticklabels=list(papers), ylim=(0, 100), ylabel="% of episodes")
    axes.set_title("pale: success; full: exactly that, and nothing after it", fontsize="medium")
    axes.text(0, -0.16, "ours: the best of three trainings, by validation", transform=axes.transAxes, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=3, frameon=False)
    save_figure(path, figure)
