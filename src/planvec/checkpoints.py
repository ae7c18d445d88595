"""Weights on disk: named tensors in safetensors files, and what they are in JSON beside them. No pickles."""

import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from planvec import files
from planvec.errors import InputError

Tree = TypeVar("Tree")


def save_tree(path: Path, tree: Any) -> None:
    """Write every array of a pytree under its path in the tree."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _named(tree).items()}
    files.write(path, safetensors.numpy.save(arrays))


def load_tree(path: Path, like: Tree) -> Tree:
    """Read a pytree of the same structure and shapes as `like`, or as the arrays of which that is an outline."""
    try:
        arrays = safetensors.numpy.load_file(path)
    except FileNotFoundError:
        raise InputError(f"there is no {path}") from None
    except SafetensorError as error:
        raise InputError(f"{path} is not a file of weights: {error}") from None
    wanted = _named(like)
    if arrays.keys() != wanted.keys() or any(arrays[name].shape != wanted[name].shape for name in wanted):
        raise InputError(f"{path} holds the weights of another kind of agent")
    names = iter(wanted)
    return jax.tree.map(lambda leaf: arrays[next(names)].astype(leaf.dtype), like)


def save_json(path: Path, content: Any) -> None:
    files.write(path, json.dumps(content, indent=1) + "\n")


def load_json(path: Path) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InputError(f"there is no {path}") from None
    except ValueError as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _named(tree: Any) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
