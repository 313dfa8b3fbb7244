"""What git says of a folder, without running anything that the repository's configuration names.

A repository is somebody's input: its configuration can name programs for git to start (a monitor of
files, filters, an outside diff). All of these are switched off here.
"""

import os
import select
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.snapshot.secrets import mask_shapes

TIMEOUT_SECONDS = 5.0
_INERT = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    *("-c", "core.untrackedCache=false", "-c", "core.quotePath=false"),
    *("-c", "diff.autoRefreshIndex=false"),
)
_CHUNK = 1 << 16


@final
class Repository(NamedTuple):
    """A git repository, and how to ask it.

    Attributes:
        root: its working tree's topmost folder.
        inert: the options that keep git from running what its configuration names.
    """

    root: Path
    inert: tuple[str, ...]


def find_repository(folder: Path) -> Repository | None:
    """Return the repository whose working tree holds `folder`; None without one, or without git."""
    said = _ask(folder, _INERT, ["rev-parse", "--show-toplevel"])
    if not said:
        return None
    return Repository(Path(os.fsdecode(said.removesuffix(b"\n"))), _without_filters(folder))


def why_no_repository(folder: Path) -> str | None:
    """Return why git does not read the repository that `folder` seems to lie in, in one line.

    None if it seems to lie in none.
    """
    above = next((p for p in (folder, *folder.parents) if os.path.lexists(p / ".git")), None)
    if above is None and "GIT_DIR" not in os.environ:
        return None
    where = f"`{above or folder}`"
    try:
        process = _run(folder, _INERT, ["rev-parse", "--show-toplevel"])
    except (OSError, ValueError):
        return f"{where} has a git repository, but there is no program `git` to read it"
    except subprocess.SubprocessError:
        return f"{where} has a git repository, but git gave no answer"
    said = process.stderr.decode(errors="replace").strip().partition("\n")[0]
    return f"git does not read the repository of {where}: {mask_shapes(said) or 'no reason given'}"


def list_files(
    repository: Repository, selection: Sequence[str], seconds: float
) -> Generator[bytes, None, bool]:
    """Yield the paths that `git ls-files` names, relative to the root, as git finds them.

    Returns whether it came to an end within `seconds`.
    """
    said = _said(repository, ["ls-files", "-z", *selection], seconds)
    rest = b""
    for chunk in said:
        if chunk is None:
            return False
        *paths, rest = (rest + chunk).split(b"\0")
        yield from paths
    return True


def describe(repository: Repository) -> dict[str, Any] | None:
    """Return the manifest's `git`: commit, branch, remote, whether files differ, and the root.

    None where there is no commit yet, or no answer within seconds.
    """
    said = _ask(
        repository.root,
        repository.inert,
        ["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty"],
    )
    if said is None:
        return None
    lines = said.decode(errors="replace").splitlines()
    fields = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    if fields.get("branch.oid", "(initial)") == "(initial)":
        return None
    return {
        "commit": fields["branch.oid"],
        "branch": fields.get("branch.head"),
        "remote": _remote(repository, fields.get("branch.upstream", "")),
        "dirty": any(not line.startswith("#") for line in lines),
        "root": str(repository.root),
    }


def write_patch(repository: Repository, target: Path, leave_out: Sequence[str], most: int) -> bool:
    """Write to `target` how the working tree differs from the last commit; nothing if it does not.

    Args:
        repository: where.
        target: the file to write.
        leave_out: patterns of paths that are not to be in it.
        most: bytes to write at most.

    Returns:
        Whether all of it is there.
    """
    tree = "HEAD" if _ask(repository.root, _INERT, ["rev-parse", "--verify", "-q", "HEAD"]) else ""
    if not tree:
        return True
    options = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color")
    paths = ("--", ":/", *(f":(exclude,glob)**/{pattern}" for pattern in leave_out))
    diff = ["diff", tree, *options, "--ignore-submodules=dirty", *paths]
    written = 0
    for chunk in _said(repository, diff, TIMEOUT_SECONDS):
        if chunk is None or written > most:
            return False
        with target.open("ab") as file:
            file.write(chunk[: max(most - written, 0)])
        written += len(chunk)
    return written <= most


def _remote(repository: Repository, upstream: str) -> str | None:
    """Return the address of the remote, without a password or a token in it."""
    name = upstream.partition("/")[0] or "origin"
    said = _ask(repository.root, _INERT, ["config", "--get", f"remote.{name}.url"])
    return without_credentials(said.decode(errors="replace").strip()) if said else None


def without_credentials(url: str) -> str:
    """Return an address without what stands before its `@`, if it has a scheme."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return mask_shapes(url)
    host, slash, path = rest.partition("/")
    return mask_shapes(f"{scheme}://{host.rpartition('@')[2]}{slash}{path}")


def _without_filters(folder: Path) -> tuple[str, ...]:
    """Return options that make git neither clean nor smudge files through anybody's programs."""
    said = _ask(folder, _INERT, ["config", "-z", "--name-only", "--get-regexp", r"^filter\."])
    names = {key.rpartition(".")[0] for key in (said or b"").decode(errors="replace").split("\0")}
    settings = [
        f"{name}.{field}={value}"
        for name in sorted(names - {""})
        for field, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]
    return (*_INERT, *(word for setting in settings for word in ("-c", setting)))


def _ask(folder: Path, inert: Sequence[str], arguments: Sequence[str]) -> bytes | None:
    """Return what git answers; None if it fails, is not there, or takes too long."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        process = _run(folder, inert, arguments)
        return None if process.returncode else process.stdout
    return None


def _run(
    folder: Path, inert: Sequence[str], arguments: Sequence[str]
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        _command(folder, inert, arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env=_environment(),
        check=False,
    )


def _said(
    repository: Repository, arguments: Sequence[str], seconds: float
) -> Generator[bytes | None, None, None]:
    """Yield what git prints piece by piece, and None last if it takes longer than `seconds`."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(
        _command(repository.root, repository.inert, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    ) as process:
        assert process.stdout is not None
        try:
            while chunk := _read_before(process.stdout.fileno(), deadline):
                yield chunk
            if chunk is None:
                yield None
        finally:
            process.kill()


def _command(folder: Path, inert: Sequence[str], arguments: Sequence[str]) -> list[str]:
    return ["git", "--no-pager", *inert, "-C", str(folder), *arguments]


def _environment() -> dict[str, str]:
    # Without it git would take the index's lock and could break a commit made at the same time.
    return {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def _read_before(descriptor: int, deadline: float) -> bytes | None:
    """Return what there is to read, b"" at the end, None if nothing came before the deadline."""
    left = max(deadline - time.monotonic(), 0.0)
    return os.read(descriptor, _CHUNK) if select.select([descriptor], [], [], left)[0] else None
