"""A page without a browser."""

import json
import time

from planvec.worlds.crafting.rules import NEIGHBOUR, NOTHING, RULES


class Visitor:
    """A page without a page: asks, and keeps what it is told."""

    def __init__(self, socket):
        self.socket, self.number, self.told = socket, 0, []

    def tell(self, **message):
        self.socket.send(json.dumps(message))

    def ask(self, **message):
        self.number += 1
        self.tell(**message, number=self.number)
        while (answer := self.hear()).get("number") != self.number:
            self.told.append(answer)
        return answer

    def hear(self, timeout=60):
        return json.loads(self.socket.recv(timeout))

    def watch(self, **message):
        """Run to the end; the steps of each stage."""
        begun = self.ask(do="run", **message)
        steps = [[] for _ in begun["stages"]]
        while not all(stage and stage[-1]["over"] for stage in steps):
            done = max((stage[-1]["time"] for stage in steps if stage), default=0)
            self.tell(do="want", run=begun["run"], upto=done + 10)
            for _ in range(10 * sum(not (stage and stage[-1]["over"]) for stage in steps)):
                step = self.hear()
                steps[step["stage"]].append(step)
                if step["over"]:
                    break
        return begun, steps


def eventually(check, seconds=10):
    """Whether something comes true soon."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if check():
            return True
        time.sleep(0.02)
    return False


def way_to(name, scene):
    """The actions that lead to the nearest thing of a kind, over free cells."""
    *cells, agent, _ = scene
    paths = {agent: []}
    for here in (queue := [agent]):
        for action in range(4):
            there = int(NEIGHBOUR[here, action])
            if cells[there] == RULES.index(name):
                return [*paths[here], action]
            if there not in paths and cells[there] == NOTHING:
                paths[there] = [*paths[here], action]
                queue.append(there)
