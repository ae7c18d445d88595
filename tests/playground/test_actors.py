"""Agents of other kinds and in other worlds than the shipped one."""

import jax
import numpy as np
import pytest

import planvec as pv
from planvec.agents import build
from planvec.errors import InputError
from planvec.evaluation.rollouts import rollout
from planvec.expressions import parse
from planvec.playground import frames
from planvec.playground.actors import make_actor
from planvec.worlds.spaces import Images
from planvec.worlds.tabletop.simulator import positions


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


def test_in_a_simulator_many_do_what_each_does_alone_and_one_that_fails_ends_alone(monkeypatch, caplog):
    monkeypatch.setattr(frames, "after", lambda world, steps, action: ["a picture"])
    world = pv.make("tabletop")
    actor, demo = make_actor(pv.load("tabletop"), world), world.demonstrate("Stack(red,blue)", seed=0)
    plan, task = actor.plan(demo), demo.task
    alone, together = [[actor.begin(plan, task, task, seed) for seed in range(3)] for _ in range(2)]
    expected = [actor.advance([episode])[0] for episode in alone]
    together[1].now.step = lambda actions: 1 / 0  # a simulator that breaks down
    steps = actor.advance(together)
    for one in (0, 2):
        assert np.allclose(together[one].seen, alone[one].seen, atol=1e-4)
        assert steps[one].time == 1 and np.allclose(steps[one].left, expected[one].left, atol=0.01)
    assert steps[1].over and together[1].over and not together[1].success and "division by zero" in caplog.text
    assert steps[1].pictures == [] and len(actor.advance(together[:1])) == 1


def test_painters_draw_what_the_film_shows():
    world = pv.make("doom")
    demo = world.demonstrate("A", seed=0)
    steps, action = demo.steps.take(slice(0, 2)), demo.actions[:1]
    [(_, before), (_, after)] = world.film(steps, action)
    assert frames.after(world, steps, action) == [frames.jpeg(after)] != [frames.jpeg(before)]


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
