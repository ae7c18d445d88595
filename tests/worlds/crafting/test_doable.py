import jax
import numpy as np
import pytest
from oracles.boards import state

from planvec.tasks import encode_tasks
from planvec.worlds.crafting import doable as module
from planvec.worlds.crafting import world as crafting
from planvec.worlds.crafting.doable import doable
from planvec.worlds.crafting.world import Crafting

WORLD = Crafting()
KEY = jax.random.key(0)


def can_do(things, agent=(0, 0), **wanted):
    """Whether an expert can, on a board of {(row, column): name}."""
    scene = state(things, agent)
    counts = [[wanted.get(skill, 0) for skill in WORLD.skills]]
    scenes = jax.tree.map(lambda leaf: np.asarray(leaf)[None], scene)
    return bool(doable(WORLD, scenes, np.array(counts, np.int32), 200, KEY)[0])


def test_who_begins_walled_in_can_do_nothing():
    wall = {(0, 1): "rock", (1, 0): "tree"}
    beyond = {(5, 5): "axe", (6, 6): "tree", (7, 7): "bread"}
    assert not can_do(wall | beyond, EatBread=1) and not can_do(wall | beyond, ChopTree=1)
    assert can_do({(0, 1): "rock"} | beyond, EatBread=1, ChopTree=1)


def test_there_must_be_enough_of_all():
    things = {(2, 2): "axe", (4, 4): "tree", (3, 5): "bread"}
    assert can_do(things, ChopTree=1, EatBread=1) and not can_do(things, ChopTree=2)
    assert can_do(things)  # nothing is asked for


def test_skills_are_done_in_the_order_that_is_possible():
    """The hammer is behind trees, for which the axe is there; the bread must be made first."""
    corner = {(0, 9): "hammer", (0, 8): "tree", (1, 9): "tree"}
    things = corner | {(0, 3): "axe", (9, 9): "rock", (8, 8): "wheat"}
    assert can_do(things, BreakRock=1, ChopTree=1, MakeBread=1, EatBread=1, BuildHouse=1)
    assert not can_do(things, BreakRock=1)  # nobody has asked for a tree


def test_dense_scenes_that_cannot_be_done_are_drawn_anew(monkeypatch):
    tasks = WORLD.sample_tasks((1,), 64, 64, 64)
    monkeypatch.setattr(crafting, "REDRAWN", 0)
    drawn = WORLD.scenes(tasks, (2,))
    wanted = np.asarray(crafting.count_many(WORLD, encode_tasks(tasks, WORLD.skills)))
    can = doable(WORLD, drawn, wanted, WORLD.horizon([64]), KEY)
    assert 0.7 < can.mean() < 1
    monkeypatch.undo()
    scenes = WORLD.scenes(tasks, (2,))
    same = (scenes.cells == drawn.cells).all(axis=1)
    assert same[can].mean() > 0.95 and not same[~can].any()  # an expert that is lucky later may keep one
    assert doable(WORLD, scenes, wanted, WORLD.horizon([64]), KEY).mean() > 0.98


@pytest.mark.parametrize("skills", [4, 31])
def test_other_scenes_are_as_they_were(skills, monkeypatch):
    monkeypatch.setattr(crafting, "doable", None)
    WORLD.scenes(WORLD.sample_tasks((1,), 4, skills, skills), (2,))


def test_an_expert_that_is_stuck_gives_up(monkeypatch):
    monkeypatch.setattr(module, "TRIES", 1)
    calls = []
    monkeypatch.setattr(module, "_advance", lambda *given, real=module._advance: calls.append(1) or real(*given))
    assert not can_do({(2, 2): "axe"}, ChopTree=1) and len(calls) == 1
