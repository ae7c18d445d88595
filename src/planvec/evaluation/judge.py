"""The judge of episodes: success, exact and stops, the same wherever agents act."""

from typing import NamedTuple

import numpy as np

from planvec.evaluation.episodes import Moment

NEVER = -1  # in place of a time


class Verdicts(NamedTuple):
    """Of episodes. [episode]"""

    success: np.ndarray  # bool, all that was asked for has come about, at some moment
    exact: np.ndarray  # bool, … and nothing else had, by the first such moment
    stays: np.ndarray  # bool, … nor has since, and all of it still holds
    stops: np.ndarray  # bool, … and the agent has said that nothing is left to do, if it is one that can
    diverged: np.ndarray  # bool, the simulator broke down: a failure, unless that was after success
    success_at: np.ndarray  # int, how many actions success took; NEVER where there was none


class Judge:
    """Watches episodes, from the first action on."""

    def __init__(self, episodes: int) -> None:
        self._success = np.zeros(episodes, bool)
        self._exact = np.zeros(episodes, bool)
        self._holds = np.zeros(episodes, bool)  # all of it, and nothing else, at the moment last seen
        self._said = np.zeros(episodes, bool)
        self._sane = np.ones(episodes, bool)
        self._success_at = np.full(episodes, NEVER)

    def see(self, moment: Moment) -> None:
        """One moment after the other. Before the first action, or the first stop, nothing counts as done."""
        if moment.time == 0:
            return
        self._sane = moment.sane
        done = moment.done & moment.sane
        fresh = done & ~self._success
        self._holds = done & moment.clean
        self._exact |= self._holds & fresh
        self._success |= done
        self._success_at[fresh] = (moment.time - moment.stopped)[fresh]  # of what is done at once, none
        self._said = moment.stopped | (not moment.can_stop)

    @property
    def verdicts(self) -> Verdicts:
        stays = self._exact & self._holds
        return Verdicts(self._success, self._exact, stays, stays & self._said, ~self._sane, self._success_at)
