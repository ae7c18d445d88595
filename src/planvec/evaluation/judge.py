"""The judge of episodes: success, exact and stops, the same wherever agents act."""

from typing import NamedTuple

import numpy as np

from planvec.evaluation.episodes import Moment


class Verdicts(NamedTuple):
    """Of episodes. bool [episode]"""

    success: np.ndarray  # all that was asked for has come about, at some moment
    exact: np.ndarray  # … and nothing else had, by the first such moment
    stops: np.ndarray  # … nor has since, and all of it still holds
    diverged: np.ndarray  # the simulator broke down: a failure, unless that was after success


class Judge:
    """Watches episodes, from the first action on."""

    def __init__(self, episodes: int) -> None:
        self._success, self._exact, self._holds = (np.zeros(episodes, bool) for _ in range(3))
        self._sane = np.ones(episodes, bool)

    def see(self, moment: Moment) -> None:
        """One moment after the other. Before the first action nothing counts as done."""
        if moment.time == 0:
            return
        self._sane = moment.sane
        done = moment.done & moment.sane
        self._holds = done & moment.clean
        self._exact |= self._holds & ~self._success
        self._success |= done

    @property
    def verdicts(self) -> Verdicts:
        return Verdicts(self._success, self._exact, self._exact & self._holds, ~self._sane)
