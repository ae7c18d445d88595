"""The worlds by name."""

from functools import cache

from planvec.errors import InputError
from planvec.worlds.protocol import World

WORLDS = {
    "crafting": "a board of trees, rocks, tools and bread: five skills, images of 33×30 pixels, six actions",
    "tabletop": "a robot arm, four cubes and a box with a lid: twenty skills, where things are, pick-and-place",
    "doom": "rooms with four waypoints, seen from within: four skills, images of 80×60 pixels, three actions",
}
VARIANTS = {
    "doom-rooms": "four rooms of 8 metres with doors between them, in place of one of 12 metres",
    "doom-noflags": "agents are not told outright which waypoints are left: a visited one has zeroes for its place",
}


@cache
def make(name: str) -> World:
    """A world by name, or a variant of one."""
    if name == "crafting":
        from planvec.worlds.crafting.world import Crafting

        return Crafting()
    if name == "tabletop":
        from planvec.worlds.tabletop.world import Tabletop

        return Tabletop()
    if name in ("doom", "doom-rooms", "doom-noflags"):
        from planvec.worlds.doom.world import Doom

        return Doom(level="rooms" if name == "doom-rooms" else "open", flags=name != "doom-noflags")
    raise InputError(f"no world is called '{name}'; there is {', '.join((*WORLDS, *VARIANTS))}")
