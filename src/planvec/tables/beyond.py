"""Past the paper, as data: what is trained, what it practises, and under which conditions it is measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planvec.errors import InputError
from planvec.tables.entries import Entry
from planvec.training.config import Config
from planvec.training.practice_config import PracticeConfig
from planvec.worlds import make

EIGHT = "+".join("1" * 8)
PRACTICE = PracticeConfig(steps=60e6)
USUAL = PracticeConfig()  # all of it left to the world
SHORT = "2,3,4,2+2,4+4"  # sums of two at most
ALL_FOUR = "2+2"  # of the waypoints that there are: nobody can be shown another task
ROOMS = ("1", "2", "1+1", ALL_FOUR, "1+1+1")


@dataclass(frozen=True)
class Row:
    """A row before its world and its seeds are known."""

    label: str
    agent: str = "potential"
    training: tuple[tuple[str, Any], ...] = ()  # options of a Config that are not the model's own
    practice: PracticeConfig | None = None
    variant: str = ""  # of the table's world, if it is one that the row is trained and measured in
    how: tuple[tuple[str, Any], ...] = ()  # what an Entry says beside


@dataclass(frozen=True)
class Plan:
    """A table past the paper."""

    world: str
    conditions: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: int


def _both(
    label: str,
    *training: tuple[str, Any],
    agent: str = "potential",
    practice: PracticeConfig = PRACTICE,
    variant: str = "",
    **how: Any,
) -> tuple[Row, Row]:
    """Trained in some way, and having practised after that."""
    by_imitation = Row(label, agent, training, variant=variant, how=tuple(how.items()))
    return by_imitation, replace(by_imitation, label=f"{label}, practised", practice=practice)


def _simulated(*without: str) -> tuple[Row, ...]:
    """The rows of a world with a simulator. `without`: conditions under which the control means nothing."""
    imitated, practised = _both("potential", practice=USUAL)
    how = (("control", True), ("without", without))
    return imitated, practised, replace(practised, label=f"{practised.label}, reference of another task", how=how)


POTENTIAL, PRACTISED = _both("potential")
CONTROL = ("control", True)
KEPT = ("extras", "keep")
PLAY = ("segments", "random")

TABLES = {
    "beyond": Plan(
        world="crafting",
        conditions=("4", "8", "16", "32", "64", "1+1", "2+2", "4+4", "8+8", "16+16", EIGHT),
        rows=(
            POTENTIAL,
            PRACTISED,
            replace(PRACTISED, label="potential, practised, reference of another task", how=(CONTROL,)),
            Row("cpv-full", "cpv-full"),
            *_both("potential, extras kept", extras="keep"),
            replace(
                PRACTISED,
                label="potential, practised in scenes drawn blindly",
                practice=replace(PRACTICE, scenes="blind"),
                how=(("seeds", 1),),
            ),
        ),
        seeds=3,
    ),
    "beyond-play": Plan(
        world="crafting",
        conditions=("4", "8", "16", "1+1", "2+2", "4+4"),
        rows=(
            *_both("play", PLAY),
            *_both("play, without jitter", PLAY, ("jitter", 0)),
            *_both("play, without the sparse penalty", PLAY, ("sparse", 0.0)),
            *_both("play, without either", PLAY, ("jitter", 0), ("sparse", 0.0)),
            *_both("play, with cancelling", PLAY, ("cancelling", 0.25)),
        ),
        seeds=3,
    ),
    "beyond-parts": Plan(
        world="crafting",
        conditions=("4", "16", "64", "1+1", "4+4", EIGHT),
        rows=(
            POTENTIAL,
            PRACTISED,
            *_both("without cancelling", ("cancelling", 0.0)),
            *_both("without the squared Pair loss", ("alike", 0.0)),
            *_both("without a stop", ("stop", 0.0)),
            *_both("with the paper's g", ("networks", "paper-g")),
            *_both("with the paper's policy", ("networks", "paper-policy")),
            *_both("cpv-full", agent="cpv-full"),
            replace(PRACTISED, label="practised, labels the reward", practice=replace(PRACTICE, reward="labels")),
            replace(PRACTISED, label="practised, sums of two at most", practice=replace(PRACTICE, sums=SHORT)),
            *_both("400 pairs", pairs=400),
            *_both("4,000 pairs", pairs=4000),
        ),
        seeds=1,
    ),
    "beyond-tabletop": Plan(
        world="tabletop",
        conditions=("1", "2", "1+1", "1+1+1"),
        rows=_simulated(),
        seeds=3,
    ),
    "beyond-doom": Plan(
        world="doom",
        conditions=ROOMS,
        rows=(*_simulated(ALL_FOUR), *_both("potential, no flags", practice=USUAL, variant="noflags")),
        seeds=3,
    ),
    "beyond-doom-rooms": Plan(
        world="doom-rooms",
        conditions=ROOMS,
        rows=_simulated(ALL_FOUR),
        seeds=3,
    ),
}


def entries(
    name: str, config: Config, practice: dict[str, Any], seeds: int | None = None, labels: Sequence[str] = ()
) -> list[Entry]:
    """The rows of a table, or those with these labels; trained as `config` says where they do not say otherwise.
    `practice`: options for all that practise."""
    plan = TABLES[name]
    known = [row.label for row in plan.rows]
    for label in labels:
        if label not in known:
            raise InputError(f"'{label}' is no row of {name}; there is {'; '.join(known)}")
    return [_entry(row, plan, config, practice, seeds) for row in plan.rows if not labels or row.label in labels]


def _entry(row: Row, plan: Plan, config: Config, practice: dict[str, Any], seeds: int | None) -> Entry:
    world = f"{plan.world}-{row.variant}" if row.variant else plan.world
    own = replace(config, world=world, agent=row.agent, **dict(row.training)).resolved()
    practised = replace(row.practice, **practice).resolved(make(world)) if row.practice else None
    how: dict[str, Any] = {"seeds": plan.seeds, "variant": row.variant} | dict(row.how)
    if seeds:
        how["seeds"] = min(seeds, how["seeds"])
    return Entry(row.label, own, practised, **how)
