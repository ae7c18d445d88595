"""Demonstrations by the expert: `planvec collect` and `planvec render`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

from planvec.cli.console import WORLD, check_name, log, out, progress, say
from planvec.data.pairs import NOISE
from planvec.errors import InputError
from planvec.training.config import named

if TYPE_CHECKING:
    from planvec.data.folders import AnyRecipe
    from planvec.worlds.protocol import World


@dataclass
class Collect:
    """Record pairs of demonstrations by the expert into a folder, or play. Goes on where it was stopped; never
    overwrites.

    Example: planvec collect crafting --pairs 40000 --out data/crafting
    """

    world: Positional[Annotated[str | None, named("WORLD")]] = None
    """Which world; see `planvec worlds`."""
    pairs: Annotated[int | None, named("N")] = None
    """How many pairs; the world's usual number unless given. The two of a pair do the same task in different scenes."""
    play: bool = False
    """Record play in place of pairs: long recordings, each by itself, of tasks of 8 skills."""
    recordings: Annotated[int | None, named("N")] = None
    """With --play: how many recordings; unless given so many that there are as many skills in them as in the world's
    usual pairs."""
    skills: Annotated[str | None, named("RANGE")] = None
    """How many skills a task has: a range, or one number. Unless given 2-4 in crafting, 1-2 on the tabletop, 1-3 in
    doom; and 8 with --play."""
    noise: float = NOISE
    """Share of the expert's actions that are random; on the tabletop the error of its hand, in sides of a cube."""
    extras: Literal["discard", "keep"] = "discard"
    """Demonstrations that did more than their task: discard them, or keep them (as the paper's authors do)."""
    seed: int = 0
    """The same seed gives the same bytes."""
    out: Annotated[Path | None, named("FOLDER")] = None
    """The folder to write."""
    inspect: Annotated[Path | None, named("FOLDER")] = None
    """Instead of collecting, say what is in this folder and draw a contact sheet of it."""

    def run(self) -> None:
        from planvec.data import folders, inspecting
        from planvec.worlds import make

        if self.inspect:
            inspecting.show(self.inspect, make(folders.world_of(self.inspect)), out)
            return
        if not self.world or not self.out:
            raise InputError(f"say which world and where to: planvec collect {WORLD} --out data/{WORLD}")
        world = make(self.world)
        recipe = self._recipe(world)
        unit = folders.HELD[recipe.format].unit
        with progress(f"collecting {self.world}", recipe.count, unit) as update:
            try:
                header = folders.collect(recipe, self.out, world, update)
            except KeyboardInterrupt:
                log.print(f"stopped; {folders.kept(self.out)} {unit} are safe, and the same command goes on from there")
                raise
        out.print(inspecting.rates_table(header))
        say(f"{recipe.count} {unit} in {self.out}")

    def _recipe(self, world: "World") -> "AnyRecipe":
        """What is asked for."""
        from planvec.data import folders
        from planvec.data.play import SKILLS, as_many
        from planvec.tasks import parse_range

        given = parse_range(self.skills) if self.skills else None
        how = {"noise": self.noise, "extras": self.extras, "seed": self.seed}
        if not self.play:
            if self.recordings is not None:
                raise InputError("--recordings says how much play: add --play, or ask for --pairs")
            pairs = world.pairs if self.pairs is None else self.pairs
            return folders.Recipe(world=self.world or world.name, pairs=pairs, skills=given or world.sizes, **how)
        if self.pairs is not None:
            raise InputError("play has no pairs: say how many --recordings")
        skills = given or SKILLS
        many = as_many(world, world.pairs, skills) if self.recordings is None else self.recordings
        return folders.PlayRecipe(world=self.world or world.name, recordings=many, skills=skills, **how)


@dataclass
class Render:
    """Watch the expert do a task, as a GIF, keep it as a demonstration, or play the world yourself.

    Example: planvec render crafting --task ChopTree,BuildHouse --gif out.gif
    """

    world: Positional[Annotated[str, named("WORLD")]] = WORLD
    """Which world; see `planvec worlds`."""
    task: Annotated[str | None, named("TASK")] = None
    """The skills to do, separated by commas; a random task unless given."""
    gif: Annotated[Path | None, named("FILE")] = None
    """Where to write the animation."""
    save: Annotated[Path | None, named("FILE")] = None
    """Where to write the demonstration itself, for `planvec act`: a name that ends in .safetensors."""
    interactive: bool = False
    """Play it yourself in the terminal, with the keyboard (crafting)."""
    seed: int = 0
    """Another seed, another scene."""
    noise: float = 0.0
    """As in `planvec collect`."""

    def run(self) -> None:
        from planvec.data.demonstrations import save_demonstration
        from planvec.media.filming import film
        from planvec.worlds import make

        check_name(self.gif, ".gif")
        check_name(self.save, ".safetensors")
        world = make(self.world)
        [random] = world.sample_tasks((self.seed,), 1, *world.sizes)
        task = random if self.task is None else self.task
        if self.interactive:
            world.play(task, self.seed)
            return
        if not self.gif and not self.save:
            raise InputError("say what to do: --gif out.gif, --save demo.safetensors, or --interactive")
        demo = world.demonstrate(task, self.seed, self.noise)
        if self.gif:
            film(world, demo, self.gif)
        if self.save:
            save_demonstration(self.save, demo, world)
        say(f"{len(demo)} steps in {' and '.join(str(path) for path in (self.gif, self.save) if path)}")
