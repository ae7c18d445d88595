"""The worlds by name."""

from functools import cache

from planvec.errors import InputError
from planvec.worlds.world import World

WORLDS = {"crafting": "a board of trees, rocks, tools and bread: five skills, images of 33×30 pixels, six actions"}


@cache
def make(name: str) -> World:
    """A world by name."""
    if name == "crafting":
        from planvec.worlds.crafting.world import Crafting

        return Crafting()
    raise InputError(f"no world is called '{name}'; there is {', '.join(WORLDS)}")
