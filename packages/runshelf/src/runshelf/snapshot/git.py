"""Asks git about a repository: its files, its commit, and whether files differ from it."""

import os
import re
import subprocess
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from runshelf.snapshot.git_process import (
    TIMEOUT_SECONDS,
    Repository,
    as_configured,
    path_of,
    query,
    run,
    setting,
    stream,
    with_safe_settings,
)
from runshelf.snapshot.secrets import mask_shapes

# Variables that name a repository, as they are set in a hook.
_OF_ONE_REPOSITORY = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"}
    | {"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"}
)
_SUBMODULE = b"160000 "
_PLAIN_DIFF = (  # whatever the configuration says
    "--binary",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--submodule=short",
    "--ignore-submodules=dirty",
)
_LEFT_OUT_AT_MOST = 1000  # paths in one command line
# A tracked file of which only the content differs from the index, in `git status --porcelain=v2`.
_CONTENT_ONLY = re.compile(
    rb"1 \.M N\.\.\. \d+ (?P<mode>\d+) (?P=mode) \S+ \S+ (?P<path>.*)", re.DOTALL
)
# An entry of `git ls-files --debug -z`.
_STAMP = re.compile(
    rb"(?P<path>[^\0]+)\0  ctime: .*\n  mtime: (?P<s>\d+):(?P<ns>\d+)\n  dev: .*\n  uid: .*\n"
    rb"  size: (?P<size>\d+)\t.*\n"
)


def find_repository(folder: Path, environ: Mapping[str, str] = os.environ) -> Repository | None:
    """Return the repository that contains `folder`; None without a repository or without git.

    Args:
        folder: a folder; it may be in a repository whose working tree is elsewhere.
        environ: the environment, which may name the repository.
    """
    root = _root_of(folder, environ)
    if root is None or not folder.resolve().is_relative_to(root.resolve()):
        return None
    with suppress(OSError):
        return with_safe_settings(folder, root, environ)
    return None


def _root_of(folder: Path, environ: Mapping[str, str]) -> Path | None:
    return path_of(query(as_configured(folder, environ), ["rev-parse", "--show-toplevel"]))


def find_nested(folder: Path) -> Repository | None:
    """Return the repository whose root is `folder`, which is in another repository."""
    if not os.path.lexists(folder / ".git"):
        return None
    environ = {k: v for k, v in os.environ.items() if k not in _OF_ONE_REPOSITORY}
    found = find_repository(folder, environ)
    return found if found and found.root.resolve() == folder.resolve() else None


def why_no_repository(folder: Path) -> str | None:
    """Return in one line why git cannot read the repository of `folder`; None if there is none."""
    above = next((p for p in (folder, *folder.parents) if os.path.lexists(p / ".git")), None)
    if above is None and "GIT_DIR" not in os.environ:
        return None
    where = f"`{above or folder}`"
    try:
        process = run(as_configured(folder, os.environ), ["rev-parse", "--show-toplevel"])
    except (OSError, ValueError):
        return f"{where} has a git repository, but there is no program `git` to read it"
    except subprocess.SubprocessError:
        return f"{where} has a git repository, but git does not respond"
    root = path_of(process.stdout)
    if root and not process.returncode:
        if folder.resolve().is_relative_to(root.resolve()):
            return f"git cannot read the repository of {where}: no folder for its settings is left"
        return f"`{folder}` is not in the working tree of its git repository, which is `{root}`"
    reason = mask_shapes(process.stderr.decode(errors="replace").strip().partition("\n")[0])
    return f"git cannot read the repository of {where}: {reason or 'no reason given'}"


def list_files(
    repository: Repository, selection: Sequence[str], seconds: float
) -> Generator[bytes, None, bool]:
    """Yield the paths that `git ls-files` prints, relative to the root.

    Returns:
        Whether git listed all of them within `seconds`.
    """
    rest = b""
    for chunk in stream(repository, ["ls-files", "-z", *selection], seconds):
        if chunk is None:
            return False
        *paths, rest = (rest + chunk).split(b"\0")
        yield from paths
    return True


def head_of(repository: Repository) -> str:
    """Return the commit that is checked out; empty before the first commit."""
    return _text(query(repository, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]))


def describe(
    repository: Repository, is_code: Callable[[bytes], bool] = lambda path: True
) -> dict[str, Any] | None:
    """Return the manifest's `git`: commit, branch, remote, whether files differ, and the root.

    `dirty` is what `git status` says, apart from untracked files that are not code. It is None if
    git does not respond in time.

    Args:
        repository: the repository.
        is_code: called with the path of an untracked file, relative to the root.

    Returns:
        The fields; None if there is no commit yet.
    """
    commit = head_of(repository)
    if not commit:
        return None
    branch = _text(query(repository, ["symbolic-ref", "--quiet", "--short", "HEAD"]))
    return {
        "commit": commit,
        "branch": branch or "(detached)",
        "remote": _remote(repository, branch),
        "dirty": _is_dirty(repository, b"", is_code),
        "root": str(repository.root),
    }


def _is_dirty(
    repository: Repository, prefix: bytes, is_code: Callable[[bytes], bool]
) -> bool | None:
    """Return whether files differ from the last commit, also in submodules; None if unknown."""
    status = ["status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=dirty"]
    output = query(repository, status)
    if output is None:
        return None
    entries = output.split(b"\0")[:-1]
    untracked = [entry[2:] for entry in entries if entry.startswith(b"? ")]
    if _has_changes(repository, [entry for entry in entries if not entry.startswith(b"? ")]):
        return True
    if any(_has_code(repository, path, prefix, is_code) for path in untracked):
        return True
    nested = [_is_dirty(*found, is_code) for found in _submodules(repository, prefix)]
    return True if True in nested else None if None in nested else False


def _has_changes(repository: Repository, entries: Sequence[bytes]) -> bool:
    """Return whether an entry of the status of tracked files is a change.

    Filters do not run, so an unchanged file with a filter differs if git reads it again, as it does
    for files that are not older than the index. Then its size and time tell.
    """
    content_only = [match for entry in entries if (match := _CONTENT_ONLY.fullmatch(entry))]
    if len(content_only) < len(entries):
        return True
    paths = {match["path"] for match in content_only}
    if paths - _filtered(repository, paths):
        return True
    stamps = _stamps(repository) if paths else {}
    return any(stamps.get(path) != _stamp(repository.root / os.fsdecode(path)) for path in paths)


def _filtered(repository: Repository, paths: Collection[bytes]) -> set[bytes]:
    """Return the paths that have a filter by their attributes."""
    if not paths:
        return set()
    given = b"".join(path + b"\0" for path in paths)
    fields = (query(repository, ["check-attr", "-z", "--stdin", "filter"], given) or b"").split(
        b"\0"
    )
    return {
        path
        for path, value in zip(fields[::3], fields[2::3], strict=False)
        if value not in (b"unspecified", b"unset", b"set")
    }


def _stamps(repository: Repository) -> dict[bytes, tuple[int, int]]:
    """Return the size and the time of change of each file when git last read it."""
    output = query(repository, ["ls-files", "--debug", "-z"]) or b""
    return {
        found["path"]: (int(found["size"]), int(found["s"]) * 10**9 + int(found["ns"]))
        for found in _STAMP.finditer(output)
    }


def _stamp(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = path.lstat()
        return status.st_size, status.st_mtime_ns
    return None


def _has_code(
    repository: Repository, path: bytes, prefix: bytes, is_code: Callable[[bytes], bool]
) -> bool:
    """Return whether an untracked file is code, or an untracked folder contains any."""
    if not path.endswith(b"/"):
        return is_code(prefix + path)
    select = ["--others", "--exclude-standard", "--", f":(top,literal){os.fsdecode(path)}"]
    files = list_files(repository, select, TIMEOUT_SECONDS)
    with closing(files):
        return any(is_code(prefix + file) for file in files)


def _submodules(repository: Repository, prefix: bytes) -> list[tuple[Repository, bytes]]:
    """Return the submodules that are checked out, each with its path and a `/`."""
    entries = (query(repository, ["ls-files", "--stage", "-z"]) or b"").split(b"\0")
    paths = [e.partition(b"\t")[2] for e in entries if e.startswith(_SUBMODULE)]
    found = [(find_nested(repository.root / os.fsdecode(path)), path) for path in paths]
    return [(nested, prefix + path + b"/") for nested, path in found if nested]


def write_patch(
    repository: Repository, target: Path, is_secret: Callable[[bytes], bool], most: int
) -> bool:
    """Write the diff of the working tree to the last commit to `target`; no file if it is empty.

    Args:
        repository: the repository.
        target: the file to write.
        is_secret: called with the path of a file that differs; secret files are left out.
        most: the maximum number of bytes.

    Returns:
        Whether the diff is complete.
    """
    if not query(repository, ["rev-parse", "--verify", "-q", "HEAD"]):
        return True
    names = query(repository, ["diff", "HEAD", *_PLAIN_DIFF, "--name-only", "-z"])
    if names is None:
        return False
    secret = [os.fsdecode(name) for name in names.split(b"\0") if name and is_secret(name)]
    if len(secret) > _LEFT_OUT_AT_MOST:
        return False
    paths = ("--", ":/", *(f":(exclude,top,literal){path}" for path in secret))
    written = 0
    for chunk in stream(repository, ["diff", "HEAD", *_PLAIN_DIFF, *paths], TIMEOUT_SECONDS):
        if chunk is None or written > most:
            return False
        with target.open("ab") as file:
            file.write(chunk[: max(most - written, 0)])
        written += len(chunk)
    return written <= most


def _remote(repository: Repository, branch: str) -> str | None:
    """Return the URL of the branch's remote without credentials; by default that of `origin`."""
    name = _text(setting(repository, f"branch.{branch}.remote"))
    url = _text(setting(repository, f"remote.{name or 'origin'}.url"))
    return without_credentials(url) if url else None


def without_credentials(url: str) -> str:
    """Return a URL without the user and password before its `@`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return mask_shapes(url)
    host, slash, path = rest.partition("/")
    return mask_shapes(f"{scheme}://{host.rpartition('@')[2]}{slash}{path}")


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace").strip()
