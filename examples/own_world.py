"""A whole world of one's own, in one file: three coins on a table, each of which can be brought home.

    python examples/own_world.py

checks it and films its expert. An action picks up at one point and puts down at another, and
agents see where the coins are, as on the tabletop; so all ten models can be trained in it. It is a hosted world, the
kind for simulators and robots: what is NumPy here may be anything.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from planvec.media.filming import film
from planvec.tasks import Task
from planvec.training.compilation import keep_compiled_programs
from planvec.worlds.check import check_world
from planvec.worlds.protocol import HostedWorld, Session
from planvec.worlds.retrying import generator
from planvec.worlds.spaces import Objects

COINS = ("Gold", "Silver", "Copper")
COLOURS = ("#d9a521", "#aab0b6", "#b06a3b")
HOMES = np.array([[-0.15, 0.15], [0.0, 0.15], [0.15, 0.15]])  # metres, in the upper part of a table of 40 × 40 cm
CLOSE = 0.02  # metres that still count as there: for a hand at a coin, and for a coin at home


def at_home(steps: np.ndarray) -> np.ndarray:
    """Which coins are at home. [..., 9] to bool [..., 3]"""
    places = steps.reshape(*steps.shape[:-1], 3, 3)[..., :2]
    return np.linalg.norm(places - HOMES, axis=-1) < CLOSE


def move(step: np.ndarray, action: np.ndarray) -> np.ndarray:
    """One action: the coin under the first point, if there is one, goes to the second."""
    places = step.reshape(3, 3).copy()
    apart = np.linalg.norm(places[:, :2] - action[:2], axis=1)
    if apart.min() < CLOSE:
        places[apart.argmin(), :2] = action[2:]
    return places.ravel()


def scene(rng: np.random.Generator) -> np.ndarray:
    """The coins in the lower part of the table, well apart. float32 [9]: x, y and z of each"""
    columns = rng.permutation([-0.12, 0.0, 0.12]) + rng.uniform(-0.03, 0.03, 3)
    return np.column_stack([columns, rng.uniform(-0.18, 0.05, 3), np.zeros(3)]).astype(np.float32).ravel()


class Coins(HostedWorld):
    name = "coins"
    skills = COINS  # a skill is named after the coin that is brought home
    space = Objects(len(COINS), landmarks=tuple(map(tuple, HOMES.tolist())))
    pairs = 2000
    fps = 2

    def scenes(self, tasks: Sequence[Task], seed: Sequence[int]) -> np.ndarray:
        return np.stack([scene(generator((*seed, i))) for i in range(len(tasks))])

    def start(self, scenes: np.ndarray) -> "CoinsSession":
        return CoinsSession(scenes)

    def attempt(self, task: Task, rng: np.random.Generator, noise: float) -> tuple[np.ndarray, np.ndarray]:
        """The expert: coin after coin, again if its hand was not exact. `noise`: its error, in units of CLOSE."""
        steps, actions = [scene(rng)], []
        for coin in map(COINS.index, task):
            while not at_home(steps[-1])[coin]:
                aim = np.concatenate([steps[-1].reshape(3, 3)[coin, :2], HOMES[coin]])
                actions.append((aim + noise * CLOSE * rng.standard_normal(4)).astype(np.float32))
                steps.append(move(steps[-1], actions[-1]))
        return np.stack(steps), np.stack(actions)

    def events(self, steps: np.ndarray, actions: np.ndarray) -> list[str | None]:
        fresh = at_home(steps[1:]) & ~at_home(steps[:-1])
        return [COINS[row.argmax()] if row.any() else None for row in fresh]

    def horizon(self, sizes: Sequence[int]) -> int:
        return 3 * sum(sizes)

    def draw(self, step: np.ndarray) -> np.ndarray:
        picture = Image.new("RGB", (240, 240), "#f4efe4")
        pen = ImageDraw.Draw(picture)
        for places, fill in ((HOMES, (None, None, None)), (step.reshape(3, 3), COLOURS)):
            for place, colour, inside in zip(places, COLOURS, fill, strict=True):
                pen.circle((120 + 600 * place[0], 120 - 600 * place[1]), 12, fill=inside, outline=colour, width=3)
        return np.asarray(picture)


class CoinsSession(Session):
    """Episodes under way."""

    def __init__(self, scenes: np.ndarray) -> None:
        self._steps = scenes

    def observe(self) -> np.ndarray:
        return self._steps

    def step(self, actions: np.ndarray, going: np.ndarray) -> np.ndarray:
        episodes = zip(self._steps, actions, going, strict=True)
        self._steps = np.stack([move(step, action) if on else step for step, action, on in episodes])
        return np.ones(len(actions), bool)

    def judge(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        home = at_home(self._steps)
        return np.all(home >= asked, axis=1), np.all(home <= asked, axis=1)

    def steps(self) -> np.ndarray:
        return self._steps


if __name__ == "__main__":
    keep_compiled_programs()
    world = Coins()
    check_world(world)
    print("it keeps a world's promises")
    demo = world.demonstrate("Gold,Copper", seed=0)
    film(world, demo, Path("out/coins.gif"))
    print(f"{', '.join(demo.task)} in {len(demo)} actions: out/coins.gif")
