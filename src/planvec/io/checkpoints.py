"""Arrays on disk: named tensors in safetensors files, and what they are beside them or inside. No pickles."""

import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from planvec.errors import InputError
from planvec.io import files

Tree = TypeVar("Tree")


def save_tree(path: Path, tree: Any) -> None:
    """Write every array of a pytree under its path in the tree."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named(tree).items()}
    files.write(path, safetensors.numpy.save(arrays))


def load_tree(path: Path, like: Tree) -> Tree:
    """Read a pytree of the same structure and shapes as `like`, or as the arrays of which that is an outline."""
    try:
        arrays = safetensors.numpy.load_file(path)
    except FileNotFoundError:
        raise InputError(f"there is no {path}") from None
    except SafetensorError as error:
        raise InputError(f"{path} is not a file of weights: {error}") from None
    wanted = named(like)
    if arrays.keys() != wanted.keys() or any(arrays[name].shape != wanted[name].shape for name in wanted):
        raise InputError(f"{path} holds the weights of another kind of agent")
    names = iter(wanted)
    return jax.tree.map(lambda leaf: arrays[next(names)].astype(leaf.dtype), like)


def save_described(path: Path | str, arrays: dict[str, Any], format: str, version: str, **described: str) -> None:
    """Write arrays with what they are: a format of planvec, its version, and more of that kind."""
    content = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    files.write(path, safetensors.numpy.save(content, {"format": format, "version": version} | described))


def load_described(
    path: Path | str, what: str, format: str, version: str
) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """What `save_described` has written of this format: what is said of the arrays, and the arrays."""
    path = Path(path)
    try:
        with safetensors.safe_open(path, "numpy") as file:
            described = file.metadata() or {}
        arrays = safetensors.numpy.load_file(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is not {what}: {error}") from None
    if described.get("format") != format:
        raise InputError(f"{path} is not {what}: it holds something else")
    if described.get("version") != version:
        raise InputError(f"{path} has version {described.get('version')}; this planvec reads version {version}")
    return described, arrays


def save_json(path: Path, content: Any) -> None:
    files.write(path, json.dumps(content, indent=1) + "\n")


def load_json(path: Path) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InputError(f"there is no {path}") from None
    except ValueError as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by their paths in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
