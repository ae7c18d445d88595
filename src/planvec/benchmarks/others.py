"""Environments of other projects, for the benchmark to run beside ours where they are installed.

    pip install xminigrid craftax gymnax six    (gymnax imports six without asking for it)

When first asked for images, two of them draw tiles and keep them: XLand-MiniGrid in ~/.xland_minigrid, Craftax
in its package. That takes half a minute each.
"""

import contextlib
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

POOL = 256  # worlds of Craftax made beforehand


class Rival(NamedTuple):
    name: str
    package: str  # with its version
    images: bool  # the agent sees pixels
    rollout: Callable[[int, int], Callable[[Array], Any]]  # (batch, steps) → a jitted function of a random key


class _Environment(NamedTuple):
    """One environment that resets itself. The state includes the observation: carried along, each is computed."""

    actions: int
    reset: Callable[[Array], Any]  # key → state
    step: Callable[[Array, Any, Array], tuple[Any, Array]]  # key, state, action → state, reward


def rivals() -> list[Rival]:
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
    except PackageNotFoundError:
        return f"not installed; pip install {package}"
    try:
        with contextlib.redirect_stdout(sys.stderr):  # some print while they load
            made = _MAKERS[package]().items()
            found = [Rival(name, label, "images" in name, partial(_rollout, env)) for name, env in made]
            for rival in found:
                jax.eval_shape(rival.rollout(1, 1), jax.random.key(0))
    except Exception as error:  # other people's code: whatever it raises, ours is still to be measured
        return f"{label} does not work with jax {jax.__version__}: {type(error).__name__}: {error}"
    return found


def _rollout(env: _Environment, batch: int, steps: int) -> Callable[[Array], Any]:
    """Random actions in so many environments, for so many steps."""

    def step(states: Any, key: Array) -> tuple[Any, Array]:
        action_key, step_key = jax.random.split(key)
        actions = jax.random.randint(action_key, (batch,), 0, env.actions)
        states, rewards = jax.vmap(env.step)(jax.random.split(step_key, batch), states, actions)
        return states, jnp.sum(rewards)

    def rollout(key: Array) -> tuple[Any, Array]:
        start_key, step_key = jax.random.split(key)
        start = jax.vmap(env.reset)(jax.random.split(start_key, batch))
        return jax.lax.scan(step, start, jax.random.split(step_key, steps))

    return jax.jit(rollout)


def _xminigrid() -> dict[str, _Environment]:
    import xminigrid
    from xminigrid.experimental.img_obs import RGBImgObservationWrapper
    from xminigrid.wrappers import GymAutoResetWrapper

    env, params = xminigrid.make("MiniGrid-FourRooms")
    symbols = GymAutoResetWrapper(env)
    images = RGBImgObservationWrapper(symbols)  # outermost, as in its README: one picture a step

    def wrap(env: Any) -> _Environment:
        def step(_: Array, state: Any, action: Array) -> tuple[Any, Array]:
            state = env.step(params, state, action)
            return state, state.reward

        return _Environment(env.num_actions(params), partial(env.reset, params), step)

    name = "XLand-MiniGrid FourRooms"
    return {f"{name}, 7×7 symbols": wrap(symbols), f"{name}, 224×224 images": wrap(images)}


def _craftax() -> dict[str, _Environment]:
    """With a pool of worlds; and fresh ones, but not on the CPU, where their time grows with the batch squared."""
    from craftax.craftax_env import make_craftax_env_from_name as make

    found = {}
    for kind, seen in {"Symbolic": "7×9 symbols", "Pixels": "63×63 images"}.items():
        name = f"Craftax-Classic-{kind}-v1"
        found[f"Craftax-Classic, {seen}, world pool"] = _from_pool(make(name, auto_reset=False))
        if jax.default_backend() != "cpu":
            found[f"Craftax-Classic, {seen}, fresh worlds"] = _gymnax_style(make(name, auto_reset=True))
    return found


def _gymnax() -> dict[str, _Environment]:
    import gymnax

    return {"gymnax Breakout-MinAtar, 10×10 symbols": _gymnax_style(gymnax.make("Breakout-MinAtar")[0])}


def _gymnax_style(env: Any) -> _Environment:
    """Craftax is called like gymnax. Our state is the observation and their state."""

    def step(key: Array, state: tuple[Any, Any], action: Array) -> tuple[tuple[Any, Any], Array]:
        observation, after, reward, *_ = env.step(key, state[1], action, env.default_params)
        return (observation, after), reward

    return _Environment(env.num_actions, lambda key: env.reset(key, env.default_params), step)


def _from_pool(env: Any) -> _Environment:
    """The same, for one that does not reset itself: it begins in worlds made beforehand."""
    pool = jax.jit(jax.vmap(_gymnax_style(env).reset))(jax.random.split(jax.random.key(0), POOL))

    def reset(key: Array) -> tuple[Any, Any]:
        world = jax.random.randint(key, (), 0, POOL)
        return jax.tree.map(lambda leaf: leaf[world], pool)

    def step(key: Array, state: tuple[Any, Any], action: Array) -> tuple[tuple[Any, Any], Array]:
        step_key, reset_key = jax.random.split(key)
        observation, after, reward, done, _ = env.step(step_key, state[1], action, env.default_params)
        return jax.tree.map(partial(jnp.where, done), reset(reset_key), (observation, after)), reward

    return _Environment(env.num_actions, reset, step)


_MAKERS = {"xminigrid": _xminigrid, "craftax": _craftax, "gymnax": _gymnax}
