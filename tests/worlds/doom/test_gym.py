import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import planvec  # noqa: F401  (registers the environments)
from planvec.errors import InputError
from planvec.worlds.doom.expert import choose
from planvec.worlds.doom.gym import DoomEnv
from planvec.worlds.doom.level import WAYPOINTS
from planvec.worlds.doom.world import HORIZONS

LEFT, RIGHT, FORWARD = range(3)


@pytest.fixture
def make():
    made = []

    def make(**options):
        made.append(gymnasium.make("planvec/Doom-v0", **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.mark.parametrize("mode", [None, "rgb_array"])
def test_gymnasiums_own_check(make, mode):
    env = make(render_mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=mode is None)


def test_the_spaces(make):
    env = make(level="rooms")
    assert env.observation_space["image"].shape == (60, 80, 3) and env.observation_space["image"].dtype == np.uint8
    assert env.observation_space["waypoints"].shape == (4, 3)
    assert env.observation_space["waypoints"].dtype == np.float32 and env.action_space.n == 3
    for seed in range(10):
        assert env.reset(seed=seed)[0] in env.observation_space


def test_an_episode_that_succeeds(make):
    env = make()
    _, info = env.reset(seed=3, options={"task": ["A", "C"]})
    assert info == {"task": ("A", "C"), "visited": dict.fromkeys(WAYPOINTS, False)}
    rewards, terminated, world = [], False, env.unwrapped.world
    while not terminated:
        left = next(name for name in "AC" if not info["visited"][name])
        action = choose(world.level, env.unwrapped._state, np.array([WAYPOINTS.index(left)]))[0]
        seen, reward, terminated, truncated, info = env.step(action)
        rewards.append(reward)
        assert seen in env.observation_space and not truncated
    assert sum(rewards) == 2 and rewards[-1] == 1 and info["visited"]["A"] and info["visited"]["C"]
    assert seen["waypoints"][:, 2].tolist() == [not info["visited"][name] for name in WAYPOINTS]


def test_an_episode_is_cut_off_at_the_horizon(make):
    env = make(task="B")
    env.reset(seed=0)
    for time in range(1, HORIZONS["open"][0] + 1):
        _, reward, terminated, truncated, _ = env.step(LEFT)
        assert reward == 0 and not terminated and truncated == (time == HORIZONS["open"][0])


def test_the_same_seed_and_actions_give_the_same(make):
    runs = []
    for env in (make(), make()):  # two processes
        seen = [env.reset(seed=5)[0]]
        seen += [env.step(action)[0] for action in (2, 0, 2, 2, 1, 2)]
        runs.append(seen)
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one["image"], other["image"])
        np.testing.assert_array_equal(one["waypoints"], other["waypoints"])
    assert all((a["image"] != b["image"]).any() for a, b in zip(runs[0][:-1], runs[0][1:], strict=True))


def test_random_tasks(make):
    env, sizes = make(), set()
    for seed in range(12):
        _, info = env.reset(seed=seed)
        assert env.reset(seed=seed)[1]["task"] == info["task"]
        sizes.add(len(info["task"]))
    assert sizes == {1, 2, 3}


def test_without_flags(make):
    seen, _ = make(flags=False).reset(seed=0)
    assert not seen["waypoints"][:, 2].any() and seen["waypoints"][:, :2].all()


def test_pictures(make):
    env = make(render_mode="rgb_array", task="A")
    env.reset(seed=0)
    before = env.render()
    env.step(FORWARD)
    after = env.render()
    assert before.shape == (240, 568, 3) and before.dtype == np.uint8 and (before != after).any()


@pytest.mark.parametrize("action", [3, -1, "left", None, 1.5, np.array([1])])
def test_bad_actions(make, action):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"2 \(go forward\)"):
        env.step(action)


def test_bad_tasks_and_modes(make):
    for wrong, message in (("E", "there are A"), ("A,A", "twice")):
        with pytest.raises(InputError, match=message):
            make(task=wrong)
        with pytest.raises(InputError, match=message):
            make().reset(options={"task": wrong.split(",")})
    for options, message in (
        ({"render_mode": "ansi"}, "render_mode"),
        ({"skills": "1-5"}, "too many"),
        ({"skills": "2-1"}, "range of skills"),
        ({"level": "cellar"}, "open and rooms"),
    ):
        with pytest.raises(InputError, match=message):
            DoomEnv(**options)


def test_reset_comes_first(make):
    for call in (lambda env: env.step(FORWARD), lambda env: env.render()):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call(make(render_mode="rgb_array").unwrapped)
