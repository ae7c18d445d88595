"""What agents see and do in a world: the shapes that networks are built for."""

from typing import NamedTuple


class Images(NamedTuple):
    """What an agent deals with: it sees an image, and takes one of so many actions."""

    shape: tuple[int, int, int]  # height, width, channels; uint8
    actions: int


class Objects(NamedTuple):
    """What an agent deals with: it sees where objects are, and names two points, to pick up at and to place at."""

    objects: int  # x, y and z of each are observed, in metres
    landmarks: tuple[tuple[float, float], ...] = ()  # x and y of places that may matter
    side: float = 0.04  # how large an object is: half of it apart is no longer the same place

    @property
    def size(self) -> int:
        return 3 * self.objects


class View(NamedTuple):
    """What an agent deals with: it sees an image and where waypoints are, and takes one of so many actions."""

    image: tuple[int, int, int]  # height, width, channels; uint8
    waypoints: int  # of each is observed: x and y in the agent's frame, in metres, and whether it is still there
    actions: int


Space = Images | Objects | View
