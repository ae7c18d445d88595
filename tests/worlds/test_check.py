import numpy as np
import pytest

from planvec.errors import InputError
from planvec.worlds import WORLDS, make
from planvec.worlds.check import check_world
from planvec.worlds.crafting.world import Crafting
from planvec.worlds.tabletop.world import Tabletop


@pytest.mark.parametrize("name", WORLDS)
def test_our_worlds_keep_their_promises(name):
    check_world(make(name))


class Forgetful(Tabletop):
    def sample_tasks(self, seed, count, low, high):
        return super().sample_tasks((int(np.random.default_rng().integers(2**31)),), count, low, high)


class Short(Crafting):
    def replay(self, demos, progress):
        return type(states := super().replay(demos, progress))(*(leaf[:-1] for leaf in states))


class Grey(Crafting):
    def decode(self, state):
        return self.observe(state)[..., :1]


class Timeless(Crafting):
    def horizon(self, sizes):
        return 0


@pytest.mark.parametrize(
    ("world", "promise"),
    [(Forgetful, "same seed"), (Short, "one step more"), (Grey, "`space`"), (Timeless, "`horizon` of 4")],
)
def test_a_broken_promise_is_named(world, promise):
    with pytest.raises(InputError, match=promise):
        check_world(world())


def test_what_is_no_world_at_all():
    with pytest.raises(InputError, match="no `name`"):
        check_world(object())
