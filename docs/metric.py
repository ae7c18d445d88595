"""Makes the picture of the metric of plans, docs/images/metric.png: python docs/metric.py"""

from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import planvec as pv
from planvec.data.pairs import PairSet
from planvec.media.pictures import save_figure
from planvec.tasks import FRESH

IMAGES = Path(__file__).resolve().parent / "images"
TASK = "ChopTree,BuildHouse,BreakRock,MakeBread,EatBread,ChopTree"
BLUE, GREEN, GREY = "#3d6fb0", "#3d8b4f", "#8d948d"


def main() -> None:
    agent, world = pv.load("crafting"), pv.make("crafting")
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    along, apart = figure.subplots(1, 2, width_ratios=(3, 2))

    demo = world.demonstrate(TASK, seed=3)
    count = len(demo.observations)
    first = np.repeat(demo.observations[:1], count, axis=0)
    left = agent.encode(first[:1], demo.observations[-1:]) - agent.encode(first, demo.observations)
    along.plot(agent.metric(left), color=BLUE, drawstyle="steps-post")
    for time, skill in enumerate(world.events(demo.steps, demo.actions), start=1):
        if skill:
            along.axvline(time, color=GREY, linewidth=0.6)
            along.text(time, 0.99, f" {skill}", rotation=90, ha="right", va="top", fontsize=7, color=GREY,
                       transform=along.get_xaxis_transform())  # fmt: skip
    along.set(xlabel="action", ylabel="d(left), in skills", title="What is left of a plan, while it is done", ylim=0)

    pairs = PairSet.fresh(world, 2048, (FRESH, 7))
    batch = pairs.sample(jax.random.key(0), 4096)
    one, other = agent.encode(batch.first, batch.last), agent.encode(batch.ref_first, batch.ref_last)
    bins = np.geomspace(1e-4, 10, 60)
    apart.hist(agent.metric(one - other), bins, color=GREEN, label="of the same task")
    apart.hist(agent.metric(one - np.roll(other, 1, axis=0)), bins, color=BLUE, alpha=0.6, label="of any two tasks")
    apart.set(xscale="log", xlabel="d, in skills", yticks=[], title="How far apart two demonstrations are")
    apart.legend(frameon=False, fontsize="small")
    for axes in (along, apart):
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(IMAGES / "metric.png", figure)


if __name__ == "__main__":
    main()
