"""Agents that do in a world of counts what a script says, so that it is known beforehand what becomes of them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from oracles.counting import SKILLS, Counting
from oracles.outside import OutsideSession

from planvec.agents.agent import Choice, Difference
from planvec.worlds.protocol import HostedWorld
from planvec.worlds.sessions import PureSession

LONGEST = 8  # entries of a script
STOP = -1.0  # an entry: nothing is left to do


def script(text: str) -> np.ndarray:
    """ "ab." is to do a, then b, then to say stop. float32 [LONGEST]"""
    entries = [STOP if letter == "." else Counting.skills.index(letter) for letter in text.ljust(LONGEST, ".")]
    return np.array(entries, np.float32)


class Scripted(Difference):
    """Its plans are scripts; whatever it is shown, its own is what it makes of it."""

    own: Array
    can_stop = True

    def encode(self, first, last):
        return jnp.broadcast_to(self.own, (len(first), LONGEST))

    def choose(self, first, now, plans, key, greedy=False):
        time = jnp.sum(now[:, :SKILLS] - first[:, :SKILLS], axis=1).astype(int)
        entry = plans[jnp.arange(len(plans)), jnp.minimum(time, LONGEST - 1)].astype(int)
        return Choice(jnp.maximum(entry, 0), entry == STOP)

    def finished(self, first, now, plans):
        """Where two skills have been done."""
        return jnp.sum(now[:, :SKILLS] - first[:, :SKILLS], axis=1) >= 2


class Tireless(Scripted):
    """Cannot say stop, and does the first skill where its script says so."""

    can_stop = False

    def choose(self, first, now, plans, key, greedy=False):
        action, stop = super().choose(first, now, plans, key)
        return Choice(action, jnp.zeros_like(stop))


class Fickle(Scripted):
    """Says stop by the toss of a coin."""

    def choose(self, first, now, plans, key, greedy=False):
        action, stop = super().choose(first, now, plans, key)
        return Choice(action, jax.random.bernoulli(key, 0.5, stop.shape))


def scripted(text: str = "", kind: type[Scripted] = Scripted) -> Scripted:
    return kind(policy=None, encoder=None, own=jnp.asarray(script(text)))


class Hosted(HostedWorld):
    """The world of counts, stepped from outside."""

    name, space, skills, sizes, conditions = "hosted", None, Counting.skills, Counting.sizes, Counting.conditions
    sample_tasks, record, ends = Counting.sample_tasks, Counting.record, Counting.ends
    events, scenes, horizon = Counting.events, Counting.scenes, Counting.horizon
    sample_parts = Counting.sample_parts

    def start(self, scenes):
        return OutsideSession(PureSession(Counting(), scenes))
