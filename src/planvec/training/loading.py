"""Agents by name, the ones shipped with planvec and those in run folders; and demonstrations by folder."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import equinox as eqx
import jax

from planvec.agents import Agent
from planvec.agents.metric import load_metric
from planvec.agents.probe import load_probe
from planvec.data import folders
from planvec.data.pairs import PairSet
from planvec.errors import InputError
from planvec.io.checkpoints import load_tree
from planvec.training.config import Config
from planvec.training.runs import WEIGHTS, read_config
from planvec.worlds import make

SHIPPED = Path(str(resources.files("planvec"))) / "weights"


def load(name: str | Path) -> Agent:
    """An agent: "crafting" is the shipped one of that world; a path, written with a slash, is a run's folder."""
    agent, _ = load_with_config(name)
    return agent


def load_pairs(folder: Path | str) -> PairSet:
    """The pairs of demonstrations in a folder, on the accelerator."""
    return folders.load(Path(folder), make(folders.world_of(Path(folder))))


def load_with_config(name: str | Path) -> tuple[Agent, Config]:
    """An agent, and how it was trained."""
    folder = find(name)
    config = read_config(folder).resolved()
    outline = eqx.filter_eval_shape(config.build, jax.random.key(0))
    agent = load_tree(folder / WEIGHTS, like=outline)
    probe = load_probe(folder, agent.fingerprint)
    metric = load_metric(folder, agent.fingerprint)
    return replace(agent, probe=probe, metric=metric), config


def find(name: str | Path) -> Path:
    """The folder that holds an agent."""
    if isinstance(name, Path) or "/" in name:
        folder = Path(name)
        if not (folder / WEIGHTS).exists():
            raise InputError(
                f"{folder} is not a run: it has no {WEIGHTS}; train one, planvec train WORLD --out {folder}, "
                f"or name a shipped agent: {', '.join(shipped())}"
            )
        return folder
    if name not in shipped():
        raise InputError(
            f"no shipped agent is called '{name}' (there is {', '.join(shipped())}); "
            f"for a run of your own write its path with a slash, as in ./{name}"
        )
    return SHIPPED / name


def shipped() -> list[str]:
    """The agents that come with planvec, by name."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{WEIGHTS}"))
