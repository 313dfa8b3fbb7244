"""Queries git without running any program that the repository's configuration names.

A repository may come from an untrusted source, and its configuration can make git start programs
(a file monitor, filters, an external diff). All of these are switched off here.
"""

import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.snapshot.secrets import mask_shapes

TIMEOUT_SECONDS = 5.0
_INERT = (
    *(("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null"), ("core.pager", "cat")),
    *(("core.untrackedCache", "false"), ("core.quotePath", "false")),
    ("diff.autoRefreshIndex", "false"),
)
_INERT_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}
_INERT_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",  # a lock on the index could break a concurrent commit
    "GIT_TERMINAL_PROMPT": "0",
    # Nothing is fetched for a partial clone.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
# Variables that name a repository, as they are set in a hook.
_OF_ONE_REPOSITORY = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"}
    | {"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"}
)
_SUBMODULE = b"160000 "
_CHUNK = 1 << 16
# A tracked file of which only the content differs from the index, in `git status --porcelain=v2`.
_CONTENT_ONLY = re.compile(
    rb"1 \.M N\.\.\. \d+ (?P<mode>\d+) (?P=mode) \S+ \S+ (?P<path>.*)", re.DOTALL
)
# An entry of `git ls-files --debug -z`.
_STAMP = re.compile(
    rb"(?P<path>[^\0]+)\0  ctime: .*\n  mtime: (?P<s>\d+):(?P<ns>\d+)\n  dev: .*\n  uid: .*\n"
    rb"  size: (?P<size>\d+)\t.*\n"
)


@final
class Repository(NamedTuple):
    """A git repository.

    Attributes:
        root: the root of its working tree.
        options: options of git that prevent it from running programs of the configuration.
        environ: the environment of git.
        has_own_filters: whether the repository's own configuration has filters; these are not run.
    """

    root: Path
    options: tuple[str, ...]
    environ: dict[str, str]
    has_own_filters: bool = False


def find_repository(folder: Path, environ: Mapping[str, str] = os.environ) -> Repository | None:
    """Return the repository that contains `folder`; None without a repository or without git.

    Args:
        folder: a folder; it may be in a repository whose working tree is elsewhere.
        environ: the environment, which may name the repository.
    """
    asked = _inert(folder, environ, _INERT)
    root = _path(_query(asked, ["rev-parse", "--show-toplevel"]))
    git_folder = _path(_query(asked, ["rev-parse", "--absolute-git-dir"]))
    if root is None or git_folder is None or not folder.resolve().is_relative_to(root.resolve()):
        return None
    # git does not find the repository from the root if the configuration moves the working tree.
    named = {**environ, "GIT_DIR": str(git_folder), "GIT_WORK_TREE": str(root)}
    filters = _without_own_filters(asked)
    return _inert(root, named, (*_INERT, *filters))._replace(has_own_filters=bool(filters))


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
        process = _run(_inert(folder, os.environ, _INERT), ["rev-parse", "--show-toplevel"])
    except (OSError, ValueError):
        return f"{where} has a git repository, but there is no program `git` to read it"
    except subprocess.SubprocessError:
        return f"{where} has a git repository, but git does not respond"
    root = _path(process.stdout)
    if root and not process.returncode:
        return f"`{folder}` is not in the working tree of its git repository, which is `{root}`"
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
    commit = _text(_query(repository, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]))
    if not commit:
        return None
    branch = _text(_query(repository, ["symbolic-ref", "--quiet", "--short", "HEAD"]))
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
    output = _query(repository, status)
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

    Without its filter, an unchanged file differs if git reads it again, as it does for files that
    are not older than the index. Then its size and time tell.
    """
    if not repository.has_own_filters or not entries:
        return bool(entries)
    content_only = [match for entry in entries if (match := _CONTENT_ONLY.fullmatch(entry))]
    if len(content_only) < len(entries):
        return True
    stamps = _stamps(repository)
    paths = [match["path"] for match in content_only]
    return any(stamps.get(path) != _stamp(repository.root / os.fsdecode(path)) for path in paths)


def _stamps(repository: Repository) -> dict[bytes, tuple[int, int]]:
    """Return the size and the time of change of each file when git last read it."""
    output = _query(repository, ["ls-files", "--debug", "-z"]) or b""
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
    entries = (_query(repository, ["ls-files", "--stage", "-z"]) or b"").split(b"\0")
    paths = [e.partition(b"\t")[2] for e in entries if e.startswith(_SUBMODULE)]
    found = [(find_nested(repository.root / os.fsdecode(path)), path) for path in paths]
    return [(nested, prefix + path + b"/") for nested, path in found if nested]


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
    if not _query(repository, ["rev-parse", "--verify", "-q", "HEAD"]):
        return True
    options = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")
    options = (*options, "--src-prefix=a/", "--dst-prefix=b/")  # whatever the configuration says
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


def _remote(repository: Repository, branch: str) -> str | None:
    """Return the URL of the branch's remote without credentials; by default that of `origin`."""
    name = branch and _text(_query(repository, ["config", "--get", f"branch.{branch}.remote"]))
    url = _text(_query(repository, ["config", "--get", f"remote.{name or 'origin'}.url"]))
    return without_credentials(url) if url else None


def without_credentials(url: str) -> str:
    """Return a URL without the user and password before its `@`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return mask_shapes(url)
    host, slash, path = rest.partition("/")
    return mask_shapes(f"{scheme}://{host.rpartition('@')[2]}{slash}{path}")


def _without_own_filters(asked: Repository) -> list[tuple[str, str]]:
    """Return settings that disable the filters of the repository's own configuration.

    Filters that the user has set for all repositories, such as Git LFS, stay: without them,
    unchanged files would differ. git runs them only for files whose size or time has changed.
    """
    of_user, own = dict[str, str](), set[str]()
    for scope, key, value in _filter_settings(asked):
        if scope in ("local", "worktree"):
            own.add(key.rpartition(".")[0])
        else:
            of_user[key] = value
    return [
        (f"{name}.{field}", of_user.get(f"{name}.{field}", default))
        for name in sorted(own)
        for field, default in _INERT_FILTER.items()
    ]


def _filter_settings(asked: Repository) -> list[tuple[str, str, str]]:
    """Return scope, key and value of the settings of filters."""
    get = ["config", "-z", "--get-regexp", r"^filter\."]
    fields = _fields(_query(asked, [get[0], "--show-scope", *get[1:]]))
    if not fields:  # there are none; or this is a git before 2.26, without scopes
        fields = [part for field in _fields(_query(asked, get)) for part in ("local", field)]
    settings = [item.partition("\n") for item in fields[1::2]]
    return [
        (scope, key, value) for scope, (key, _, value) in zip(fields[::2], settings, strict=False)
    ]


def _query(repository: Repository, arguments: Sequence[str]) -> bytes | None:
    """Return the output of git; None if it fails, is not installed, or takes too long."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        process = _run(repository, arguments)
        return None if process.returncode else process.stdout
    return None


def _path(output: bytes | None) -> Path | None:
    return Path(os.fsdecode(output.removesuffix(b"\n"))) if output else None


def _fields(output: bytes | None) -> list[str]:
    """Return the fields of an output in which each ends with a null byte."""
    return (output or b"").decode(errors="surrogateescape").split("\0")[:-1]


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace").strip()


def _run(repository: Repository, arguments: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        _command(repository, arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env=repository.environ,
        check=False,
    )


def _stream(
    repository: Repository, arguments: Sequence[str], seconds: float
) -> Generator[bytes | None, None, None]:
    """Yield the output of git in pieces; after `seconds` yield None and stop."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(
        _command(repository, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=repository.environ,
    ) as process:
        assert process.stdout is not None
        try:
            while chunk := _read_before(process.stdout.fileno(), deadline):
                yield chunk
            if chunk is None:
                yield None
        finally:
            process.kill()


def _command(repository: Repository, arguments: Sequence[str]) -> list[str]:
    return ["git", "--no-pager", *repository.options, "-C", str(repository.root), *arguments]


def _inert(
    root: Path, environ: Mapping[str, str], settings: Sequence[tuple[str, str]]
) -> Repository:
    """Return a repository with settings that override its configuration.

    They are also in the environment, for keys that contain `=`; git before 2.31 reads only options.
    """
    options = [word for key, value in settings for word in ("-c", f"{key}={value}")]
    given = environ.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    more = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings, first):
        more |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return Repository(root, tuple(options), {**environ, **_INERT_ENVIRONMENT, **more})


def _read_before(descriptor: int, deadline: float) -> bytes | None:
    """Return available bytes, b"" at the end, or None after the deadline."""
    left = max(deadline - time.monotonic(), 0.0)
    return os.read(descriptor, _CHUNK) if select.select([descriptor], [], [], left)[0] else None
