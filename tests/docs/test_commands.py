"""The commands and programs that the documentation prints work as printed.

The blocks of a page run in their order, in one empty folder. A block marked `<!-- serves -->` must
print an address and is then interrupted. Shell commands that need a person, an installation or
minutes are `text` blocks, which are not run.
"""

import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "packages" / name / "README.md" for name in ("runshelf", "backflip")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"^(?P<mark><!-- (?P<kind>\w+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.S | re.M
)
# A command of these pages takes minutes or a person by its nature.
LONG = {"README.md"}


class Block(NamedTuple):
    """One block of code: its language, its text, and the word of the mark above it."""

    language: str
    text: str
    kind: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that can be run."""
    found = BLOCK.finditer(page.read_text())
    every = [Block(m["language"], m["text"], m["kind"] or "") for m in found]
    return [b for b in every if b.language in ("sh", "python") and "--8<--" not in b.text]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which `backflip` and `python` are those under test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BACKFLIP_", "RUNSHELF_"))}
    return kept | {"PATH": path, "XDG_CACHE_HOME": str(folder / ".cache"), "NO_COLOR": "1"}


def run(block: Block, folder: Path) -> None:
    """Run a block in `folder`; fail with what it printed."""
    command = [sys.executable, "-"] if block.language == "python" else ["bash", "-e"]
    result = subprocess.run(
        command,
        input=block.text,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{block.text}\n{result.stdout}\n{result.stderr}"


def serve(block: Block, folder: Path) -> None:
    """Start a block that serves pages, wait for its address, and interrupt it."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {block.text.strip()} --no-open"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page) and page.name not in LONG],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        (serve if block.kind == "serves" else run)(block, tmp_path)


def test_pages_have_blocks_to_run() -> None:
    named = {page.name for page in PAGES if blocks(page)}
    assert {"start.md", "teach.md", "train.md", "runs.md", "logging.md"} <= named


@functools.cache
def known() -> str:
    """Return the help of the program, which lists its commands."""
    command = [sys.executable, "-m", "backflip", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.medium
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    code = [*re.findall(r"^```.*?^```$", text, re.S | re.M), *re.findall(r"^ {4}.*$", text, re.M)]
    spans = re.findall(r"`((?:backflip|runshelf) [^`]+)`", text)
    commands = re.findall(
        r"^ *(?:\.venv/bin/)?(?:backflip|runshelf) ([a-z]+(?:-[a-z]+)*)\b",
        "\n".join([*code, *spans]),
        re.M,
    )
    assert [name for name in commands if not re.search(rf"^ +{name}\b", known(), re.M)] == []
