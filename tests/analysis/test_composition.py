import jax
import numpy as np
import pytest
from oracles.counting import Counting, Mixture

from planvec.agents import build
from planvec.agents.agent import Difference, Static
from planvec.analysis import corpus
from planvec.analysis.composition import fit, measure, table
from planvec.errors import InputError
from planvec.worlds import make


def measured(counts, order, scene, scaled=False, constant=0.0, normalise=None, tasks=64):
    encoder = Mixture((counts, order, scene), scaled, constant)
    if normalise is None:
        return measure(Difference(policy=None, encoder=encoder), Counting(), tasks)
    return measure(Static(policy=None, encoder=encoder, normalise=normalise), Counting(), tasks)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(corpus, "BATCH", 64)


def test_plans_that_are_linear_in_skill_counts():
    found = measured(1.0, 0.0, 0.0)
    assert found.sums.retrieval == 1 and 20 < found.sums.candidates <= 35
    errors = (found.sums.error, found.sums.again, found.parts.error)
    assert max(errors) < 1e-5 and min(found.sums.unrelated, found.parts.unrelated) > 0.3
    assert found.counts.r2 > 0.9999 and found.counts.explained > 0.9999
    assert set(found.counts.r2_by_skill) == set("abcd") and min(found.counts.r2_by_skill.values()) > 0.9999
    assert found.leaks.scene < 1e-6 and found.leaks.order < 1e-6
    assert found == measured(1.0, 0.0, 0.0)  # seeds are fixed


def test_plans_that_know_nothing_but_the_scene():
    found = measured(0.0, 0.0, 1.0, tasks=256)
    assert found.sums.retrieval < 4 / found.sums.candidates
    assert found.sums.error == pytest.approx(found.sums.unrelated, rel=0.1)
    assert found.parts.error == pytest.approx(1, rel=1e-4)  # both parts are the same as the whole
    assert abs(found.counts.r2) < 0.05 and abs(found.counts.explained) < 0.05
    assert found.leaks.scene == pytest.approx(1, abs=0.05) and found.leaks.order == pytest.approx(1, abs=0.05)


def test_order_and_scene_leak_apart():
    ordered, placed = measured(1.0, 0.5, 0.0), measured(1.0, 0.0, 0.2)
    assert ordered.leaks.scene < 1e-6 and ordered.leaks.order > 0.2
    assert placed.leaks.scene == pytest.approx(placed.leaks.order, rel=0.1) and placed.leaks.scene > 0.1
    assert 0.5 < ordered.counts.explained < 0.99 and 0.5 < placed.counts.explained < 0.99
    assert 0.05 < placed.sums.again < placed.sums.error < placed.sums.unrelated


def test_a_constant_in_all_plans_is_the_plan_of_nothing():
    none, some, much = (measured(1.0, 0.0, 0.0, constant=constant) for constant in (0.0, 1.0, 1000.0))
    assert none.nothing.mean == 0 and 0.2 < some.nothing.mean < 0.9 and much.nothing.mean == pytest.approx(1, rel=0.01)
    assert none.sums.error < some.sums.error < much.sums.error == pytest.approx(1, rel=0.01)  # it is there twice


def test_plans_are_compared_as_the_policy_reads_them():
    """Scaled at random, plans of the same skills differ in length alone; a policy that reads unit vectors is blind to
    it."""
    raw, read = (measured(1.0, 0.0, 0.0, scaled=True, normalise=normalise) for normalise in (False, True))
    assert raw.sums.again > 0.5 and raw.leaks.scene > 0.3
    assert read.sums.again < 1e-5 and read.leaks.scene < 1e-5 and read.parts.error < 1e-5


def test_a_fit_finds_what_is_linear_and_shrinks_what_is_noise():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(300, 20)), rng.normal(size=(20, 3))
    np.testing.assert_allclose(fit(x, x @ weights + 5)(x), x @ weights + 5, atol=1e-4)
    predicted = fit(x, rng.normal(size=(300, 3)))(rng.normal(size=(50, 20)))
    assert predicted.std() < 0.3


def test_what_cannot_be_measured():
    space = make("crafting").space
    with pytest.raises(InputError, match="without plan vectors"):
        measure(build("naive", space, key=jax.random.key(0)), Counting())
    with pytest.raises(InputError, match="at least 8"):
        measured(1.0, 0.0, 0.0, tasks=4)
    with pytest.raises(InputError, match="not finite"):
        measured(float("nan"), 0.0, 0.0)


def test_the_tabletop_and_the_table():
    world = make("tabletop")
    agent, seen = build("cpv-full", world.space, 16, key=jax.random.key(0)), []
    found = measure(agent, world, tasks=8, progress=lambda *told: seen.append(told))
    assert list(found.counts.r2_by_skill) == list(world.skills)  # the lid is asked for too, and is no skill
    assert seen[-1] == (found.demonstrations, found.demonstrations)
    assert table("agent", found.as_dict()).row_count == 9 + len(found.counts.r2_by_skill)
