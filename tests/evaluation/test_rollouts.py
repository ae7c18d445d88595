"""Episodes go on until their agent stops or the horizon comes, and say what came after success."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from own_world import COINS, HOMES, at_home

from planvec.agents.agent import Choice, Difference
from planvec.agents.probe import Probe
from planvec.errors import InputError
from planvec.evaluation.acting import act
from planvec.evaluation.rollouts import LATER, rollout
from planvec.media.filming import captioned
from planvec.worlds import make

WORLD = make("own_world:Coins")


class Scripted(Difference):
    """Brings some coins home, one after the other, and then says so, if it can."""

    coins: tuple[int, ...] = eqx.field(static=True)
    says: bool = eqx.field(static=True)

    @property
    def can_stop(self):
        return self.says

    def encode(self, first, last):
        return self._home(last) - self._home(first)

    def choose(self, first, now, plans, key, greedy=False):
        left = jnp.stack([1 - self._home(now)[:, coin] for coin in self.coins], axis=1)
        coin = jnp.array(self.coins)[jnp.argmax(left, axis=1)]
        places = now.reshape(-1, 3, 3)[jnp.arange(len(now)), coin, :2]
        over = jnp.max(left, axis=1) < 1
        nowhere = jnp.full((len(now), 4), 9.0)
        action = jnp.where(over[:, None], nowhere, jnp.concatenate([places, jnp.array(HOMES)[coin]], axis=1))
        return Choice(action, over & self.says)

    def _home(self, seen):
        return (jnp.linalg.norm(seen.reshape(-1, 3, 3)[..., :2] - jnp.array(HOMES), axis=-1) < 0.02).astype(float)


def scripted(*coins, can_stop=False):
    probe = Probe(weights=jnp.eye(3), error=jnp.zeros(3), skills=COINS)
    numbers = tuple(COINS.index(coin) for coin in coins)
    return Scripted(policy=None, encoder=jnp.zeros(1), probe=probe, coins=numbers, says=can_stop)


def episode(agent, task="Gold", plan=(1.0, 0.0, 0.0), **options):
    return rollout(agent, agent.wrap(jnp.array(plan)), WORLD, task, **options)


def told(one):
    """An episode's verdicts."""
    return one.success, one.exact, one.stays, one.stopped


def test_an_agent_that_cannot_stop_goes_on_to_the_horizon():
    one = episode(scripted("Gold"))
    assert told(one) == (True, True, True, False) and one.success_at == 1 and one.after == ()
    assert len(one) == one.whole == WORLD.horizon([1]) == 3 and at_home(one.steps).any(axis=1).sum() == 3
    assert one.describe() == (
        "the agent did Gold in 1 step: success, and nothing else; then it did nothing more until the horizon, step 3"
    )


def test_what_came_after_success_is_told():
    one = episode(scripted("Gold", "Copper"))
    assert told(one) == (True, True, False, False) and one.before == ("Gold",) and one.after == ("Copper",)
    assert one.skills_done == ("Gold", "Copper") and "then it did Copper until the horizon" in one.describe()
    more = episode(scripted("Silver", "Gold"))
    assert told(more) == (True, False, False, False) and more.success_at == 2 and more.after == ()
    assert "did Silver, Gold in 2 steps: success, and more; then it did nothing more" in more.describe()


def test_an_agent_that_stops_ends_its_episode():
    one = episode(scripted("Gold", can_stop=True), horizon=9)
    assert told(one) == (True, True, True, True) and len(one) == one.whole == one.success_at == 1
    assert one.describe().endswith("success, and nothing else; then it did nothing more and stopped")
    early = episode(scripted("Silver", can_stop=True))
    assert told(early) == (False, False, False, True) and early.success_at is None and early.before == ("Silver",)
    assert early.describe() == "the agent did Silver in 1 step, and stopped: failure"


def test_an_agent_that_stops_at_once_has_done_nothing():
    agent = scripted("Gold", can_stop=True)
    one = episode(agent, "Silver", (0.0, 0.0, 0.0), stop="probe")
    assert told(one) == (False, False, False, True) and len(one) == 0 and one.actions.shape == (0, 4)
    assert one.describe() == "the agent did nothing in 0 steps, and stopped: failure"


def test_who_may_end_an_episode():
    """A probe may for those that cannot; and nobody must."""
    assert told(episode(scripted("Gold"), stop="probe")) == (True, True, True, True)
    by_probe = episode(scripted("Gold", "Silver"), stop="probe", horizon=9)
    assert len(by_probe) == 1 and by_probe.stopped
    never = episode(scripted("Gold", can_stop=True), stop="never", horizon=9)
    assert told(never) == (True, True, True, False) and len(never) == 9
    blind = replace(scripted("Gold"), probe=None)
    with pytest.raises(InputError, match="no probe"):
        episode(blind, stop="probe")
    with pytest.raises(InputError, match="agents stop by own, probe, never; got 'horizon'"):
        episode(scripted("Gold"), stop="horizon")


def test_an_expression_is_acted_on_until_its_agent_stops():
    demos = {"A": "Gold", "B": "Copper"}
    done = act(scripted("Gold", "Copper"), WORLD, "A + B", demos, stop="probe")
    report = done.as_dict()
    assert report["stopped"] and report["stays"] and report["success_at"] == report["steps"] == 2
    assert done.describe().endswith("success, and nothing else; then it did nothing more and stopped")
    further = act(scripted("Gold", "Copper", "Silver"), WORLD, "A + B", demos).as_dict()
    assert further["after"] == ["Silver"] and not further["stays"] and not further["stopped"]
    assert further["success"] and further["exact"] and further["steps"] == WORLD.horizon([1, 1])


def test_a_film_marks_success_and_is_cut_some_steps_later(tmp_path):
    one = episode(scripted("Gold", "Copper"), horizon=50)
    film = list(captioned(WORLD, one, "the agent"))
    assert len(film) == 1 + 1 + LATER and len(one) == 50
    lines = [lines for _, lines in film]
    assert lines[0] == ["# the agent", "[ ] Gold", "step 0 of 50"]
    assert lines[1] == ["# the agent", "[x] Gold", "step 1 of 50", "success at step 1, and nothing else"]
    assert lines[-1][2:] == [f"step {1 + LATER} of 50", lines[1][3], "cut here: the agent goes on"]
    assert len(replace(one, stopped=True).filmed) == 50
    one.save(tmp_path / "one.gif")
    assert (tmp_path / "one.gif").read_bytes().startswith(b"GIF89a")


def test_a_film_of_an_agent_that_stops_shows_all_of_it():
    one = episode(scripted("Gold", "Copper", "Silver", can_stop=True), horizon=50)
    lines = [lines for _, lines in captioned(WORLD, one, "the agent")]
    assert len(lines) == 4 and lines[-1][2:] == [
        "step 3 of 3",
        "success at step 1, and nothing else",
        "the agent has stopped",
    ]
    failed = episode(scripted("Silver"), horizon=30)
    assert len(list(captioned(WORLD, failed, "the agent"))) == 31
    demo = WORLD.demonstrate("Gold")
    assert [lines[-1] for _, lines in captioned(WORLD, demo, "the expert")] == ["step 0 of 1", "step 1 of 1"]
    np.testing.assert_array_equal(demo.filmed.steps, demo.steps)
