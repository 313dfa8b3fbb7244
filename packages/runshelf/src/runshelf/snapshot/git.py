"""Queries git without running any program that the repository's configuration names.

A repository may come from an untrusted source, and its configuration can make git start programs
(a file monitor, filters, an external diff). All of these are switched off here.
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
    """A git repository.

    Attributes:
        root: the root of its working tree.
        inert: options that prevent git from running programs of its configuration.
    """

    root: Path
    inert: tuple[str, ...]


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that contains `folder`; None without a repository or without git."""
    output = _query(folder, _INERT, ["rev-parse", "--show-toplevel"])
    if not output:
        return None
    return Repository(Path(os.fsdecode(output.removesuffix(b"\n"))), _without_filters(folder))


def why_no_repository(folder: Path) -> str | None:
    """Return in one line why git cannot read the repository of `folder`; None if there is none."""
    above = next((p for p in (folder, *folder.parents) if os.path.lexists(p / ".git")), None)
    if above is None and "GIT_DIR" not in os.environ:
        return None
    where = f"`{above or folder}`"
    try:
        process = _run(folder, _INERT, ["rev-parse", "--show-toplevel"])
    except (OSError, ValueError):
        return f"{where} has a git repository, but there is no program `git` to read it"
    except subprocess.SubprocessError:
        return f"{where} has a git repository, but git does not respond"
    reason = mask_shapes(process.stderr.decode(errors="replace").strip().partition("\n")[0])
    return f"git cannot read the repository of {where}: {reason or 'no reason given'}"


def list_files(
    repository: Repository, selection: Sequence[str], seconds: float
) -> Generator[bytes, None, bool]:
    """Yield the paths that `git ls-files` prints, relative to the root.

    Returns:
        Whether git finished within `seconds`.
    """
    rest = b""
    for chunk in _stream(repository, ["ls-files", "-z", *selection], seconds):
        if chunk is None:
            return False
        *paths, rest = (rest + chunk).split(b"\0")
        yield from paths
    return True


def describe(repository: Repository) -> dict[str, Any] | None:
    """Return the manifest's `git`: commit, branch, remote, whether files differ, and the root.

    None if there is no commit yet, or if git does not respond in time.
    """
    output = _query(
        repository.root,
        repository.inert,
        ["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty"],
    )
    if output is None:
        return None
    lines = output.decode(errors="replace").splitlines()
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
    """Write the diff of the working tree to the last commit to `target`; no file if it is empty.

    Args:
        repository: the repository.
        target: the file to write.
        leave_out: patterns of paths to leave out.
        most: the maximum number of bytes.

    Returns:
        Whether the diff is complete.
    """
    if not _query(repository.root, _INERT, ["rev-parse", "--verify", "-q", "HEAD"]):
        return True
    options = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color")
    paths = ("--", ":/", *(f":(exclude,glob)**/{pattern}" for pattern in leave_out))
    diff = ["diff", "HEAD", *options, "--ignore-submodules=dirty", *paths]
    written = 0
    for chunk in _stream(repository, diff, TIMEOUT_SECONDS):
        if chunk is None or written > most:
            return False
        with target.open("ab") as file:
            file.write(chunk[: max(most - written, 0)])
        written += len(chunk)
    return written <= most


def _remote(repository: Repository, upstream: str) -> str | None:
    """Return the URL of the remote without credentials."""
    name = upstream.partition("/")[0] or "origin"
    url = _query(repository.root, _INERT, ["config", "--get", f"remote.{name}.url"])
    return without_credentials(url.decode(errors="replace").strip()) if url else None


def without_credentials(url: str) -> str:
    """Return a URL without the user and password before its `@`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return mask_shapes(url)
    host, slash, path = rest.partition("/")
    return mask_shapes(f"{scheme}://{host.rpartition('@')[2]}{slash}{path}")


def _without_filters(folder: Path) -> tuple[str, ...]:
    """Return options that disable the clean and smudge filters of the configuration."""
    keys = _query(folder, _INERT, ["config", "-z", "--name-only", "--get-regexp", r"^filter\."])
    names = {key.rpartition(".")[0] for key in (keys or b"").decode(errors="replace").split("\0")}
    settings = [
        f"{name}.{field}={value}"
        for name in sorted(names - {""})
        for field, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]
    return (*_INERT, *(word for setting in settings for word in ("-c", setting)))


def _query(folder: Path, inert: Sequence[str], arguments: Sequence[str]) -> bytes | None:
    """Return the output of git; None if it fails, is not installed, or takes too long."""
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


def _stream(
    repository: Repository, arguments: Sequence[str], seconds: float
) -> Generator[bytes | None, None, None]:
    """Yield the output of git in pieces; after `seconds` yield None and stop."""
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
    # GIT_OPTIONAL_LOCKS=0: git must not lock the index, which could break a concurrent commit.
    return {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def _read_before(descriptor: int, deadline: float) -> bytes | None:
    """Return available bytes, b"" at the end, or None after the deadline."""
    left = max(deadline - time.monotonic(), 0.0)
    return os.read(descriptor, _CHUNK) if select.select([descriptor], [], [], left)[0] else None
