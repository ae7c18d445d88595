"""What becomes of episodes whose every action is known beforehand: in a pure world and in a hosted one, in `rollout`
and in `act`."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.counting import SKILLS, Counting
from oracles.outside import OutsideSession
from oracles.scripted import Fickle, Hosted, Scripted, Tireless, script, scripted

from planvec.agents.metric import Metric
from planvec.evaluation.acting import act
from planvec.evaluation.episodes import Moment, episodes, stack
from planvec.evaluation.judge import NEVER, Judge
from planvec.evaluation.rollouts import rollout
from planvec.worlds.sessions import PureSession

BOTH = pytest.mark.parametrize("world", [Counting(), Hosted()], ids=["pure", "hosted"])


def moments(world, texts, kind=Scripted, horizon=6, stop="own"):
    """Episodes that are asked for a and b, each with a script of its own. By probe, they end after two skills."""
    tasks = [("a", "b")] * len(texts)
    plans = jnp.asarray(np.stack([script(text) for text in texts]))[None]
    agents = stack([replace(scripted(kind=kind), metric=ANY)], stop)
    return episodes(agents, world, plans, world.scenes(tasks, (0,)), world.asked(tasks), KEY, horizon, stop=stop)


KEY = jax.random.key(0)
ANY = Metric(jnp.eye(1), jnp.float32(0))  # that there is one is enough


def verdicts(world, *texts, **options):
    judge = Judge(len(texts))
    for moment in moments(world, texts, **options):
        judge.see(moment)
    return judge.verdicts


@BOTH
def test_success_is_all_that_was_asked_for_in_any_order(world):
    said = verdicts(world, "ab.", "ba.", "acb.", "a.", "aa.", "cd.")
    assert said.success.tolist() == [True, True, True, False, False, False]
    assert said.success_at.tolist() == [2, 2, 3, NEVER, NEVER, NEVER]


def test_what_is_undone_later_was_a_success_and_does_not_stay():
    """As on a table, where another action may move what was in its place."""
    judge, yes, no = Judge(1), np.array([True]), np.array([False])
    for time, done in enumerate((no, no, yes, no)):
        judge.see(Moment(time, None, None, done, clean=yes, sane=yes, stopped=no, can_stop=False))
    said = judge.verdicts
    assert said.success.all() and said.exact.all() and said.success_at == 2
    assert not said.stays.any() and not said.stops.any()


@BOTH
def test_what_is_asked_for_twice_is_done_twice(world):
    judge = Judge(3)
    plans = jnp.asarray(np.stack([script(text) for text in ("a.", "aa.", "aaa.")]))[None]
    asked = world.asked([("a", "a")] * 3)
    for moment in episodes(stack([scripted()]), world, plans, world.scenes([("a",)] * 3, (0,)), asked, KEY, horizon=4):
        judge.see(moment)
    assert judge.verdicts.success.tolist() == [False, True, True]
    assert judge.verdicts.stops.tolist() == [False, True, False]


@BOTH
def test_what_is_done_besides_before_success_is_not_exact(world):
    said = verdicts(world, "ab.", "acb.", "aab.", "dab.", "abc.")
    assert said.success.all() and said.exact.tolist() == [True, False, False, False, True]


@BOTH
def test_what_is_done_after_success_does_not_stay(world):
    said = verdicts(world, "ab.", "abc.", "aba.", "acb.")
    assert said.success.all() and said.exact.tolist() == [True, True, True, False]
    assert said.stays.tolist() == said.stops.tolist() == [True, False, False, False]


@BOTH
def test_who_can_say_stop_and_does_not_does_not_stop(world):
    assert verdicts(world, "ab.", horizon=3).stops.all()
    said = verdicts(world, "ab.", horizon=2)
    assert said.stays.all() and not said.stops.any()
    assert verdicts(world, "ab.", horizon=2, kind=Tireless).stops.all()


@BOTH
def test_a_stop_ends_an_episode_in_the_world_too(world):
    """What the script has after it is never done."""
    *_, last = moments(world, ("a.bcd", "abcd", "...."))
    done = last.session.steps()[:, :SKILLS] - world.scenes([("a", "b")] * 3, (0,))[:, :SKILLS]
    np.testing.assert_array_equal(done, [[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    assert last.stopped.all() and last.done.tolist() == [False, True, False]
    assert last.clean.tolist() == [True, False, True]


@BOTH
def test_a_stop_is_not_heard_where_nobody_may_stop(world):
    said = verdicts(world, "a.b", stop="never", horizon=3)  # it does a in place of the stop, as its script has it
    assert said.success.all() and not said.exact.any()


@BOTH
def test_by_probe_an_episode_ends_where_the_probe_says_so(world):
    said = verdicts(world, "abc.", "ab", "ca", stop="probe")
    assert said.success.tolist() == said.stops.tolist() == [True, True, False]
    assert verdicts(world, "abcd", stop="own").stops.tolist() == [False]


@BOTH
def test_a_stop_cannot_be_taken_back(world):
    seen = list(moments(world, ("abcd",) * 16, kind=Fickle, horizon=4))
    stopped = np.array([moment.stopped for moment in seen])
    assert (stopped[1:] >= stopped[:-1]).all() and not stopped[0].any() and 0 < stopped[1].sum() < 16
    counts = seen[-1].session.steps()[:, :SKILLS].sum(axis=1)
    np.testing.assert_array_equal(counts, (~stopped[1:]).sum(axis=0))


class Fragile(Hosted):
    """Its first simulator breaks down at the first step, and never again."""

    def start(self, scenes):
        return FragileSession(PureSession(Counting(), scenes))


class FragileSession(OutsideSession):
    sound = False

    def step(self, actions, going):
        survived = super().step(actions, going)
        survived[0], self.sound = self.sound, True
        return survived


def test_who_broke_the_simulator_has_failed_for_good():
    said = verdicts(Fragile(), "ab.", "ab.")
    assert said.diverged.tolist() == [True, False] and said.success.tolist() == said.stops.tolist() == [False, True]


@BOTH
@pytest.mark.parametrize(
    ("text", "success", "exact"), [("ab.", True, True), ("acb.", True, False), ("cddc", False, False)]
)
def test_rollout_and_act_tell_what_is_exact_from_what_is_a_success(world, text, success, exact):
    agent = scripted(text)
    demo = world.demonstrate("a,b")
    episode = rollout(agent, agent.plan(demo), world, "a,b")
    performance = act(agent, world, "A", {"A": demo})
    told = performance.as_dict()
    for one in (episode, performance.episode):
        assert (one.success, one.exact) == (told["success"], told["exact"]) == (success, exact)
    verdict = "success, and nothing else" if exact else "success, and more" if success else "failure"
    assert verdict in performance.describe()
