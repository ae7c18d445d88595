"""Films of demonstrations: the world beside the task, its skills ticked off as they are done."""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from planvec import pictures
from planvec.demos import Demonstration
from planvec.worlds.world import World

GAP = 8  # pixels between two films side by side


def film(world: World, demo: Demonstration, path: Path, title: str = "the expert", fps: int = 8) -> None:
    """Write a demonstration as a GIF, its text beside it."""
    pairs = zip(pictures_of(world, demo), captions(world, demo, title), strict=True)
    pictures.save_gif(path, [pictures.caption(picture, lines) for picture, lines in pairs], fps=fps)


def film_together(world: World, demos: Sequence[tuple[str, Demonstration]], path: Path, fps: int = 8) -> None:
    """Write several demonstrations, each with its title, side by side as one GIF. Those that end first wait."""
    rows = max(len(demo.task) for _, demo in demos) + 2
    columns = [
        [
            pictures.caption_below(picture, lines, rows)
            for picture, lines in zip(pictures_of(world, demo), captions(world, demo, title), strict=True)
        ]
        for title, demo in demos
    ]
    gap = np.full((columns[0][0].shape[0], GAP, 3), 255, np.uint8)
    longest = max(map(len, columns))
    padded = [column + column[-1:] * (longest - len(column)) for column in columns]
    together = [[part for frame in frames for part in (gap, frame)][1:] for frames in zip(*padded, strict=True)]
    pictures.save_gif(path, [np.concatenate(frames, axis=1) for frames in together], fps=fps)


def pictures_of(world: World, demo: Demonstration) -> list[np.ndarray]:
    """A picture of every step."""
    return [world.draw(jax.tree.map(lambda leaf, t=t: leaf[t], demo.steps)) for t in range(len(demo) + 1)]


def captions(world: World, demo: Demonstration, title: str) -> list[list[str]]:
    """For every step, the task with what has been done of it until then."""
    events = [None, *world.events(demo.steps, demo.actions)]
    return [
        [f"# {title}", *checklist(demo.task, events[: t + 1]), f"step {t} of {len(demo)}"] for t in range(len(demo) + 1)
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
