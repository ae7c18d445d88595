"""A world with nothing in it but counts, and agents whose plans are known mixtures of what is in it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from planvec.data.recordings import Recording
from planvec.worlds.protocol import PureWorld

SKILLS, SCENE = 4, 8  # numbers in an observation: how often each skill was done, one of the order, those of the scene
WIDTH = SKILLS + 1 + SCENE


class Counting(PureWorld):
    """A world with nothing in it but counts: an action does a skill, and an observation says what was done."""

    name, space, skills, sizes = "counting", None, ("a", "b", "c", "d"), (2, 4)
    conditions = ("3", "1+1")

    def sample_tasks(self, seed, count, low, high):
        rng = np.random.default_rng(seed)
        return [tuple(rng.choice(self.skills, size)) for size in rng.integers(low, high + 1, count)]

    def sample_parts(self, seed, count, sizes):
        return [self.sample_tasks((*seed, i), count, size, size) for i, size in enumerate(sizes)]

    def record(self, tasks, seed, noise=0.0, extras="discard", progress=lambda finished: None):
        steps, rng = [], np.random.default_rng(seed)
        for task in tasks:
            done = np.zeros((len(task) + 1, SKILLS + 1), np.float32)
            for time, skill in enumerate(map(self.skills.index, task)):
                done[time + 1 :, skill] += 1
                done[time + 1 :, SKILLS] += (time + 1) * skill
            steps.append(np.column_stack([done, np.tile(rng.normal(size=SCENE), (len(done), 1))]))
        progress(len(tasks))
        actions = np.concatenate([[self.skills.index(skill) for skill in task] for task in tasks])
        none = np.zeros(len(tasks), np.int32)
        lengths = np.array([len(task) for task in tasks], np.int32)
        return Recording({"steps": np.concatenate(steps).astype(np.float32)}, actions, lengths, none, none)

    def ends(self, recording):
        first, last = (recording.stored["steps"][at] for at in (recording.first_steps, recording.last_steps))
        return first, last, last[:, :SKILLS].astype(np.int32)

    def events(self, steps, actions):
        return [self.skills[action] for action in actions]

    def scenes(self, tasks, seed):
        first, _, _ = self.ends(self.record(tasks, seed, 0.0, "discard"))
        return first

    def horizon(self, sizes):
        return 2 * sum(sizes)

    def observe(self, state):
        return state

    def step(self, state, action):
        return state.at[action].add(1), action


class Mixture(eqx.Module):
    """g: so much of the counts, of the order, and of the scene, mixed; at the scene's own scale if so wanted; and a
    constant."""

    parts: tuple[float, float, float]
    scaled: bool = eqx.field(static=True, default=False)
    constant: float = 0.0

    def __call__(self, observations):
        first, last = observations
        done = jnp.concatenate([(last - first)[:, : SKILLS + 1], last[:, SKILLS + 1 :]], axis=1)
        weights = jnp.repeat(jnp.array(self.parts), np.array([SKILLS, 1, SCENE]), total_repeat_length=WIDTH)
        scale = jnp.exp(last[:, -1:]) if self.scaled else 1.0
        return scale * (done * weights) @ jax.random.normal(jax.random.key(0), (WIDTH, 16)) + self.constant
