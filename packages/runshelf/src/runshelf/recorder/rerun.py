"""Rerun: the archived code of a run, in a clean folder, with the same command.

The code that runs is the archived one, also where today's would be found by its absolute path, or
by a package that is installed to be edited.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, final

from runshelf.environment import exported
from runshelf.errors import UsageError
from runshelf.recorder.ending import Ending
from runshelf.recorder.environment_changes import (
    changed_lock_files,
    differences,
    imports_outside,
)
from runshelf.recorder.launch import GRACE_SECONDS, Launch, Recording
from runshelf.recorder.old_paths import names_of_root
from runshelf.recorder.run_command import record
from runshelf.recorder.setting_changes import change, refuse_masked, refuse_unknown
from runshelf.snapshot.capture import PATCH, kind_of_input, without_secrets
from runshelf.snapshot.code_snapshot import CODE, Snapshot, materialise, read_snapshot
from runshelf.snapshot.command_settings import parse_settings
from runshelf.snapshot.interpreter import InterpreterQuery, find_executable, find_interpreter
from runshelf.snapshot.machine import machine
from runshelf.snapshot.secrets import MASK, find_secrets, is_relevant, relevant_environment
from runshelf.store.files import disk_errors
from runshelf.store.run import Run, RunInfo, new_ulid

CLEAN = "code"
_NAMED_AT_MOST = 3
# Of the parent's manifest: what says which code it was, and where it came from.
_INHERITED = ("git", "lock_files", "snapshot")

Say = Callable[[str], None]


def rerun(
    home: Path,
    parent: Run,
    changes: Mapping[str, str],
    info: RunInfo,
    say: Say,
    grace_seconds: float = GRACE_SECONDS,
) -> Ending:
    """Run the command of a recorded run again, with its own code, as a run that names its parent.

    Args:
        home: where the new run goes; the objects are those of the parent's home.
        parent: the run.
        changes: values by the names of settings.
        info: what a person says of the new run; what is not said is as of the parent.
        say: called with one line for each thing that differs from then.
        grace_seconds: from the end of its budget until it is killed.

    Raises:
        UsageError: the run's code was not kept, a secret is missing, or a setting is unknown.
        DamagedFile: the archive is damaged.
    """
    plan = _plan(parent, changes, say)
    environ = plan.environment(parent.manifest, os.environ)
    secrets = find_secrets(plan.argv, environ)
    info = without_secrets(_as_of(parent, info), secrets)
    started: list[Launch] = []

    def keep(folder: Path, cwd: Path) -> dict[str, Any]:
        launch = plan.launch(folder / CLEAN, environ, say)
        started.append(launch)
        for name in (CODE, PATCH):
            if (parent.folder / name).is_file():
                with disk_errors(folder / name):
                    shutil.copyfile(parent.folder / name, folder / name)
        now = _environment_now(launch, folder / CLEAN)
        for line in differences(parent.manifest, now):
            say(line)
        inherited = {k: parent.manifest[k] for k in _INHERITED if k in parent.manifest}
        return {
            **inherited,
            **now,
            **({"stdin": kind} if (kind := kind_of_input()) else {}),
            "cwd": str(launch.cwd),
            "executable": launch.executable,
            "environment": relevant_environment(environ, secrets),
            "masked": list(secrets.names),
        }

    cwd = Path(str(parent.manifest.get("cwd", ".")))
    if parent.manifest.get("stdin") == "piped":
        say("its input came from a pipe or a file, which is not archived: it reads this one's")
    for line in (
        *changed_lock_files(parent.manifest, Path(plan.snapshot.root)),
        *imports_outside(parent.manifest, plan.roots),
    ):
        say(line)
    recording = Recording(
        home.absolute(), secrets.argv, cwd, info, keep, lambda _: started[0], grace_seconds
    )
    return record(recording, say)


def rerun_by_itself(
    home: Path,
    parent: Run,
    changes: Mapping[str, str],
    options: Sequence[str],
    words: Sequence[str],
    say: Say,
) -> int:
    """Repeat a run that its own program recorded, and return the exit status.

    The first word of the run's command line names the Python module to run. The program records
    the new run by itself; a variable of the environment tells it the parent.

    Args:
        home: where the new run goes.
        parent: the run.
        changes: values by the names of options or settings.
        options: the options that the command has.
        words: more of its command line: what a person says of the new run.
        say: called with one line for each thing that differs from then.

    Raises:
        UsageError: the run's code was not kept.
        DamagedFile: the archive is damaged.
    """
    plan = _plan(parent, changes, say, options)
    environ = plan.environment(parent.manifest, os.environ) | exported({"PARENT": parent.ulid})
    target = home.absolute() / "reruns" / new_ulid()
    try:
        launch = plan.launch(target, environ, say, _python_of(parent))
        for line in differences(parent.manifest, _environment_now(launch, target)):
            say(line)
        repeated = _without("home", launch.argv[1:])
        if "name" not in changes:  # a name belongs to one run
            repeated = _without("name", repeated)
        given = [*repeated, *words, "--home", str(home.absolute())]
        command = [launch.executable, "-m", plan.argv[0], *given]
        # Ctrl-C reaches the program as it reaches us; it says how to go on, and how it ended.
        process = subprocess.Popen(command, cwd=launch.cwd, env=dict(launch.environ))
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
    finally:
        shutil.rmtree(target, ignore_errors=True)


@final
@dataclass(frozen=True)
class _Plan:
    """What a rerun does, before there is a folder for it."""

    argv: tuple[str, ...]
    snapshot: Snapshot
    home: Path
    parent: Run

    def launch(
        self, target: Path, environ: dict[str, str], say: Say, executable: str = ""
    ) -> Launch:
        """Write the code into `target`, and return what to start there."""
        materialise(self.home, self.parent.folder, target)
        cwd = target / self.snapshot.cwd
        executable = executable or self._executable(target, cwd, environ)
        words = [self._mapped(word, target, say) for word in self.argv[1:]]
        for line in names_of_root(self.snapshot, words, target):
            say(line)
        is_archived = "/" in self.argv[0] and executable == os.path.normpath(cwd / self.argv[0])
        # A Python finds its packages by the path it was called by.
        argv = (self.argv[0] if is_archived else executable, *words)
        there = {"PATH": self._path(target, environ), "PWD": str(cwd)}
        return Launch(argv, executable, cwd, environ | there | self._python_path(target, environ))

    @property
    def roots(self) -> list[str]:
        """Where the archived code lay: its root, and where the parent ran it, by that name."""
        cwd = str(self.parent.manifest.get("cwd") or self.snapshot.root)
        run_in = os.path.normpath(Path(cwd) / os.path.relpath(".", self.snapshot.cwd))
        return [root for root in dict.fromkeys([self.snapshot.root, run_in]) if root != "/"]

    def environment(self, manifest: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, str]:
        """Return today's environment, with what mattered then as it was then."""
        recorded = cast("dict[str, Any]", manifest.get("environment") or {})
        then = {
            name: value
            for name, value in recorded.items()
            if is_relevant(name) and isinstance(value, str) and MASK not in value
        }
        if not recorded:
            return dict(now)
        return {name: value for name, value in now.items() if not is_relevant(name)} | then

    def _executable(self, target: Path, cwd: Path, environ: Mapping[str, str]) -> str:
        """Return the program: the archived one, else the recorded one, else one of that name."""
        name, recorded = self.argv[0], self.parent.manifest.get("executable")
        if "/" in name:
            archived = self._map(name, target) if Path(name).is_absolute() else name
            found = find_executable(archived, cwd, environ)
            if found:
                return found
        kept = [self._map(recorded, target), recorded] if isinstance(recorded, str) else []
        for path in kept:
            if os.access(path, os.X_OK):
                return path
        found = find_executable(name, cwd, environ)
        if found is None:
            raise UsageError(f"the program `{name}` is not there any more, nor `{recorded}`")
        return found

    def _mapped(self, word: str, target: Path, say: Say) -> str:
        """Return an argument, with a path below the old root led into the clean folder."""
        name, equals, path = word.partition("=")
        if equals and Path(path).is_absolute():
            return f"{name}={self._mapped(path, target, say)}"
        mapped = self._map(word, target)
        if mapped != word and not os.path.lexists(mapped):
            say(f"`{word}` is not in the archive: it is `{mapped}` now, and not there yet")
        return mapped

    def _path(self, target: Path, environ: Mapping[str, str]) -> str:
        """Return PATH, with the folders that are in the archive led into the clean folder."""
        entries = environ.get("PATH", os.defpath).split(os.pathsep)
        mapped = [(entry, self._map(entry, target)) for entry in entries]
        return os.pathsep.join(m if Path(m).is_dir() else entry for entry, m in mapped)

    def _map(self, path: str, target: Path) -> str:
        """Return a path, led into the clean folder if it lies below where the code lay."""
        for root in self.roots:
            if path == root or path.startswith(f"{root.rstrip('/')}/"):
                return str(target / path[len(root) :].lstrip("/"))
        return path

    def _python_path(self, target: Path, environ: Mapping[str, str]) -> dict[str, str]:
        """Return PYTHONPATH, which leads to the archived code before today's is looked at."""
        python = cast("dict[str, Any]", self.parent.manifest.get("python") or {})
        entries = [str(path) for path in cast("list[Any]", python.get("paths") or [])]
        given = environ.get("PYTHONPATH", "")
        entries = [*given.split(os.pathsep), *entries] if given else entries
        mapped = [self._map(entry, target) for entry in entries]
        return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(mapped))} if mapped else {}


def _plan(
    parent: Run, changes: Mapping[str, str], say: Say, options: Sequence[str] | None = None
) -> _Plan:
    argv = [str(word) for word in cast("list[Any]", parent.manifest.get("argv") or [])]
    if not argv:
        raise UsageError(f"run `{parent.ulid}` has no command line: it was not started by one")
    masked = [str(name) for name in cast("list[Any]", parent.manifest.get("masked") or [])]
    argv, left = change(argv, changes)
    if options is None:
        refuse_unknown(argv, left)
    else:
        for key, value in left.items():
            option = f"--{key.replace('_', '-')}"
            argv += [option, value] if option in options else ["--set", f"{key}={value}"]
    refuse_masked(argv, masked)
    for name in masked:
        if name.startswith("env:") and name[4:] not in os.environ:
            say(f"the variable {name[4:]} was set then, and is not now")
    snapshot = read_snapshot(parent.folder)
    for item in snapshot.left_out[:_NAMED_AT_MOST]:
        say(f"`{item.path}` was not archived ({item.why}), so it is not there")
    more = len(snapshot.left_out) - _NAMED_AT_MOST
    if more > 0:
        say(f"and {more:_} more were not archived: all are in `{parent.folder / CODE}`")
    return _Plan(tuple(argv), snapshot, parent.folder.absolute().parents[1], parent)


def _as_of(parent: Run, info: RunInfo) -> RunInfo:
    said = parent.manifest
    return replace(
        info,
        group=info.group or said.get("group"),
        question=info.question or said.get("question"),
        cost_per_hour=info.cost_per_hour or said.get("cost_per_hour"),
        parent=parent.ulid,
    )


def _environment_now(launch: Launch, root: Path) -> dict[str, Any]:
    """Return `python` and `hardware` as they are now, the program's code being below `root`."""
    question = InterpreterQuery(find_interpreter(launch.executable, launch.environ), launch.environ)
    hardware, python = machine(), question.answer(root)
    return {"hardware": hardware} | ({"python": python} if python else {})


def _python_of(run: Run) -> str:
    python = cast("dict[str, Any]", run.manifest.get("python") or {})
    recorded = str(python.get("executable"))
    return recorded if os.access(recorded, os.X_OK) else sys.executable


def _without(key: str, words: Sequence[str]) -> list[str]:
    """Return a command line without one option and its values."""
    settings = [s for s in parse_settings(["", *words]) if s.key == key]
    dropped = {s.place for s in settings}
    dropped |= {s.place - 1 for s in settings if s.prefix == ""}
    return [word for place, word in enumerate(words, 1) if place not in dropped]
