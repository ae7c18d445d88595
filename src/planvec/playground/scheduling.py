"""Who acts next: the episodes that somebody watches take turns, a step each."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from planvec.playground import pictures
from planvec.playground.actors import Step, Watched
from planvec.worlds.protocol import World

Result = TypeVar("Result")
log = logging.getLogger(__name__)

MOST = 32  # steps in a round
ROUND = 0.4  # seconds that a round may take, as in a simulator everything else has to wait for it


class Rounds:
    """Rounds of steps in one world: of the episodes that are due, as many as take no longer than a round may."""

    def __init__(self, world: World, thread: ThreadPoolExecutor) -> None:
        """`thread`: in which agents act."""
        self.watchers: dict[Watched, Callable[[Step], None]] = {}  # those that waited longest come first
        self._thread = thread
        self._painters = ThreadPoolExecutor(pictures.PAINTERS, "pictures")
        self._at_once = world.painter is not None  # processes draw, so pictures need not wait for each other
        self._wanted = asyncio.Event()
        self._going = asyncio.create_task(self._go_on())

    def watch(self, episode: Watched, show: Callable[[Step], None]) -> None:
        """Let an episode go on, as far as it is wanted."""
        self.watchers[episode] = show

    def want(self, episode: Watched, steps: int) -> None:
        """So many steps of an episode should be done."""
        episode.wanted = steps
        self._wanted.set()

    def leave(self, episode: Watched) -> None:
        """Nobody watches an episode any more: it ends here."""
        if self.watchers.pop(episode, None):
            self._thread.submit(episode.close)

    def close(self) -> None:
        self._going.cancel()
        self._painters.shutdown(wait=False, cancel_futures=True)

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        most = MOST
        while True:
            await self._wanted.wait()
            due = [episode for episode in self.watchers if episode.due][:most]
            if not due:
                self._wanted.clear()
                continue
            began = loop.time()
            steps = await loop.run_in_executor(self._thread, self._round, due)
            most = max(1, len(due) // 2) if loop.time() - began > ROUND else min(MOST, 2 * most)
            for episode, step in zip(due, steps, strict=True):
                if show := self.watchers.pop(episode, None):  # not if its watcher has left meanwhile
                    self.watchers[episode] = show
                    show(step)

    def _round(self, due: list[Watched]) -> list[Step]:
        """A step of each. What goes wrong in one of them ends that one."""
        moves = [_tried(episode.advance) for episode in due]

        def show(episode: Watched, move: Any) -> Step:
            return (move and _tried(episode.show, move)) or episode.fail()

        return list((self._painters.map if self._at_once else map)(show, due, moves))


def _tried(function: Callable[..., Result], *arguments: Any) -> Result | None:
    """What a function gives; None where it fails."""
    try:
        return function(*arguments)
    except Exception:  # one episode's trouble must not be everybody's
        log.exception("acting has failed")
        return None
