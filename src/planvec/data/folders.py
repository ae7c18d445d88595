"""Pairs of demonstrations in a folder, or play: collected, resumed, checked and loaded.

A folder holds `header.json` and shards of so many pairs, each a safetensors file with the arrays
    lengths   int32 [2·pairs]       actions of each demonstration; 2i and 2i+1 are pair i
    actions         [all actions]   end to end
    tasks     int8  [pairs, most]   numbers into the header's `skills_named`, padded with -1
    extras    int32 [2·pairs]       skills done that the task did not ask for
    stored/…                        what the world rebuilds the steps from (crafting: the first state)
Play is the same with recordings in place of pairs, each by itself.
Every shard follows from (seed, shard number) alone: the same command gives the same bytes, interrupted or not.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import jax
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from planvec.data.pairs import NOISE, PairSet
from planvec.data.play import SKILLS, PlaySet, as_many
from planvec.data.recordings import Recording, check_recording
from planvec.data.samples import Samples
from planvec.errors import InputError
from planvec.io import files
from planvec.tasks import Task, check_seed, decode_tasks, encode_tasks

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

FORMAT = "planvec pairs"
VERSION = 1
PLAY = "planvec play"
HELD: dict[str, type[Samples]] = {FORMAT: PairSet, PLAY: PlaySet}  # by the format, what a folder holds
SHARD = 8192  # pairs a file, in folders so old that they do not say
HEADER = "header.json"
FIELDS = {"world", "skills", "noise", "extras", "seed", "fingerprint", "skills_named", "complete", "shards"}
TALLY = ("done", "extras", "failed", "with_extras", "extra_events")
"""How attempts ended (did the task, did more and was discarded, failed), and what those kept did beyond their task."""


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a data set of pairs."""

    world: str
    pairs: int
    skills: tuple[int, int]
    """Tasks have from so many to so many skills."""
    noise: float
    extras: str
    seed: int
    format: ClassVar[str] = FORMAT

    def __post_init__(self) -> None:
        _check_recipe(self)

    @property
    def count(self) -> int:
        return self.pairs


@dataclass(frozen=True)
class PlayRecipe:
    """Everything that determines a data set of play: recordings, each of a task of its own."""

    world: str
    recordings: int
    skills: tuple[int, int]
    noise: float
    extras: str
    seed: int
    format: ClassVar[str] = PLAY

    def __post_init__(self) -> None:
        _check_recipe(self)

    @property
    def count(self) -> int:
        return self.recordings


AnyRecipe = Recipe | PlayRecipe
AnySamples = TypeVar("AnySamples", bound=Samples)
Replayed = Callable[[int, int], None]


def usual(
    name: str,
    world: "World",
    plays: bool = False,
    pairs: int | None = None,
    skills: tuple[int, int] | None = None,
    extras: str = "discard",
) -> AnyRecipe:
    """What is collected where nobody says: the world's usual pairs; or play, with as many skills as those have."""
    many = pairs or world.pairs
    if not plays:
        return Recipe(name, many, skills or world.sizes, NOISE, extras, seed=0)
    sizes = skills or SKILLS
    return PlayRecipe(name, as_many(world, many, sizes), sizes, NOISE, extras, seed=0)


def _check_recipe(recipe: AnyRecipe) -> None:
    check_recording(recipe.noise, recipe.extras)
    if recipe.count < 1:
        raise InputError(f"collect at least one; got {recipe.count} {HELD[recipe.format].unit}")
    if not 1 <= recipe.skills[0] <= recipe.skills[1]:
        raise InputError(f"tasks have from 1 skill up; got {recipe.skills[0]} to {recipe.skills[1]}")
    check_seed(recipe.seed)


def collect(
    recipe: AnyRecipe, folder: Path, world: "World", progress: Callable[[int], None] = lambda units: None
) -> dict[str, Any]:
    """Collect what is not there yet and return the header. `progress` is told how many pairs, or
    recordings, there are.

    `world`: the one that the recipe names, or one of your own making (other rules, say).
    """
    folder = Path(folder)
    world.sample_tasks((recipe.seed,), 1, *recipe.skills)  # complains of what cannot be, before anything is written
    header = _open_header(recipe, world, folder)
    kind = HELD[recipe.format]
    for shard, before in enumerate(range(0, recipe.count, header["shard"])):
        name = f"shard-{shard:05d}.safetensors"
        size = min(header["shard"], recipe.count - before)
        if not _is_whole(folder, header["shards"].get(name)):
            content, rates = _collect_shard(
                world, recipe, shard, size, lambda done, before=before: progress(before + done // kind.size)
            )
            files.write(folder / name, content)
            header["shards"][name] = {"file": name, kind.unit: size, "sha256": _digest(content), "attempts": rates}
            _write_header(folder, header)
        progress(before + size)
    header["complete"] = True
    _write_header(folder, header)
    return header


def ensure(
    recipe: AnyRecipe, folder: Path, world: "World", progress: Callable[[int], None] = lambda units: None
) -> None:
    """Collect a folder, or go on collecting it, unless it is complete."""
    if (folder / HEADER).exists():
        header = _parse_header(folder)
        _check_same(folder, header, _described(recipe, world))
        if header["complete"]:
            return
    collect(recipe, folder, world, progress)


def kept(folder: Path) -> int:
    """How many pairs, or recordings, of a collection that was stopped are safe."""
    if not (folder / HEADER).exists():
        return 0
    return _counted(_parse_header(folder))


def load(folder: Path, world: "World", progress: Replayed = lambda replayed, total: None) -> PairSet:
    """All pairs of a folder, checked, on the accelerator. `progress` is told how many steps there are, of all."""
    return _load(PairSet, folder, world, progress, "it holds play, and no pairs: train on it with --segments random")


def load_play(folder: Path, world: "World", progress: Replayed = lambda replayed, total: None) -> PlaySet:
    """All recordings of a folder of play, likewise."""
    return _load(PlaySet, folder, world, progress, "it holds pairs, and no play: `planvec collect --play` makes that")


def load_any(folder: Path, world: "World", progress: Replayed = lambda replayed, total: None) -> Samples:
    """What a folder holds, pairs or play."""
    return _load(held(read_header(folder, world)), folder, world, progress)


def _load(kind: type[AnySamples], folder: Path, world: "World", progress: Replayed, otherwise: str = "") -> AnySamples:
    """What a folder holds, if it is of this kind; complains in the words of `otherwise` if not."""
    header = read_header(folder, world)
    if held(header) is not kind:
        raise InputError(f"{folder} does not do here: {otherwise}")
    demos = _concatenate([part for part, _ in read_shards(folder, header)])  # small, unlike the steps they become
    total = len(demos.actions) + len(demos.lengths)
    progress(0, total)
    steps = world.replay(demos, lambda replayed: progress(replayed, total))
    return kind.of(world, steps, demos.actions, demos.lengths)


def held(header: dict[str, Any]) -> type[Samples]:
    """What the folder with this header holds: pairs, or play."""
    return HELD[header["format"]]


def world_of(folder: Path) -> str:
    """The name of the world whose demonstrations are in a folder."""
    return _parse_header(Path(folder))["world"]


def read_header(folder: Path, world: "World") -> dict[str, Any]:
    """The header of a complete folder made for this version of the world."""
    header = _parse_header(Path(folder))
    if not header["complete"]:
        raise InputError(f"{folder} is not complete; this goes on where it stopped: {_command(header, folder)}")
    if header["fingerprint"] != world.fingerprint:
        told = f"{header['fingerprint']}, now {world.fingerprint}"
        raise InputError(f"{folder} was made with other rules of '{header['world']}' ({told})")
    return header


def describe(folder: Path, world: "World") -> dict[str, Any]:
    """What a run remembers of its demonstrations."""
    header = read_header(folder, world)
    unit = held(header).unit
    known = {name: header[name] for name in ("world", unit, "skills", "noise", "extras", "seed", "fingerprint")}
    return known | {"sha256": [entry["sha256"] for entry in header["shards"].values()]}


def read_shards(folder: Path, header: dict[str, Any]) -> Iterator[tuple[Recording, list[Task]]]:
    """Each shard's demonstrations, and the task of each pair or recording."""
    for entry in header["shards"].values():
        path = Path(folder) / entry["file"]
        if not _is_whole(folder, entry):
            raise InputError(
                f"{path} is missing or damaged; this makes just that file anew: {_command(header, folder)}"
            )
        try:
            arrays = safetensors.numpy.load_file(path)
        except SafetensorError as error:
            raise InputError(f"{path} is not a data file of planvec: {error}") from None
        stored = {name.removeprefix("stored/"): array for name, array in arrays.items() if name.startswith("stored/")}
        none = np.zeros((len(arrays["lengths"]), 3), np.int64)
        recording = Recording(stored, arrays["actions"], arrays["lengths"], arrays["extras"], none)
        yield recording, decode_tasks(arrays["tasks"], header["skills_named"])


def rates(header: dict[str, Any]) -> dict[int, dict[str, float]]:
    """For each number of skills: attempts, how they ended, and what demonstrations did beyond their task."""
    total: dict[int, np.ndarray] = {}
    for entry in header["shards"].values():
        for skills, counts in entry["attempts"].items():
            total[int(skills)] = total.get(int(skills), 0) + np.array([counts[name] for name in TALLY])
    table = {}
    for skills, (done, extras, failed, with_extras, events) in sorted(total.items()):
        attempts = done + extras + failed
        kept = max(done, 1)
        table[skills] = {
            "attempts": int(attempts),
            "done": done / attempts,
            "discarded for extras": extras / attempts,
            "failed": failed / attempts,
            "with extras": with_extras / kept,
            "extra events": events / kept,
        }
    return table


def _collect_shard(
    world: "World", recipe: AnyRecipe, shard: int, size: int, progress: Callable[[int], None]
) -> tuple[bytes, dict[str, dict[str, int]]]:
    """One shard's bytes, and for each number of skills how the attempts ended and what was extra."""
    tasks = world.sample_tasks((recipe.seed, shard, 0), size, *recipe.skills)
    each = [task for task in tasks for _ in range(HELD[recipe.format].size)]
    recording = world.record(each, (recipe.seed, shard, 1), recipe.noise, recipe.extras, progress)
    arrays = {
        "lengths": recording.lengths,
        "actions": recording.actions,
        "tasks": encode_tasks(tasks, world.skills),
        "extras": recording.extras,
        **{f"stored/{name}": array for name, array in recording.stored.items()},
    }
    sizes = np.array([len(task) for task in each])
    counts = np.column_stack([recording.attempts, recording.extras > 0, recording.extras])
    by_size: dict[str, dict[str, int]] = {
        str(size): dict(zip(TALLY, counts[sizes == size].sum(axis=0).tolist(), strict=True))
        for size in np.unique(sizes)
    }
    return safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()}), by_size


def _open_header(recipe: AnyRecipe, world: "World", folder: Path) -> dict[str, Any]:
    """The header to go on with: a new one, or that of the same collection interrupted earlier."""
    described = _described(recipe, world)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    if not folder.exists() or all(path.name.endswith(files.TEMPORARY) for path in folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        header = described | {"shard": world.shard, "complete": False, "shards": {}}
        _write_header(folder, header)
        return header
    old = _parse_header(folder)
    _check_same(folder, old, described)
    if old["complete"] and all(_is_whole(folder, entry) for entry in old["shards"].values()):
        raise InputError(f"{folder} is complete already: {_counted(old)} {held(old).unit}; nothing was changed")
    for part in folder.glob(f"*{files.TEMPORARY}"):
        part.unlink()
    return old


def _described(recipe: AnyRecipe, world: "World") -> dict[str, Any]:
    """What a header says of a recipe."""
    return {
        "format": recipe.format,
        "version": VERSION,
        **json.loads(json.dumps(asdict(recipe))),
        "fingerprint": world.fingerprint,
        "skills_named": list(world.skills),
    }


def _check_same(folder: Path, header: dict[str, Any], described: dict[str, Any]) -> None:
    """Complain where a folder holds something else."""
    for name, wanted in described.items():
        if header.get(name) != wanted:
            raise InputError(
                f"{folder} holds other data ({name} is {header.get(name)}, not {wanted}); choose another folder"
            )


def _parse_header(folder: Path) -> dict[str, Any]:
    path = Path(folder) / HEADER
    try:
        header = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} is not a data folder: it has no {HEADER}; choose another folder") from None
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not isinstance(header, dict) or header.get("format") not in list(HELD):
        raise InputError(f"{path} is not the header of a planvec data folder")
    if header.get("version") != VERSION:
        raise InputError(f"{path} has version {header.get('version')}; this planvec reads version {VERSION}")
    header.setdefault("shard", SHARD)  # older folders do not say
    unit = held(header).unit
    missing = {*FIELDS, unit} - header.keys()
    if missing or not isinstance(header["shards"], dict):
        raise InputError(f"{path} is damaged: it lacks {', '.join(sorted(missing)) or 'a list of shards'}")
    if header["complete"] and _counted(header) != header[unit]:
        raise InputError(f"{path} is damaged: its shards do not add up to {header[unit]} {unit}")
    return header


def _counted(header: dict[str, Any]) -> int:
    """How many pairs, or recordings, are in its shards."""
    unit = held(header).unit
    return sum(entry[unit] for entry in header["shards"].values())


def _command(header: dict[str, Any], folder: Path) -> str:
    """The command that makes this folder."""
    low, high = header["skills"]
    unit = held(header).unit
    many = f"{'--play ' * (header['format'] == PLAY)}--{unit} {header[unit]}"
    return (
        f"planvec collect {header['world']} {many} --skills {low}-{high} --noise {header['noise']} "
        f"--extras {header['extras']} --seed {header['seed']} --out {folder}"
    )


def _write_header(folder: Path, header: dict[str, Any]) -> None:
    files.write(folder / HEADER, json.dumps(header, indent=1) + "\n")


def _is_whole(folder: Path, entry: dict[str, Any] | None) -> bool:
    """Whether a shard is there with the content that the header remembers."""
    if not entry:
        return False
    path = folder / entry["file"]
    return path.is_file() and _digest(path.read_bytes()) == entry["sha256"]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _concatenate(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees)
