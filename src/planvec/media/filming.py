"""Films of demonstrations: the world beside the task, its skills ticked off as they are done."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from planvec.media import pictures

if TYPE_CHECKING:
    from planvec.data.demonstrations import Demonstration
    from planvec.worlds.protocol import World

GAP = 8  # pixels between two films side by side


def film(world: "World", demo: "Demonstration", path: Path, title: str = "the expert") -> None:
    """Write a demonstration as a GIF, its text beside it."""
    frames = [pictures.caption(picture, lines) for picture, lines in captioned(world, demo, title)]
    pictures.save_gif(path, frames, fps=world.fps)


def film_together(world: "World", demos: "Sequence[tuple[str, Demonstration]]", path: Path) -> None:
    """Write several demonstrations, each with its title, side by side as one GIF. Those that end first wait."""
    rows = max(1 + len(demo.task) + len(demo.filmed.remarks(len(demo.filmed))) for _, demo in demos)
    columns = [
        [pictures.caption_below(picture, lines, rows) for picture, lines in captioned(world, demo, title)]
        for title, demo in demos
    ]
    gap = np.full((columns[0][0].shape[0], GAP, 3), 255, np.uint8)
    longest = max(map(len, columns))
    padded = [column + column[-1:] * (longest - len(column)) for column in columns]
    together = [[part for frame in frames for part in (gap, frame)][1:] for frames in zip(*padded, strict=True)]
    pictures.save_gif(path, [np.concatenate(frames, axis=1) for frames in together], fps=world.fps)


def captioned(world: "World", demo: "Demonstration", title: str) -> Iterator[tuple[np.ndarray, list[str]]]:
    """Pictures, each with the task and what has been done of it until then."""
    demo = demo.filmed
    events = [None, *world.events(demo.steps, demo.actions)]
    for time, picture in world.film(demo.steps, demo.actions):
        done = checklist(demo.task, events[: time + 1])
        yield picture, [f"# {title}", *done, *demo.remarks(time)]


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
