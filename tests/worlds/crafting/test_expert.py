from collections import Counter
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import crafting as oracle
from oracles.boards import BOARD, plain, state

from planvec.errors import InputError
from planvec.tasks import encode_tasks
from planvec.worlds.crafting import attempts
from planvec.worlds.crafting.expert import choose, tick_off
from planvec.worlds.crafting.rules import DROP, PICKUP, RULES
from planvec.worlds.crafting.world import Crafting

WORLD = Crafting()
SOLID = {"tree": "axe", "rock": "hammer"}  # what blocks, and what opens it


def skill_of(thing, held):
    """What entering would do, by the oracle."""
    return oracle.step({(5, 6): thing} if thing else {}, (5, 5), held, 3)[3]


def expected_actions(things, agent, held, task, keep_extras):
    """Every action that the spec allows the expert for the first skill of the task; none where it is stuck."""
    rule = next(rule for rule in RULES.rules if rule.skill == task[0])
    ready = rule.held is None or held == rule.held
    if not ready and things.get(agent) == (rule.held if held is None else None):
        return {PICKUP if held is None else DROP}
    board = {(r, c): things.get((r, c)) for r in range(10) for c in range(10)}
    goal = rule.cell if ready else (rule.held if held is None else None)
    goals = {cell for cell, thing in board.items() if thing == goal}
    free = {
        cell
        for cell, thing in board.items()
        if not (thing in SOLID and held != SOLID[thing]) and (keep_extras or skill_of(thing, held) in (None, *task))
    }
    return oracle.first_moves(agent, goals, free)


@partial(jax.jit, static_argnames="keep_extras")
def choices(now, task, words, keep_extras):
    left = task >= 0
    return jax.vmap(lambda word: choose(WORLD, now, task, left, word, keep_extras))(words)


@settings(max_examples=250, deadline=None)
@given(BOARD, st.lists(st.sampled_from(RULES.skills), min_size=1, max_size=4), st.booleans())
def test_choices_are_first_steps_of_shortest_paths(board, task, keep_extras):
    code = np.full(4, -1, np.int8)
    code[: len(task)] = encode_tasks([tuple(task)], RULES.skills)[0]
    actions, possible = choices(state(*board), code, np.arange(12, dtype=np.uint32), keep_extras)
    expected = expected_actions(*board, task, keep_extras)
    assert bool(possible[0]) == bool(expected)
    if expected:
        assert set(np.asarray(actions).tolist()) == expected  # every tie is drawn, and nothing else


def test_what_was_not_asked_for_is_walked_around():
    """Bread between the agent and its tree would be eaten by walking straight on."""
    board = state({(5, 6): "bread", (5, 8): "tree"}, (5, 5), "axe")
    codes, words = encode_tasks([("ChopTree",), ("EatBread",)], RULES.skills), np.arange(12, dtype=np.uint32)
    (around, _), (straight, _) = (choices(board, code, words, False) for code in codes)
    assert set(np.asarray(around).tolist()) == {0, 1} and set(np.asarray(straight).tolist()) == {3}
    (kept, _) = choices(board, codes[0], words, True)
    assert set(np.asarray(kept).tolist()) == {3}


def test_ticking_off():
    task = np.array([0, 3, 0, -1], np.int8)
    left = np.array([True, True, True, False])
    assert tick_off(task, left, 0, False).tolist() == [False, True, True, False]
    assert tick_off(task, left, 3, False).tolist() == [True, False, True, False]
    assert tick_off(task, left, 4, False).tolist() == left.tolist()
    assert tick_off(task, left, 3, True).tolist() == left.tolist()  # done by the way: not credited
    assert tick_off(task, left, 0, True).tolist() == [False, True, True, False]


def rates(skills, noise, count, extras="discard"):
    demos = WORLD.record(WORLD.sample_tasks((7,), count, skills, skills), (skills,), noise, extras)
    return demos.attempts.sum(axis=0) / demos.attempts.sum()


@pytest.mark.parametrize(
    ("skills", "noise", "count", "least"),
    [
        *((n, 0.0, 2000, 0.99) for n in (1, 2, 3, 4)),
        *((n, 0.1, 1500, 0.90) for n in (1, 2, 3, 4)),
        (8, 0.0, 1000, 0.97),
        (16, 0.0, 1000, 0.97),
    ],
)
def test_how_often_the_expert_does_exactly_the_task(skills, noise, count, least):
    assert rates(skills, noise, count)[0] >= least


def test_noise_is_the_share_of_random_actions():
    task, words = np.array([RULES.skills.index("ChopTree"), -1, -1, -1], np.int8), np.arange(24, dtype=np.uint32)
    best = jax.jit(jax.vmap(lambda now: choices(now, task, words, False)[0]))

    def others(noise):
        """The share of actions that the expert would not have chosen."""
        demos = WORLD.record([("ChopTree",)] * 200, (5,), noise)
        before = np.delete(np.arange(demos.lengths.sum() + 200), demos.last_steps)
        states = jax.tree.map(lambda leaf: leaf[before], WORLD.replay(demos))
        return np.mean((np.asarray(best(states)) != demos.actions[:, None]).all(axis=1))

    assert others(0.0) == 0
    assert 0.15 < others(0.3) < 0.3  # some random actions are what the expert would have done


def recorded(extras, noise=0.1, count=300):
    tasks = WORLD.sample_tasks((3,), count, 1, 4)
    demos = WORLD.record(tasks, (4,), noise, extras)
    states, ends = WORLD.replay(demos), np.cumsum(demos.lengths)
    for i, task in enumerate(tasks):
        steps = slice(ends[i] - demos.lengths[i] + i, ends[i] + i + 1)
        actions = demos.actions[ends[i] - demos.lengths[i] : ends[i]]
        yield task, jax.tree.map(lambda leaf, steps=steps: leaf[steps], states), actions, demos.extras[i]


def test_recorded_demonstrations_do_their_task_and_nothing_else():
    for task, states, actions, extras in recorded("discard"):
        board = plain(jax.tree.map(lambda leaf: leaf[0], states))
        done = Counter()
        for t, action in enumerate(actions):  # replayed by the oracle
            *board, skill = oracle.step(*board, int(action))
            done[skill] += skill is not None
            assert tuple(board) == plain(jax.tree.map(lambda leaf, t=t: leaf[t + 1], states))
        assert +done == Counter(task) and extras == 0
        assert skill is not None  # it ends with the last skill


def test_kept_extras_are_counted():
    total = 0
    for task, states, actions, extras in recorded("keep", noise=0.0):
        done = Counter(filter(None, WORLD.events(states, actions)))
        assert not Counter(task) - done
        assert sum(done.values()) == len(task) + extras
        total += extras > 0
    assert 0.2 < total / 300 < 0.7


def test_recordings_do_not_depend_on_how_many_run_at_once(monkeypatch):
    tasks = WORLD.sample_tasks((5,), 40, 1, 3)
    together = WORLD.record(tasks, (6,), 0.1)
    monkeypatch.setattr(attempts, "_lanes", lambda count: 4)
    apart = WORLD.record(tasks, (6,), 0.1)
    jax.tree.map(np.testing.assert_array_equal, together, apart)


def test_bread_underfoot_is_eaten_by_stepping_off_and_on():
    demo = WORLD.demonstrate(["MakeBread", "EatBread"], seed=0)
    events = WORLD.events(demo.steps, demo.actions)
    assert [event for event in events if event] == ["MakeBread", "EatBread"]


def test_demonstrations_are_deterministic_and_checked():
    one, same, other = (WORLD.demonstrate("ChopTree", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.observations, same.observations)
    assert one.observations[0].tobytes() != other.observations[0].tobytes()
    assert len(one.observations) == len(one) + 1 == len(one.actions) + 1
    np.testing.assert_array_equal(one.last, one.observations[-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"noise": 1.0}, "noise"),
        ({"noise": -0.1}, "noise"),
        ({"extras": "perhaps"}, "discard or keep"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        WORLD.demonstrate("ChopTree", **options)


def test_an_impossible_task_is_given_up(monkeypatch):
    monkeypatch.setattr(attempts, "TRIES", 3)
    monkeypatch.setattr(Crafting, "horizon", lambda self, skills: 1)
    with pytest.raises(InputError, match="3 times"):
        WORLD.record([("ChopTree",) * 6], (0,))
