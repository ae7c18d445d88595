"""Stretches of recordings, against all that there are."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planvec.data.play import PlaySet, as_many
from planvec.errors import InputError
from planvec.worlds import make

MANY, ROOM = 512, 40  # samples; steps that are there, whether recordings fill them or not


class Plain:
    """A world whose steps are what is observed: the number of the recording, and the time in it."""

    sizes = (2, 4)

    def decode(self, step):
        return step


WORLD = Plain()


def recordings(lengths):
    """Whose actions say as well where they are. After the last of them lies what belongs to none."""
    where = [(which, time) for which, length in enumerate(lengths) for time in range(length + 1)]
    acts = [(which, time) for which, length in enumerate(lengths) for time in range(length)]
    steps, actions = (np.array(rows + [(-1, -1)] * (ROOM - len(rows)), np.int32) for rows in (where, acts))
    return PlaySet.of(WORLD, steps, actions, np.array(lengths, np.int32))


@jax.jit
def sample(play, key, ended, window, jitter):
    return play.sample(key, MANY, ended, window, jitter)


@jax.jit
def neighbours(play, key, actions):
    return play.neighbours(key, MANY, actions)


def drawn(play, seed=0, ended=0.0, window=60, jitter=0):
    batch = sample(play, jax.random.key(seed), ended, window, jitter)
    return type(batch)(*map(np.asarray, batch))


def stretches(lengths, window):
    """All that a sample can be: recording, start, moment, end."""
    return {
        (which, start, moment, end)
        for which, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, min(start + window, length) + 1)
        for moment in range(start, end)
    }


LENGTHS = st.lists(st.integers(1, 9), min_size=4, max_size=4)


@settings(max_examples=30, deadline=None)
@given(lengths=LENGTHS, window=st.integers(1, 12), jitter=st.integers(0, 3), seed=st.integers(0, 99))
def test_a_sample_is_a_moment_of_a_stretch_of_a_recording(lengths, window, jitter, seed):
    batch = drawn(recordings(lengths), seed, ended=0.25, window=window, jitter=jitter)
    which = batch.now[:, 0]
    for name in ("first", "last", "ref_first", "ref_last", "next"):
        np.testing.assert_array_equal(getattr(batch, name)[:, 0], which)
    length = np.array(lengths)[which]
    start, moment, end = batch.first[:, 1], batch.now[:, 1], batch.last[:, 1]
    assert (start >= 0).all() and (start <= moment).all() and (moment <= end).all() and (end <= length).all()
    assert (end > start).all() and (end - start <= window).all()
    np.testing.assert_array_equal(batch.over, moment == end)
    np.testing.assert_array_equal(batch.action[~batch.over], batch.now[~batch.over])
    np.testing.assert_array_equal(batch.next[:, 1], np.minimum(moment + 1, length))
    ref_start, ref_end = batch.ref_first[:, 1], batch.ref_last[:, 1]
    assert (abs(ref_start - start) <= jitter).all() and (ref_start <= ref_end).all()
    assert (abs(ref_end - end)[ref_end > ref_start] <= jitter).all() and (ref_end <= length).all()


def test_every_stretch_is_drawn_and_no_other():
    lengths, window = (4, 1, 3, 2), 3
    play = recordings(lengths)
    seen = set()
    for seed in range(4):
        batch = drawn(play, seed, window=window)
        seen |= set(zip(*(part.tolist() for part in (*batch.first.T, batch.now[:, 1], batch.last[:, 1])), strict=True))
    assert seen == stretches(lengths, window)


def test_without_jitter_the_reference_is_the_stretch_itself():
    play = recordings((9, 7, 8, 5))
    batch, moved = drawn(play), drawn(play, jitter=2)
    np.testing.assert_array_equal(batch.ref_first, batch.first)
    np.testing.assert_array_equal(batch.ref_last, batch.last)
    assert not batch.over.any() and drawn(play, ended=1.0).over.all()
    for name in ("first", "now", "last", "action", "next"):  # what is imitated is the same
        np.testing.assert_array_equal(getattr(moved, name), getattr(batch, name))
    for moved_end, end in ((moved.ref_first, batch.first), (moved.ref_last, batch.last)):
        assert {-2, -1, 0, 1, 2} <= set((moved_end - end)[:, 1])


@settings(max_examples=30, deadline=None)
@given(lengths=LENGTHS, actions=st.integers(1, 6), seed=st.integers(0, 99))
def test_neighbours_follow_each_other(lengths, actions, seed):
    before, between, after = (
        np.asarray(part) for part in neighbours(recordings(lengths), jax.random.key(seed), actions)
    )
    np.testing.assert_array_equal(before[:, 0], between[:, 0])
    np.testing.assert_array_equal(before[:, 0], after[:, 0])
    length = np.array(lengths)[before[:, 0]]
    apart = np.minimum(actions, length // 2)
    np.testing.assert_array_equal(between[:, 1] - before[:, 1], apart)
    np.testing.assert_array_equal(after[:, 1] - between[:, 1], apart)
    assert (before[:, 1] >= 0).all() and (after[:, 1] <= length).all()


def test_play_is_split_by_recording():
    training, validation = recordings((3, 4, 5, 6)).split(0.75)
    assert (len(training), len(validation)) == (3, 1)
    assert set(drawn(training).now[:, 0]) == {0, 1, 2} and set(drawn(validation).now[:, 0]) == {3}
    with pytest.raises(InputError, match="4 recordings cannot be split"):
        recordings((3, 4, 5, 6)).split(1.0)


def test_as_many_skills_as_pairs_have():
    assert as_many(make("crafting"), 40_000) == 30_000 and as_many(WORLD, 4, (1, 1)) == 24


def test_fresh_play_is_recordings_of_single_tasks():
    play = PlaySet.fresh(make("crafting"), 3, (0,), (2, 3))
    assert len(play) == 3 and play.steps.cells.shape == (int(play.lengths.sum()) + 3, 100)
