"""A table for people: its cells, in Markdown and as a chart, ours beside the paper's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from planvec.agents import AGENTS
from planvec.io import files
from planvec.io.checkpoints import save_json
from planvec.media.pictures import save_figure
from planvec.tables import paper
from planvec.worlds import make


def write(results: dict[str, Any], folder: Path) -> None:
    """The table as JSON; and for people, as Markdown and as a chart."""
    save_json(folder / "results.json", results)
    files.write(folder / "table.md", markdown(results))
    chart(results, folder / "chart.png")


def labels(results: dict[str, Any]) -> list[str]:
    """The rows of the table: the ten models in the paper's order, then the others as they came."""
    there = list(dict.fromkeys(row["agent"] for row in results["rows"]))
    return [agent for agent in AGENTS if agent in there] + [label for label in there if label not in AGENTS]


def conditions_of(results: dict[str, Any]) -> list[str]:
    """The columns: those of the world's table, then any others as they came."""
    known = make(results["world"]).conditions
    there = list(dict.fromkeys(row["condition"] for row in results["rows"]))
    return [name for name in known if name in there] + [name for name in there if name not in known]


def cell(results: dict[str, Any], label: str, condition: str, figure: str = "success") -> tuple[float, float, int]:
    """Mean and standard deviation (n − 1) over seeds in %, and how many seeds. Of one seed, the deviation is NaN."""
    cells = [row for row in results["rows"] if (row["agent"], row["condition"]) == (label, condition)]
    values = 100 * np.array([row[figure] for row in cells])
    mean = float(values.mean()) if len(values) else np.nan
    deviation = float(values.std(ddof=1)) if len(values) > 1 else np.nan
    return mean, deviation, len(values)


def markdown(results: dict[str, Any]) -> str:
    """Success beside the paper's, then how often exactly the task was done, then how often nothing followed."""
    episodes = min(row["episodes"] for row in results["rows"])
    broken = sum(row.get("diverged", 0) * row["episodes"] for row in results["rows"])
    lines = [
        f"Success in %, mean ± standard deviation over seeds, at least {episodes} episodes a cell, sampled actions, "
        "last checkpoint; the paper's figure in parentheses."
    ]
    if broken:
        lines.append(f"The simulator broke down in {broken:.0f} episodes, which count as failures.")
    lines += ["", *_table(results, "success")]
    lines += ["", "Exactly the task, nothing else until it was done, in %:", "", *_table(results, "exact")]
    lines += ["", "And nothing after it, until the agent stopped by itself or, if it cannot, to the horizon, in %:", ""]
    lines += _table(results, "stops")
    return "\n".join(lines) + "\n"


def _table(results: dict[str, Any], figure: str) -> Iterator[str]:
    """A line of Markdown for each row of the table."""
    used = conditions_of(results)
    yield "| model | seeds | " + " | ".join(used) + " |"
    yield "|---" * (len(used) + 2) + "|"
    for label in labels(results):
        seeds = max(cell(results, label, condition)[2] for condition in used)
        cells = [_show(results, label, condition, figure) for condition in used]
        yield f"| {label} | {seeds} | " + " | ".join(cells) + " |"


def _show(results: dict[str, Any], label: str, condition: str, figure: str) -> str:
    """One cell: "71 ± 2 (73)", the paper's being that in parentheses; empty where nothing was measured."""
    mean, deviation, seeds = cell(results, label, condition, figure)
    if not seeds:
        return ""
    text = f"{mean:.0f}"
    if seeds > 1:
        text += f" ± {deviation:.0f}"
    known = paper.figure(results["world"], label, condition)
    if known and figure == "success":
        text += f" ({known.mean:g})"
    return text


def chart(results: dict[str, Any], path: Path) -> None:
    """Bars of ours and the paper's, a panel a condition."""
    used = conditions_of(results)
    shown = labels(results)
    places = np.arange(len(shown))
    figure = Figure(figsize=(2.4 * len(used) + 1.6, 0.34 * len(shown) + 1.4), layout="constrained")
    panels = figure.subplots(1, len(used), sharey=True, squeeze=False)[0]
    for axes, condition in zip(panels, used, strict=True):
        ours = np.nan_to_num([cell(results, label, condition)[:2] for label in shown])  # no bar where there is no cell
        theirs = [paper.figure(results["world"], label, condition) or paper.Figure(0) for label in shown]
        axes.barh(places - 0.2, ours[:, 0], 0.4, xerr=ours[:, 1], color="#3d6fb0", label="planvec")
        means = [known.mean for known in theirs]
        deviations = [known.std or 0 for known in theirs]
        axes.barh(places + 0.2, means, 0.4, xerr=deviations, color="#c9ced6", label="paper")
        axes.set(title=condition, xlim=(0, 100), yticks=places, yticklabels=shown)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    bars, names = panels[0].get_legend_handles_labels()
    figure.legend(bars, names, loc="outside upper right", ncols=2, frameon=False)
    figure.supxlabel("success, %")
    save_figure(path, figure)
