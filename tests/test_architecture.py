"""The house stands as docs/architecture.md draws it: who imports whom, who names whom, and where the walks lead."""

import ast
import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

from planvec.agents import AGENTS
from planvec.worlds import registrations

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "planvec"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILES = sorted(PACKAGE.rglob("*.py"))


def dotted(path):
    """planvec/worlds/pool.py → planvec.worlds.pool; a package's own file is the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def ranks():
    """The row in which each file is listed. A folder's row holds what is not listed by itself; a package's own file, if
    it is not listed, stands with the first of its files."""
    rows = re.findall(r"^\| (\[`.+?) \|", PAGE, re.MULTILINE)
    rank = {}
    for number, row in enumerate(rows):
        for name in re.findall(r"\[`([\w/.]+)`\]", row):
            if name.endswith(".py"):
                rank[dotted(PACKAGE / name)] = number
    for number, row in enumerate(rows):
        for name in re.findall(r"\[`([\w/]+)/`\]", row):
            for path in (PACKAGE / name).rglob("*.py"):
                rank.setdefault(dotted(path), number)
    for path in PACKAGE.rglob("__init__.py"):
        inside = [number for name, number in rank.items() if name.startswith(f"{dotted(path)}.")]
        rank.setdefault(dotted(path), min(inside, default=0))
    return rank


RANK = ranks()


def imports(text):
    """The modules of planvec that a file imports, except for its types alone."""
    tree = ast.parse(text)
    types = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = {id(node) for branch in types for node in ast.walk(branch)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "planvec")
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "planvec":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in RANK else node.module


def too_early(name, text):
    """The imports of a file that its row does not allow."""
    return [imported for imported in imports(text) if RANK[imported] > RANK[name]]


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_a_file_imports_only_what_is_above_it(path):
    assert dotted(path) in RANK, f"{dotted(path)} is not in docs/architecture.md"
    assert not too_early(dotted(path), path.read_text())


def test_the_order_of_imports_is_guarded_for_packages_too():
    """Each of these would turn the house upside down."""
    assert too_early("planvec.plans", "from planvec.worlds import make") == ["planvec.worlds"]
    assert too_early("planvec.plans", "import planvec.agents") == ["planvec.agents"]
    assert too_early("planvec.plans", "def f():\n    from planvec.agents.agent import Agent") == [
        "planvec.agents.agent"
    ]
    assert too_early("planvec.worlds", "from planvec.agents import Agent") == ["planvec.agents"]
    assert too_early("planvec.data.folders", "from planvec.worlds import make") == ["planvec.worlds"]
    assert too_early("planvec.training.loop", "from planvec import rollout") == ["planvec"]
    assert not too_early("planvec.agents.zoo", "from planvec.worlds.spaces import Images")


def test_rooms_do_not_mix():
    """All files of a room stand together, so that rooms have an order as well. Only a world's benchmark is apart."""
    rooms = {}
    for name, number in RANK.items():
        room = name.split(".")[1] if name.count(".") > 1 else ""
        if room and not name.endswith((".benchmark", ".rivals")):
            rooms.setdefault(room, []).append(number)
    for room, numbers in rooms.items():
        others = {other for other, rows in rooms.items() if other != room and min(numbers) < min(rows) < max(numbers)}
        assert not others - {"media", "benchmarks"}, (room, others)


WORLDS = {name: one.factory.split(".")[2] for name, one in registrations().items()}  # and their folders
MAY_NAME_WORLDS = ("planvec.tables.",)
MAY_NAME_AGENTS = ("planvec.tables.", "planvec.agents.zoo", "planvec.benchmarks.")


def strings(text):
    """The strings of a file; documentation is free to name whom it likes."""
    tree = ast.parse(text)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_nobody_calls_a_world_or_an_agent_by_its_name(path):
    name, text = dotted(path), path.read_text()
    own = {world for world, folder in WORLDS.items() if name.startswith(f"planvec.worlds.{folder}")}
    said = strings(text)
    if not name.startswith(MAY_NAME_WORLDS) and name != "planvec.worlds.registry":
        words = {word for string in said for word in re.findall(r"[\w-]+", string)}
        assert not words & (WORLDS.keys() - own)
    if not name.startswith(MAY_NAME_AGENTS):
        assert not {*said} & AGENTS.keys()
    foreign = {folder for folder in WORLDS.values() if not name.startswith(f"planvec.worlds.{folder}")}
    for imported in imports(text):
        assert not any(imported.startswith(f"planvec.worlds.{folder}") for folder in foreign), imported


def test_the_walks_lead_through_what_is_there():
    walks = PAGE[PAGE.index("## Two walks") : PAGE.index("## Two kinds of world")]
    steps = re.findall(r"^(\d)\. \[`([\w/.]+)`\]\(\S+\)(?:\s+`([\w.]+)`)?", walks, re.MULTILINE)
    assert [int(number) for number, _, _ in steps] == [*range(1, 10), *range(1, 10)]
    for _, name, thing in steps:
        assert (PACKAGE / name).is_file()
        if name.endswith(".py"):
            reduce(getattr, thing.split("."), importlib.import_module(dotted(PACKAGE / name)))
