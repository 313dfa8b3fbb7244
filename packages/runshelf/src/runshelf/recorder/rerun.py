"""Reruns a run: its archived code, in a clean folder, with the same command.

Paths below the old code folder are mapped into the clean folder. So the archived code runs even
where today's code would be found by an absolute path or through an editable install.
"""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, final

from runshelf.environment import exported
from runshelf.errors import UsageError
from runshelf.formatting import plural
from runshelf.index.identity import is_seed_key
from runshelf.recorder.ending import Ending
from runshelf.recorder.environment_changes import (
    changed_lock_files,
    differences,
    imports_outside,
    references_to_root,
)
from runshelf.recorder.launch import GRACE_SECONDS, Launch, Recording, Say
from runshelf.recorder.run_command import record
from runshelf.recorder.setting_changes import change, refuse_masked, refuse_unknown
from runshelf.snapshot.capture import PATCH, kind_of_input, without_secrets
from runshelf.snapshot.code_snapshot import CODE, Snapshot, materialise, read_snapshot
from runshelf.snapshot.command_settings import parse_settings
from runshelf.snapshot.interpreter import InterpreterQuery, find_executable, find_interpreter
from runshelf.snapshot.machine import machine
from runshelf.snapshot.secrets import MASK, find_secrets, is_relevant, relevant_environment
from runshelf.store.files import disk_errors
from runshelf.store.home import RERUNS, home_of, make_shared
from runshelf.store.run import Run, RunInfo
from runshelf.store.run_ids import new_ulid
from runshelf.store.trees import remove_tree
from runshelf.store.writing import copy_file

CLEAN = "code"
_MAX_NAMED = 3
_ABOUT = ("name", "question", "registered", "tag")  # options about a run, which change no result
# Fields of the parent's manifest that identify the code.
_INHERITED = ("git", "lock_files", "snapshot")
_RECORDED_FROM_OUTSIDE = ("run", "script")
_HELP_SECONDS = 60.0


def rerun(
    home: Path,
    parent: Run,
    changes: Mapping[str, str],
    info: RunInfo,
    say: Say,
    grace_seconds: float = GRACE_SECONDS,
) -> Ending:
    """Run the command of a recorded run again, with its archived code, and return how it ended.

    Args:
        home: where the new run is stored.
        parent: the recorded run.
        changes: new values of settings, by name.
        info: run information; missing fields are taken from the parent.
        say: called with one line per difference from the recorded environment.
        grace_seconds: time from the end of the budget until the program is killed.

    Raises:
        UsageError: the run's code was not kept, a secret is missing, or a setting is unknown.
        DamagedFile: the archive is damaged.
    """
    plan = _plan(parent, changes, say)
    environ = plan.environment(parent.manifest, os.environ)
    secrets = find_secrets(plan.argv, environ)
    own = ("group",) if not info.group and _leaves_group(parent, changes, say) else ()
    info = without_secrets(_with_parent_info(info, parent, own), secrets)
    launches: list[Launch] = []

    def keep(folder: Path, cwd: Path) -> dict[str, Any]:
        launch = plan.launch(folder / CLEAN, environ, say)
        launches.append(launch)
        for name in (CODE, PATCH):
            copy_file(parent.folder, folder, name)
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
        say("the recorded input was a pipe or a file, which is not archived: using today's input")
    for line in (
        *changed_lock_files(parent.manifest, Path(plan.snapshot.root)),
        *imports_outside(parent.manifest, plan.roots),
    ):
        say(line)
    recording = Recording(
        home=home.absolute(),
        argv=secrets.argv,
        cwd=cwd,
        info=info,
        capture=keep,
        launch=lambda _: launches[0],
        grace_seconds=grace_seconds,
        hidden=secrets.values,
    )
    return record(recording, say)


def records_itself(run: Run) -> bool:
    """Return whether the program of a run recorded it, as `backflip train` does.

    Such a run's command line is `PROGRAM COMMAND ...`, where COMMAND is the run's own command.
    """
    command = run.manifest["command"]
    argv = cast("list[Any]", run.manifest.get("argv") or [])
    return command not in _RECORDED_FROM_OUTSIDE and argv[1:2] == [command]


def rerun_self_recorded(
    home: Path,
    parent: Run,
    changes: Mapping[str, str],
    words: Sequence[str],
    say: Say,
) -> int:
    """Repeat a run whose program records itself, and return the exit status.

    The first word of the command line is the name of the Python module to run. The environment
    variable `RUNSHELF_PARENT` gives it the parent's id. `words` are appended to the command line.

    Raises:
        UsageError: the run's code was not kept.
        DamagedFile: the archive is damaged.
    """
    plan = _plan(parent, changes, say)
    environ = plan.environment(parent.manifest, os.environ) | exported({"PARENT": parent.ulid})
    with disk_errors(home):
        folder, lock = _locked_folder(make_shared(home.absolute(), RERUNS))
    try:
        launch = plan.launch(folder / CLEAN, environ, say, _python_of(parent))
        for line in differences(parent.manifest, _environment_now(launch, folder / CLEAN)):
            say(line)
        repeated = _without("home", launch.argv[1:])
        if "name" not in changes:  # a name identifies one run
            repeated = _without("name", repeated)
        if "--group" not in words and _leaves_group(parent, changes, say):
            repeated = _without("group", repeated)
        given = [*repeated, *words, "--home", str(home.absolute())]
        command = [launch.executable, "-m", plan.argv[0], *given]
        # Ctrl-C also reaches the program, which prints how it ended and how to resume.
        environment = dict(launch.environ)
        process = subprocess.Popen(command, cwd=launch.cwd, env=environment, pass_fds=(lock,))
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
    finally:
        with suppress(OSError):
            remove_tree(folder)
        os.close(lock)


def _locked_folder(reruns: Path) -> tuple[Path, int]:
    """Make a folder for a rerun; return it, and the descriptor that holds its lock.

    `gc` removes the folder once neither this process nor its program holds the lock. The folder
    gets its name when it has the lock.
    """
    folder = reruns / new_ulid()
    prepared = reruns / f".{folder.name}"
    prepared.mkdir(mode=0o700)
    lock = os.open(prepared / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(lock, fcntl.LOCK_EX)
    prepared.rename(folder)
    return folder, lock


@final
@dataclass(frozen=True)
class _Plan:
    """The command line and the code of a rerun."""

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
        for line in references_to_root(self.snapshot, words, target):
            say(line)
        is_archived = "/" in self.argv[0] and executable == os.path.normpath(cwd / self.argv[0])
        # Python finds its packages by the path that it was called by.
        argv = (self.argv[0] if is_archived else executable, *words)
        there = {"PATH": self._path(target, environ), "PWD": str(cwd)}
        return Launch(argv, executable, cwd, environ | there | self._python_path(target, environ))

    @property
    def roots(self) -> list[str]:
        """Where the archived code was: its root, under both names that the parent may have used."""
        cwd = str(self.parent.manifest.get("cwd") or self.snapshot.root)
        run_in = os.path.normpath(Path(cwd) / os.path.relpath(".", self.snapshot.cwd))
        return [root for root in dict.fromkeys([self.snapshot.root, run_in]) if root != "/"]

    def environment(self, manifest: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, str]:
        """Return today's environment, with the recorded values of relevant variables."""
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
        """Return the program's path: archived, else recorded, else found by name."""
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
            raise UsageError(f"the program `{name}` no longer exists, nor does `{recorded}`")
        return found

    def _mapped(self, word: str, target: Path, say: Say) -> str:
        """Return an argument; a path below the old root is mapped into the clean folder."""
        name, equals, path = word.partition("=")
        if equals and Path(path).is_absolute():
            return f"{name}={self._mapped(path, target, say)}"
        mapped = self._map(word, target)
        if mapped != word and not os.path.lexists(mapped):
            say(f"`{word}` is not in the archive: it becomes `{mapped}`, which does not exist")
        return mapped

    def _path(self, target: Path, environ: Mapping[str, str]) -> str:
        """Return PATH, with archived folders mapped into the clean folder."""
        entries = environ.get("PATH", os.defpath).split(os.pathsep)
        mapped = [(entry, self._map(entry, target)) for entry in entries]
        return os.pathsep.join(m if Path(m).is_dir() else entry for entry, m in mapped)

    def _map(self, path: str, target: Path) -> str:
        """Return a path, mapped into the clean folder if it is below an old root."""
        for root in self.roots:
            if path == root or path.startswith(f"{root.rstrip('/')}/"):
                return str(target / path[len(root) :].lstrip("/"))
        return path

    def _python_path(self, target: Path, environ: Mapping[str, str]) -> dict[str, str]:
        """Return PYTHONPATH with archived folders before today's."""
        python = cast("dict[str, Any]", self.parent.manifest.get("python") or {})
        entries = [str(path) for path in cast("list[Any]", python.get("paths") or [])]
        given = environ.get("PYTHONPATH", "")
        entries = [*given.split(os.pathsep), *entries] if given else entries
        mapped = [self._map(entry, target) for entry in entries]
        return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(mapped))} if mapped else {}


def _plan(parent: Run, changes: Mapping[str, str], say: Say) -> _Plan:
    argv = [str(word) for word in cast("list[Any]", parent.manifest.get("argv") or [])]
    if not argv:
        raise UsageError(f"run `{parent.short}` has no recorded command line to repeat")
    masked = [str(name) for name in cast("list[Any]", parent.manifest.get("masked") or [])]
    argv, left = change(argv, changes)
    if not records_itself(parent):
        refuse_unknown(argv, left)
    elif left:
        options = _options_of(parent, argv)
        for key, value in left.items():
            option = f"--{key.replace('_', '-')}"
            argv += [option, value] if option in options else ["--set", f"{key}={value}"]
    refuse_masked(argv, masked)
    for name in masked:
        if name.startswith("env:") and name[4:] not in os.environ:
            say(f"the variable {name[4:]} was set for the recorded run, and is not set now")
    snapshot = read_snapshot(parent.folder)
    for item in snapshot.left_out[:_MAX_NAMED]:
        say(f"`{item.path}` was not archived ({item.why}), so it is missing")
    if (more := len(snapshot.left_out) - _MAX_NAMED) > 0:
        were = "was" if more == 1 else "were"
        listed = f"`{parent.folder / CODE}` lists them"
        say(f"{plural(more, 'more file')} {were} not archived: {listed}")
    return _Plan(tuple(argv), snapshot, home_of(parent.folder), parent)


def _options_of(run: Run, argv: Sequence[str]) -> set[str]:
    """Return the options of a self-recording command, as its `--help` lists them."""
    command = [_python_of(run), "-m", *argv[:2], "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_HELP_SECONDS)
    return set(re.findall(r"--[a-z][a-z-]*", done.stdout))


def _leaves_group(parent: Run, changes: Mapping[str, str], say: Say) -> bool:
    """Return whether a rerun has other settings than the group that its parent was given.

    In that group it would be counted in place of the parent, whose seed it has.
    """
    group = parent.manifest.get("group")
    settings = [name for name in changes if not is_seed_key(name) and name not in _ABOUT]
    if not group or "group" in changes or not settings:
        return False
    say(f"the rerun has other settings, so it is not in the group `{group}`: --group puts it there")
    return True


def _with_parent_info(info: RunInfo, parent: Run, own: Collection[str]) -> RunInfo:
    """Return information about a rerun: what is missing is the parent's, but for `own` fields."""
    fields = [name for name in ("group", "question", "cost_per_hour") if name not in own]
    inherited = {name: getattr(info, name) or parent.manifest.get(name) for name in fields}
    return replace(info, parent=parent.ulid, **inherited)


def _environment_now(launch: Launch, root: Path) -> dict[str, Any]:
    """Return today's `python` and `hardware` fields, for a program whose code is below `root`."""
    question = InterpreterQuery(find_interpreter(launch.executable, launch.environ), launch.environ)
    hardware, python = machine(), question.answer(root)
    return {"hardware": hardware} | ({"python": python} if python else {})


def _python_of(run: Run) -> str:
    recorded = str((run.manifest.get("python") or {}).get("executable"))
    return recorded if os.access(recorded, os.X_OK) else sys.executable


def _without(key: str, words: Sequence[str]) -> list[str]:
    """Return a command line without one option and its values."""
    settings = [s for s in parse_settings(["", *words]) if s.key == key]
    dropped = {s.place for s in settings}
    dropped |= {s.place - 1 for s in settings if s.prefix == ""}
    return [word for place, word in enumerate(words, 1) if place not in dropped]
