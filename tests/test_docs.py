"""The documentation cannot rot: links lead somewhere, names and commands exist, and what is Python runs."""

import ast
import importlib
import inspect
import re
import runpy
import shlex
import sys
from functools import reduce
from pathlib import Path

import pytest

from planvec.cli import main
from planvec.data import folders
from planvec.worlds import make

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
INLINE = re.compile(r"\]\(([^()\s]+)\)")  # [text](target) and ![text](target)
SOURCE = re.compile(r'<img src="([^"]+)"')
DEFINITION = re.compile(r"^\[([\w-]+)\]: (\S+)$", re.MULTILINE)
USE = re.compile(r"\]\[([\w-]+)\]")  # [text][label]
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
DOTTED = re.compile(r"\[`(planvec(?:\.\w+)+)`\]\[([\w-]+)\]")


def prose(text):
    """A page without its blocks of code."""
    return FENCED.sub("", text)


def anchors(text):
    """What a host of repositories makes of a page's headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose(text))}


def links(text):
    """Where a page's links and pictures lead."""
    plain = CODE.sub("code", prose(text))
    return [*INLINE.findall(plain), *SOURCE.findall(plain), *(target for _, target in DEFINITION.findall(plain))]


def broken(page, text):
    """The links of a page that lead nowhere."""
    for link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target == page or (target.is_relative_to(ROOT) and target.is_file())
        if not there or (anchor and anchor not in anchors(text if target == page else target.read_text())):
            yield link
    yield from set(USE.findall(CODE.sub("code", prose(text)))) - dict(DEFINITION.findall(text)).keys()


def blocks(text, language):
    return [code for kind, code in FENCED.findall(text) if kind == language]


def commands(text):
    """The lines of a page's blocks that call planvec."""
    return [line for code in blocks(text, "") for line in code.splitlines() if line.startswith("planvec ")]


def parse(line, monkeypatch):
    """Read a command line as planvec would, without running it."""
    monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
    try:
        return main._parse()
    except SystemExit as stop:
        assert not stop.code, line


def find(name):
    """What a dotted name stands for, and the module that it is in."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module), module
    raise AssertionError(name)


def test_the_checker_finds_broken_links():
    page = ROOT / "docs" / "page.md"
    good = "# Two Words, `code`\n[a](#two-words-code) [b](data.md#loading-it) ![c][d]\n"
    assert not list(broken(page, good + "\n[d]: ../README.md\n```\n[e](nowhere)\n```\n`[f](nowhere)`"))
    bad = good + "[e](nowhere.md) [f](#nowhere) [g](data.md#nowhere) [h](../../etc) ![i](images) [j](https://x.org)"
    bad += '<img src="no.gif" height="9">'
    assert set(broken(page, bad)) == {"nowhere.md", "#nowhere", "data.md#nowhere", "../../etc", "images", "no.gif", "d"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    assert not list(broken(page, page.read_text()))


def test_every_page_is_in_the_site_and_every_picture_in_a_page():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES[1:]:
        assert re.search(rf"\b{re.escape(page.relative_to(ROOT / 'docs').as_posix())}$", navigation, re.MULTILINE), page
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page.read_text())}
    assert set((ROOT / "docs").glob("images/*")) <= shown


def test_every_name_in_the_paper_map_exists():
    text = (ROOT / "docs" / "paper.md").read_text()
    files = dict(DEFINITION.findall(text))
    named = DOTTED.findall(text)
    assert len(named) > 50
    assert len(named) == len(re.findall(r"`planvec\.", text))  # each is a link to its source
    for name, label in named:
        thing, module = find(name)
        assert Path(inspect.getsourcefile(module)) == (ROOT / "docs" / files[label]).resolve(), name
        assert getattr(thing, "__module__", module.__name__) in (module.__name__, "builtins"), (
            name
        )  # not from elsewhere


def test_every_command_in_the_documentation_exists(monkeypatch):
    lines = [line for page in PAGES for line in commands(page.read_text())]
    lines += [code for code in CODE.findall((ROOT / "docs" / "paper.md").read_text()) if code.startswith("planvec ")]
    assert len(lines) > 30
    for line in dict.fromkeys(lines):
        parse(line, monkeypatch)
    with pytest.raises(AssertionError):
        parse("planvec evaluate crafting --nonsense", monkeypatch)


def test_the_paper_map_has_all_of_the_paper():
    rows = re.findall(r"^\| ([^|]+?) \|", (ROOT / "docs" / "paper.md").read_text(), re.MULTILINE)
    paragraphs = ("One-shot imitation learning setup", "Plan vectors", "Training", "Measuring compositionality")
    sections = ["1 ", "2 ", "3 ", *(f"3, {name}" for name in paragraphs), "4 ", "4.1 ", "4.2 ", "5 "]
    sections += [f"5, {name}" for name in ("Implementation", "Data generation", "Comparisons", "Results")]
    sections += ["6 ", "A ", "A.1 ", "A.2 ", "B ", "C "]
    for section in sections:
        assert any(row.startswith(section) for row in rows), section
    equations = ["(1)", "(2)", "D", "IL", "tri", "Hom", "Pair", "composition"]
    figures = ["1", "2", "3", "4", "5", "6a", "6b", "7", "8"]
    assert {*equations, *figures} <= set(rows)
    assert all(rows.count(table) == 2 for table in "123")  # a figure and a table of that number


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_in_the_documentation_is_python(page):
    for code in blocks(page.read_text(), "python"):
        ast.parse(code)


PRINTS = re.compile(r"^print\(.*\)\s+# (.+)$", re.MULTILINE)


def test_the_snippets_of_the_readme_run(tmp_path, monkeypatch, capsys):
    """In order, as a reader would, and what they print stands beside them; fewer environments, and less data, than they
    say."""
    monkeypatch.chdir(tmp_path)
    folders.collect(folders.Recipe("crafting", 32, (2, 4), 0.1, "discard", 0), Path("data/small"), make("crafting"))
    names = {}
    for code in blocks((ROOT / "README.md").read_text(), "python"):
        exec(code.replace("4096", "16"), names)
    assert capsys.readouterr().out.splitlines() == PRINTS.findall((ROOT / "README.md").read_text())
    assert names["episode"].task == ("ChopTree", "MakeBread", "EatBread")
    assert Path("out/episode.gif").read_bytes().startswith(b"GIF89a")
    assert len(names["training"]) + len(names["validation"]) == 32


def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(ROOT / "examples" / "plan_arithmetic.py"))
    assert max(names["likeness"], key=names["likeness"].get) == "A + B"
    assert names["both"].success and names["left"][0].total > 3 > 2 > names["left"][-1].total
    assert Path("out/plan_arithmetic.gif").read_bytes().startswith(b"GIF89a")
    assert Path("out/plan_arithmetic.png").read_bytes().startswith(b"\x89PNG")
    assert re.findall(r"^(\d+)\. ", capsys.readouterr().out, re.MULTILINE) == [str(part) for part in range(1, 11)]


def test_the_example_of_a_world_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(ROOT / "examples" / "own_world.py"), run_name="__main__")  # it checks itself
    assert Path("out/coins.gif").read_bytes().startswith(b"GIF89a")
    coins = names["Coins"]()
    assert coins.events(names["demo"].steps, names["demo"].actions) == ["Gold", "Copper"]
    for parts in zip(*coins.sample_parts((0,), 20, (1, 2)), strict=True):
        assert len({*parts[0], *parts[1]}) == 3
