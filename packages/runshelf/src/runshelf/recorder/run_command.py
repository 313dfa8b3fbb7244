"""Runs one program as it would run unrecorded, and records it.

Output is stored before it is shown. The program continues if the disk is full or if the recorder is
killed.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from runshelf.errors import UsageError, did_you_mean
from runshelf.recorder.ending import Ending
from runshelf.recorder.launch import GRACE_SECONDS, Launch, Recording, Say
from runshelf.recorder.session import Session
from runshelf.recorder.time_limit import TimeLimit
from runshelf.snapshot.capture import capture, without_secrets
from runshelf.snapshot.command_settings import config_of
from runshelf.snapshot.interpreter import find_executable
from runshelf.snapshot.secrets import find_secrets
from runshelf.store.paths import is_file, is_folder
from runshelf.store.run import RunInfo, create_run


def recording_of(
    home: Path,
    argv: Sequence[str],
    info: RunInfo,
    say: Say,
    *,
    cwd: Path | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> Recording:
    """Return how to record a command line in this process's environment.

    Raises:
        UsageError: the program does not exist.
    """
    home, cwd, environ = home.absolute(), (cwd or Path.cwd()).absolute(), dict(os.environ)
    launch = Launch(tuple(argv), check_executable(argv, cwd, environ), cwd, environ)
    secrets = find_secrets(argv, environ)
    info = without_secrets(info, secrets)
    keep = capture(home, argv, say=say, cwd=cwd, secrets=secrets, environ=environ)
    return Recording(
        home=home,
        argv=secrets.argv,
        cwd=cwd,
        info=info,
        capture=keep,
        launch=lambda _: launch,
        grace_seconds=grace_seconds,
        hidden=secrets.values,
    )


def record(recording: Recording, say: Say) -> Ending:
    """Run a program to its end, record it, and return how it ended.

    Raises:
        UserFacingError: the weekly budget is used up, the disk is full, or the program cannot be
            started.
    """
    time_limit = TimeLimit(recording, say)
    config = config_of(recording.argv)
    seed = config.get("seed")
    writer = create_run(
        recording.home,
        command="run",
        config=config,
        seeds=[seed] if type(seed) is int else [],
        argv=recording.argv,
        cwd=recording.cwd,
        info=recording.info,
        capture=recording.capture,
    )
    with writer:
        session = Session(recording, writer, time_limit, say)
        return session.run(recording.launch(writer.folder))


def check_executable(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> str:
    """Return the absolute path of a command line's program.

    Raises:
        UsageError: the program does not exist, or is not executable.
    """
    if not argv or not argv[0]:
        raise UsageError("no command given: runshelf run -- python train.py")
    executable = find_executable(argv[0], cwd, environ)
    if executable is not None:
        return executable
    path = cwd / argv[0]
    if is_folder(path):
        raise UsageError(
            f"`{argv[0]}` is a folder: name a program, as in runshelf run -- ls {argv[0]}"
        )
    if is_file(path):
        runs_it = "python" if path.suffix == ".py" else "sh" if path.suffix == ".sh" else "PROGRAM"
        raise UsageError(
            f"`{argv[0]}` is not executable: type runshelf run -- {runs_it} {argv[0]}, or make it "
            f"executable with chmod +x {argv[0]}"
        )
    known = [] if "/" in argv[0] else _programs(environ)
    hint = did_you_mean(argv[0], known)
    raise UsageError(f"there is no program `{argv[0]}`{hint}; type its path, or check PATH")


def _programs(environ: Mapping[str, str]) -> list[str]:
    """Return the names of all programs on PATH."""
    names: set[str] = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        with suppress(OSError):
            names.update(os.listdir(folder or "."))  # noqa: PTH208  (names only)
    return sorted(names)
