"""Agents measured side by side: how compositional their plans are, how well those are read, and "done" told."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from planvec.agents import AGENTS, Agent
from planvec.agents.agent import EmbeddingAgent
from planvec.analysis import completion, composition
from planvec.analysis.probes import fit_probe
from planvec.errors import InputError
from planvec.io import files
from planvec.io.checkpoints import load_json, save_json
from planvec.io.provenance import provenance
from planvec.training.loading import find, load_with_config
from planvec.training.runs import CONFIG
from planvec.worlds import make

Row = dict[str, Any]  # all about one agent
Watch = Callable[[str, int, int], None]  # told what is being done, how far it is, and of how much

WITHOUT = "no figures: it sees its reference's own observations, and has no plan vectors to measure"
COLUMNS = {  # of the table for people: a title, and where the figure is
    "retrieval": ("sums", "retrieval"),
    "sums": ("sums", "error"),
    "again": ("sums", "again"),
    "parts": ("parts", "error"),
    "nothing": ("nothing", "mean"),
    "counts R²": ("counts", "r2"),
    "explained": ("counts", "explained"),
    "scene leak": ("leaks", "scene"),
    "order leak": ("leaks", "order"),
    "probe ±": ("probe", "error"),
}
LEGEND = """\
- retrieval: how often g(AB) is nearest to its own g(A) + g(B); 1 at best. sums: the relative error of that sum; again:
  that of g(AB) in another scene, which is what scenes alone make of it.
- parts: the relative error of done + left as the whole, at a random moment.
- nothing: the length of the mean plan of doing nothing, g(o, o), in lengths of a plan A; 0 at best, as a sum holds it
  twice.
- counts R²: of skill counts, read off plans by a linear map; explained: the share of the plans' variance that skill
  counts explain; 1 at best.
- leaks: distance between plans of the same skills, done in the same order and in another, over that between plans of
  different skills; 0 at best.
- probe ±: the error of skill counts as `agent.read` gives them, root mean square, on tasks up to twice training's."""


def measure(
    names: Sequence[str],
    tasks: int = composition.TASKS,
    episodes: int = completion.EPISODES,
    seed: int = 0,
    out: Path | None = None,
    watch: Watch = lambda what, finished, total: None,
) -> list[Row]:
    """Measure runs or shipped agents of one world. `out`: a JSON file, with a table beside it in Markdown.

    What the file has already of the same agents, measured in the same way, is kept.
    """
    loaded = {str(name).rstrip("/"): (name, *load_with_config(name)) for name in names}
    there = _there(out)
    rows = []
    worlds = {config.world for _, _, config in loaded.values()} | {row["world"] for row in there}
    if len(worlds) != 1:
        raise InputError(
            f"agents of one world at a time, and a file for each; these live in {', '.join(sorted(worlds))}"
        )
    for run, (name, agent, config) in loaded.items():
        about = {"run": run, "world": config.world, "agent": config.agent, "fingerprint": agent.fingerprint}
        about |= {"tasks": tasks, "episodes": episodes, "seed": seed}
        known = [row for row in there if about.items() <= row.items()]
        rows += known[:1] or [about | figures(agent, config.world, tasks, episodes, seed, watch) | _origin(name)]
        if out:
            anew = {row["run"] for row in rows}
            there = rows + [row for row in there if row["run"] not in anew]
            save_json(out, {"rows": there})
            files.write(out.with_suffix(".md"), markdown(there))
    return rows


def _there(out: Path | None) -> list[Row]:
    """What a file has already."""
    content = load_json(out) if out and out.exists() else {"rows": []}
    if not isinstance(content, dict) or content.keys() != {"rows"}:
        raise InputError(f"{out} is no file of `planvec measure`; choose another --out")
    return content["rows"]


def figures(agent: Agent, world_name: str, tasks: int, episodes: int, seed: int, watch: Watch) -> Row:
    """All that is measured of one agent. A probe is fitted to one that has none; without episodes, none is watched."""
    if not isinstance(agent, EmbeddingAgent):
        return {"without": WITHOUT}
    world = make(world_name)
    measures = composition.measure(agent, world, tasks, seed, lambda *far: watch("demonstrating", *far))
    probe = agent.probe or fit_probe(agent, world, progress=lambda *far: watch("fitting a probe", *far))
    agent = replace(agent, probe=probe)
    error = np.asarray(probe.error, np.float64)
    by_skill = dict(zip(probe.skills, error.tolist(), strict=True))
    told = (
        completion.measure(agent, world, episodes, seed, lambda *far: watch("telling what is done", *far))
        if episodes
        else {}
    )
    return {
        **measures.as_dict(),
        "probe": {"error": float(np.sqrt(np.mean(error**2))), "error_by_skill": by_skill},
        "done": {name: {whose: one._asdict() for whose, one in both.items()} for name, both in told.items()},
    }


def _origin(name: str) -> Row:
    """Where the figures come from: the training, and the measurement."""
    trained = load_json(find(name) / CONFIG)
    return {"training": {part: trained.get(part) for part in ("config", "data", "made")}, "made": provenance()}


def table(row: Row) -> Table:
    """One agent's figures for people, each with a line that says what it is."""
    lines = composition.table(f"{row['agent']}: {row['demonstrations']} demonstrations", row)
    lines.add_row(
        "probe",
        f"{row['probe']['error']:.3f}",
        "0 at best",
        "error of skill counts as the agent's own probe reads them",
    )
    for condition, told in row["done"].items():
        own = told["own"]
        expert = told["expert"]
        says = f"ROC AUC of “done” in its own episodes ({_show(expert['auc'])} in the expert's)"
        says += f"; too early {_show(own['early'])}, missed {_show(own['missed'])}"
        lines.add_row(f"done, {condition}", _show(own["auc"]), f"{_show(own['norm'])} by length", says)
    return lines


def markdown(rows: Sequence[Row]) -> str:
    """A line for each model: means, and standard deviations where there are several runs of it."""
    by_agent = {name: alike for name in AGENTS if (alike := [row for row in rows if row["agent"] == name])}
    several = any(len(alike) > 1 for alike in by_agent.values())
    lines = [
        f"How compositional plans are, on fresh demonstrations in the world {rows[0]['world']} "
        f"(`planvec measure`, {rows[0]['tasks']} tasks)." + " Mean ± standard deviation over runs." * several,
        "",
        *_lines(by_agent, COLUMNS),
        "",
        LEGEND,
    ]
    told = {name: alike for name, alike in by_agent.items() if alike[0].get("done")}
    conditions = list(dict.fromkeys(condition for alike in told.values() for condition in alike[0]["done"]))
    if conditions:
        lines += [
            "",
            f"Telling that a task is done: area under the ROC in {rows[0]['episodes']} of the agent's own episodes "
            "of each condition, at every moment to the horizon.",
            "",
            *_lines(told, {condition: ("done", condition, "own", "auc") for condition in conditions}),
            "",
            "The same in the expert's episodes, which end when the task is done:",
            "",
            *_lines(told, {condition: ("done", condition, "expert", "auc") for condition in conditions}),
        ]
    return "\n".join(lines) + "\n"


def _lines(by_agent: dict[str, list[Row]], columns: dict[str, tuple[str, ...]]) -> list[str]:
    """A table in Markdown."""
    lines = ["| model | runs | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name, rows in by_agent.items():
        cells = [_mean(_figure(row, place) for row in rows) for place in columns.values()]
        if without := rows[0].get("without"):
            cells = [without] + [""] * (len(columns) - 1)
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")
    return lines


def _figure(row: Row, place: tuple[str, ...]) -> float | None:
    """The figure at a place in the tree; None where there is none."""
    return reduce(lambda part, name: (part or {}).get(name), place, row)


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "never seen"
    return f"{np.mean(known):.3f}" + (f" ± {np.std(known, ddof=1):.3f}" if len(known) > 1 else "")


def _show(value: float | None) -> str:
    return "never seen" if value is None else f"{value:.3f}"
