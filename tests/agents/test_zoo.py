from types import SimpleNamespace

import equinox as eqx
import jax
import numpy as np
import pytest

from planvec.agents import AGENTS, Agent, Weights, build
from planvec.agents.agent import Concatenate, Difference, Static
from planvec.agents.encoders import ImageEncoder
from planvec.agents.policies import LayeredPolicy
from planvec.agents.potentials import NetworkPotential, RelationPotential, TilePotential
from planvec.agents.residual import ResidualPolicy
from planvec.data.pairs import Batch
from planvec.errors import InputError
from planvec.training import losses
from planvec.worlds.spaces import Images, Objects, View

SHAPE = (33, 30, 3)
SPACE = Images(SHAPE, actions=6)
VIEW = View((60, 80, 3), waypoints=4, actions=3)
NAMES = ["naive", "tecnet"] + [
    f"{kind}-{losses}" for kind in ("te", "cpv") for losses in ("plain", "pair", "hom", "full")
]
PARAMETERS = {"naive": 411_126, "tecnet": 807_590, "te": 807_590, "cpv": 807_158}


def outline(name: str, embedding: int = 512) -> Agent:
    """The agent's shapes, without its numbers."""
    return eqx.filter_eval_shape(build, name, SPACE, embedding, key=jax.random.key(0))


def size(tree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def test_the_ten_names_in_the_papers_order_and_one_past_them():
    assert list(AGENTS) == [*NAMES, "potential"]
    assert all(spec.description and "\n" not in spec.description for spec in AGENTS.values())


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_outputs(name):
    agent = outline(name)
    assert size(agent) == PARAMETERS[name.split("-")[0]]
    assert {leaf.dtype for leaf in jax.tree.leaves(agent)} == {np.dtype(np.float32)}
    image = np.zeros((2, *SHAPE), np.uint8)
    outputs = eqx.filter_eval_shape(lambda a: a.outputs(image, image, a.encode(image, image)), agent)
    assert outputs.shape == (2, 6)


@pytest.mark.parametrize(("name", "images"), [("naive", 4), ("te-plain", 2), ("tecnet", 2), ("cpv-plain", 1)])
def test_what_the_policy_sees(name, images):
    agent = outline(name, embedding=64)
    assert agent.policy.network.convs[0].weight.shape == (3, 3, 3 * images, 16)
    assert agent.policy.network.linear.weight.shape == (576, 512)
    plan = 0 if name == "naive" else 64
    assert [layer.weight.shape for layer in agent.policy.layers] == [(512 + plan, 64), (64, 64), (64, 64), (64, 64)]
    assert agent.policy.head.linear.weight.shape == (64, 6)
    if name != "naive":
        assert agent.encoder.convs[0].weight.shape == (3, 3, 6, 16)
        assert agent.encoder.linear.weight.shape == (576, 64)


def test_the_ten_models_as_the_paper_has_them():
    for name in NAMES:
        spec = AGENTS[name]
        kind, *variant = name.split("-")
        weights = spec.weights
        assert spec.conditioning == {"naive": "concatenate", "cpv": "difference"}.get(kind, "static")
        assert spec.normalise == (kind == "tecnet")
        assert weights.hom == (variant in (["hom"], ["full"]))
        assert weights.pair == (variant in (["pair"], ["full"]))
        assert (weights.imitation, weights.contrastive) == ((0.1, 1) if kind == "tecnet" else (1, 0))
        assert weights.alike == weights.stop == weights.cancelling == 0 and spec.networks is None
        assert not outline(name, embedding=16).can_stop


def test_kinds():
    kinds = {"naive": Concatenate, "tecnet": Static, "te-hom": Static, "cpv-hom": Difference}
    for name, kind in kinds.items():
        assert type(outline(name)) is kind


def test_g_and_pi_start_from_different_weights_and_the_key_decides():
    agent = build("te-plain", SPACE, embedding=16, key=jax.random.key(0))
    assert not np.allclose(agent.encoder.convs[0].weight, agent.policy.network.convs[0].weight)
    again = build("te-full", SPACE, embedding=16, key=jax.random.key(0))
    assert agent.fingerprint == again.fingerprint


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no agent 'cpv'; choose one of naive, tecnet"):
        build("cpv", SPACE, embedding=512, key=jax.random.key(0))


@pytest.mark.parametrize(("name", "sees"), [("naive", 4), ("te-plain", 2), ("tecnet", 2), ("cpv-full", 1)])
def test_agents_that_see_objects(name, sees):
    agent = build(name, Objects(6), key=jax.random.key(0))
    plan = 0 if name == "naive" else 64
    assert agent.policy.layers[0].weight.shape == (18 * sees + plan, 256) and not agent.policy.network.layers
    where = np.zeros((2, 18), np.float32)
    plans = agent.encode(where, where)
    assert name == "naive" or plans.shape == (2, 64)
    assert agent.choose(where, where, plans, jax.random.key(0)).action.shape == (2, 4)


def test_the_papers_networks_see_positions_alone():
    agent = build("cpv-full", Objects(6), networks="paper", key=jax.random.key(0))
    assert [layer.weight.shape for layer in agent.encoder.layers] == [(36, 256), (256, 256), (256, 64)]
    assert agent.policy.head.place.weight.shape == (256 + 6, 2)
    where = np.zeros((2, 18), np.float32)
    assert agent.choose(where, where, agent.encode(where, where), jax.random.key(0)).action.shape == (2, 4)
    with pytest.raises(InputError, match="relations or paper"):
        build("cpv-full", Objects(6), networks="transformer", key=jax.random.key(0))


BOARDS = {  # by the name of their networks, g and the policy
    "paper": (ImageEncoder, LayeredPolicy),
    "potential": (TilePotential, ResidualPolicy),
    "paper-g": (ImageEncoder, ResidualPolicy),
    "paper-policy": (TilePotential, LayeredPolicy),
}


@pytest.mark.parametrize("networks", BOARDS)
def test_networks_for_boards_by_name(networks):
    agent = eqx.filter_eval_shape(build, "potential", SPACE, 16, networks, key=jax.random.key(0))
    assert type(agent) is Difference and (type(agent.encoder), type(agent.policy)) == BOARDS[networks]
    image = np.zeros((2, *SHAPE), np.uint8)
    outputs = eqx.filter_eval_shape(lambda a: a.outputs(image, image, a.encode(image, image)), agent)
    assert outputs.action.shape == (2, 6) and outputs.stop.shape == (2,)


def test_potential_has_networks_of_its_own_unless_told():
    board = eqx.filter_eval_shape(build, "potential", SPACE, key=jax.random.key(0))
    assert (type(board.encoder), type(board.policy)) == BOARDS["potential"]
    assert board.encoder.layers[-1].weight.shape[-1] == 64  # numbers in a plan
    objects = eqx.filter_eval_shape(build, "potential", Objects(6), key=jax.random.key(0))
    assert type(objects.encoder) is RelationPotential and objects.encoder.linear.weight.shape[-1] == 64
    views = eqx.filter_eval_shape(build, "potential", VIEW, key=jax.random.key(0))
    assert type(views.encoder) is NetworkPotential and views.encoder.network.linear.weight.shape[-1] == 64


@pytest.mark.parametrize("name", ["naive", "te-full"])
@pytest.mark.parametrize("networks", ["potential", "paper-g"])
def test_a_policy_for_boards_sees_one_picture_and_a_plan(name, networks):
    with pytest.raises(InputError, match="one picture and a plan"):
        build(name, SPACE, 16, networks, key=jax.random.key(0))


@pytest.mark.parametrize("space", [SPACE, Objects(6), VIEW])
def test_an_agent_can_stop_where_that_is_weighed(space):
    def can_stop(name, **changes):
        return eqx.filter_eval_shape(build, name, space, 16, key=jax.random.key(0), **changes).can_stop

    assert can_stop("cpv-full", weights=Weights(stop=0.3)) and can_stop("naive", weights=Weights(stop=0.3))
    assert not can_stop("cpv-full") and not can_stop("cpv-full", weights=Weights(alike=1.0, cancelling=0.5))
    assert can_stop("potential") and not can_stop("potential", weights=Weights())


def views(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *VIEW.image), np.uint8)
    return {"image": images, "waypoints": rng.normal(size=(count, 4, 3)).astype(np.float32)}


@pytest.mark.parametrize("name", NAMES)
def test_agents_that_see_views(name):
    agent = eqx.filter_eval_shape(build, name, VIEW, key=jax.random.key(0))
    kind = name.split("-")[0]
    sees, plan = {"naive": (4, 0), "cpv": (1, 64)}.get(kind, (2, 64))
    assert size(agent) == {"naive": 645_683, "cpv": 998_771}.get(kind, 1_003_043)
    network = agent.policy.network
    assert network.images.convs[0].weight.shape == (5, 5, 3 * sees, 16)
    assert network.waypoints.layers[0].weight.shape == (12 * sees, 256)
    assert [layer.weight.shape for layer in agent.policy.layers] == [(512 + plan, 64), (64, 64), (64, 64), (64, 64)]
    seen = views(2)
    outputs = eqx.filter_eval_shape(lambda a: a.outputs(seen, seen, a.encode(seen, seen)), agent)
    assert outputs.shape == (2, 3)
    batch = Batch(seen, seen, seen, np.zeros(2, np.uint8), seen, seen, over=np.zeros(2, bool), next=seen)
    loss, metrics = eqx.filter_eval_shape(lambda a: losses.total(a, batch, AGENTS[name].weights), agent)
    assert loss.shape == () and {"imitation", "accuracy", "loss"} <= metrics.keys()


def test_naive_reads_the_mean_of_views():
    """Whether references are added as plans, one by one, or in batches by a program."""
    naive = build("naive", VIEW, key=jax.random.key(0))
    parts = [(views(1, seed=i), views(1, seed=10 + i)) for i in range(3)]
    one_by_one = [jax.tree.map(lambda leaf: leaf[0], part) for part in parts]
    plan = sum(naive.plan(SimpleNamespace(first=first, last=last)) for first, last in one_by_one)
    in_batches = jax.tree.map(lambda leaf: leaf[0], naive.add(parts))
    for end in (0, 1):
        for name in ("image", "waypoints"):
            expected = np.mean([part[end][name].astype(np.float64) for part in one_by_one], axis=0)
            for read in (naive.values(plan), in_batches):
                np.testing.assert_allclose(read[end][name], expected, rtol=1e-5, atol=1e-6)


def test_a_space_without_networks_is_named():
    with pytest.raises(ValueError, match="no networks for tuple"):
        build("cpv-full", (), key=jax.random.key(0))
