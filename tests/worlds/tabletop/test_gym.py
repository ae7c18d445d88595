import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import planvec  # noqa: F401  (registers the environments)
from planvec.errors import InputError
from planvec.worlds.tabletop.expert import follow
from planvec.worlds.tabletop.geometry import CORNERS, TABLE
from planvec.worlds.tabletop.gym import TabletopEnv
from planvec.worlds.tabletop.layouts import LID_HOME
from planvec.worlds.tabletop.simulator import Simulator

NOWHERE = np.zeros(4, np.float32)


def make(**options):
    return gymnasium.make("planvec/Tabletop-v0", **options)


@pytest.mark.parametrize("mode", [None, "rgb_array"])
def test_gymnasiums_own_check(mode):
    env = make(render_mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*symmetric and normalized")  # actions are metres
        check_env(env.unwrapped, skip_render_check=mode is None)
    env.close()


def test_the_spaces():
    env = make()
    assert env.observation_space.shape == (18,) and env.observation_space.dtype == np.float32
    np.testing.assert_allclose(env.action_space.high, [*TABLE, *TABLE])
    np.testing.assert_array_equal(env.action_space.low, -env.action_space.high)
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        assert observation in env.observation_space


def follow_expert(env, task, seed):
    """Ask the expert at each step, and do what it says; the rewards, and what the last step gave."""
    observation, info = env.reset(seed=seed, options={"task": list(task)})
    assert info["task"] == task and not any(info["skills_hold"][skill] for skill in task) and not info["diverged"]
    rewards, index = [], 0
    while True:
        action, index = follow(observation, task, index)
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space and not truncated
        rewards.append(reward)
        if terminated:
            return rewards, info


@pytest.mark.parametrize(
    ("task", "held"),
    [
        (("PlaceInCorner(white)",), {"PlaceInCorner(white)"}),
        (("Stack(red,blue)", "PlaceInBox(green)"), {"Stack(red,blue)", "PlaceInBox(green)"}),
        (("PlaceInBox(red)", "PlaceInCorner(red)"), {"PlaceInCorner(red)"}),  # the second undoes the first
    ],
)
def test_an_episode_that_succeeds(task, held):
    env = make()
    rewards, info = follow_expert(env, task, seed=3)
    assert sum(rewards) == len(held) and held <= {skill for skill, holds in info["skills_hold"].items() if holds}
    assert not info["diverged"]


def place_of(observation, number):
    return observation.reshape(6, 3)[number, :2]


def test_undoing_costs():
    env = make()
    observation, _ = env.reset(seed=0, options={"task": "PlaceInCorner(red),PlaceInCorner(blue)"})
    rewards = []
    for target in (CORNERS["red"], (0.0, 0.1), CORNERS["red"]):
        observation, reward, terminated, truncated, info = env.step([*place_of(observation, 0), *target])
        rewards.append(reward)
        assert info["skills_hold"]["PlaceInCorner(red)"] == (target == CORNERS["red"])
        assert not terminated and not truncated
    assert rewards == [1, -1, 1]


def test_the_box_must_be_closed():
    env = make(task="PlaceInBox(red)")
    observation, _ = env.reset(seed=0)
    box = place_of(observation, 4)
    rewards = []
    for thing, target in ((5, LID_HOME), (0, box), (5, box)):
        observation, reward, terminated, _, info = env.step([*place_of(observation, thing), *target])
        rewards.append(reward)
        assert terminated == info["skills_hold"]["PlaceInBox(red)"] == (len(rewards) == 3)
    assert rewards == [-1, 0, 2]


@pytest.mark.parametrize(("task", "horizon"), [("Stack(red,blue)", 6), ("Stack(red,blue),PlaceInBox(green)", 12)])
def test_an_episode_is_cut_off_at_the_horizon(task, horizon):
    env = make(task=task)
    env.reset(seed=0)
    for time in range(1, horizon + 1):
        _, reward, terminated, truncated, info = env.step(NOWHERE)
        assert reward == 0 and not terminated and truncated == (time == horizon) and not info["diverged"]


def test_done_at_the_horizon_is_done():
    env = make(task="PlaceInCorner(red)")
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        observation, *_ = env.step(NOWHERE)
    *_, terminated, truncated, _ = env.step([*place_of(observation, 0), *CORNERS["red"]])
    assert terminated and not truncated


def test_a_simulator_that_breaks_down_ends_the_episode(monkeypatch):
    env = make(task="PlaceInCorner(red)")
    before, _ = env.reset(seed=0)
    monkeypatch.setattr(Simulator, "pick_and_place", lambda _, state, action: (state, False))
    after, reward, terminated, truncated, info = env.step(NOWHERE)
    assert truncated and info["diverged"] and not terminated and reward == 0
    np.testing.assert_array_equal(after, before)


def test_random_tasks():
    env, sizes = make(), set()
    for seed in range(12):
        _, info = env.reset(seed=seed)
        assert env.reset(seed=seed)[1]["task"] == info["task"]
        sizes.add(len(info["task"]))
    assert sizes == {1, 2}
    assert len(make(skills="4").reset(seed=0)[1]["task"]) == 4


def test_the_same_seed_and_actions_give_the_same():
    env, runs = make(), []
    for _ in range(2):
        observation, _ = env.reset(seed=5)
        seen = [observation]
        for thing in (0, 3, 5):
            seen.append(env.step([*place_of(seen[-1], thing), 0.0, 0.1])[0])
        runs.append(np.stack(seen))
    np.testing.assert_array_equal(*runs)
    assert (runs[0][1:] != runs[0][:-1]).any(axis=1).all()


def test_pictures():
    env = make(render_mode="rgb_array", task="PlaceInCorner(red)")
    observation, _ = env.reset(seed=0)
    before = env.render()
    env.step([*place_of(observation, 0), *CORNERS["red"]])
    after = env.render()
    assert before.shape == (360, 480, 3) and before.dtype == np.uint8 and (before != after).any()
    env.close()
    assert env.unwrapped.world.simulator._camera is None
    env.close()
    assert make().unwrapped.render_mode is None


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0, 0, 0, np.nan], "finite"),
        ([0, 0, np.inf, 0], "finite"),
        ([0, 0, 0], r"shape \(4\) is expected"),
        (np.zeros((1, 4)), r"shape \(4\) is expected"),
        ("left", "numbers of shape"),
        (None, "shape"),
        ([0.25, 0, 0, 0], r"x from -0.24 to 0.24 and y from -0.18 to 0.18"),
        ([0, 0, 0, -0.2], "stays on the table"),
    ],
)
def test_bad_actions(action, message):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match=message):
        env.step(action)


def test_the_tables_edge_is_on_the_table():
    env = make()
    env.reset(seed=0)
    env.step(np.array([0.24, 0.18, -0.24, -0.18]))
    env.step(env.action_space.high)


def test_bad_tasks_and_modes():
    with pytest.raises(InputError, match="Fly"):
        make(task="Fly")
    with pytest.raises(InputError, match="PlaceInBox"):
        make().reset(options={"task": ["Stack(red,red)"]})
    with pytest.raises(InputError, match="render_mode"):
        TabletopEnv(render_mode="ansi")
    with pytest.raises(InputError, match="range of skills"):
        make(skills="2-1")


def test_reset_comes_first():
    for call in (lambda env: env.step(NOWHERE), lambda env: env.render()):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call(make(render_mode="rgb_array").unwrapped)


def test_many_at_once():
    env = gymnasium.make_vec("planvec/Tabletop-v0", num_envs=3, task="PlaceInCorner(red)")
    seen, info = env.reset(seed=0)
    assert seen.shape == (3, 18) and list(info["task"]) == [("PlaceInCorner(red)",)] * 3
    actions = np.column_stack([seen[:, :2], np.tile(CORNERS["red"], (3, 1))]).astype(np.float32)
    _, reward, terminated, truncated, info = env.step(actions)
    in_box = np.isclose(seen[:, 0], seen[:, 12])  # there the hand takes the lid
    assert in_box.any() and not in_box.all() and not truncated.any()
    np.testing.assert_array_equal(terminated, ~in_box)
    np.testing.assert_array_equal(reward, np.where(in_box, -1, 1))
    np.testing.assert_array_equal(info["skills_hold"]["PlaceInCorner(red)"], ~in_box)
    env.close()


WITHOUT_MUJOCO = """
import sys
sys.modules["mujoco"] = None
import gymnasium, planvec
try:
    gymnasium.make("planvec/Tabletop-v0")
except planvec.InputError as error:
    print(error)
"""


def test_mujoco_is_needed_only_when_it_is_made():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MUJOCO], capture_output=True, text=True)
    assert run.returncode == 0 and "planvec[tabletop]" in run.stdout
