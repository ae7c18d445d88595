"""planvec: plans from demonstrations, and arithmetic with them."""

from planvec.data.demonstrations import Demonstration
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.evaluation.acting import act
from planvec.evaluation.rollouts import rollout
from planvec.plans import Plan
from planvec.training.loading import load, load_pairs
from planvec.worlds import make
from planvec.worlds.registry import register_environments

__all__ = ["Demonstration", "InputError", "PairSet", "Plan", "act", "load", "load_pairs", "make", "rollout"]
__version__ = "0.1.0"

register_environments()
