"""Environments of other projects, for the benchmark to run beside ours where they are installed.

`pip install xminigrid craftax gymnax six` installs all three (gymnax imports six without asking for it).
Each begins a fresh scene in the very step that ends an episode, by its own auto-reset. When first asked for
images, XLand-MiniGrid and Craftax draw their tiles and keep them, one in ~/.xland_minigrid, the other in its package.
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


class Rival(NamedTuple):
    """An environment of somebody else's."""

    name: str
    package: str  # and its version
    images: bool  # the agent sees pixels
    rollout: Callable[[int, int], Callable[[Array], Any]]
    """(batch, steps) → a jitted function of a random key: so many environments, so many random actions each."""


class _Environment(NamedTuple):
    """One environment. Its state includes the observation: carried along, it has to be computed at every step."""

    name: str
    images: bool
    actions: int
    reset: Callable[[Array], Any]  # key → state
    step: Callable[[Array, Any, Array], tuple[Any, Array]]  # key, state, action → state, reward


def rivals() -> list[Rival]:
    """Those that are installed and work."""
    return [rival for found in map(_find, _MAKERS) if not isinstance(found, str) for rival in found]


def missing() -> dict[str, str]:
    """Why the others are not among the rivals, by package."""
    return {package: found for package in _MAKERS if isinstance(found := _find(package), str)}


@cache
def _find(package: str) -> list[Rival] | str:
    """A package's environments, or what is wrong with it."""
    try:
        label = f"{package} {version(package)}"
        with contextlib.redirect_stdout(sys.stderr):  # some print while they load
            environments = _MAKERS[package]()
            for environment in environments:
                jax.eval_shape(_rollout(environment, batch=1, steps=1), jax.random.key(0))
    except PackageNotFoundError:
        return f"not installed; pip install {package}"
    except Exception as error:  # other people's code: whatever it raises, ours is still to be measured
        return f"{label} does not work with jax {jax.__version__}: {type(error).__name__}: {error}"
    return [Rival(e.name, label, e.images, partial(_rollout, e)) for e in environments]


def _rollout(environment: _Environment, batch: int, steps: int) -> Callable[[Array], Any]:
    def step(states: Any, key: Array) -> tuple[Any, Array]:
        action_key, step_key = jax.random.split(key)
        actions = jax.random.randint(action_key, (batch,), 0, environment.actions)
        states, rewards = jax.vmap(environment.step)(jax.random.split(step_key, batch), states, actions)
        return states, jnp.sum(rewards)

    @jax.jit
    def rollout(key: Array) -> tuple[Any, Array]:
        start_key, step_key = jax.random.split(key)
        start = jax.vmap(environment.reset)(jax.random.split(start_key, batch))
        return jax.lax.scan(step, start, jax.random.split(step_key, steps))

    return rollout


def _xminigrid() -> list[_Environment]:
    import xminigrid
    from xminigrid.experimental.img_obs import RGBImgObservationWrapper
    from xminigrid.wrappers import GymAutoResetWrapper

    plain, params = xminigrid.make("MiniGrid-FourRooms")
    symbols = GymAutoResetWrapper(plain)
    images = RGBImgObservationWrapper(symbols)  # outermost: one picture a step, as its authors advise

    def wrap(env: Any, name: str, images: bool) -> _Environment:
        def step(_: Array, state: Any, action: Array) -> tuple[Any, Array]:
            state = env.step(params, state, action)
            return state, state.reward

        return _Environment(name, images, env.num_actions(params), partial(env.reset, params), step)

    return [
        wrap(symbols, "XLand-MiniGrid FourRooms, 7×7 symbols", images=False),
        wrap(images, "XLand-MiniGrid FourRooms, 224×224 images", images=True),
    ]


def _craftax() -> list[_Environment]:
    from craftax.craftax_env import make_craftax_env_from_name as make

    symbols, pixels = (make(f"Craftax-Classic-{kind}-v1", auto_reset=True) for kind in ("Symbolic", "Pixels"))
    return [
        _gymnax_style(symbols, "Craftax-Classic, 7×9 symbols", images=False),
        _gymnax_style(pixels, "Craftax-Classic, 63×63 images", images=True),
    ]


def _gymnax() -> list[_Environment]:
    import gymnax

    env, _ = gymnax.make("Breakout-MinAtar")
    return [_gymnax_style(env, "gymnax Breakout-MinAtar, 10×10 symbols", images=False)]


def _gymnax_style(env: Any, name: str, images: bool) -> _Environment:
    """Craftax and gymnax are called alike; the observation and the state together are our state."""

    def step(key: Array, state: tuple[Any, Any], action: Array) -> tuple[tuple[Any, Any], Array]:
        observation, state, reward, *_ = env.step(key, state[1], action, env.default_params)
        return (observation, state), reward

    return _Environment(name, images, env.num_actions, lambda key: env.reset(key, env.default_params), step)


_MAKERS = {"xminigrid": _xminigrid, "craftax": _craftax, "gymnax": _gymnax}
