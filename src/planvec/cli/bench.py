"""Speeds: `planvec bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg
from tyro.extras import literal_type_from_choices

from planvec.benchmarks import BENCHES
from planvec.benchmarks.measure import Row
from planvec.cli.console import WORLD, log, out
from planvec.worlds.registry import attribute

CHOICE = arg(constructor=literal_type_from_choices(BENCHES), help_behavior_hint=f"(default: {WORLD})")


@dataclass
class Bench:
    """Measure speeds on this machine, beside whatever comparable is installed.

    Example: planvec bench crafting --batch 1024 --json out/bench.json
    """

    what: Positional[Annotated[str, CHOICE]] = WORLD
    """What to measure: the crafting world; the tabletop; doom; training of cpv-full and potential, and evaluation;
    practice; the playground."""
    batch: tuple[int, ...] = ()
    """Batch sizes to try instead of the usual ones; on the tabletop of each core, in doom of each engine; of
    practice, how many episodes at a time; of the playground, how many watch at once."""
    json: Annotated[Path | None, arg(name="json")] = None
    """Also write the table to this file, row by row."""

    def run(self) -> None:
        from planvec.io.checkpoints import save_json
        from planvec.io.provenance import provenance

        made = provenance()  # before the file that is written makes the tree another one
        run = attribute(BENCHES[self.what], f"the bench '{self.what}'")  # some need what is not installed everywhere
        rows: list[Row] = []
        notes: list[str] = []
        table = Table("what", "batch", "rate", title=f"planvec bench {self.what}")
        with log.status("measuring") as status:
            for row in run(self.batch or None, warn=notes.append):
                rows.append(row)
                figure = f"{row.rate:,.0f}" if row.rate >= 100 else f"{row.rate:.3g}"
                status.update(f"measured {row.what}: {figure} {row.unit}")
                table.add_row(row.what, f"{row.batch:,}", f"{figure} {row.unit}")
                if self.json:
                    save_json(self.json, made | {"rows": [one._asdict() for one in rows]})
        out.print(table)
        for note in notes:
            out.print(note, highlight=False, markup=False)
