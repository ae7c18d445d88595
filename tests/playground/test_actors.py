"""Agents of other kinds and in other worlds than the shipped one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from oracles.counting import Counting
from oracles.scripted import scripted

import planvec as pv
from planvec.agents import build
from planvec.errors import InputError
from planvec.evaluation.rollouts import rollout
from planvec.expressions import parse
from planvec.media.painting import jpeg
from planvec.playground import pictures
from planvec.playground.actors import Actor
from planvec.playground.scheduling import Rounds
from planvec.worlds.spaces import Images
from planvec.worlds.tabletop.simulator import positions


@pytest.fixture(autouse=True)
def drawn_by_nobody(monkeypatch, request):
    """Pictures of simulators, which a machine may not draw."""
    if "painters" not in request.node.name:
        monkeypatch.setattr(pictures, "_painted", lambda painter, move: ["a picture"])


def test_in_a_simulator_an_agent_does_what_rollout_gives():
    world = pv.make("tabletop")
    agent = build("cpv-plain", world.space, 8, key=jax.random.key(0))
    actor, demo = Actor(agent, world), world.demonstrate("Stack(red,blue)", seed=0)
    task = (*demo.task, "PlaceInBox(green)")
    expected = rollout(agent, agent.plan(demo), world, task, seed=2)
    episode = actor.begin(actor.plan(demo), task, task, seed=2, sizes=[len(task)])
    steps = []
    while not episode.over:
        steps.append(episode.show(episode.advance()))
    assert len(steps) == len(expected) == episode.time and steps[-1].over
    assert episode.success == expected.success and tuple(episode.events) == expected.skills_done
    assert np.allclose(positions(episode.steps[0]), positions(expected.steps[-1]), atol=1e-4)
    assert steps[-1].left is None and steps[-1].pictures == ["a picture"]
    episode.close()


def test_in_a_simulator_one_that_fails_ends_alone(monkeypatch, caplog):
    world = pv.make("tabletop")
    actor, demo = Actor(pv.load("tabletop"), world), world.demonstrate("Stack(red,blue)", seed=0)
    plan, task = actor.plan(demo), demo.task
    alone, together = [[actor.begin(plan, task, task, seed, [1]) for seed in range(3)] for _ in range(2)]
    expected = [episode.show(episode.advance()) for episode in alone]
    monkeypatch.setattr(together[1], "advance", lambda: 1 / 0)  # a simulator that breaks down
    with ThreadPoolExecutor(1) as thread:  # the browser's tests have an event loop in this one
        steps = thread.submit(asyncio.run, one_round(world, together)).result()
    for one in (0, 2):
        assert np.allclose(together[one].steps, alone[one].steps, atol=1e-4)
        assert steps[one].time == 1 and np.allclose(steps[one].left, expected[one].left, atol=0.01)
    assert steps[1].over and together[1].over and not together[1].success and "division by zero" in caplog.text
    assert steps[1].pictures == [] and not together[1].due


async def one_round(world, episodes):
    """The first step of each, in their order."""
    with ThreadPoolExecutor(1) as thread:
        rounds, steps = Rounds(world, thread), {}
        for episode in episodes:
            rounds.watch(episode, lambda step, episode=episode: steps.setdefault(episode, step))
            rounds.want(episode, 1)
        while len(steps) < len(episodes):
            await asyncio.sleep(0.01)
        rounds.close()
    return [steps[episode] for episode in episodes]


@pytest.mark.parametrize(
    ("text", "success", "exact", "extras"),
    [
        ("ab.", True, True, []),
        ("acb.", True, False, ["c"]),
        ("cdcd", False, False, ["c", "c", "d", "d"]),
        ("aab.", True, False, ["a"]),
    ],
)
def test_what_is_done_besides_is_told_as_extras_and_is_not_exact(text, success, exact, extras):
    actor = Actor(scripted(text), Counting())
    episode = actor.begin(actor.plan(Counting().demonstrate("a,b")), ("a", "b"), ("a", "b"), seed=0, sizes=[2])
    while not episode.over:
        episode.advance()
    assert (episode.success, episode.exact, episode.extras) == (success, exact, extras)
    assert episode.events == list(text.rstrip("."))
    episode.close()


def test_where_nothing_is_asked_for_whatever_is_done_is_a_failure():
    actor = Actor(scripted("cd"), Counting())
    episode = actor.begin(actor.plan(Counting().demonstrate("a")), (), ("a",), seed=0, sizes=[1])
    assert episode.success and episode.exact
    while not episode.over:
        episode.advance()
    assert not episode.success and not episode.exact and episode.time == episode.horizon == 2
    episode.close()


def test_painters_draw_what_the_film_shows():
    world = pv.make("doom")
    demo = world.demonstrate("A", seed=0)
    steps, action = demo.steps.take(slice(0, 2)), demo.actions[:1]
    [(_, before), (_, after)] = world.film(steps, action)
    assert pictures.added(world, (steps, action)) == [jpeg(after)] != [jpeg(before)]


def test_an_agent_without_plan_vectors_adds_but_does_not_subtract():
    world = pv.make("crafting")
    actor = Actor(build("naive", Images((33, 30, 3), 6), key=jax.random.key(0)), world)
    demos = {name: world.demonstrate(task, seed=0) for name, task in (("A", "ChopTree"), ("B", "EatBread"))}
    plans = {name: actor.plan(demo) for name, demo in demos.items()}
    both = actor.combine(parse("A + B"), plans)
    assert np.allclose(both.mean()[1], (demos["A"].last.astype(float) + demos["B"].last) / 2)
    assert actor.read(both) is None
    with pytest.raises(InputError, match="only \\+ has a meaning"):
        actor.combine(parse("A - B"), plans)
