"""Environments of other projects, for the benchmark to run beside ours where they are installed.

`pip install xminigrid craftax gymnax six` brings all three (gymnax imports six without asking for it). The first
time, two of them draw tiles for half a minute and keep them: in ~/.xland_minigrid, and in Craftax's package.
"""
# pyright: reportMissingImports=false
# none of them need be installed

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

Rollout = Callable[[int, int], Callable[[Array], Any]]  # (batch, steps) → a jitted function of a random key


class Rival(NamedTuple):
    name: str
    package: str  # with its version
    images: bool  # the agent sees pixels
    rollout: Rollout


def installed() -> list[Rival]:
    """Those that are installed and work."""
    return [rival for found in map(_find, _MAKERS) if not isinstance(found, str) for rival in found]


def missing() -> dict[str, str]:
    """Why the other packages have no rivals."""
    return {package: found for package in _MAKERS if isinstance(found := _find(package), str)}


@cache
def _find(package: str) -> list[Rival] | str:
    """A package's environments, or what is wrong with it."""
    try:
        label = f"{package} {version(package)}"
        with redirect_stdout(sys.stderr):  # some print while they load
            rollouts = _MAKERS[package]()
            for rollout in rollouts.values():
                jax.eval_shape(rollout(1, 1), jax.random.key(0))
    except PackageNotFoundError:
        return f"not installed; pip install {package}"
    except Exception as error:  # other people's code: whatever it raises, ours is still to be measured
        return f"{label} does not work with jax {jax.__version__}: {type(error).__name__}: {error}"
    return [Rival(name, label, "images" in name, rollout) for name, rollout in rollouts.items()]


def _rollout(actions: int, reset: Callable, step: Callable, batch: int, steps: int) -> Callable[[Array], Any]:
    """Random actions. A state includes its observation: being carried along, it is computed at every step."""

    def step_all(states: Any, key: Array) -> tuple[Any, Array]:
        action_key, step_key = jax.random.split(key)
        chosen = jax.random.randint(action_key, (batch,), 0, actions)
        states, rewards = jax.vmap(step)(jax.random.split(step_key, batch), states, chosen)
        return states, jnp.sum(rewards)

    def run(key: Array) -> tuple[Any, Array]:
        keys = jax.random.split(key, 1 + steps)
        return jax.lax.scan(step_all, jax.vmap(reset)(jax.random.split(keys[0], batch)), keys[1:])

    return jax.jit(run)


def _xminigrid() -> dict[str, Rollout]:
    import xminigrid
    from xminigrid.experimental.img_obs import RGBImgObservationWrapper as Images
    from xminigrid.wrappers import GymAutoResetWrapper

    def rollout(env: Any) -> Rollout:
        def step(_: Array, state: Any, action: Array) -> tuple[Any, Array]:
            after = env.step(params, state, action)
            return after, after.reward

        return partial(_rollout, env.num_actions(params), partial(env.reset, params), step)

    name = "XLand-MiniGrid FourRooms"
    env, params = xminigrid.make("MiniGrid-FourRooms")
    env = GymAutoResetWrapper(env)  # inside the other, as in its README: one picture a step
    return {f"{name}, 7×7 symbols": rollout(env), f"{name}, 224×224 images": rollout(Images(env))}


def _craftax() -> dict[str, Rollout]:
    """From a pool of worlds; and its own auto-reset, but not on the CPU: its time grows with the batch squared."""
    from craftax.craftax_env import make_craftax_env_from_name as make

    found = {}
    for kind, seen in {"Symbolic": "7×9 symbols", "Pixels": "63×63 images"}.items():
        env = f"Craftax-Classic-{kind}-v1"
        found[f"Craftax-Classic, {seen}, world pool"] = _like_gymnax(make(env, auto_reset=False), pool=256)
        if jax.default_backend() != "cpu":
            found[f"Craftax-Classic, {seen}, fresh worlds"] = _like_gymnax(make(env, auto_reset=True))
    return found


def _gymnax() -> dict[str, Rollout]:
    from gymnax import make

    return {"gymnax Breakout-MinAtar, 10×10 symbols": _like_gymnax(make("Breakout-MinAtar")[0])}


def _like_gymnax(env: Any, pool: int = 0) -> Rollout:
    """With a pool: for an environment that does not reset itself. Our state is the observation and their state."""
    fresh = partial(env.reset, params=env.default_params)
    worlds = jax.jit(jax.vmap(fresh))(jax.random.split(jax.random.key(0), pool)) if pool else None

    def pooled(key: Array) -> tuple[Any, Any]:
        return jax.tree.map(lambda leaf: leaf[jax.random.randint(key, (), 0, pool)], worlds)

    def step(key: Array, state: tuple[Any, Any], action: Array) -> tuple[tuple[Any, Any], Array]:
        seen, after, reward, done, *_ = env.step(key, state[1], action, env.default_params)
        anew = pooled(jax.random.fold_in(key, 1)) if pool else (seen, after)
        return jax.tree.map(partial(jnp.where, done), anew, (seen, after)), reward

    return partial(_rollout, env.num_actions, pooled if pool else fresh, step)


_MAKERS = {"xminigrid": _xminigrid, "craftax": _craftax, "gymnax": _gymnax}
