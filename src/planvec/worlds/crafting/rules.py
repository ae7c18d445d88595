"""What there is in the crafting world and what happens to it: data, and the tables made from it.

To add a kind of object, add a `Thing`; to add something that can be done, add a `Rule`.
The step function, both renderers, the expert and the judge read the tables and need no change.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from jax import Array

from planvec.errors import InputError

SIZE = 10  # the board is SIZE × SIZE cells, numbered row by row
CELLS = SIZE * SIZE
ACTIONS = ("up", "down", "left", "right", "pickup", "drop")
UP, DOWN, LEFT, RIGHT, PICKUP, DROP = range(6)
NOTHING = 0  # an empty cell, or empty hands: always the first thing


AnyArray: TypeAlias = Array | np.ndarray  # on the accelerator, or stored


class State(NamedTuple):
    """102 bytes."""

    cells: AnyArray  # uint8 [100], what lies where, row by row
    agent: AnyArray  # uint8 [], the agent's cell
    held: AnyArray  # uint8 [], what is in hand


@dataclass(frozen=True)
class Thing:
    """A kind of object, and how it looks to the agent: one lit pixel of its cell's 3×3."""

    name: str
    colour: tuple[int, int, int] = (0, 0, 0)
    """What the sprite adds to its tile: at most 127 a channel, so that sprites in one cell add up within a byte."""
    pixel: int = 0
    """Which of the 3×3 pixels it lights, 0…8, row by row."""
    portable: bool = False
    """Whether it can be picked up."""
    solid: bool = False
    """Whether it keeps the agent out, where no rule says otherwise."""
    least: int = 1
    """How many every scene has at least."""
    share: int = 0
    """Its weight when a scene is filled up with random things."""


@dataclass(frozen=True)
class Rule:
    """Entering a cell that holds `cell` with `held` in hand is `skill`, and leaves `becomes` there."""

    skill: str
    held: str | None  # None: whatever is in hand, or nothing
    cell: str
    becomes: str = "nothing"


class Outcome(NamedTuple):
    """What an action does, for everything that may be in hand and in the cell it concerns; each [kind, held, cell]."""

    held: np.ndarray  # what is in hand afterwards
    cell: np.ndarray  # what lies in the cell afterwards
    enters: np.ndarray  # whether the agent ends up in that cell
    skill: np.ndarray  # the skill that was done, or `no_skill`


MOVE, STAY, TAKE, PUT = range(4)  # kinds of action: a step to another cell, one against the edge, pickup, drop


@dataclass(frozen=True)
class Rules:
    """A set of things and rules, checked, with everything that the world looks up in them."""

    things: tuple[Thing, ...]
    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        names = [thing.name for thing in self.things]
        if len(set(names)) < len(names) or names[:1] != ["nothing"]:
            raise InputError(f"things need different names, the first being 'nothing'; got {names}")
        if len(set(self.skills)) < len(self.skills):
            raise InputError(f"each skill is one rule; got {list(self.skills)}")
        if len(names) > 32:
            raise InputError(
                f"there is room for 32 kinds of thing (the expert keeps sets of them in a word); got {len(names)}"
            )
        for thing in self.things:
            if not all(0 <= channel <= 127 for channel in thing.colour) or not 0 <= thing.pixel < 9:
                raise InputError(f"{thing.name}: a colour is 0 to 127 a channel, as sprites add up, and a pixel 0 to 8")
        if not any(thing.share for thing in self.things):
            raise InputError("scenes are filled up with random things: at least one needs a share")
        for rule in self.rules:
            for name in filter(None, (rule.held, rule.cell, rule.becomes)):
                if name not in names:
                    raise InputError(f"rule {rule.skill} speaks of '{name}', which is not among {names}")
            if rule.held and not self.things[self.index(rule.held)].portable:
                raise InputError(f"rule {rule.skill} needs '{rule.held}' in hand, which cannot be picked up")
        matched = [{(held, rule.cell) for held in ([rule.held] if rule.held else names)} for rule in self.rules]
        if len(set().union(*matched)) < sum(map(len, matched)):
            raise InputError("two rules speak of the same thing in hand over the same cell")

    @cached_property
    def skills(self) -> tuple[str, ...]:
        return tuple(rule.skill for rule in self.rules)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(thing.name for thing in self.things)

    def index(self, name: str | None) -> int:
        """A thing's number; None is NOTHING."""
        return NOTHING if name is None else [thing.name for thing in self.things].index(name)

    @property
    def no_skill(self) -> int:
        """The number that stands for "no skill was done"."""
        return len(self.rules)

    @cached_property
    def tool(self) -> np.ndarray:
        """What each skill needs in hand; NOTHING where hands do not matter. [skill]"""
        return np.array([self.index(rule.held) for rule in self.rules], np.uint8)

    @cached_property
    def target(self) -> np.ndarray:
        """What each skill needs in the cell. [skill]"""
        return np.array([self.index(rule.cell) for rule in self.rules], np.uint8)

    @cached_property
    def product(self) -> np.ndarray:
        """What each skill leaves in the cell. [skill]"""
        return np.array([self.index(rule.becomes) for rule in self.rules], np.uint8)

    @cached_property
    def outcome(self) -> Outcome:
        """The whole of the world's physics: what each kind of action does. [kind, held, cell]"""
        count = len(self.things)
        held, cell = (table.astype(np.uint8) for table in np.meshgrid(range(count), range(count), indexing="ij"))
        portable = np.array([thing.portable for thing in self.things])
        solid = np.array([thing.solid for thing in self.things])

        move_cell = cell.copy()
        move_skill = np.full_like(cell, self.no_skill)
        move_enters = ~solid[cell]
        for number, rule in enumerate(self.rules):
            where = (self.index(rule.held) if rule.held else slice(None), self.index(rule.cell))
            move_cell[where] = self.index(rule.becomes)
            move_skill[where] = number
            move_enters[where] = True

        takes = (held == NOTHING) & portable[cell]
        puts = (held != NOTHING) & (cell == NOTHING)
        none = np.full_like(cell, self.no_skill)
        stays = np.zeros_like(takes)
        return Outcome(  # in the order MOVE, STAY, TAKE, PUT
            held=np.stack([held, held, np.where(takes, cell, held), np.where(puts, NOTHING, held)]),
            cell=np.stack([move_cell, cell, np.where(takes, NOTHING, cell), np.where(puts, held, cell)]),
            enters=np.stack([move_enters, stays, stays, stays]),
            skill=np.stack([move_skill, none, none, none]),
        )


RULES = Rules(
    things=(
        Thing("nothing", least=0),
        Thing("tree", colour=(0, 110, 0), pixel=0, solid=True, share=5),
        Thing("rock", colour=(90, 90, 90), pixel=1, solid=True, share=5),
        Thing("logs", colour=(100, 50, 0), pixel=2, portable=True, share=4),
        Thing("wheat", colour=(110, 100, 0), pixel=3, share=4),
        Thing("bread", colour=(110, 60, 30), pixel=5, share=2),
        Thing("hammer", colour=(0, 40, 110), pixel=6, portable=True),
        Thing("axe", colour=(110, 0, 30), pixel=7, portable=True),
        Thing("house", colour=(80, 0, 110), pixel=8),
    ),
    rules=(
        Rule("ChopTree", held="axe", cell="tree", becomes="logs"),
        Rule("BreakRock", held="hammer", cell="rock"),
        Rule("BuildHouse", held="hammer", cell="logs", becomes="house"),
        Rule("MakeBread", held="axe", cell="wheat", becomes="bread"),
        Rule("EatBread", held=None, cell="bread"),
    ),
)


def _neighbours() -> np.ndarray:
    """The cell that each action concerns; itself where the board ends. uint8 [cell, action]"""
    row, column = np.divmod(np.arange(CELLS), SIZE)
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0), (0, 0)]
    inside = [np.clip(row + dr, 0, SIZE - 1) * SIZE + np.clip(column + dc, 0, SIZE - 1) for dr, dc in steps]
    return np.stack(inside, axis=1).astype(np.uint8)


NEIGHBOUR = _neighbours()
KIND = np.where(  # uint8 [cell, action]
    np.arange(CELLS)[:, None] != NEIGHBOUR, MOVE, np.array([STAY, STAY, STAY, STAY, TAKE, PUT])
).astype(np.uint8)
