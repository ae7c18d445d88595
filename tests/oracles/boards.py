"""Small helpers for tests: states from what lies where, and back."""

import numpy as np
from hypothesis import strategies as st

from planvec.worlds.crafting.rules import RULES, State

KINDS = [thing.name for thing in RULES.things[1:]]
PORTABLE = [thing.name for thing in RULES.things if thing.portable]


def state(things, agent, held=None, rules=RULES):
    """A state from {(row, column): name}."""
    cells = np.zeros(100, np.uint8)
    for (row, column), name in things.items():
        cells[10 * row + column] = rules.index(name)
    return State(cells, np.uint8(10 * agent[0] + agent[1]), np.uint8(rules.index(held)))


def plain(state, rules=RULES):
    """The inverse of `state`."""
    cells, agent, held = (np.asarray(part) for part in state)
    things = {divmod(i, 10): rules.names[kind] for i, kind in enumerate(cells.tolist()) if kind}
    return things, divmod(int(agent), 10), rules.names[int(held)] if held else None


CELL = st.tuples(st.integers(0, 9), st.integers(0, 9))
BOARD = st.tuples(st.dictionaries(CELL, st.sampled_from(KINDS), max_size=60), CELL, st.sampled_from([None, *PORTABLE]))
