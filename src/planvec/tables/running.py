"""How a table comes about: what is missing is trained and scored, and everything done is kept."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from planvec.agents import Agent
from planvec.data import folders
from planvec.data.samples import Samples
from planvec.errors import InputError
from planvec.evaluation.scores import Score, evaluate
from planvec.io.checkpoints import load_json, save_json
from planvec.io.provenance import commit
from planvec.tables.entries import Entry
from planvec.tables.reporting import write
from planvec.tasks import parse_condition
from planvec.training.config import Config
from planvec.training.loading import load
from planvec.training.loop import train
from planvec.training.practice import practise
from planvec.training.practice_config import PracticeConfig
from planvec.training.runs import CONFIG, read_metrics
from planvec.worlds import make
from planvec.worlds.protocol import World
from planvec.worlds.trials import OneTask, random_trial

Say = Callable[[str], None]  # told in a line for people what was begun, or what came out
Watch = Callable[[str, int, int], None]  # told what is being done, how much of it is, and of how much
EVALUATION_SEED = 1  # of the references and scenes, the same for all agents


class Demonstrations:
    """The pairs of the folder last asked for, or its play, which stay on the accelerator: many trainings in a row share
    them."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.samples: Samples | None = None

    def load(self, folder: Path, world: World, progress: Callable[[int, int], None]) -> Samples:
        """As they are seen in `world`, which may be a variant of the one that they were first loaded for."""
        if self.samples is None or folder != self.folder:
            self.samples = None  # makes room for the others
            self.samples = folders.load_any(folder, world, progress)
            self.folder = folder
        return replace(self.samples, world=world)


@dataclass
class Table:
    """A table under way: where it is kept, what is in it so far, and whom to tell."""

    folder: Path
    world: str
    pairs: int  # to train on
    say: Say
    watch: Watch
    results: dict[str, Any]  # what results.json holds
    demonstrations: Demonstrations = field(default_factory=Demonstrations)

    def save(self) -> None:
        save_json(self.folder / "results.json", self.results)


def reproduce(
    rows: Iterable[Entry],
    folder: Path,
    conditions: Sequence[str],
    episodes: int = 1000,
    pairs: int | None = None,
    say: Say = lambda line: None,
    watch: Watch = lambda what, done, total: None,
) -> dict[str, Any]:
    """Train and measure what is not there yet. Everything done is kept: stop it at any time and start it again.

    The entries are of one world, or of variants of the first one's that store the same demonstrations; `pairs` is how
    many of them to train on, if not as many as usual. `watch` is told what is being done, and how far it is.
    """
    rows = list(rows)
    conditions = [condition.strip() for condition in conditions]
    if episodes < 1 or rows[0].seeds < 1:
        raise InputError(f"measure at least one seed on one episode; got {rows[0].seeds} on {episodes}")
    for condition in conditions:
        parse_condition(condition)  # complains before anything is trained
    table = _open(rows, folder, pairs, say, watch)
    wanted = {entry: _missing(table.results, entry, conditions, episodes) for entry in rows}
    unmeasured = [entry for entry in rows if wanted[entry]]
    for entry in unmeasured:
        _train(table, entry, unmeasured)
        table.save()
        _score(table, entry, wanted[entry], episodes)
        write(table.results, folder)
    return table.results


def _open(rows: Sequence[Entry], folder: Path, pairs: int | None, say: Say, watch: Watch) -> Table:
    """The table in a folder, or a new one. Complains where the folder's is of other trainings than the rows'."""
    world = rows[0].config.world
    pairs = make(world).pairs if pairs is None else pairs
    path = folder / "results.json"
    results = {"world": world, "rows": [], "trainings": {}, "sampled": True, "pairs": pairs}
    if path.exists():
        results = load_json(path)
    if results["pairs"] != pairs:
        raise InputError(f"{folder} holds trainings on {results['pairs']} pairs, not {pairs}; choose another --out")
    for entry in rows:
        _check_same(results, entry, folder)
    return Table(folder, world, pairs, say, watch, results)


def _check_same(results: dict[str, Any], entry: Entry, folder: Path) -> None:
    """Complain where the folder's figures come from a training with other settings."""
    for seed in range(entry.seeds):
        if entry.name(seed) not in results["trainings"]:
            continue
        described = results["trainings"][entry.name(seed)]
        known = asdict(Config(**described["config"]).resolved())
        if "practice" in described:  # older ones do not name all there is to say
            usual = PracticeConfig().resolved(make(entry.config.world))
            known |= asdict(usual) | described["practice"]
        wanted = asdict(entry.seeded(seed)) | (asdict(entry.practised(seed)) if entry.practice else {})
        for name, asked in wanted.items():
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


def _train(table: Table, entry: Entry, others: Sequence[Entry]) -> None:
    """Train the entry's agents where they are not there yet, together with the others' that can; tell the results."""
    if entry.imitated.unfinished(table.folder):
        _train_together(table, _partners(table, entry.imitated, [other.imitated for other in others]))
    if entry.practice:
        for seed in entry.unfinished(table.folder):
            _practise(table, entry, entry.practised(seed), seed)
    for seed in range(entry.seeds):
        if entry.name(seed) not in table.results["trainings"]:
            table.results["trainings"][entry.name(seed)] = _described(entry.run(table.folder, seed))


def _train_together(table: Table, together: Sequence[Entry]) -> None:
    """Train what the first of the entries lacks, with the same of the others."""
    entry = together[0]
    world = make(entry.config.world)
    data = _collect(table, entry, world)
    samples = table.demonstrations.load(data, world, partial(table.watch, "loading steps"))
    trainings = [(one, seed) for seed in entry.unfinished(table.folder) for one in together]
    for some in [[one] for one in trainings] if entry.alone else [trainings]:
        _train_some(table, some, samples, folders.describe(data, world))


def _train_some(
    table: Table, trainings: Sequence[tuple[Entry, int]], samples: Samples, described: dict[str, Any]
) -> None:
    """Train in one program: seed by seed, each with the same entries."""
    entry = trainings[0][0]
    updates = entry.config.updates
    seeds = {seed for _, seed in trainings}
    labels = dict.fromkeys(one.label for one, _ in trainings)
    configs = [one.seeded(seed) for one, seed in trainings]
    runs = [one.run(table.folder, seed) for one, seed in trainings]
    several = f"{len(seeds)} seeds of each together, " if len(seeds) > 1 else ""
    table.say(f"training {'; '.join(labels)}: {several}{updates} updates")

    def tick(step: int) -> None:
        table.watch(f"training {entry.label}", step, updates)

    began = time.perf_counter()
    train(configs, runs, samples, described, tick=tick)
    took = {"trainings": len(runs), "seconds": time.perf_counter() - began}
    for run in runs:
        table.results["trainings"][run.name] = _described(run) | {"together": took}


def _practise(table: Table, entry: Entry, practice: PracticeConfig, seed: int) -> None:
    """Let one of the entry's agents practise."""
    world = make(entry.config.world)
    data = _collect(table, entry, world)
    samples = table.demonstrations.load(data, world, partial(table.watch, "loading steps"))
    run = entry.run(table.folder, seed)
    agent = load(entry.imitated.run(table.folder, seed))
    table.say(f"practising {entry.label}, seed {seed}: {practice.rounds} rounds")

    def tick(step: int) -> None:
        table.watch(f"practising {entry.label}", step, practice.rounds)

    began = time.perf_counter()
    described = folders.describe(data, world)
    practise(entry.seeded(seed), practice, agent, run, samples, described, table.say, tick=tick)
    table.results["trainings"][run.name] = _described(run) | {"seconds": time.perf_counter() - began}


def _collect(table: Table, entry: Entry, world: World) -> Path:
    """The folder of the entry's demonstrations, collected in the table's world unless they are there already."""
    data = table.folder / entry.data
    pairs = entry.pairs or table.pairs
    recipe = folders.usual(table.world, world, entry.config.plays, pairs, entry.skills, entry.extras)
    low, high = recipe.skills
    unit = folders.HELD[recipe.format].unit
    table.say(f"{recipe.count} {unit} of {low}-{high} skills, extras: {entry.extras}")
    folders.ensure(recipe, data, make(table.world), lambda done: table.watch(f"collecting {unit}", done, recipe.count))
    return data


def _partners(table: Table, entry: Entry, others: Sequence[Entry]) -> list[Entry]:
    """The entries to train together: this one, and those whose same seeds can go through the same program.

    Of several that share a training there is only the first.
    """
    unfinished = entry.unfinished(table.folder)
    alike: dict[str, Entry] = {}
    for one in [entry, *others]:
        if one.program == entry.program and one.unfinished(table.folder) == unfinished:
            alike.setdefault(one.folder, one)
    return list(alike.values())


def _described(run: Path) -> dict[str, Any]:
    """What the results tell of a training."""
    return load_json(run / CONFIG) | {"last": read_metrics(run)[-1]}


def _score(table: Table, entry: Entry, conditions: Sequence[str], episodes: int) -> None:
    """Fill the entry's cells, one condition after another."""
    world = make(entry.config.world)
    agents = [load(entry.run(table.folder, seed)) for seed in range(entry.seeds)]
    table.watch(f"scoring {entry.label}", 0, len(conditions))
    for number, condition in enumerate(conditions, start=1):
        try:
            scores = score(entry, agents, world, condition, episodes)
        except OneTask as reason:
            table.say(f"{entry.label}, {condition}: left out, {reason}")
        else:
            _put(table.results, entry, condition, scores)
            table.save()
            mean = np.mean([one.success for one in scores])
            table.say(f"{entry.label}, {condition}: {mean:.1%} of {episodes} episodes")
        table.watch(f"scoring {entry.label}", number, len(conditions))


def score(entry: Entry, agents: Sequence[Agent], world: World, condition: str, episodes: int) -> list[Score]:
    """One cell of the table, for each of the entry's agents: measured in the entry's way."""
    trial = random_trial(world, condition, episodes, EVALUATION_SEED, entry.extras)
    some = [[agent] for agent in agents] if entry.alone else [agents]
    return [one for group in some for one in evaluate(group, world, trial, EVALUATION_SEED, control=entry.control)]


def _put(results: dict[str, Any], entry: Entry, condition: str, scores: Sequence[Score]) -> None:
    """Write a cell, in place of what it held before."""
    for seed, one in enumerate(scores):
        place = {"agent": entry.label, "seed": seed, "condition": condition}
        results["rows"] = [row for row in results["rows"] if not place.items() <= row.items()]
        results["rows"].append(place | one.as_dict() | {"training": entry.name(seed), "made": commit()})
