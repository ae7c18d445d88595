import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import crafting as oracle
from oracles.boards import BOARD, plain, state

from planvec.errors import InputError
from planvec.tasks import encode_tasks
from planvec.worlds.crafting.gym import CraftingEnv
from planvec.worlds.crafting.rules import ACTIONS, RULES, Rule, Rules, State, Thing
from planvec.worlds.crafting.world import Crafting

WORLD = Crafting()
step = jax.jit(WORLD.step)
observe = jax.jit(WORLD.observe)
reset_many = jax.jit(jax.vmap(WORLD.reset))
UP, DOWN, LEFT, RIGHT, PICKUP, DROP = range(6)


def act(things, agent, held, action):
    after, skill = step(state(things, agent, held), np.uint8(action))
    return (*plain(after), (*RULES.skills, None)[int(skill)])


@settings(max_examples=400, deadline=None)
@given(BOARD, st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_steps_agree_with_the_oracle(board, actions):
    now = state(*board)
    for action in actions:
        expected = oracle.step(*board, action)
        now, skill = step(now, np.uint8(action))
        assert (*plain(now), (*RULES.skills, None)[int(skill)]) == expected
        board = expected[:3]


def random_states(count, seed):
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((count, 100)) < 0.4, rng.integers(1, 9, (count, 100)), 0).astype(np.uint8)
    held = rng.choice([0, *(RULES.index(name) for name in ("logs", "hammer", "axe"))], count)
    return State(cells, rng.integers(0, 100, count).astype(np.uint8), held.astype(np.uint8))


def test_a_batch_of_steps_agrees_with_the_oracle():
    states, actions = random_states(4096, 0), np.random.default_rng(1).integers(0, 6, 4096).astype(np.uint8)
    after, skills = jax.jit(jax.vmap(WORLD.step))(states, actions)
    for i in range(len(actions)):
        one, other = (jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], tree) for tree in (states, after))
        expected = oracle.step(*plain(one), int(actions[i]))
        assert (*plain(other), (*RULES.skills, None)[int(skills[i])]) == expected


def test_things_appear_and_vanish_only_by_the_table():
    states, actions = random_states(4096, 2), np.random.default_rng(3).integers(0, 6, 4096).astype(np.uint8)
    after, skills = jax.vmap(WORLD.step)(states, actions)

    def census(states):
        on_board = jax.nn.one_hot(states.cells, 9, dtype=int).sum(axis=1)
        return np.asarray(on_board + jax.nn.one_hot(states.held, 9, dtype=int))[:, 1:]

    change = census(after) - census(states)
    for skill, rule in enumerate(RULES.rules):
        expected = np.zeros(9, int)
        expected[RULES.index(rule.cell)] -= 1
        expected[RULES.index(rule.becomes)] += 1
        assert (change[np.asarray(skills) == skill] == expected[1:]).all()
    assert (change[np.asarray(skills) == RULES.no_skill] == 0).all()
    assert len(set(np.asarray(skills).tolist())) == 6  # every skill happened, and none


@pytest.mark.parametrize(
    ("held", "cell", "becomes", "skill"),
    [
        ("axe", "tree", "logs", "ChopTree"),
        ("hammer", "rock", None, "BreakRock"),
        ("hammer", "logs", "house", "BuildHouse"),
        ("axe", "wheat", "bread", "MakeBread"),
        (None, "bread", None, "EatBread"),
        ("axe", "bread", None, "EatBread"),
        ("hammer", "bread", None, "EatBread"),
        ("logs", "bread", None, "EatBread"),
    ],
)
def test_every_skill(held, cell, becomes, skill):
    things, agent, still_held, done = act({(5, 6): cell}, (5, 5), held, RIGHT)
    assert (things, agent, still_held, done) == ({(5, 6): becomes} if becomes else {}, (5, 6), held, skill)


@pytest.mark.parametrize(
    ("things", "held", "action"),
    [
        ({}, None, PICKUP),  # nothing there
        ({(5, 5): "tree"}, None, PICKUP),
        ({(5, 5): "wheat"}, None, PICKUP),
        ({(5, 5): "bread"}, None, PICKUP),
        ({(5, 5): "house"}, None, PICKUP),
        ({(5, 5): "axe"}, "hammer", PICKUP),  # hands full
        ({(5, 5): "logs"}, "logs", PICKUP),
        ({}, None, DROP),  # nothing held
        ({(5, 5): "house"}, "axe", DROP),  # the cell is taken
        ({(5, 5): "logs"}, "logs", DROP),
        ({(4, 5): "tree"}, None, UP),  # blocked
        ({(4, 5): "tree"}, "hammer", UP),
        ({(4, 5): "rock"}, "axe", UP),
        ({(4, 5): "rock"}, "logs", UP),
    ],
)
def test_what_has_no_effect(things, held, action):
    assert act(things, (5, 5), held, action) == (things, (5, 5), held, None)


@pytest.mark.parametrize("thing", ["logs", "wheat", "hammer", "axe", "house"])
def test_what_does_not_block(thing):
    assert act({(4, 5): thing}, (5, 5), "logs", UP) == ({(4, 5): thing}, (4, 5), "logs", None)


@pytest.mark.parametrize("thing", ["logs", "hammer", "axe"])
def test_pickup_and_drop(thing):
    assert act({(5, 5): thing}, (5, 5), None, PICKUP) == ({}, (5, 5), thing, None)
    assert act({}, (5, 5), thing, DROP) == ({(5, 5): thing}, (5, 5), None, None)
    assert act({}, (5, 5), thing, UP) == ({}, (4, 5), thing, None)  # what is held moves along


def test_the_board_ends_at_its_edges():
    corners = {(0, 0): (UP, LEFT), (0, 9): (UP, RIGHT), (9, 0): (DOWN, LEFT), (9, 9): (DOWN, RIGHT)}
    for agent, actions in corners.items():
        for action in actions:
            assert act({agent: "bread"}, agent, None, action) == ({agent: "bread"}, agent, None, None)


@settings(max_examples=150, deadline=None)
@given(BOARD)
def test_the_picture_can_be_read_back(board):
    assert oracle.decode(np.asarray(observe(state(*board))), RULES) == board


def test_every_content_of_a_cell_looks_different():
    image = np.asarray(observe(state({}, (0, 0))))
    assert image.shape == (33, 30, 3) and image.dtype == np.uint8
    pictures = {
        observe(state({(5, 5): lying} if lying else {}, (5, 5), held)).tobytes()
        for lying in (None, *RULES.names[1:])
        for held in (None, "logs", "hammer", "axe")
    }
    assert len(pictures) == 9 * 4


def test_a_state_is_102_bytes():
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(state({}, (0, 0)))) == 102


def scenes(task, count=500):
    codes = np.repeat(encode_tasks([task], RULES.skills), count, axis=0)
    return jax.tree.map(np.asarray, reset_many(jax.random.split(jax.random.key(0), count), codes))


def census(states):
    return np.stack([np.bincount(cells, minlength=9) for cells in states.cells])


def test_scenes_are_as_the_spec_says():
    counts = census(scenes(("ChopTree",), 2000))
    only = [RULES.index(name) for name in ("hammer", "axe", "house")]
    others = [RULES.index(name) for name in ("tree", "rock", "logs", "wheat", "bread")]
    total = counts[:, 1:].sum(axis=1)
    assert (counts[:, only] == 1).all() and (counts[:, others] >= 1).all()
    assert set(total.tolist()) == set(range(15, 25))
    filled = (counts[:, others] - 1).sum(axis=0) / (counts[:, others] - 1).sum()
    np.testing.assert_allclose(filled, [0.25, 0.25, 0.2, 0.2, 0.1], atol=0.02)


def test_agents_start_on_free_cells_with_empty_hands_everywhere():
    states = scenes(("ChopTree",), 2000)
    assert (states.held == 0).all()
    assert (states.cells[np.arange(2000), states.agent] == 0).all()
    assert len(set(states.agent.tolist())) == 100


@pytest.mark.parametrize(
    ("task", "thing", "needed"),
    [
        (("ChopTree",) * 7, "tree", 7),
        (("BuildHouse", "ChopTree"), "logs", 1),
        (("ChopTree", "BuildHouse", "BuildHouse", "BuildHouse"), "logs", 2),  # the tree gives one
        (("BuildHouse", "BuildHouse", "BuildHouse", "ChopTree"), "logs", 3),  # … too late
        (("MakeBread", "EatBread", "EatBread"), "bread", 1),
        (("EatBread",) * 20, "bread", 20),
    ],
)
def test_scenes_offer_what_the_task_needs(task, thing, needed):
    assert census(scenes(task, 300))[:, RULES.index(thing)].min() == needed


def test_125_tasks_and_780_orderings():
    orderings = [task for n in range(1, 5) for task in itertools.product(RULES.skills, repeat=n)]
    assert len(orderings) == 780
    assert len({tuple(sorted(task)) for task in orderings}) == 125


def test_sampled_tasks():
    tasks = WORLD.sample_tasks((0,), 3000, 2, 4)
    sizes = Counter(map(len, tasks))
    assert set(sizes) == {2, 3, 4} and min(sizes.values()) > 900
    skills = Counter(itertools.chain(*tasks))
    assert set(skills) == set(RULES.skills) and max(skills.values()) < 1.1 * min(skills.values())
    assert tasks == WORLD.sample_tasks((0,), 3000, 2, 4) != WORLD.sample_tasks((1,), 3000, 2, 4)


def test_horizons():
    assert [WORLD.horizon([n]) for n in (1, 2, 4, 8, 16)] == [90, 90, 160, 280, 550]
    assert WORLD.horizon([2]) < WORLD.horizon([3]) < WORLD.horizon([4]) and WORLD.horizon([16, 16]) == 1100


def test_a_task_too_big_for_the_board():
    with pytest.raises(InputError, match="needs"):
        WORLD.demonstrate(["BreakRock"] * 95)


FLOUR = Rules(
    things=(*RULES.things, Thing("flour", colour=(0, 0, 120), pixel=0)),
    rules=(*RULES.rules, Rule("MillFlour", held="hammer", cell="wheat", becomes="flour")),
)


def test_a_new_object_and_rule_need_no_new_code():
    world = Crafting(FLOUR)
    before = state({(5, 6): "wheat"}, (5, 5), "hammer", FLOUR)
    after, skill = world.step(before, RIGHT)
    assert plain(after, FLOUR) == ({(5, 6): "flour"}, (5, 6), "hammer")
    assert world.skills[int(skill)] == "MillFlour"
    assert len({world.observe(now).tobytes() for now in (before, after)}) == 2

    demo = world.demonstrate(["MillFlour", "MakeBread", "MillFlour"], seed=1)
    assert Counter(filter(None, world.events(demo.steps, demo.actions))) == Counter(demo.task)
    assert world.draw(jax.tree.map(lambda leaf: leaf[-1], demo.steps)).shape[2] == 3
    assert world.fingerprint != WORLD.fingerprint

    env = CraftingEnv(task="MillFlour", rules=FLOUR)
    env.reset(seed=0)
    env._game = env._game._replace(state=before)
    _, reward, terminated, *_, info = env.step(RIGHT)
    assert reward == 1 and terminated and info["skills_done"]["MillFlour"] == 1


@pytest.mark.parametrize(
    ("things", "rules", "message"),
    [
        (RULES.things[1:], (), "nothing"),
        ((*RULES.things, Thing("axe")), (), "different names"),
        (RULES.things, (Rule("Fly", held=None, cell="cloud"),), "cloud"),
        (RULES.things, (Rule("Throw", held="tree", cell="rock"),), "cannot be picked up"),
        (RULES.things, (*RULES.rules, Rule("Burn", held="axe", cell="tree")), "same"),
        (RULES.things, (*RULES.rules, Rule("EatBread", held=None, cell="wheat")), "each skill"),
        ((*RULES.things, Thing("sun", colour=(200, 0, 0))), (), "127"),
        ((*RULES.things, Thing("moon", pixel=9)), (), "pixel"),
        ((Thing("nothing"), Thing("dust")), (), "share"),
    ],
)
def test_rules_that_make_no_sense(things, rules, message):
    with pytest.raises(InputError, match=message):
        Rules(things=things, rules=rules)


def test_things_that_look_the_same():
    twin = Thing("oak", colour=RULES.things[1].colour, pixel=RULES.things[1].pixel)
    with pytest.raises(InputError, match="look the same"):
        Crafting(Rules((*RULES.things, twin), RULES.rules)).observe(state({}, (0, 0)))


def test_actions_are_the_papers():
    assert ACTIONS == ("up", "down", "left", "right", "pickup", "drop")
    assert jnp.all(step(state({}, (5, 5)), np.uint8(UP))[0].agent == 45)
