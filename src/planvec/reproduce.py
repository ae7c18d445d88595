"""The paper's tables: what to train and to measure, as data; our figures beside the paper's."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from planvec import datasets, files
from planvec.agents import AGENTS, Agent
from planvec.checkpoints import load_json, save_json
from planvec.errors import InputError
from planvec.evaluation import CONDITIONS, evaluate, random_trial
from planvec.loading import load
from planvec.pictures import save_figure
from planvec.provenance import provenance
from planvec.training import CONFIG, METRICS, Config, train
from planvec.worlds import make

PAPER = {  # success in %, mean and standard deviation of three seeds, in the order of CONDITIONS (table 1)
    "naive": ((29, 2), (9, 2), (7, 2), (29, 10), (24, 5), (5, 2)),
    "tecnet": ((49, 11), (17, 7), (7, 6), (59, 11), (43, 11), (29, 23)),
    "te-plain": ((53, 4), (28, 2), (25, 20), (32, 1), (44, 25), (18, 12)),
    "te-pair": ((64, 1), (31, 1), (18, 2), (55, 3), (53, 8), (21, 2)),
    "te-hom": ((50, 4), (27, 2), (21, 1), (51, 1), (52, 1), (20, 1)),
    "te-full": ((61, 8), (28, 8), (13, 2), (60, 1), (47, 7), (23, 7)),
    "cpv-plain": ((51, 8), (19, 5), (9, 2), (31, 16), (30, 15), (5, 2)),
    "cpv-pair": ((68, 11), (44, 14), (31, 13), (2, 3), (1, 2), (0, 0)),
    "cpv-hom": ((63, 3), (35, 5), (27, 8), (71, 8), (60, 11), (26, 14)),
    "cpv-full": ((73, 2), (40, 3), (28, 6), (76, 3), (64, 6), (30, 10)),
}
EVALUATION_SEED = 1  # of the references and scenes, the same for all agents


@dataclass(frozen=True)
class Entry:
    """A row of a table: one way of training, measured in one way."""

    label: str
    config: Config
    skills: tuple[int, int] = (2, 4)
    extras: str = "discard"
    control: bool = False
    seeds: int = 3

    @property
    def folder(self) -> str:
        """Entries that differ in how they are measured alone share their trainings."""
        plain = Config(agent=self.config.agent, world=self.config.world)
        changed = {k: v for k, v in asdict(self.config).items() if v != getattr(plain, k) and k not in SETTINGS}
        parts = [self.config.agent, *(f"{k}={v}" for k, v in changed.items()), self.data.removeprefix("data")]
        return "-".join(filter(None, parts))

    @property
    def data(self) -> str:
        """The folder of its demonstrations."""
        low, high = self.skills
        return "data" + f"-{low}-{high}" * (self.skills != (2, 4)) + f"-{self.extras}" * (self.extras != "discard")


SETTINGS = ("seed", "samples", "interval")  # the same for a whole table


def entries(config: Config, agents: Sequence[str], seeds: int, extra_rows: bool) -> list[Entry]:
    """Table 1: the agents asked for; and what else is reported of cpv-full and te-full."""
    rows = [Entry(agent, replace(config, agent=agent), seeds=seeds) for agent in agents]
    if extra_rows and "cpv-full" in agents:
        full = replace(config, agent="cpv-full")
        rows += [
            Entry("cpv-full, reference of another task", full, control=True, seeds=seeds),
            Entry("cpv-full, extras kept", full, extras="keep", seeds=seeds),
            Entry("cpv-full, trained on 1-4 skills", full, skills=(1, 4), seeds=1),
        ]
    if extra_rows and "te-full" in agents:
        rows += [Entry("te-full, extras kept", replace(config, agent="te-full"), extras="keep", seeds=seeds)]
    return rows


def sweep(rows: Sequence[Entry], text: str) -> list[Entry]:
    """Each entry once for every value, as in "embedding=64,128" or "ctr=1,0.1"."""
    name, _, values = text.partition("=")
    kinds = {"embedding": int, "batch": int, "warmup": int, "schedule": str, "precision": str, "optimizer": str}
    if name not in Config.__dataclass_fields__ or name in ("world", "agent", "seed") or not values:
        raise InputError(f"'{text}' is no sweep; write for example embedding=64,128 or ctr=1,0.1")
    try:
        converted = [kinds.get(name, float)(value) for value in values.split(",")]
    except ValueError:
        raise InputError(f"'{values}' are not values of {name}") from None
    return [
        replace(row, label=f"{row.label}, {name}={value}", config=replace(row.config, **{name: value}))
        for row in rows
        for value in converted
    ]


def reproduce(
    rows: Iterable[Entry],
    folder: Path,
    conditions: Sequence[str] = CONDITIONS,
    episodes: int = 1000,
    pairs: int = 40_000,
    say: Callable[[str], None] = lambda line: None,
    watch: Callable[[Entry, int], None] = lambda entry, step: None,
) -> dict[str, Any]:
    """Train and measure what is not there yet. Everything done is kept: stop it at any time and start it again."""
    path = folder / "results.json"
    results = load_json(path) if path.exists() else {"rows": [], "trainings": {}, "sampled": True, "pairs": pairs}
    for entry in rows:
        _check_same(results, entry, folder)
        wanted = [c for c in conditions if not _has(results, entry, c, episodes)]
        if not wanted:
            continue
        agents = _trained(entry, folder, pairs, results, say, lambda step, entry=entry: watch(entry, step))
        save_json(path, results)
        world = make(entry.config.world)
        for condition in wanted:
            trial = random_trial(world, condition, episodes, EVALUATION_SEED, entry.extras)
            scores = evaluate(agents, world, trial, EVALUATION_SEED, control=entry.control)
            for seed, score in enumerate(scores):
                cell = {"agent": entry.label, "seed": seed, "condition": condition, **score.as_dict()}
                results["rows"].append(cell | {"training": f"{entry.folder}-{seed}", "made": provenance()["commit"]})
            mean = np.mean([score.success for score in scores])
            say(f"{entry.label}, {condition}: {mean:.1%} of {episodes} episodes")
        save_json(path, results)
    write(results, folder)
    return results


def _check_same(results: dict[str, Any], entry: Entry, folder: Path) -> None:
    """Complain where the folder's figures come from a training with other settings."""
    for seed in range(entry.seeds):
        known = results["trainings"].get(f"{entry.folder}-{seed}", {"config": {}})["config"]
        asked = json.loads(json.dumps(asdict(replace(entry.config, seed=seed))))
        for name in known.keys() - {"interval"}:
            if known[name] != asked.get(name):
                raise InputError(
                    f"{folder} holds {entry.label} trained with {name}={known[name]}, not {asked.get(name)}: "
                    "ask for the same, or choose another --out"
                )


def _has(results: dict[str, Any], entry: Entry, condition: str, episodes: int) -> bool:
    """Whether a cell of the table has been measured, on as many episodes, for all its seeds."""
    cells = [row for row in results["rows"] if (row["agent"], row["condition"]) == (entry.label, condition)]
    return {row["seed"] for row in cells if row["episodes"] >= episodes} >= set(range(entry.seeds))


def _trained(
    entry: Entry,
    folder: Path,
    pairs: int,
    results: dict[str, Any],
    say: Callable[[str], None],
    watch: Callable[[int], None],
) -> list[Agent]:
    """The entry's agents, one for each seed; trained together where they are not there yet."""
    configs = [replace(entry.config, seed=seed) for seed in range(entry.seeds)]
    runs = [folder / "runs" / f"{entry.folder}-{seed}" for seed in range(entry.seeds)]
    if not all(_finished(run, config) for run, config in zip(runs, configs, strict=True)):
        data = folder / entry.data
        recipe = datasets.Recipe(entry.config.world, pairs, entry.skills, 0.1, entry.extras, 0)
        say(f"{pairs} pairs of {entry.skills[0]}-{entry.skills[1]} skills, extras: {entry.extras}")
        datasets.ensure(recipe, data)
        loaded = _load_pairs(data)
        say(f"training {entry.folder}, {entry.seeds} seeds together, {entry.config.updates} updates")
        began = time.perf_counter()
        train(configs, runs, loaded, describe(data), lambda step, metrics: watch(step))
        seconds = time.perf_counter() - began
        for run, config in zip(runs, configs, strict=True):
            last = json.loads((run / METRICS).read_text().splitlines()[-1])
            described = {"config": asdict(config), "data": describe(data), "seconds_together": seconds, "last": last}
            results["trainings"][run.name] = described | {"made": load_json(run / CONFIG)["made"]}
    return [load(run) for run in runs]


_pairs: dict[Path, Any] = {}


def _load_pairs(data: Path) -> Any:
    """The pairs of the folder last asked for, kept on the accelerator."""
    if data not in _pairs:
        _pairs.clear()
        _pairs[data] = datasets.load(data)
    return _pairs[data]


def describe(data: Path) -> dict[str, Any]:
    """What a run remembers of its demonstrations."""
    header = datasets.read_header(data)
    known = {name: header[name] for name in ("world", "pairs", "skills", "noise", "extras", "seed", "fingerprint")}
    return known | {"sha256": [entry["sha256"] for entry in header["shards"].values()]}


def _finished(run: Path, config: Config) -> bool:
    lines = (run / METRICS).read_text().splitlines() if (run / METRICS).exists() else []
    return bool(lines) and json.loads(lines[-1])["step"] >= config.updates


def write(results: dict[str, Any], folder: Path) -> None:
    """The table for people, as Markdown and as a chart."""
    save_json(folder / "results.json", results)
    files.write(folder / "table.md", markdown(results))
    chart(results, folder / "chart.png")


def labels(results: dict[str, Any]) -> list[str]:
    """The rows of the table: the ten models in the paper's order, then the others as they came."""
    there = list(dict.fromkeys(row["agent"] for row in results["rows"]))
    return [agent for agent in AGENTS if agent in there] + [label for label in there if label not in AGENTS]


def cell(results: dict[str, Any], label: str, condition: str, figure: str = "success") -> tuple[float, float, int]:
    """Mean and standard deviation over seeds in %, and how many seeds."""
    cells = [row for row in results["rows"] if (row["agent"], row["condition"]) == (label, condition)]
    values = 100 * np.array([row[figure] for row in {row["seed"]: row for row in cells}.values()])
    return (float(values.mean()), float(values.std()), len(values)) if len(values) else (float("nan"), 0.0, 0)


def markdown(results: dict[str, Any]) -> str:
    """Success beside the paper's, then how often exactly the task was done."""
    used = [c for c in dict.fromkeys(row["condition"] for row in results["rows"])]
    used.sort(key=lambda c: CONDITIONS.index(c) if c in CONDITIONS else len(CONDITIONS))
    episodes = min(row["episodes"] for row in results["rows"])
    lines = [
        f"Success in %, mean ± standard deviation over seeds, at least {episodes} episodes a cell, sampled actions, "
        "last checkpoint; the paper's figure in parentheses.",
        "",
        "| model | seeds | " + " | ".join(used) + " |",
        "|---" * (len(used) + 2) + "|",
    ]
    for label in labels(results):
        cells, seeds = [], 0
        for condition in used:
            mean, std, count = cell(results, label, condition)
            seeds = max(seeds, count)
            known = label in PAPER and condition in CONDITIONS
            paper = f" ({PAPER[label][CONDITIONS.index(condition)][0]})" if known else ""
            cells.append(f"{mean:.0f} ± {std:.0f}{paper}" if count else "")
        lines.append(f"| {label} | {seeds} | " + " | ".join(cells) + " |")
    lines += ["", "Exactly the task, nothing else until it was done, in %:", "", *lines[2:4]]
    for label in labels(results):
        exact = [cell(results, label, condition, "exact") for condition in used]
        lines.append(
            f"| {label} | {exact[0][2]} | " + " | ".join(f"{m:.0f} ± {s:.0f}" if n else "" for m, s, n in exact) + " |"
        )
    return "\n".join(lines) + "\n"


def chart(results: dict[str, Any], path: Path) -> None:
    """Bars of ours and the paper's, a panel a condition."""
    used = [c for c in CONDITIONS if any(row["condition"] == c for row in results["rows"])]
    shown = labels(results)
    figure = Figure(figsize=(2.4 * len(used) + 1.6, 0.34 * len(shown) + 1.4), layout="constrained")
    for axes, condition in zip(np.atleast_1d(figure.subplots(1, len(used), sharey=True)), used, strict=True):
        column, rows = CONDITIONS.index(condition), np.arange(len(shown))
        ours = [cell(results, label, condition) for label in shown]
        axes.barh(
            rows - 0.2, [m for m, _, _ in ours], 0.4, xerr=[s for _, s, _ in ours], color="#3d6fb0", label="planvec"
        )
        paper = [PAPER[label][column] if label in PAPER else (0, 0) for label in shown]
        axes.barh(rows + 0.2, [m for m, _ in paper], 0.4, xerr=[s for _, s in paper], color="#c9ced6", label="paper")
        axes.set(title=condition, xlim=(0, 100), yticks=rows, yticklabels=shown)
        axes.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(figure.axes)[0].invert_yaxis()
    figure.axes[-1].legend(loc="lower right", frameon=False, fontsize=8)
    figure.supxlabel("success, %")
    save_figure(path, figure)
