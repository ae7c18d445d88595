from typing import NamedTuple

import numpy as np
import pytest
from own_world import Coins

from planvec.errors import InputError
from planvec.worlds import make, registrations
from planvec.worlds.check import check_world
from planvec.worlds.crafting.world import Crafting
from planvec.worlds.tabletop.world import Tabletop, TabletopSession


@pytest.mark.parametrize("name", [name for name, one in registrations().items() if not one.variant])
def test_our_worlds_keep_their_promises(name):
    check_world(make(name))


class Forgetful(Tabletop):
    def sample_tasks(self, seed, count, low, high):
        return super().sample_tasks((int(np.random.default_rng().integers(2**31)),), count, low, high)


class Moody(Crafting):
    def scenes(self, tasks, seed):
        return super().scenes(tasks, (int(np.random.default_rng().integers(2**31)),))


class Short(Crafting):
    def replay(self, recording, *rest):
        return type(states := super().replay(recording, *rest))(*(leaf[:-1] for leaf in states))


class Strict(Crafting):
    """Its `replay` insists on what the protocol lets callers leave out."""

    def replay(self, recording, progress):
        return super().replay(recording, progress)


class Silent(Crafting):
    def record(self, tasks, seed, noise=0.0, extras="discard", progress=None):
        return super().record(tasks, seed, noise, extras)


class Grey(Crafting):
    def decode(self, state):
        return self.observe(state)[..., :1]


class Timeless(Crafting):
    def horizon(self, sizes):
        return 0


class Restless(Tabletop):
    """Its sessions were written for `step(actions)`."""

    def start(self, scenes):
        return RestlessSession(self.pool, scenes)


class RestlessSession(TabletopSession):
    def step(self, actions):
        return super().step(actions, np.ones(len(actions), bool))


class Heedless(Tabletop):
    """Its sessions move what has ended."""

    def start(self, scenes):
        return HeedlessSession(self.pool, scenes)


class HeedlessSession(TabletopSession):
    def step(self, actions, going):
        return super().step(actions, np.ones(len(actions), bool))


class Steps(NamedTuple):
    coins: np.ndarray


class Tupled(Coins):
    def attempt(self, task, rng, noise):
        steps, actions = super().attempt(task, rng, noise)
        return Steps(steps), actions

    def events(self, steps, actions):
        return super().events(steps.coins, actions)


class Whole(Coins):
    """Knows of demonstrations to their ends alone."""

    def ends(self, recording):
        first, last, done = super().ends(recording)
        return first, last if recording.lengths.max() > 1 else first, done


class Hasty(Coins):
    """Replays the first demonstration alone in no time at all."""

    def replay(self, recording, progress=print):
        steps = recording.stored["steps"]
        return steps if recording.demonstrations > 2 else steps * 0


class Sketchy(Coins):
    def film(self, steps, actions):
        return ((time, picture[::2]) for time, picture in super().film(steps, actions))


class Changing(Coins):
    def __eq__(self, other):
        return False


@pytest.mark.parametrize(
    ("world", "promise"),
    [
        (Tupled, "`attempt` gives all steps as an array, or as a dict of arrays"),
        (Whole, "demonstrations that were cut short"),
        (Hasty, "`replay` gives the same of some demonstrations as of all"),
        (Sketchy, "`draw` gives a picture as `film` does"),
        (Changing, "can be hashed"),
        (Restless, "`step` of a session is called as in the protocol"),
        (Heedless, "`step` leaves an episode as it is that is not `going` on"),
        (Forgetful, "same seed"),
        (Moody, "`scenes` gives the same for the same seed"),
        (Short, "one step more"),
        (Strict, "`replay` is called as in the protocol"),
        (Silent, "`record` tells how many"),
        (Grey, "`space`"),
        (Timeless, "`horizon` of 4"),
    ],
)
def test_a_broken_promise_is_named(world, promise):
    with pytest.raises(InputError, match=promise):
        check_world(world())


def test_what_is_no_world_at_all():
    with pytest.raises(InputError, match="derive it from PureWorld or HostedWorld"):
        check_world(object())
