"""Captures everything that is archived of a program before it starts."""

import importlib.util
import os
import select
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from runshelf.snapshot.code_snapshot import (
    MAY_HOLD_SECRETS,
    Limits,
    Snapshot,
    read_snapshot,
    say_left_out,
    take_snapshot,
    write_snapshot,
)
from runshelf.snapshot.git import (
    describe,
    find_repository,
    why_no_repository,
    write_patch,
)
from runshelf.snapshot.git_process import Repository
from runshelf.snapshot.interpreter import InterpreterQuery, find_executable, find_interpreter
from runshelf.snapshot.lock_files import find_lock_files
from runshelf.snapshot.machine import machine
from runshelf.snapshot.not_code import NotCode
from runshelf.snapshot.object_store import snapshot_taken
from runshelf.snapshot.secret_files import is_secret_file
from runshelf.snapshot.secrets import Secrets, find_secrets, relevant_environment
from runshelf.store.run import Capture, Run, RunInfo
from runshelf.store.writing import copy_file

PATCH = "code.patch"
_LARGEST_PATCH = 20_000_000
DEFAULT_LIMITS = Limits()

Say = Callable[[str], None]


def capture(
    home: Path,
    argv: Sequence[str],
    *,
    say: Say,
    cwd: Path | None = None,
    secrets: Secrets | None = None,
    interpreter: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    environ: Mapping[str, str] | None = None,
    parent: Run | None = None,
) -> Capture:
    """Ask git for the state of the code, and return the `capture` argument of `create_run`.

    That archives the program's code, packages, machine and environment.

    Args:
        home: the home of the run.
        argv: the program's command line.
        say: called with one line for each thing that is masked or left out.
        cwd: the working folder of the run; by default the current one.
        secrets: the secrets in `argv` and the environment, if already known.
        interpreter: the Python that runs the program; by default derived from `argv[0]`.
        limits: the limits of the snapshot.
        environ: the program's environment; by default that of this process.
        parent: the run to repeat; its code has been restored to a clean folder.
    """
    environ = dict(os.environ if environ is None else environ)
    secrets = secrets or find_secrets(argv, environ)

    # Asked at once: what the run will write must not count as changes.
    asked = [] if parent else [_ask_git(cwd or Path.cwd(), say)]

    def keep(folder: Path, cwd: Path) -> dict[str, Any]:
        executable = find_executable(argv[0], cwd, environ) if argv else None
        python = interpreter or (find_interpreter(executable, environ) if executable else None)
        query = InterpreterQuery(python, environ)  # answers in the background
        with snapshot_taken(home):
            if asked:  # popped, since git's temporary settings go with it
                code, snapshot = _keep_code(asked.pop(), home, folder, cwd, limits, say)
            else:
                assert parent is not None
                code, snapshot = _inherit_code(parent, folder, cwd, limits)
        root = Path(snapshot.root)
        hardware, python_info = machine(), query.answer(root)
        fields = {
            **code,
            "executable": executable,
            "hardware": hardware,
            "environment": relevant_environment(environ, secrets),
            "masked": list(secrets.names),
            "python": python_info,
            "stdin": None if interpreter else kind_of_input(),
        }
        _say_masked(secrets, say)
        if parent is None:
            say_left_out(snapshot, say)
            _say_missing(argv, cwd, snapshot, executable, say)
            _say_imports(python_info, _own_sources() if interpreter else [], say)
        return {name: value for name, value in fields.items() if value is not None or name == "git"}

    return keep


def _own_sources() -> list[str]:
    """Return the folders that runshelf and backflip are imported from; neither is imported here."""
    specs = (importlib.util.find_spec(name) for name in ("runshelf", "backflip"))
    return [str(Path(s.origin).resolve().parents[1]) for s in specs if s and s.origin]


class _GitState(NamedTuple):
    """What git says before a run writes anything: the repository, and the manifest's `git`."""

    repository: Repository | None
    fields: dict[str, Any] | None


def kind_of_input() -> str | None:
    """Return `piped` if stdin is a pipe with data or a writer, or a non-empty file; else None."""
    try:
        status = os.fstat(0)
    except OSError:
        return None
    if stat.S_ISREG(status.st_mode):
        return "piped" if status.st_size else None
    return "piped" if stat.S_ISFIFO(status.st_mode) and not _has_ended(0) else None


def without_secrets(info: RunInfo, secrets: Secrets) -> RunInfo:
    """Return run information with all secrets masked."""
    return replace(
        info,
        name=info.name and secrets.mask(info.name),
        group=info.group and secrets.mask(info.group),
        question=info.question and secrets.mask(info.question),
        tags=tuple(secrets.mask(tag) for tag in info.tags),
    )


def _has_ended(pipe: int) -> bool:
    """Return whether a pipe has no writer and no data."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return [event for _, event in poll.poll(0)] == [select.POLLHUP]


def _ask_git(cwd: Path, say: Say) -> _GitState:
    """Ask git about the code around `cwd`."""
    repository = find_repository(cwd)
    if repository:
        not_code = NotCode(repository.root)
        return _GitState(repository, describe(repository, lambda path: not not_code.has(path)))
    problem = why_no_repository(cwd)
    if problem:
        say(f"{problem}: the code is archived without its commit")
    return _GitState(None, None)


def _keep_code(
    state: _GitState, home: Path, folder: Path, cwd: Path, limits: Limits, say: Say
) -> tuple[dict[str, Any], Snapshot]:
    """Archive the code around `cwd`; return the fields of the manifest and the snapshot."""
    snapshot = take_snapshot(home, cwd, state.repository, limits)
    if state.repository and not snapshot.files:
        say(
            f"git lists no file of `{snapshot.root}`: the snapshot has the files of `{cwd}` instead"
        )
        snapshot = take_snapshot(home, cwd, None, limits)
    write_snapshot(folder, snapshot, limits)
    if state.repository and state.fields and state.fields["dirty"] is not False:
        _keep_patch(folder, state.repository, snapshot, say)
    fields = {
        "git": state.fields,
        "lock_files": find_lock_files(Path(snapshot.root)),
        "snapshot": _summary(snapshot),
    }
    return fields, snapshot


def _inherit_code(
    parent: Run, folder: Path, cwd: Path, limits: Limits
) -> tuple[dict[str, Any], Snapshot]:
    """Archive the code of `parent`, restored around `cwd`; return the same as `_keep_code`."""
    kept = read_snapshot(parent.folder)
    root = Path(os.path.normpath(cwd / os.path.relpath(".", kept.cwd)))
    snapshot = replace(kept, root=str(root))
    write_snapshot(folder, snapshot, limits)
    copy_file(parent.folder, folder, PATCH)
    fields = {name: parent.manifest.get(name) for name in ("git", "lock_files")}
    return fields | {"snapshot": _summary(snapshot)}, snapshot


def _keep_patch(folder: Path, repository: Repository, snapshot: Snapshot, say: Say) -> None:
    with_keys = {left.path for left in snapshot.left_out if left.why == MAY_HOLD_SECRETS}

    def is_secret(path: bytes) -> bool:
        return is_secret_file(path) or os.fsdecode(path) in with_keys

    if not write_patch(repository, folder / PATCH, is_secret, _LARGEST_PATCH):
        say(
            f"`{PATCH}` is incomplete: the diff to the last commit is too large or took too long; "
            "the snapshot has all changes"
        )


def _summary(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "root": snapshot.root,
        "cwd": snapshot.cwd,
        "files": len(snapshot.files),
        "bytes": sum(file.bytes for file in snapshot.files),
        "left_out": len(snapshot.left_out),
    }


def _say_masked(secrets: Secrets, say: Say) -> None:
    arguments = [name for name in secrets.names if not name.startswith("env:")]
    variables = [name.removeprefix("env:") for name in secrets.names if name.startswith("env:")]
    if arguments:
        say(f"masked arguments that look like keys: {', '.join(arguments)}")
    if variables:
        say(f"masked variables that look like keys: {', '.join(variables)}")


def _say_missing(
    argv: Sequence[str], cwd: Path, snapshot: Snapshot, executable: str | None, say: Say
) -> None:
    """Report the files of the command line that the snapshot neither has nor reports."""
    root = Path(snapshot.root).resolve()
    known = {item.path.rstrip("/") for item in (*snapshot.files, *snapshot.left_out)}
    for argument in argv[1:]:
        path = cwd / argument
        try:
            is_file = path.is_file() and str(path) != executable
            inside = path.resolve().is_relative_to(root)
            below = path.parent.resolve() / path.name
        except (OSError, ValueError, RuntimeError):
            continue
        if is_file and not inside:
            say(f"not in the snapshot: `{argument}`, which is outside of `{snapshot.root}`")
        elif is_file and below.is_relative_to(root) and not _is_known(below, root, known):
            say(f"not in the snapshot: `{argument}`, which is ignored")


def _is_known(path: Path, root: Path, known: Collection[str]) -> bool:
    """Return whether a path or a folder above it is in `known`."""
    parts = path.relative_to(root)
    return any(str(each) in known for each in (parts, *parts.parents))


def _say_imports(python: Mapping[str, Any] | None, ours: Sequence[str], say: Say) -> None:
    """Report other folders that Python imports from, apart from installed packages."""
    outside = [str(path) for path in (python or {}).get("outside", []) if path not in ours]
    if outside:
        named = ", ".join(f"`{path}`" for path in outside)
        say(f"not in the snapshot: Python also imports from {named}")
