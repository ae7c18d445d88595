"""Is every change of meaning noticed? Each mutant of the table is made in a copy of the tree, and its tests are run.

    make mutants                       all of them
    make mutants ARGS="-k losses"      those whose file or description has that in it
    make mutants ARGS="-n 2"           so many at once

First the tests are run on the tree as it is: what fails anyway would notice nothing. Exit code 1 if a mutant survives.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "examples", "docs", "README.md", "Makefile", "pyproject.toml", "mkdocs.yml")
PASSED, FAILED, INTERRUPTED = range(3)  # exit codes of pytest; the last one if a test cannot even be imported
CAUGHT = "caught"
LINES = 15  # of what pytest said, where its tests could not be run


def main() -> int:
    options = parse()
    chosen = [mutant for mutant in MUTANTS if options.k in f"{mutant.file} {mutant.what}"]
    if not chosen:
        print(f"no mutant has '{options.k}' in its file or its description")
        return 2
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [copy(Path(folder) / str(number)) for number in range(options.n)]
        if not options.trust and not sound(trees[0], chosen):
            return 2
        return told(survivors(chosen, trees), len(chosen))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Is every change of meaning noticed by the tests?")
    parser.add_argument("-k", default="", help="only mutants with this in their file or their description")
    parser.add_argument("-n", type=int, default=1, help="how many at once")
    parser.add_argument("--trust", action="store_true", help="do not run the tests on the tree as it is first")
    return parser.parse_args()


def copy(tree: Path) -> Path:
    """A copy of the working tree, without what was compiled."""
    tree.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree)
    return tree


def sound(tree: Path, mutants: Sequence[Mutant]) -> bool:
    """Whether all tests of the mutants pass where nothing was changed."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    print(f"first the tree as it is: {len(tests)} tests or files of them", flush=True)
    code, _ = run_tests(tree, tests, heard=True)
    if code != PASSED:
        print("where nothing was changed tests fail as well, so they would say nothing of mutants")
    return code == PASSED


def survivors(mutants: Sequence[Mutant], trees: Sequence[Path]) -> list[tuple[Mutant, str]]:
    """The mutants that no test has caught, each with what became of it."""
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)
    began = time.monotonic()
    found: list[tuple[Mutant, str]] = []
    with ThreadPoolExecutor(len(trees)) as threads:
        waiting = {threads.submit(tried, mutant, free): mutant for mutant in mutants}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                mutant, verdict = waiting[future], future.result()
                if not verdict.startswith(CAUGHT):
                    found.append((mutant, verdict))
                left = (time.monotonic() - began) / done * (len(mutants) - done)
                said = f"{done:3}/{len(mutants)}, {left / 60:.0f} min left: {mutant.what}"
                print(said, verdict.partition("\n")[0], sep=": ", flush=True)
        except KeyboardInterrupt:
            threads.shutdown(cancel_futures=True)
            raise
    return found


def tried(mutant: Mutant, free: "SimpleQueue[Path]") -> str:
    """What became of a mutant: caught by some test; or in capital letters what is wrong, and maybe some lines more."""
    tree = free.get()
    path = tree / mutant.path
    text = path.read_text()
    try:
        path.write_text(mutant.applied(text))
        code, output = run_tests(tree, mutant.tests, "-x")
    finally:
        path.write_text(text)
        free.put(tree)
    if code == PASSED:
        return "SURVIVED"
    if code in (FAILED, INTERRUPTED) or code < 0:  # below zero: it crashed
        named = re.findall(r"^(?:FAILED|ERROR) tests/([^\s\[]+)", output, re.MULTILINE)
        return f"{CAUGHT} by {named[0].rpartition('::')[2] if named else 'a crash'}"
    return "\n".join(["NOT RUN", *output.splitlines()[-LINES:]])


def run_tests(tree: Path, tests: Sequence[str], *options: str, heard: bool = False) -> tuple[int, str]:
    """Run some tests in a tree: pytest's exit code, and what it said; `heard`: it says that to the person instead.

    Nothing compiled by Python is kept: a change may leave a file as long as it was.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *options]
    own = {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, *(f"tests/{name}" for name in tests)],
        cwd=tree,
        env=os.environ | own,
        stdout=None if heard else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout or ""


def told(found: Sequence[tuple[Mutant, str]], count: int) -> int:
    """Say which mutants were not caught; the exit code."""
    print(f"{count - len(found)} of {count} mutants were caught")
    for mutant, verdict in found:
        print(f"\n{mutant.what}: {verdict}\n  {mutant.file}\n  - {mutant.old}\n  + {mutant.new}")
        print(f"  by {' '.join(mutant.tests)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
