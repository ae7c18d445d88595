"""Films of demonstrations: the world beside the task, its skills ticked off as they are done."""

from pathlib import Path

import jax
import numpy as np

from planvec import pictures
from planvec.demos import Demonstration
from planvec.worlds.world import World


def film(world: World, demo: Demonstration, path: Path, title: str = "the expert", fps: int = 8) -> None:
    """Write a demonstration as a GIF."""
    pictures.save_gif(path, frames(world, demo, title), fps=fps)


def frames(world: World, demo: Demonstration, title: str) -> list[np.ndarray]:
    """A picture of every step, with what has been done until then."""
    events = [None, *world.events(demo.steps, demo.actions)]
    return [
        pictures.caption(
            world.draw(jax.tree.map(lambda leaf, t=t: leaf[t], demo.steps)),
            [f"# {title}", *checklist(demo.task, events[: t + 1]), f"step {t} of {len(demo)}"],
        )
        for t in range(len(demo) + 1)
    ]


def checklist(task: tuple[str, ...], events: list[str | None]) -> list[str]:
    """The task's skills, those that were done with a tick, repetitions counted."""
    done = [event for event in events if event]
    lines = []
    for skill in task:
        ticked = skill in done
        if ticked:
            done.remove(skill)
        lines.append(f"[{'x' if ticked else ' '}] {skill}")
    return lines
