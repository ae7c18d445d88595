"""Training: one jitted function that does many updates, and a plain loop around it that logs, saves and resumes.

Several seeds, and models that differ in the weights of their losses alone, train together in one program (their
networks become batched matrix products). Everything random about an update follows from (seed, step): how the steps are
cut into chunks, or what trains beside, is no matter.
"""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from tensorboardX import SummaryWriter
from tyro.conf import Positional

from planvec import losses
from planvec.agents import AGENTS, Agent, Weights, build, family
from planvec.checkpoints import load_json, load_tree, save_json, save_tree
from planvec.demos import Batch, PairSet
from planvec.errors import Failure, InputError
from planvec.provenance import provenance
from planvec.worlds import make

CONFIG, WEIGHTS, METRICS = "config.json", "weights.safetensors", "metrics.jsonl"
STATE, PREVIOUS = "state.safetensors", "state.previous.safetensors"
VALIDATION = 16  # looks at the validation pairs, each as large as four batches; their mean is logged
NARROWEST = 8  # outputs of a layer whose weights Muon takes
SCORED = 10  # intervals between two looks at how an agent does in its world


@dataclass(frozen=True)
class Config:
    """How to train one agent."""

    world: Positional[str] = "crafting"
    """Which world its demonstrations are from."""
    agent: str = "cpv-full"
    """Which of the ten models; see `planvec agents`."""
    seed: int = 0
    """Initial weights and the order of samples follow from it."""
    embedding: int | None = None
    """Numbers in a plan vector; unless given 512 in crafting, 64 in the other worlds."""
    samples: float | None = None
    """How many samples to train on, in all; unless given 60e6 in crafting, 10e6 on the tabletop and in doom."""
    batch: int = 1024
    """Samples in an update."""
    optimizer: Literal["muon", "adam"] = "muon"
    """Muon for the weight matrices (Adam for the rest), or Adam for all as in the paper."""
    learning_rate: float = 3e-3
    """The largest step size."""
    warmup: int = 4000
    """Updates over which the step size rises from zero; at most a tenth of all."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """Whether the step size then falls to zero along half a cosine, or stays."""
    weight_decay: float | None = None
    """Decoupled weight decay; unless given 0.1, on the tabletop 0.3. 0 is none, as in the paper."""
    ctr: float | None = None
    """tecnet's weight of imitation against its contrastive loss; 0.1 unless given."""
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """What the networks compute in; weights are kept in float32. auto: bfloat16 for images on an accelerator."""
    interval: int = 1000
    """Updates between two log lines; a checkpoint is written with each."""

    def __post_init__(self) -> None:
        if self.agent not in AGENTS:
            raise InputError(f"there is no agent '{self.agent}'; choose one of {', '.join(AGENTS)}")
        for name in ("embedding", "samples", "weight_decay"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(family(make(self.world).space), name))
        for name, kind in type(self).__annotations__.items():
            if get_origin(kind) is Literal and getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} is one of {', '.join(get_args(kind))}; got '{getattr(self, name)}'")
        if self.ctr is not None and not AGENTS[self.agent].weights.contrastive:
            raise InputError(f"ctr weighs imitation against tecnet's contrastive loss; {self.agent} has none")
        for name in ("embedding", "samples", "batch", "learning_rate", "interval"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be more than 0; got {getattr(self, name)}")
        if self.batch < 2:
            raise InputError("a batch needs at least 2 samples: each is contrasted with the next")

    @property
    def updates(self) -> int:
        return math.ceil(self.samples / self.batch)

    @property
    def weights(self) -> Weights:
        weights = AGENTS[self.agent].weights
        return weights if self.ctr is None else replace(weights, imitation=self.ctr)

    @property
    def program(self) -> tuple:
        """Equal for configs that may train together: those that differ in the seed and the losses' weights alone."""
        spec, own = AGENTS[self.agent], {"agent", "ctr", "seed", "interval"}
        return spec.conditioning, spec.normalise, *(value for key, value in asdict(self).items() if key not in own)

    def build(self, key: Array) -> Agent:
        return build(self.agent, make(self.world).space, self.embedding, key=key)


class State(NamedTuple):
    """All that changes while training."""

    agent: Agent
    optimizer: optax.OptState
    step: Array  # int32 [], updates done


class Diverged(Failure):
    """A loss is no longer a number."""


def train(
    configs: Sequence[Config],
    folders: Sequence[Path],
    pairs: PairSet,
    data: dict[str, Any],
    watch: Callable[[int, list[dict[str, float]]], None] = lambda step, metrics: None,
    score: Callable[[list[Agent]], list[dict[str, float]]] | None = None,
) -> list[Agent]:
    """Train agents together, each into a run folder of its own; goes on from their last common checkpoint.

    The configs may differ in their seed, and in the weights of their losses (see `grid`). `watch` is told after each
    interval; what it raises stops the training. `score` adds figures of its own to the log, every SCORED intervals.
    """
    config = configs[0]
    seeds, kinds = grid(configs)
    training, validation = pairs.split()
    states = _resume(configs, folders, data)
    chunk, validate = programs(kinds)
    logs = [Log(folder, int(states.step[0])) for folder in folders]
    try:
        while (step := int(states.step[0])) < config.updates:
            updates = min(config.interval, config.updates - step)
            began = time.perf_counter()
            states, metrics = chunk(states, training, seeds, updates)
            metrics |= {f"valid_{name}": value for name, value in validate(states.agent, validation).items()}
            rows = [{name: float(value) for name, value in row.items()} for row in _unstack(jax.device_get(metrics))]
            rate = updates * config.batch * len(configs) / (time.perf_counter() - began)
            rows = [row | {"samples_per_second": rate} for row in rows]
            _check_finite(rows, folders, step)
            each = _unstack(jax.device_get(states))
            if score and (step // config.interval) % SCORED == SCORED - 1:
                for row, scores in zip(rows, score([state.agent for state in each]), strict=True):
                    row |= scores
            for log, folder, row, state in zip(logs, folders, rows, each, strict=True):
                _save(folder, state)
                log.write(step + updates, row)
            watch(step + updates, rows)
    finally:
        for log in logs:
            log.close()
    return _unstack(states.agent)


def grid(configs: Sequence[Config]) -> tuple[Array, tuple[Config, ...]]:
    """The seeds of a training, and the kinds of agents trained with each: configs come seed by seed."""
    seeds = list(dict.fromkeys(config.seed for config in configs))
    kinds = tuple(dict.fromkeys(replace(config, seed=0, interval=1) for config in configs))
    if len({(config.program, config.interval) for config in configs}) != 1:
        raise InputError("agents that train together may differ in their seed and the weights of their losses alone")
    if [replace(config, interval=1) for config in configs] != [replace(kind, seed=s) for s in seeds for kind in kinds]:
        raise InputError("agents that train together must come seed by seed, each seed with the same kinds of agents")
    return jnp.array(seeds, jnp.uint32), kinds


def _unstack(tree: Any) -> list[Any]:
    """The trees of which this one is the stack."""
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(count)]


def _check_finite(rows: list[dict[str, float]], folders: Sequence[Path], step: int) -> None:
    for row, folder in zip(rows, folders, strict=True):
        if not all(map(math.isfinite, row.values())):
            raise Diverged(f"a loss is not a number after step {step}; {folder} keeps the weights from before")


@cache
def programs(kinds: tuple[Config, ...]) -> tuple[Callable, Callable]:
    """The two jitted functions of a training: so many updates, and a look at the validation pairs.

    They take the states or agents of a grid, flat: for each seed, those of all kinds.
    """
    config = kinds[0]
    optimizer, dtype = make_optimizer(config), precision(config)

    def weights(kind: Array) -> Weights:
        """Of the losses, for one kind. Those that are the same for all are constants of the program."""
        every = [one.weights for one in kinds]
        return jax.tree.map(lambda *each: each[0] if len(set(each)) == 1 else jnp.array(each)[kind], *every)

    def update(state: State, batch: Batch, kind: Array) -> tuple[State, dict[str, Array]]:
        def loss(agent: Agent) -> tuple[Array, dict[str, Array]]:
            return losses.total(agent, batch, weights(kind), dtype)

        (_, metrics), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(state.agent)
        changes, memory = optimizer.update(gradients, state.optimizer, state.agent)
        return State(eqx.apply_updates(state.agent, changes), memory, state.step + 1), metrics

    def update_kinds(states: State, pairs: PairSet, seed: Array) -> tuple[State, dict[str, Array]]:
        """All kinds with one seed: they see the same samples, so these are drawn once."""
        batch = pairs.sample(_key(seed, 1, states.step[0]), config.batch)
        return jax.vmap(update, in_axes=(0, None, 0))(states, batch, jnp.arange(len(kinds)))

    @jax.jit
    def chunk(states: State, pairs: PairSet, seeds: Array, updates: int) -> tuple[State, dict[str, Array]]:
        """`updates` is no constant of the program, so that the last and shorter chunk need not be compiled anew."""
        together = jax.vmap(update_kinds, in_axes=(0, None, 0))

        def body(_: int, carry: tuple[State, dict[str, Array]]) -> tuple[State, dict[str, Array]]:
            states, metrics = together(carry[0], pairs, seeds)
            return states, jax.tree.map(jnp.add, carry[1], metrics)

        states = jax.tree.map(lambda leaf: leaf.reshape(len(seeds), len(kinds), *leaf.shape[1:]), states)
        _, shapes = jax.eval_shape(together, states, pairs, seeds)
        zeros = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
        states, sums = jax.lax.fori_loop(0, updates, body, (states, zeros))
        means = jax.tree.map(lambda total: total / updates, sums)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (states, means))

    @jax.jit
    def validate(agents: Agent, pairs: PairSet) -> dict[str, Array]:
        count = len(jax.tree.leaves(agents)[0])

        def look(key: Array) -> dict[str, Array]:
            batch = pairs.sample(key, 4 * config.batch)
            each = jax.vmap(lambda agent, kind: losses.total(agent, batch, weights(kind), dtype)[1])
            return each(agents, jnp.arange(count) % len(kinds))

        figures = jax.lax.map(look, jax.random.split(jax.random.key(0), VALIDATION))
        return jax.tree.map(lambda figure: figure.mean(axis=0), figures)

    return chunk, validate


def make_optimizer(config: Config) -> optax.GradientTransformation:
    warmup = min(config.warmup, config.updates // 10)
    falls = optax.cosine_decay_schedule(config.learning_rate, config.updates - warmup)
    after = falls if config.schedule == "cosine" else optax.constant_schedule(config.learning_rate)
    rate = optax.join_schedules([optax.linear_schedule(0.0, config.learning_rate, warmup), after], [warmup])
    adam = optax.adamw(rate, weight_decay=config.weight_decay)
    if config.optimizer == "adam":
        return adam
    muon = optax.chain(
        optax.trace(decay=0.95, nesterov=True),
        optax.stateless(lambda momenta, _: _orthogonal_all(momenta, precision(config))),
        optax.add_decayed_weights(config.weight_decay),
        optax.scale_by_learning_rate(rate),
    )
    return optax.partition({"muon": muon, "adam": adam}, partial(jax.tree.map, _optimizer_of))


def _optimizer_of(weight: Array) -> str:
    """Muon takes matrices and kernels; Adam takes biases, and layers so narrow that they choose the action."""
    return "muon" if weight.ndim > 1 and weight.shape[-1] >= NARROWEST else "adam"


def _orthogonal_all(momenta: Any, dtype: Any) -> Any:
    """Matrices of one shape together: on a GPU the many small products cost more to start than to compute."""
    leaves, structure = jax.tree.flatten(momenta)
    for shape in dict.fromkeys(leaf.shape for leaf in leaves):
        alike = [i for i, leaf in enumerate(leaves) if leaf.shape == shape]
        turned = jax.vmap(partial(orthogonal, dtype=dtype))(jnp.stack([leaves[i] for i in alike]))
        for i, matrix in zip(alike, turned, strict=True):
            leaves[i] = matrix
    return jax.tree.unflatten(structure, leaves)


def orthogonal(momentum: Array, dtype: Any) -> Array:
    """Muon's step: near the closest orthogonal matrix, made as large as Adam's so that one step size serves both.

    A kernel (…, inputs, outputs) is one matrix. The iteration needs no more precision than the networks have.
    """
    matrix = momentum.reshape(-1, momentum.shape[-1])
    scale = 0.2 * max(matrix.shape) ** 0.5
    tall = matrix.shape[0] > matrix.shape[1]
    x = ((matrix.T if tall else matrix) / (jnp.linalg.norm(matrix) + 1e-8)).astype(dtype)
    a, b, c = 3.4445, -4.7750, 2.0315  # Jordan's: all singular values come near 1 in five rounds
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return scale * (x.T if tall else x).reshape(momentum.shape).astype(momentum.dtype)


def precision(config: Config) -> Any:
    """The dtype in which the networks compute."""
    if config.precision == "auto":
        on_cpu = jax.default_backend() == "cpu"
        return jnp.float32 if on_cpu else family(make(config.world).space).precision
    return jnp.dtype(config.precision)


def start(config: Config) -> State:
    """Fresh weights."""
    agent = config.build(_key(jnp.uint32(config.seed), 0, 0))
    return State(agent, make_optimizer(config).init(agent), jnp.int32(0))


def _key(seed: Array, purpose: int, step: int | Array) -> Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), step)


def _save(folder: Path, state: State) -> None:
    """The agent for those who want to use it, and all that is needed to go on: now, and one interval ago.

    Agents that train together go on from a step that all have saved, wherever between two saves a kill came.
    """
    if (folder / STATE).exists():
        os.replace(folder / STATE, folder / PREVIOUS)
    save_tree(folder / STATE, state)
    save_tree(folder / WEIGHTS, state.agent)


def _resume(configs: Sequence[Config], folders: Sequence[Path], data: dict[str, Any]) -> State:
    """The states to go on from: the latest step that all folders have saved, or fresh ones."""
    for config, folder in zip(configs, folders, strict=True):
        _open_run(config, folder, data)
    states = [start(config) for config in configs]
    saved = [_saved(folder, like) for folder, like in zip(folders, states, strict=True)]
    if common := set.intersection(*map(set, saved)):
        states = [by_step[max(common)] for by_step in saved]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def _saved(folder: Path, like: State) -> dict[int, State]:
    """The states in a folder, by step."""
    states = [load_tree(folder / name, like) for name in (STATE, PREVIOUS) if (folder / name).exists()]
    return {int(state.step): state for state in states}


def _open_run(config: Config, folder: Path, data: dict[str, Any]) -> None:
    """Make a run folder, or check that it is of the same training."""
    described = json.loads(json.dumps({"config": asdict(config), "data": data}))
    if (folder / CONFIG).exists():
        old = load_json(folder / CONFIG)
        for name, value in described["config"].items():
            if name != "interval" and old["config"].get(name) != value:
                known = old["config"].get(name)
                raise InputError(f"{folder} holds a training with {name} {known}, not {value}; choose another folder")
        if old.get("data") != described["data"]:
            raise InputError(f"{folder} holds a training on other data; choose another folder")
        return
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and no training of planvec; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    save_json(folder / CONFIG, described | {"made": provenance()})


class Log:
    """A run's metrics, as lines of JSON and for TensorBoard. Lines after the step gone on from are dropped."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / METRICS
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        kept = [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= step]
        self.path.write_text("".join(line + "\n" for line in kept))
        self.board = SummaryWriter(str(folder), purge_step=step, flush_secs=10)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **metrics}) + "\n")
        for name, value in metrics.items():
            self.board.add_scalar(name.replace("valid_", "valid/"), value, step)

    def close(self) -> None:
        self.board.close()
