import json
from collections import Counter
from itertools import combinations

import jax
import numpy as np
import pytest

import planvec as pv
from planvec.agents import build
from planvec.errors import InputError
from planvec.evaluation.scores import evaluate
from planvec.io.checkpoints import save_json, save_tree
from planvec.training import loading
from planvec.training.runs import CONFIG, WEIGHTS
from planvec.worlds.spaces import Images
from planvec.worlds.trials import random_trial


@pytest.fixture
def run(tmp_path):
    """A run's folder of an untrained agent, called as a shipped one is."""
    folder = tmp_path / "crafting"
    folder.mkdir()
    save_json(folder / CONFIG, {"config": {"agent": "te-full", "embedding": 16}})
    save_tree(folder / WEIGHTS, build("te-full", Images((33, 30, 3), 6), 16, key=jax.random.key(7)))
    return folder


def test_a_run(run):
    agent, config = loading.load_with_config(f"{run}/")
    assert config.agent == "te-full"
    assert agent.fingerprint == build("te-full", Images((33, 30, 3), 6), 16, key=jax.random.key(7)).fingerprint


def test_a_path_wins_only_when_written_with_a_slash(run, monkeypatch):
    monkeypatch.chdir(run.parent)
    assert loading.load_with_config("./crafting")[1].agent == "te-full"
    assert loading.load_with_config("crafting")[1].agent == "potential"


@pytest.mark.parametrize("name", ["./nothing", "nothing"])
def test_what_is_not_there(name):
    with pytest.raises(InputError, match=r"nothing.* crafting, .*doom, tabletop"):  # and what is
        pv.load(name)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("crafting", 667_279 + 64 * 5 + 5 + 64 * 64 + 1),  # and with its metric
        ("crafting-cpv-full", 807_158 + 512 * 5 + 5),
        ("doom", 998_771 + 64 * 4 + 4),
        ("tabletop", 169_042 + 64 * 20 + 20),
    ],
)
def test_the_shipped_agents_and_their_provenance(name, size):
    folder = loading.find(name)
    described = json.loads((folder / CONFIG).read_text())
    assert {"config", "data", "made", "validation", "scores", "command"} <= described.keys()
    world = pv.make(described["config"]["world"])
    assert described["scores"].keys() >= set(world.conditions)
    assert described["data"]["fingerprint"] == world.fingerprint
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8e6
    assert sum(leaf.size for leaf in jax.tree.leaves(pv.load(name))) == size  # with its probe


def test_the_shipped_agent_adds_plans():
    """The README's snippet."""
    agent = pv.load("crafting")
    world = pv.make("crafting")
    chop, bread = world.demonstrate(["ChopTree"], seed=0), world.demonstrate(["MakeBread", "EatBread"], seed=1)
    plan = agent.plan(chop) + agent.plan(bread)
    done = [pv.rollout(agent, plan, world, task=chop.task + bread.task, seed=seed) for seed in range(4)]
    assert sum(episode.success for episode in done) >= 2
    episode = next(episode for episode in done if episode.success)
    assert set(episode.skills_done) >= {"ChopTree", "MakeBread", "EatBread"}
    assert len(episode.observations) == len(episode) + 1 <= world.horizon([3]) + 1
    less = plan - agent.plan(bread)
    assert float(less.similarity(agent.plan(chop))) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "success", "exact", "by_the_way"), [("doom", 0.9, 0.7, 0.7), ("tabletop", 0.5, 0.4, 0.2)]
)
def test_the_shipped_agents_of_hosted_worlds_do_what_they_are_shown(name, success, exact, by_the_way):
    agent, world = pv.load(name), pv.make(name)
    one, both = (random_trial(world, condition, 16, 0, "discard") for condition in ("1", "1+1"))
    for trial in (one, both):
        [score] = evaluate([agent], world, trial)
        assert score.success > success and score.exact > exact
    [control] = evaluate([agent], world, one, control=True)
    assert control.success < by_the_way and control.exact < 0.4  # another's reference may ask for the same
    skills = world.skills[:: len(world.skills) // 4]
    plans = [agent.plan(world.demonstrate(skill, seed=seed)) for seed, skill in enumerate(skills)]
    pairs = list(combinations(range(len(plans)), 2))
    read = [agent.read(plans[i] + plans[j]).rounded() for i, j in pairs]
    assert read == [Counter([skills[i], skills[j]]) for i, j in pairs]


def test_an_episode_is_deterministic_and_can_be_saved(tmp_path):
    agent, world = pv.load("crafting"), pv.make("crafting")
    plan = agent.plan(world.demonstrate("EatBread", seed=0))
    one, same = (pv.rollout(agent, plan, world, "EatBread", seed=1) for _ in range(2))
    np.testing.assert_array_equal(one.actions, same.actions)
    one.save(tmp_path / "episode.gif")
    assert (tmp_path / "episode.gif").read_bytes().startswith(b"GIF89a")


def test_plans_of_other_agents_are_refused():
    world = pv.make("crafting")
    other = build("cpv-full", Images((33, 30, 3), 6), key=jax.random.key(0))
    plan = other.plan(world.demonstrate("EatBread", seed=0))
    with pytest.raises(InputError, match="made by agent"):
        pv.rollout(pv.load("crafting"), plan, world, "EatBread")
