"""Agents of other kinds and in other worlds than the shipped one."""

import jax
import numpy as np
import pytest

import planvec as pv
from planvec.agents import build
from planvec.errors import InputError
from planvec.expressions import parse
from planvec.playground import frames
from planvec.playground.actors import make_actor
from planvec.rollouts import rollout
from planvec.worlds.tabletop.simulator import positions
from planvec.worlds.world import Images


def test_in_a_simulator_an_agent_does_what_rollout_gives(monkeypatch):
    monkeypatch.setattr(frames, "after", lambda world, steps, action: ["a picture"])  # which a machine may not draw
    world = pv.make("tabletop")
    agent = build("cpv-plain", world.space, 8, key=jax.random.key(0))
    actor, demo = make_actor(agent, world), world.demonstrate("Stack(red,blue)", seed=0)
    task = (*demo.task, "PlaceInBox(green)")
    expected = rollout(agent, agent.plan(demo), world, task, seed=2)
    episode = actor.begin(actor.plan(demo), task, task, seed=2)
    steps = []
    while not episode.over:
        steps += actor.advance([episode])
    assert len(steps) == len(expected) == episode.time and steps[-1].over
    assert episode.success == expected.success and tuple(episode.events) == expected.skills_done
    assert np.allclose(positions(episode.now.steps()[0]), positions(expected.steps[-1]), atol=1e-4)
    assert steps[-1].left is None and steps[-1].pictures == ["a picture"]
    actor.end(episode)


def test_an_agent_without_plan_vectors_adds_but_does_not_subtract():
    world = pv.make("crafting")
    actor = make_actor(build("naive", Images((33, 30, 3), 6), key=jax.random.key(0)), world)
    demos = {name: world.demonstrate(task, seed=0) for name, task in (("A", "ChopTree"), ("B", "EatBread"))}
    plans = {name: actor.plan(demo) for name, demo in demos.items()}
    both = actor.combine(parse("A + B"), plans)
    assert np.allclose(both.mean()[1], (demos["A"].last.astype(float) + demos["B"].last) / 2)
    assert actor.read(both) is None
    with pytest.raises(InputError, match="only \\+ has a meaning"):
        actor.combine(parse("A - B"), plans)
