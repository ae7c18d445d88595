"""The worlds by name."""

from functools import cache

from planvec.errors import InputError
from planvec.worlds.world import World

WORLDS = {
    "crafting": "a board of trees, rocks, tools and bread: five skills, images of 33×30 pixels, six actions",
    "tabletop": "a robot arm, four cubes and a box with a lid: twenty skills, where things are, pick-and-place",
    "doom": "rooms with four waypoints, seen from within: four skills, images of 80×60 pixels, three actions",
}


@cache
def make(name: str) -> World:
    """A world by name."""
    if name == "crafting":
        from planvec.worlds.crafting.world import Crafting

        return Crafting()
    if name == "tabletop":
        from planvec.worlds.tabletop.world import Tabletop

        return Tabletop()
    if name == "doom":
        from planvec.worlds.doom.world import Doom

        return Doom()
    raise InputError(f"no world is called '{name}'; there is {', '.join(WORLDS)}")
