import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from oracles.boards import state

import planvec  # noqa: F401  (registers the environments)
from planvec.errors import InputError
from planvec.tasks import encode_tasks
from planvec.worlds.crafting.expert import choose, tick_off
from planvec.worlds.crafting.game import Game, advance
from planvec.worlds.crafting.world import Crafting

WORLD = Crafting()


def make(**options):
    return gymnasium.make("planvec/Crafting-v0", **options)


@pytest.mark.parametrize("mode", [None, "rgb_array", "ansi", "human"])
def test_gymnasiums_own_check(mode):
    env = make(render_mode=mode)
    check_env(env.unwrapped, skip_render_check=mode is None)


def follow_expert(env, task, seed):
    """Ask the expert at each step, and do what it says."""
    code = jnp.asarray(encode_tasks([task], WORLD.skills)[0])
    left, total = code >= 0, 0.0
    decide = jax.jit(lambda state, left: choose(WORLD, state, code, left, jnp.uint32(0), False))
    _, info = env.reset(seed=seed, options={"task": list(task)})
    assert info["task"] == task and sum(info["skills_done"].values()) == 0
    for time in range(1, 90):
        action, _ = decide(env.unwrapped._game.state, left)
        before = dict(info["skills_done"])
        observation, reward, terminated, truncated, info = env.step(int(action))
        done = [skill for skill in WORLD.skills if info["skills_done"][skill] > before[skill]]
        assert reward == len(done) and not truncated
        if done:
            left = tick_off(code, left, WORLD.skills.index(done[0]), False)
        total += reward
        if terminated:
            return total, time, info, observation
    raise AssertionError("the task was not done")


def test_an_episode_that_succeeds():
    task = ("ChopTree", "BuildHouse")
    total, _, info, observation = follow_expert(make(), task, seed=3)
    assert total == 2 and info["skills_done"]["ChopTree"] == info["skills_done"]["BuildHouse"] == 1
    assert observation.shape == (33, 30, 3)


def test_an_episode_is_cut_off_at_the_horizon():
    env = make(task="ChopTree")
    env.reset(seed=0)
    for time in range(1, 91):
        *_, terminated, truncated, _ = env.step(5)  # nothing to drop
        assert not terminated and truncated == (time == 90)


def test_only_what_the_task_asks_for_is_rewarded():
    scene = state({(5, 6): "bread", (5, 7): "tree"}, (5, 5), "axe")
    asked = np.array([1, 0, 0, 0, 0], np.uint8)
    episode = Game(scene, asked, np.zeros(5, np.uint8), np.int32(0), np.int32(90))
    episode, outcome = advance(WORLD, episode, np.uint8(3))
    assert episode.done.tolist() == [0, 0, 0, 0, 1] and outcome.reward == 0 and not outcome.terminated
    episode, outcome = advance(WORLD, episode, np.uint8(3))
    assert episode.done.tolist() == [1, 0, 0, 0, 1] and outcome.reward == 1 and outcome.terminated


def test_pictures():
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (11 * 32, 10 * 32, 3)
    env = make(render_mode="ansi")
    env.reset(seed=0)
    assert "holding" in env.render()


@pytest.mark.parametrize("action", [6, -1, 1.5, "up", None])
def test_bad_actions(action):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(InputError, match="from 0 to 5"):
        env.step(action)


def test_bad_tasks_and_modes():
    with pytest.raises(InputError, match="Fly"):
        make(task="Fly")
    with pytest.raises(InputError, match="ChopTree"):
        make().reset(options={"task": ["Fly"]})
    with pytest.raises(InputError, match="2-4"):
        make(skills="4-2")


def make_vec(count, **options):
    return gymnasium.make_vec("planvec/Crafting-v0", num_envs=count, **options)


def test_the_batched_world_is_not_many_objects():
    env = make_vec(512)
    observations, info = env.reset(seed=0)
    assert observations.shape == (512, 33, 30, 3) and observations in env.observation_space
    assert not hasattr(env.unwrapped, "envs") and info["skills_done"]["ChopTree"].shape == (512,)
    observations, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    assert reward.shape == terminated.shape == truncated.shape == (512,)


def test_the_batched_world_repeats_itself():
    runs = []
    for _ in range(2):
        env = make_vec(16)
        frames = [env.reset(seed=5)[0]]
        rng = np.random.default_rng(0)
        frames += [env.step(rng.integers(0, 6, 16))[0] for _ in range(20)]
        runs.append(np.stack(frames))
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_autoreset(mode):
    env = make_vec(4, task="ChopTree", autoreset_mode=mode)
    assert env.metadata["autoreset_mode"] is mode
    first, _ = env.reset(seed=0)
    idle = np.full(4, 5)  # nothing to drop, so that nothing changes until the horizon
    for _ in range(89):
        observations, _, terminated, truncated, info = env.step(idle)
        assert not (terminated | truncated).any() and "final_obs" not in info
    observations, _, terminated, truncated, info = env.step(idle)
    assert truncated.all() and not terminated.any()
    if mode is AutoresetMode.SAME_STEP:
        np.testing.assert_array_equal(info["final_obs"], first)
        assert info["_final_obs"].all() and (info["final_info"]["skills_done"]["ChopTree"] == 0).all()
        assert (observations != first).any(axis=(1, 2, 3)).all()
    else:
        np.testing.assert_array_equal(observations, first)
        observations, reward, terminated, truncated, _ = env.step(idle)
        assert not (terminated | truncated).any() and (reward == 0).all()
        assert (observations != first).any(axis=(1, 2, 3)).all()


def test_the_batched_world_says_what_is_asked():
    env = make_vec(3, task="ChopTree,ChopTree")
    _, info = env.reset(seed=0)
    assert info["skills_asked"]["ChopTree"].tolist() == [2, 2, 2] and info["_skills_asked"].all()


def test_the_batched_worlds_complaints():
    with pytest.raises(gymnasium.error.ResetNeeded):
        make_vec(2).step(np.zeros(2, int))
    with pytest.raises(InputError, match="at least 1"):
        make_vec(0)
    with pytest.raises(InputError, match="may not fit"):
        make_vec(2, skills="150-200")
    with pytest.raises(InputError, match="NextStep or SameStep"):
        make_vec(2, autoreset_mode="Disabled")
    env = make_vec(2)
    env.reset(seed=0)
    for actions in ([0], [0, 6], [-1, 0], [0.5, 1.0]):
        with pytest.raises(InputError, match="2 whole numbers"):
            env.step(np.array(actions))
