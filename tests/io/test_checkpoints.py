import jax
import numpy as np
import pytest

from planvec.agents import build
from planvec.errors import InputError
from planvec.io.checkpoints import load_json, load_tree, save_json, save_tree
from planvec.worlds.spaces import Images


def agent(name="cpv-full", seed=0, embedding=16):
    return build(name, Images((33, 30, 3), 6), embedding, key=jax.random.key(seed))


def test_round_trip(tmp_path):
    save_tree(tmp_path / "w.safetensors", agent(seed=1))
    back = load_tree(tmp_path / "w.safetensors", agent(seed=0))
    jax.tree.map(np.testing.assert_array_equal, back, agent(seed=1))
    assert back.fingerprint == agent(seed=1).fingerprint


@pytest.mark.parametrize("other", [{"name": "te-full"}, {"embedding": 32}])
def test_weights_of_another_kind(tmp_path, other):
    save_tree(tmp_path / "w.safetensors", agent(**other))
    with pytest.raises(InputError, match="another kind"):
        load_tree(tmp_path / "w.safetensors", agent())


def test_files_that_are_not_there_or_not_ours(tmp_path):
    with pytest.raises(InputError, match="there is no"):
        load_tree(tmp_path / "w", agent())
    (tmp_path / "w").write_bytes(b"hello")
    with pytest.raises(InputError, match="not a file of weights"):
        load_tree(tmp_path / "w", agent())
    with pytest.raises(InputError, match="there is no"):
        load_json(tmp_path / "c.json")
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        load_json(tmp_path / "c.json")
    save_json(tmp_path / "c.json", {"a": 1})
    assert load_json(tmp_path / "c.json") == {"a": 1}
