"""What tests look at in a run's folder, and how they stop what writes it."""

import json

from planvec.training.runs import METRICS, STATE, WEIGHTS


def weights(folder):
    """The bytes of all that a run has learned, and of what it goes on from."""
    return (folder / WEIGHTS).read_bytes(), (folder / STATE).read_bytes()


def lines(folder):
    """Its log."""
    return [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]


class Stop(Exception):
    pass


def stop_at(step, error=Stop):
    """To be told how far it is, and to stop it there."""

    def watch(now, *_):
        if now >= step:
            raise error

    return watch
