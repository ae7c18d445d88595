"""Looking into a data folder: what is in it, how the expert fared, and a contact sheet."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from planvec.data import folders
from planvec.media import pictures
from planvec.tasks import show_task

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

SHEET = "contact_sheet.png"
SHOWN = 16  # demonstrations on the contact sheet


def show(folder: Path, world: "World", console: Console) -> None:
    """Print what is in the folder, and draw the first demonstrations into it."""
    header = folders.read_header(folder, world)
    lengths = []
    tasks = set()
    for recording, shard_tasks in folders.read_shards(folder, header):
        lengths.append(recording.lengths)
        tasks.update(tuple(sorted(task)) for task in shard_tasks)
    size = sum((folder / entry["file"]).stat().st_size for entry in header["shards"].values())
    lengths = np.concatenate(lengths)
    kind = folders.held(header)
    what = f"{header[kind.unit]} {kind.unit}{' of demonstrations' if kind.size == 2 else ' of play, unpaired,'}"
    each = "a demonstration" if kind.size == 2 else "a recording"
    console.print(
        f"{folder}: {what} in the world '{header['world']}'\n"
        f"tasks of {header['skills'][0]} to {header['skills'][1]} skills, {len(tasks)} different ones (order aside); "
        f"noise {header['noise']:.0%}, extras: {header['extras']}, seed {header['seed']}\n"
        f"{lengths.sum()} actions; {lengths.mean():.1f} {each}, from {lengths.min()} to {lengths.max()}\n"
        f"{size / 1e6:.1f} MB in {len(header['shards'])} files, checksums right",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    console.print(rates_table(header))
    sheet = Path(folder) / SHEET
    image = contact_sheet(folder, header, world)
    try:
        pictures.save_png(sheet, image)
    except OSError:  # somebody else's folder
        sheet = Path(SHEET)
        pictures.save_png(sheet, image)
    console.print(f"contact sheet: {sheet}", markup=False, highlight=False, soft_wrap=True)


def rates_table(header: dict[str, Any]) -> Table:
    """How often the expert managed, by the number of skills."""
    table = Table(title="the expert's attempts")
    for title in (
        "skills",
        "attempts",
        "kept",
        "discarded for extras",
        "failed",
        "kept with extras",
        "extra events each",
    ):
        table.add_column(title, justify="right")
    for skills, row in folders.rates(header).items():
        table.add_row(
            str(skills),
            str(row["attempts"]),
            f"{row['done']:.1%}",
            f"{row['discarded for extras']:.1%}",
            f"{row['failed']:.1%}",
            f"{row['with extras']:.1%}",
            f"{row['extra events']:.2f}",
        )
    return table


def contact_sheet(folder: Path, header: dict[str, Any], world: "World") -> np.ndarray:
    """The first and last step of the first demonstrations, those of a pair side by side."""
    shard, tasks = next(iter(folders.read_shards(folder, header)))
    size = folders.held(header).size
    recording = shard.take(slice(SHOWN))
    steps = world.replay(recording)
    images = []
    labels = []
    for demo in range(recording.demonstrations):
        number = f"{demo // size}{'ab'[demo % size] if size > 1 else ''}"
        for name, index in (("first", recording.first_steps[demo]), ("last", recording.last_steps[demo])):
            images.append(world.draw(jax.tree.map(lambda leaf, index=index: leaf[index], steps)))
            labels.append(f"{number} {name}: {show_task(tasks[demo // size])}")
    return pictures.contact_sheet(images, labels, columns=4)
