"""The paper's tables: what to train and to measure, as data; our figures beside the paper's."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from planvec.agents import AGENTS, Agent
from planvec.data import folders
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.evaluation.scores import evaluate, random_trial
from planvec.io import files
from planvec.io.checkpoints import load_json, save_json
from planvec.io.provenance import commit
from planvec.media.pictures import save_figure
from planvec.tables import paper
from planvec.tasks import parse_condition
from planvec.training.config import Config
from planvec.training.loading import load
from planvec.training.loop import train
from planvec.training.runs import CONFIG, reached, read_metrics
from planvec.worlds import make
from planvec.worlds.protocol import World

Watch = Callable[[str, int, int], None]  # told what is being done, how much of it is, and of how much
EVALUATION_SEED = 1  # of the references and scenes, the same for all agents


@dataclass(frozen=True)
class Entry:
    """A row of a table: one way of training, measured in one way."""

    label: str
    config: Config  # resolved
    skills: tuple[int, int] | None = None  # of its demonstrations' tasks; the world's own unless given
    extras: str = "discard"
    control: bool = False
    without: tuple[str, ...] = ()  # the conditions under which it means nothing
    seeds: int = 3

    @property
    def folder(self) -> str:
        """Entries that differ in how they are measured alone share their trainings."""
        plain = Config(agent=self.config.agent, world=self.config.world).resolved()
        changed = {k: v for k, v in asdict(self.config).items() if v != getattr(plain, k) and k not in SETTINGS}
        options = [f"{name}={value}" for name, value in changed.items()]
        variant = self.config.world.partition("-")[2]
        parts = [self.config.agent, variant, *options, self.data.removeprefix("data")]
        return "-".join(filter(None, parts))

    @property
    def data(self) -> str:
        """The folder of its demonstrations; variants of a world share them."""
        skills = "" if self.skills is None else "-{}-{}".format(*self.skills)
        extras = "" if self.extras == "discard" else f"-{self.extras}"
        return "data" + skills + extras

    @property
    def program(self) -> tuple:
        """Equal for entries that may train together."""
        return self.config.program, self.data, self.seeds

    def seeded(self, seed: int) -> Config:
        return replace(self.config, seed=seed)

    def run(self, table: Path, seed: int) -> Path:
        """The folder of one training."""
        return table / "runs" / f"{self.folder}-{seed}"

    def unfinished(self, table: Path) -> dict[int, bool]:
        """The seeds that have not been trained to the end, and whether they have been begun."""
        steps = {seed: reached(self.run(table, seed)) for seed in range(self.seeds)}
        return {seed: step is not None for seed, step in steps.items() if (step or 0) < self.config.updates}


SETTINGS = ("seed", "samples", "interval")  # the same for a whole table


MODELS = {"doom": ("naive", "tecnet", "cpv-plain", "cpv-full")}  # of a world's table, where it has not all ten
FURTHER = {  # rows beside the models', by world: the agent, what is different about it, and how
    "crafting": (
        ("cpv-full", "reference of another task", {"control": True}),
        ("cpv-full", "extras kept", {"extras": "keep"}),
        ("cpv-full", "trained on 1-4 skills", {"skills": (1, 4), "seeds": 1}),
        ("te-full", "extras kept", {"extras": "keep"}),
    ),
    "tabletop": (("cpv-full", "reference of another task", {"control": True}),),
    "doom": (
        ("cpv-full", "reference of another task", {"control": True, "without": ("2+2",)}),  # that is all there are
        ("cpv-full", "no flags", {"world": "doom-noflags"}),
        ("naive", "no flags", {"world": "doom-noflags"}),
    ),
}


def entries(
    config: Config, agents: Sequence[str], seeds: int, extra_rows: bool, extras: str = "discard"
) -> list[Entry]:
    """A table of the paper: the agents asked for; and what else is reported of some of them."""
    kept = ", extras kept" if extras == "keep" else ""
    configs = [replace(config, agent=agent).resolved() for agent in agents]
    rows = [Entry(own.agent + kept, own, extras=extras, seeds=seeds) for own in configs]
    further = FURTHER[config.world] if extra_rows else ()
    for agent, what, how in further:
        if agent in agents:
            own = {name: how[name] for name in how if name in Config.__dataclass_fields__}
            rest = {"seeds": seeds} | {name: how[name] for name in how if name not in own}
            rows.append(Entry(f"{agent}, {what}", replace(config, agent=agent, **own).resolved(), **rest))
    return rows


def sweep(rows: Sequence[Entry], text: str) -> list[Entry]:
    """Each entry once for every value, as in "embedding=64,128" or "ctr=1,0.1"."""
    name, _, values = text.partition("=")
    kinds = {
        "embedding": int,
        "batch": int,
        "warmup": int,
        "schedule": str,
        "precision": str,
        "optimizer": str,
        "networks": str,
    }
    if name not in Config.__dataclass_fields__ or name in ("world", "agent", *SETTINGS) or not values:
        raise InputError(f"'{text}' is no sweep; write for example embedding=64,128 or ctr=1,0.1")
    try:
        converted = [kinds.get(name, float)(value) for value in values.split(",")]
    except ValueError:
        raise InputError(f"'{values}' are not values of {name}") from None
    return [
        replace(row, label=f"{row.label}, {name}={value}", config=replace(row.config, **{name: value}).resolved())
        for row in rows
        for value in converted
    ]


def reproduce(
    rows: Iterable[Entry],
    folder: Path,
    conditions: Sequence[str],
    episodes: int = 1000,
    pairs: int | None = None,
    say: Callable[[str], None] = lambda line: None,
    watch: Watch = lambda what, done, total: None,
) -> dict[str, Any]:
    """Train and measure what is not there yet. Everything done is kept: stop it at any time and start it again.

    The entries are of one world, or of variants of the first one's that store the same demonstrations; `pairs` is how
    many of them to train on, if not as many as usual. `watch` is told what is being done, and how far it is.
    """
    rows = list(rows)
    world = make(rows[0].config.world)
    if episodes < 1 or rows[0].seeds < 1:
        raise InputError(f"measure at least one seed on one episode; got {rows[0].seeds} on {episodes}")
    conditions = [condition.strip() for condition in conditions]
    list(map(parse_condition, conditions))  # complains before anything is trained
    path = folder / "results.json"
    pairs = world.pairs if pairs is None else pairs
    new = {"world": world.name, "rows": [], "trainings": {}, "sampled": True, "pairs": pairs}
    results = load_json(path) if path.exists() else new
    if results["pairs"] != pairs:
        raise InputError(f"{folder} holds trainings on {results['pairs']} pairs, not {pairs}; choose another --out")
    for entry in rows:
        _check_same(results, entry, folder)
    missing = {entry: _missing(results, entry, conditions, episodes) for entry in rows}
    missing = {entry: wanted for entry, wanted in missing.items() if wanted}
    for entry, wanted in missing.items():
        agents = _trained(entry, missing, folder, pairs, results, say, watch)
        save_json(path, results)
        world = make(entry.config.world)
        watch(f"scoring {entry.label}", 0, len(wanted))
        for number, condition in enumerate(wanted, start=1):
            trial = random_trial(world, condition, episodes, EVALUATION_SEED, entry.extras)
            scores = evaluate(agents, world, trial, EVALUATION_SEED, control=entry.control)
            for seed, score in enumerate(scores):
                place = {"agent": entry.label, "seed": seed, "condition": condition}
                results["rows"] = [row for row in results["rows"] if not place.items() <= row.items()]
                made = {"training": f"{entry.folder}-{seed}", "made": commit()}
                results["rows"].append(place | score.as_dict() | made)
            save_json(path, results)
            mean = np.mean([score.success for score in scores])
            say(f"{entry.label}, {condition}: {mean:.1%} of {episodes} episodes")
            watch(f"scoring {entry.label}", number, len(wanted))
        write(results, folder)
    return results


def _check_same(results: dict[str, Any], entry: Entry, folder: Path) -> None:
    """Complain where the folder's figures come from a training with other settings."""
    for seed in range(entry.seeds):
        training = results["trainings"].get(f"{entry.folder}-{seed}")
        if training is None:
            continue
        known = asdict(Config(**training["config"]).resolved())
        for name, asked in asdict(entry.seeded(seed)).items():
            if name != "interval" and known[name] != asked:
                raise InputError(
                    f"{folder} holds {entry.label} trained with {name}={known[name]}, not {asked}: "
                    "ask for the same, or choose another --out"
                )


def _missing(results: dict[str, Any], entry: Entry, conditions: Sequence[str], episodes: int) -> list[str]:
    """The conditions under which a row has not been measured, on as many episodes, for all its seeds."""
    cells = [row for row in results["rows"] if row["agent"] == entry.label and row["episodes"] >= episodes]
    known = {(row["condition"], row["seed"]) for row in cells}
    wanted = [condition for condition in conditions if condition not in entry.without]
    return [condition for condition in wanted if not known >= {(condition, seed) for seed in range(entry.seeds)}]


def _trained(
    entry: Entry,
    others: Iterable[Entry],
    folder: Path,
    pairs: int,
    results: dict[str, Any],
    say: Callable[[str], None],
    watch: Watch,
) -> list[Agent]:
    """The entry's agents, one for each seed. Where they are not there yet they train, with the others that can."""
    if seeds := entry.unfinished(folder):
        data = folder / entry.data
        skills = entry.skills or make(entry.config.world).sizes
        recipe = folders.Recipe(entry.config.world, pairs, skills, 0.1, entry.extras, 0)
        say(f"{pairs} pairs of {skills[0]}-{skills[1]} skills, extras: {entry.extras}")
        folders.ensure(recipe, data, lambda done: watch("collecting pairs", done, pairs))
        loaded = _load_pairs(data, make(entry.config.world), partial(watch, "loading steps"))
        kinds = {one.folder: one for one in [entry, *others] if one.program == entry.program}
        kinds = {name: one for name, one in kinds.items() if one.unfinished(folder) == seeds}
        several = f"{len(seeds)} seeds of each together, " if len(seeds) > 1 else ""
        say(f"training {'; '.join(one.label for one in kinds.values())}: {several}{entry.config.updates} updates")
        trainings = [(one.run(folder, seed), one.seeded(seed)) for seed in seeds for one in kinds.values()]
        runs, configs = zip(*trainings, strict=True)
        began = time.perf_counter()
        label = f"training {entry.label}"
        updates = entry.config.updates
        train(configs, runs, loaded, describe(data), tick=lambda step: watch(label, step, updates))
        together = {"trainings": len(runs), "seconds": time.perf_counter() - began}
        results["trainings"] |= {run.name: _described(run) | {"together": together} for run in runs}
    runs = [entry.run(folder, seed) for seed in range(entry.seeds)]
    results["trainings"] = {run.name: _described(run) for run in runs} | results["trainings"]
    return list(map(load, runs))


def _described(run: Path) -> dict[str, Any]:
    """What the results tell of a training."""
    return load_json(run / CONFIG) | {"last": read_metrics(run)[-1]}


_pairs: dict[Path, PairSet] = {}


def _load_pairs(data: Path, world: World, progress: Callable[[int, int], None]) -> PairSet:
    """The pairs of the folder last asked for, kept on the accelerator; as they are seen in a variant of their world."""
    if data not in _pairs:
        _pairs.clear()
        _pairs[data] = folders.load(data, world, progress)
    return replace(_pairs[data], world=world)


def describe(data: Path) -> dict[str, Any]:
    """What a run remembers of its demonstrations."""
    header = folders.read_header(data)
    known = {name: header[name] for name in ("world", "pairs", "skills", "noise", "extras", "seed", "fingerprint")}
    return known | {"sha256": [entry["sha256"] for entry in header["shards"].values()]}


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
    """Mean and standard deviation (n − 1) over seeds in %, and how many seeds. Of one seed, the deviation is NaN."""
    cells = [row for row in results["rows"] if (row["agent"], row["condition"]) == (label, condition)]
    values = 100 * np.array([row[figure] for row in cells])
    deviation = values.std(ddof=1) if len(values) > 1 else np.nan
    return (float(values.mean()), float(deviation), len(values)) if len(values) else (np.nan, np.nan, 0)


def conditions_of(results: dict[str, Any]) -> list[str]:
    """The columns: those of the world's table, then any others as they came."""
    known, there = make(results["world"]).conditions, dict.fromkeys(row["condition"] for row in results["rows"])
    return [c for c in known if c in there] + [c for c in there if c not in known]


def markdown(results: dict[str, Any]) -> str:
    """Success beside the paper's, then how often exactly the task was done."""
    episodes = min(row["episodes"] for row in results["rows"])
    broken = sum(row.get("diverged", 0) * row["episodes"] for row in results["rows"])
    lines = [
        f"Success in %, mean ± standard deviation over seeds, at least {episodes} episodes a cell, sampled actions, "
        "last checkpoint; the paper's figure in parentheses.",
    ]
    if broken:
        lines.append(f"The simulator broke down in {broken:.0f} episodes, which count as failures.")
    lines += [
        "",
        *_table(results, "success"),
        "",
        "Exactly the task, nothing else until it was done, in %:",
        "",
        *_table(results, "exact"),
    ]
    return "\n".join(lines) + "\n"


def _table(results: dict[str, Any], figure: str) -> Iterator[str]:
    """A line of Markdown for each row of the table."""
    used = conditions_of(results)
    yield "| model | seeds | " + " | ".join(used) + " |"
    yield "|---" * (len(used) + 2) + "|"
    for label in labels(results):
        cells = []
        seeds = 0
        for condition in used:
            mean, deviation, count = cell(results, label, condition, figure)
            seeds = max(seeds, count)
            known = paper.figure(results["world"], label, condition) if figure == "success" else None
            shown = f"{mean:.0f}" if count else ""
            shown += f" ± {deviation:.0f}" if count > 1 else ""
            shown += f" ({known.mean:g})" if count and known else ""
            cells.append(shown)
        yield f"| {label} | {seeds} | " + " | ".join(cells) + " |"


def chart(results: dict[str, Any], path: Path) -> None:
    """Bars of ours and the paper's, a panel a condition."""
    used, shown = conditions_of(results), labels(results)
    figure = Figure(figsize=(2.4 * len(used) + 1.6, 0.34 * len(shown) + 1.4), layout="constrained")
    for axes, condition in zip(np.atleast_1d(figure.subplots(1, len(used), sharey=True)), used, strict=True):
        rows = np.arange(len(shown))
        ours = [cell(results, label, condition) for label in shown]
        means, deviations, _ = np.nan_to_num(np.array(ours).T)
        axes.barh(rows - 0.2, means, 0.4, xerr=deviations, color="#3d6fb0", label="planvec")
        theirs = [paper.figure(results["world"], label, condition) or (0, 0) for label in shown]
        axes.barh(
            rows + 0.2, [m for m, _ in theirs], 0.4, xerr=[s or 0 for _, s in theirs], color="#c9ced6", label="paper"
        )
        axes.set(title=condition, xlim=(0, 100), yticks=rows, yticklabels=shown)
        axes.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(figure.axes)[0].invert_yaxis()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
    figure.supxlabel("success, %")
    save_figure(path, figure)
