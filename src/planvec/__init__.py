"""planvec: plans from demonstrations, and arithmetic with them."""

import gymnasium

from planvec.data.demonstrations import Demonstration
from planvec.data.folders import load as load_pairs
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.evaluation.rollouts import rollout
from planvec.plans import Plan
from planvec.training.loading import load
from planvec.worlds import make

__all__ = ["Demonstration", "InputError", "PairSet", "Plan", "load", "load_pairs", "make", "rollout"]
__version__ = "0.1.0"

gymnasium.register(
    "planvec/Crafting-v0",
    entry_point="planvec.worlds.crafting.gym:CraftingEnv",
    vector_entry_point="planvec.worlds.crafting.gym:CraftingVectorEnv",
)
gymnasium.register("planvec/Tabletop-v0", entry_point="planvec.worlds.tabletop.gym:TabletopEnv")
gymnasium.register("planvec/Doom-v0", entry_point="planvec.worlds.doom.gym:DoomEnv")
