"""How much arithmetic the networks take, by the shapes of their layers; and how much of it the device could do.

Counted are the products of layers, 2 for each multiplication and addition, of convolutions as if nothing lay beyond the
border. Of g of a picture made of tiles a sample takes a product with the table of what each tile adds, nothing more:
the table itself is made once for all samples. A backward pass is twice a forward one, as it has two products (gradients
of inputs and of weights) for each of that.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
from jax import Array

from planvec.agents import Weights
from planvec.agents.agent import EmbeddingAgent
from planvec.agents.encoders import Encoder, ImageEncoder, Linear, convolved
from planvec.agents.policies import LayeredPolicy, Policy
from planvec.agents.potentials import TilePotential
from planvec.agents.residual import ResidualPolicy
from planvec.benchmarks.measure import Row, rate
from planvec.data.tiles import Tiled
from planvec.training import update
from planvec.training.config import Config
from planvec.training.losses import encoded
from planvec.training.ppo import Learner
from planvec.worlds.protocol import PyTree, World


def of_sample(agent: EmbeddingAgent, weights: Weights, seen: Tiled) -> int:
    """FLOP of training on one sample: g of each segment, the policy once; forward and backward."""
    segments = len(encoded(agent, weights))
    return 3 * 2 * (segments * of_encoder(agent.encoder, seen) + of_policy(agent.policy, seen))


def of_acting(learner: Learner, seen: Tiled) -> int:
    """FLOP of one action in practice: the policy and its estimate, and g of what has been done."""
    return 2 * (_of_look(learner, seen) + of_encoder(learner.agent.encoder, seen))


def of_learning(learner: Learner, seen: Tiled) -> int:
    """FLOP of learning from one action: the policy and its estimate, forward and backward. g stays as it is."""
    return 3 * 2 * _of_look(learner, seen)


def _of_look(learner: Learner, seen: Tiled) -> int:
    return of_policy(learner.agent.policy, seen) + of_layers(learner.value)


def of_encoder(encoder: Encoder, seen: Tiled) -> int:
    """Multiplications in g of two pictures."""
    if isinstance(encoder, ImageEncoder):
        return of_convolutions(encoder)
    assert isinstance(encoder, TilePotential)
    features = encoder.layers[-1].weight.shape[-1]
    return 2 * len(seen.atlas) * features


def of_policy(policy: Policy, seen: Tiled) -> int:
    """Multiplications in a policy, of one picture and one plan."""
    dense = of_layers((policy.layers, policy.head))
    if isinstance(policy, LayeredPolicy):
        assert isinstance(policy.network, ImageEncoder)
        return of_convolutions(policy.network) + dense
    assert isinstance(policy, ResidualPolicy)
    rows, columns = seen.tiles.shape
    blocks = sum(block.inner.size + block.outer.size for block in policy.blocks)
    queries = policy.queries.weight.size  # to ask at a place, and once more to add up what lies there
    reading = of_layers((policy.reader, [block.read for block in policy.blocks]))
    return rows * columns * (policy.tiles.weight.size + blocks + 2 * queries) + reading + dense


def of_convolutions(network: ImageEncoder) -> int:
    """Multiplications in convolutions, and the layer behind them, of one image."""
    height, width, _ = network.shape
    products = network.linear.weight.size
    for conv in network.convs:
        height = convolved(height, len(conv.weight), conv.stride, conv.padding)
        width = convolved(width, len(conv.weight), conv.stride, conv.padding)
        products += height * width * conv.weight.size
    return products


def of_layers(tree: PyTree) -> int:
    """Multiplications in all linear layers of a tree."""

    def linear(part: PyTree) -> bool:
        return isinstance(part, Linear)

    return sum(layer.weight.size for layer in jax.tree.leaves(tree, is_leaf=linear) if linear(layer))


def outline(world: World, steps: PyTree) -> Tiled:
    """What one picture of a world is, of which stored steps are given: its shape, not its tiles."""
    seen = eqx.filter_eval_shape(world.decode, jax.tree.map(lambda leaf: leaf[0], steps))
    assert isinstance(seen, Tiled)
    return seen


def matrix_peak(size: int | None = None, chain: int = 4) -> float:
    """FLOP/s in products of large square matrices, in the dtype that training computes in."""
    size = size or (2048 if jax.default_backend() == "cpu" else 16_384)
    matrix = jax.random.normal(jax.random.key(0), (size, size)) / size**0.5  # keeps its products near 1
    matrix = matrix.astype(update.precision(Config().resolved()))

    @jax.jit
    def multiply(x: Array) -> Array:
        product = x
        for _ in range(chain):
            product = product @ x
        return product

    return rate(multiply, matrix, count=chain * 2 * size**3)


def against_peak(row: Row, flops: float, peak: float) -> Iterator[Row]:
    """A rate of what takes so many FLOP each, as arithmetic, and as a share of what the device can do in products."""
    yield Row(row.what, "TFLOP/s", row.batch, row.rate * flops / 1e12)
    yield Row(row.what, "% of that peak", row.batch, 100 * row.rate * flops / peak)


def peak_row(peak: float) -> Row:
    return Row("largest matrix product", "TFLOP/s", 1, peak / 1e12)
