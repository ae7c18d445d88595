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
SHOWN = 8  # pairs on the contact sheet


def show(folder: Path, world: "World", console: Console) -> None:
    """Print what is in the folder, and draw its first pairs into it."""
    header = folders.read_header(folder, world)
    lengths = []
    tasks = set()
    for recording, shard_tasks in folders.read_shards(folder, header):
        lengths.append(recording.lengths)
        tasks.update(tuple(sorted(task)) for task in shard_tasks)
    size = sum((folder / entry["file"]).stat().st_size for entry in header["shards"].values())
    lengths = np.concatenate(lengths)
    console.print(
        f"{folder}: {header['pairs']} pairs of demonstrations in the world '{header['world']}'\n"
        f"tasks of {header['skills'][0]} to {header['skills'][1]} skills, {len(tasks)} different ones (order aside); "
        f"noise {header['noise']:.0%}, extras: {header['extras']}, seed {header['seed']}\n"
        f"{lengths.sum()} actions; {lengths.mean():.1f} a demonstration, from {lengths.min()} to {lengths.max()}\n"
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
    """The first and last step of both demonstrations of the first pairs."""
    shard, tasks = next(iter(folders.read_shards(folder, header)))
    recording = shard.take(slice(2 * SHOWN))
    steps = world.replay(recording)
    images = []
    labels = []
    for pair, task in enumerate(tasks[:SHOWN]):
        for demo in (2 * pair, 2 * pair + 1):
            for name, index in (("first", recording.first_steps[demo]), ("last", recording.last_steps[demo])):
                images.append(world.draw(jax.tree.map(lambda leaf, index=index: leaf[index], steps)))
                labels.append(f"{pair}{'ab'[demo % 2]} {name}: {show_task(task)}")
    return pictures.contact_sheet(images, labels, columns=4)
