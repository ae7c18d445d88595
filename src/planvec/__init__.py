"""planvec: plans from demonstrations, and arithmetic with them."""

import gymnasium

from planvec import compilation
from planvec.demos import Demonstration, PairSet
from planvec.errors import InputError
from planvec.worlds import make

__all__ = ["Demonstration", "InputError", "PairSet", "make"]
__version__ = "0.1.0"

compilation.keep_compiled_programs()
gymnasium.register(
    "planvec/Crafting-v0",
    entry_point="planvec.worlds.crafting.gym:CraftingEnv",
    vector_entry_point="planvec.worlds.crafting.gym:CraftingVectorEnv",
)
