from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.counting import Counting, Mixture
from oracles.scripted import Hosted

from planvec.agents.agent import Choice, Difference
from planvec.agents.probe import Probe
from planvec.analysis import corpus
from planvec.analysis.completion import auc, measure
from planvec.analysis.probes import fit_probe
from planvec.errors import InputError


class Eager(Difference):
    """Does what is most left to do; when nothing is left, something."""

    own: Probe | None = None  # its own, as episodes leave an agent's probe behind

    def choose(self, first, now, plans, key, greedy=False):
        return Choice(jnp.argmax(self.own(plans - self.encode(first, now)), axis=1), jnp.zeros(len(plans), bool))


class Idle(Difference):
    """Does one thing for ever."""

    def choose(self, first, now, plans, key, greedy=False):
        return Choice(jnp.zeros(len(plans), int), jnp.zeros(len(plans), bool))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(corpus, "BATCH", 64)


def told(kind, world, counts=1.0, scene=0.0):
    agent = kind(policy=None, encoder=Mixture((counts, 0.0, scene)))
    probe = fit_probe(agent, world, demos=100)
    agent = replace(agent, probe=probe, **({"own": probe} if kind is Eager else {}))
    return measure(agent, world, episodes=20)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_the_area_is_how_often_a_true_one_is_above_a_false_one(pairs):
    scores, truth = (np.array(part) for part in zip(*pairs, strict=True))
    above = [np.sign(yes - no) / 2 + 0.5 for yes in scores[truth] for no in scores[~truth]]
    expected = np.mean(above) if above else None
    assert auc(scores, truth) == pytest.approx(expected)


def test_linear_plans_tell_without_fail():
    seen = told(Eager, Counting())
    assert list(seen) == ["3", "1+1"] and seen == told(Eager, Hosted())
    for both in seen.values():
        for one in both.values():
            assert (one.auc, one.progress, one.early, one.missed) == (1, 1, 0, 0)
        assert both["own"].norm < 0.95  # what is done besides makes what is left longer again
    assert seen["3"]["own"].moments == 20 * 7 and seen["3"]["expert"].moments == 20 * 4


def test_plans_of_the_scene_alone_tell_nothing():
    for both in told(Eager, Counting(), counts=0.0, scene=1.0).values():
        assert both["expert"].auc == pytest.approx(0.5, abs=0.2)


def test_tasks_that_are_hardly_ever_done():
    idle = told(Idle, Counting())["3"]
    assert idle["own"].missed in (None, 0) and idle["own"].early == 0 and idle["expert"].auc == 1


def test_what_cannot_be_told():
    agent = Eager(policy=None, encoder=Mixture((1.0, 0.0, 0.0)))
    with pytest.raises(InputError, match="planvec probe"):
        measure(agent, Counting())
    with pytest.raises(InputError, match="at least one episode"):
        measure(replace(agent, probe=fit_probe(agent, Counting(), demos=20)), Counting(), episodes=0)
