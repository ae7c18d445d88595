import jax
import numpy as np
import pytest
from oracles.boards import state

from planvec.errors import InputError
from planvec.worlds.crafting import render
from planvec.worlds.crafting.rules import NOTHING, RULES, Rule, Rules, State, Thing
from planvec.worlds.crafting.world import Crafting

FLOUR = Thing("flour", colour=(100, 100, 90), pixel=4, portable=True)
BAKERY = Rules(
    things=(*RULES.things, FLOUR),
    rules=(*RULES.rules, Rule("Mill", held="hammer", cell="wheat", becomes="flour")),
)
KINDS = range(len(BAKERY.things))
SCENE = state({(0, 0): "tree", (4, 5): "axe", (9, 9): "house"}, agent=(4, 5), held="logs")
EMPTY = state({}, agent=(2, 3))


def spread(cell_kinds, agents, helds):
    """States of a batch, each with one thing in its 24th cell."""
    cells = np.zeros((len(cell_kinds), 100), np.uint8)
    cells[:, 23] = cell_kinds
    return State(cells, np.asarray(agents, np.uint8), np.asarray(helds, np.uint8))


@pytest.mark.parametrize("cell", [12, 32, 45])
def test_shape(cell):
    picture = render.draw(RULES, SCENE, cell)
    assert picture.shape == (11 * cell, 10 * cell, 3)
    assert picture.dtype == np.uint8


def test_takes_states_from_jax():
    on_device = jax.tree.map(jax.numpy.asarray, SCENE)
    assert np.array_equal(render.draw(RULES, on_device), render.draw(RULES, SCENE))
    assert render.text(RULES, on_device) == render.text(RULES, SCENE)


def test_draw_many_is_draw_of_each():
    world = Crafting()
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.device_get(jax.vmap(world.reset, in_axes=(0, None))(keys, np.array([0, 1], np.int8)))
    states = states._replace(held=np.array([0, 6, 7], np.uint8))
    frames = render.draw_many(RULES, states)
    assert frames.shape == (3, 352, 320, 3)
    for number, frame in enumerate(frames):
        assert np.array_equal(frame, render.draw(RULES, State(*(part[number] for part in states))))


def test_every_content_of_a_cell_looks_different():
    contents = [(lying, 23, held) for lying in KINDS for held in KINDS] + [(lying, 24, 0) for lying in KINDS]
    frames = render.draw_many(BAKERY, spread(*zip(*contents, strict=True)))
    tiles = frames[:, 64:96, 96:128].reshape(len(frames), -1).astype(np.int16)  # the 24th cell
    for number, tile in enumerate(tiles[1:], start=1):
        assert np.abs(tiles[:number] - tile).sum(axis=1).min() > 2000, f"{contents[number]} looks like another"


def test_the_bar_shows_what_is_held():
    bars = render.draw_many(BAKERY, spread([NOTHING] * len(KINDS), [0] * len(KINDS), KINDS))[:, 320:]
    assert len({bar.tobytes() for bar in bars}) == len(KINDS)


def test_only_the_cells_that_changed_change():
    before, after = render.draw(RULES, EMPTY), render.draw(RULES, EMPTY._replace(agent=np.uint8(24)))
    rows, columns = np.nonzero((before != after).any(axis=-1))
    assert (rows // 32 == 2).all()
    assert set(columns // 32) == {3, 4}


def test_a_thing_without_a_sprite_gets_one_in_its_colour():
    flour = render.draw(BAKERY, state({(5, 5): "flour"}, agent=(0, 0), rules=BAKERY))[160:192, 160:192]
    ground = render.draw(BAKERY, state({}, agent=(0, 0), rules=BAKERY))[160:192, 160:192]
    assert (flour != ground).any(axis=-1).mean() > 0.5
    assert flour[8, 16].min() > 180, "its colour, brightened"
    assert flour[10:22, 10:22].max(axis=-1).min() < 90, "its dark letter"


def test_tiny_cells_are_refused():
    with pytest.raises(InputError, match="at least 12"):
        render.draw(RULES, SCENE, cell=3)


def test_glyphs_are_single_unique_letters():
    crowd = Rules(
        things=(*RULES.things, *(Thing(name, (1, 1, 1)) for name in ("the", "hat", "rat", "t", "tt", "t t"))),
        rules=RULES.rules,
    )
    assert render.glyphs(RULES) == tuple(".TRLWBHAO")
    for rules in (BAKERY, crowd):
        letters = render.glyphs(rules)
        assert len(set(letters)) == len(rules.things)
        assert all(len(letter) == 1 for letter in letters)
        assert "@" not in letters


def test_text():
    lines = render.text(RULES, SCENE, colour=False).split("\n")
    assert lines[0] == " T" + " ." * 9
    assert lines[4] == " ." * 5 + "@A" + " ." * 4
    assert lines[9] == " ." * 9 + " O"
    assert lines[10] == "holding: logs"
    assert lines[11].startswith("@ agent  T tree  R rock")
    assert render.text(RULES, EMPTY, colour=False).split("\n")[10] == "holding: nothing"


def test_coloured_text_says_the_same():
    coloured = render.text(BAKERY, SCENE)
    assert "\x1b[" in coloured
    assert "\x1b" not in render.text(BAKERY, SCENE, colour=False)
    stripped = "".join(piece.split("m", 1)[-1] for piece in coloured.split("\x1b["))
    assert stripped == render.text(BAKERY, SCENE, colour=False)
