"""The paper's tables as data: each row is an entry, which says what to train and how to measure it."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from planvec.agents import networks_of
from planvec.errors import InputError
from planvec.tables import paper
from planvec.training.config import Config
from planvec.training.practice import practising
from planvec.training.practice_config import PracticeConfig
from planvec.training.runs import reached
from planvec.worlds import make

SETTINGS = ("seed", "samples", "interval")  # the same for a whole table
OPTIONS = {field.name for field in fields(Config)}  # of a training
KINDS = {  # of the options that can be swept, where they are not numbers with a point
    "embedding": int,
    "batch": int,
    "warmup": int,
    "schedule": str,
    "precision": str,
    "optimizer": str,
    "networks": str,
    "segments": str,
    "window": int,
    "jitter": int,
}


@dataclass(frozen=True)
class Entry:
    """A row of a table: one way of training, measured in one way."""

    label: str
    config: Config  # resolved
    practice: PracticeConfig | None = None  # what it practises when it has been trained, if it does; resolved
    skills: tuple[int, int] | None = None  # of its demonstrations' tasks; the world's own unless given
    extras: str = "discard"  # of its demonstrations and of the references it is measured on
    control: bool = False  # shown the reference of another task
    pairs: int | None = None  # of demonstrations to train on, or as much play; the table's unless given
    variant: str = ""  # of the table's world, if it is one that the row is trained and measured in
    without: tuple[str, ...] = ()  # the conditions under which it means nothing
    seeds: int = 3

    @property
    def folder(self) -> str:
        """Entries that differ in how they are measured alone share their trainings."""
        own = self.config
        usual = asdict(Config(agent=own.agent, world=own.world, segments=own.segments).resolved())
        options = {name: value for name, value in asdict(own).items() if name not in SETTINGS}
        changes = [f"{name}={value}" for name, value in options.items() if value != usual[name]]
        parts = [own.agent, self.variant, *changes, self.data.removeprefix("data")]
        if self.practice:
            world = make(self.config.world)
            usual = asdict(PracticeConfig().resolved(world))
            options = {n: value for n, value in asdict(self.practice.resolved(world)).items() if n not in SETTINGS}
            changes = [f"{name}={_short(value)}" for name, value in options.items() if value != usual[name]]
            parts += ["practised", *changes]
        return "-".join(part for part in parts if part)

    @property
    def data(self) -> str:
        """The folder of its demonstrations; variants of a world share them."""
        parts = ["data", *["play"] * self.config.plays]
        if self.skills:
            low, high = self.skills
            parts.append(f"{low}-{high}")
        if self.pairs:
            parts.append(f"{self.pairs}-pairs")
        if self.extras != "discard":
            parts.append(self.extras)
        return "-".join(parts)

    @property
    def program(self) -> tuple:
        """Equal for entries that may train together."""
        return self.config.program, self.data, self.seeds

    def seeded(self, seed: int) -> Config:
        """How one of its agents is trained."""
        config = replace(self.config, seed=seed)
        return practising(config) if self.practice else config

    def practised(self, seed: int) -> PracticeConfig:
        """How one of its agents practises."""
        assert self.practice, "only if it does"
        return replace(self.practice, seed=seed)

    @property
    def alone(self) -> bool:
        """Whether its agents are trained and scored one after the other."""
        _, usual = networks_of(self.config.agent, make(self.config.world).space, self.config.networks)
        return usual.alone

    def name(self, seed: int) -> str:
        """What the training of one of its agents is called."""
        return f"{self.folder}-{seed}"

    def run(self, table: Path, seed: int) -> Path:
        """The folder of that training."""
        return table / "runs" / self.name(seed)

    @property
    def imitated(self) -> "Entry":
        """The entry of the agents that it begins to practise with."""
        return replace(self, practice=None)

    @property
    def steps(self) -> int:
        """Updates of a training, or rounds of practice."""
        return self.practice.rounds if self.practice else self.config.updates

    def unfinished(self, table: Path) -> dict[int, bool]:
        """The seeds that have not been trained to the end, and whether they have been begun."""
        steps = {seed: reached(self.run(table, seed)) for seed in range(self.seeds)}
        return {seed: step is not None for seed, step in steps.items() if (step or 0) < self.steps}


def _short(value: object) -> str:
    """A value in the name of a folder: itself, or where it is long a few letters that stand for it."""
    text = str(value)
    return text if len(text) <= 20 else hashlib.sha256(text.encode()).hexdigest()[:6]


TEN = tuple(paper.TABLES["crafting"])  # all of the paper's models
MODELS = {"doom": ("naive", "tecnet", "cpv-plain", "cpv-full")}  # of a world's table, where it has not all ten
CONTROL: dict[str, Any] = {"agent": "cpv-full", "what": "reference of another task", "control": True}
FURTHER: dict[str, tuple[dict[str, Any], ...]] = {  # rows beside the models', where there are others than the control
    "crafting": (
        CONTROL,
        {"agent": "cpv-full", "what": "extras kept", "extras": "keep"},
        {"agent": "cpv-full", "what": "trained on 1-4 skills", "skills": (1, 4), "seeds": 1},
        {"agent": "te-full", "what": "extras kept", "extras": "keep"},
    ),
    "doom": (
        CONTROL | {"without": ("2+2",)},  # always all four waypoints: there is no other task
        {"agent": "cpv-full", "what": "no flags", "variant": "noflags"},
        {"agent": "naive", "what": "no flags", "variant": "noflags"},
    ),
}


def models(world: str) -> tuple[str, ...]:
    """The agents of a world's table: all ten of the paper's, unless it has fewer there."""
    return MODELS.get(world, TEN)


def entries(
    config: Config, agents: Sequence[str], seeds: int, extra_rows: bool, extras: str = "discard"
) -> list[Entry]:
    """A table of the paper: the agents asked for; and what else is reported of some of them."""
    ending = ", extras kept" if extras == "keep" else ""
    configs = [replace(config, agent=agent).resolved() for agent in agents]
    rows = [Entry(own.agent + ending, own, extras=extras, seeds=seeds) for own in configs]
    if extra_rows:
        further = FURTHER.get(config.world, (CONTROL,))
        rows += [_further_row(config, **{"seeds": seeds, **row}) for row in further if row["agent"] in agents]
    return rows


def _further_row(config: Config, agent: str, what: str, variant: str = "", **how: Any) -> Entry:
    """A row of FURTHER."""
    world = f"{config.world}-{variant}" if variant else config.world
    own = replace(config, agent=agent, world=world).resolved()
    return Entry(f"{agent}, {what}", own, variant=variant, **how)


def sweep(rows: Sequence[Entry], text: str) -> list[Entry]:
    """Each entry once for every value, as in "embedding=64,128" or "ctr=1,0.1"."""
    name, _, values = text.partition("=")
    fixed = ("world", "agent", *SETTINGS)
    if name not in OPTIONS or name in fixed or not values:
        raise InputError(f"'{text}' is no sweep; write for example embedding=64,128 or ctr=1,0.1")
    kind = KINDS.get(name, float)
    try:
        converted = [kind(value) for value in values.split(",")]
    except ValueError:
        raise InputError(f"'{values}' are not values of {name}") from None
    return [
        replace(row, label=f"{row.label}, {name}={value}", config=replace(row.config, **{name: value}).resolved())
        for row in rows
        for value in converted
    ]
