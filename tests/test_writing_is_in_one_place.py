"""Only a few modules change files, each for a reason; all others use `runshelf.store.writing`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
MODULES = sorted(PACKAGES.glob("*/src/**/*.py"))

# Module: why it changes files itself. None of them opens a file in the folder of a received run.
REASONS = {
    "runshelf/store/writing.py": "the module that writes in the folder of a run",
    "runshelf/store/opening.py": "opens files to read them, with flags that have a name",
    "runshelf/store/trees.py": "removes whole folders, relative to descriptors",
    "runshelf/store/home.py": "makes `runs/`, and the folder of a new run",
    "runshelf/cleanup/trash.py": "moves whole folders of runs",
    "runshelf/cleanup/garbage.py": "removes objects and the old index of a home",
    "runshelf/snapshot/object_store.py": "the objects of a home, under random names",
    "runshelf/snapshot/code_snapshot.py": "restores code into a new folder, without links",
    "runshelf/snapshot/git_process.py": "a temporary folder with settings of ours for git",
    "runshelf/recorder/rerun.py": "the folder of a rerun, under a random name",
    "runshelf/snapshot/git.py": "`code.patch` in the folder of a run that begins",
    "runshelf/index/database.py": "the index of a home",
    "runshelf/index/seal.py": "the checksum of the index of a home",
    "runshelf/batteries/rows.py": "the folder of a battery that the user names",
    "runshelf/sweeps/making.py": "the folder of a sweep that the user names",
    "runshelf/store/trust.py": "the user's key, and the list of the runs that a home trusts",
    "runshelf/web/serving/address.py": "the user's private folder",
    "runshelf/interop/export_run.py": "a new file or folder that the user names",
    "runshelf/cli/pages.py": "a report that the user names",
    "runshelf/cli/command_line.py": "/dev/null in place of a closed stream",
    "backflip/cli/diagnosing.py": "a page that the user names",
    "backflip/doctor/repeating_program.py": "throws away what a repeated program prints",
    "backflip/doctor/sb3.py": "a log that the user names, in a program of the user",
    "backflip/inspect/stages.py": "the folder of a moving picture that the user names",
    "backflip/inspect/clip_files.py": "the folder of a clip that the user names",
}

METHODS = {
    *("write_bytes", "write_text", "mkdir", "unlink", "rmdir", "rename", "touch", "chmod"),
    *("symlink_to", "hardlink_to"),
}
FUNCTIONS = {
    "os": {
        *("open", "mkdir", "makedirs", "mkfifo", "mknod", "unlink", "remove", "rmdir", "rename"),
        *("renames", "replace", "link", "symlink", "truncate", "utime", "chmod", "chown"),
    },
    "shutil": {"copy", "copy2", "copyfile", "copytree", "copymode", "copystat", "move", "rmtree"},
}


def writes(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what changes a file by its path: calls, and functions such as `Path.unlink`."""
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and (_is_write(node) or _opens_to_write(node))
        if is_call or (isinstance(node, ast.Attribute) and _is_of_path(node)):
            assert isinstance(node, ast.expr)
            yield node


def _is_of_path(name: ast.Attribute) -> bool:
    return name.attr in METHODS and ast.unparse(name.value) == "Path"


def _is_write(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    owner, name = call.func.value, call.func.attr
    if isinstance(owner, ast.Name) and owner.id in FUNCTIONS:
        only_reads = name == "open" and "O_RDONLY" in ast.unparse(call)
        return name in FUNCTIONS[owner.id] and not only_reads
    # `Path.replace` has one argument; that of a text has two, and that of a date has names.
    is_move = name == "replace" and len(call.args) == 1 and not call.keywords
    return name in METHODS or is_move


def _opens_to_write(call: ast.Call) -> bool:
    """Return whether a call is `open(path, mode)` or `path.open(mode)` with a mode that writes."""
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        modes = call.args[1:]
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "open":
        modes = call.args
    else:
        return False
    modes = [*modes, *(k.value for k in call.keywords if k.arg == "mode")]
    texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
    return any(
        isinstance(text, str) and len(text) < 4 and set(text) & set("wax+") for text in texts
    )


def _name(path: Path) -> str:
    return str(path.relative_to(PACKAGES)).partition("/src/")[2]


def _writes_of(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    return [f"line {call.lineno}: {ast.unparse(call)[:80]}" for call in writes(tree)]


@pytest.mark.medium
def test_only_modules_with_a_reason_change_files() -> None:
    others = {_name(path): path for path in MODULES if _name(path) not in REASONS}
    found = {name: _writes_of(path) for name, path in others.items()}
    found = {name: lines for name, lines in found.items() if lines}
    assert not found, "use runshelf.store.writing, or give a reason in this test"


@pytest.mark.parametrize("name", REASONS)
def test_every_reason_is_needed(name: str) -> None:
    (path,) = PACKAGES.glob(f"*/src/{name}")
    assert _writes_of(path)


@pytest.mark.parametrize(
    "line",
    [
        "open('x', 'w')",
        "path.open('ab')",
        "path.open(mode='x')",
        "open(path, 'r+')",
        "os.open(path, flags)",
        "os.open(path, os.O_RDWR | os.O_CREAT)",
        "path.write_text('x')",
        "partial.replace(path)",
        "os.replace(a, b)",
        "path.parent.mkdir(exist_ok=True)",
        "path.unlink(missing_ok=True)",
        "os.utime(path)",
        "shutil.copyfile(a, b)",
        "all_of(paths, Path.unlink)",
    ],
)
def test_writes_are_found(line: str) -> None:
    assert list(writes(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "open('x')",
        "path.open('rb')",
        "text.replace('a', 'b')",
        "time.replace(hour=0)",
        "os.open(path, os.O_RDONLY)",
        "webbrowser.open(address)",
        "replace(run, name=1)",
        "os.write(descriptor, b'')",
    ],
)
def test_other_calls_are_not(line: str) -> None:
    assert not list(writes(ast.parse(line)))
