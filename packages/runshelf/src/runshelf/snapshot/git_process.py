"""Runs git so that neither a repository nor the user's configuration makes it run a program.

A repository may come from an untrusted source. Its configuration, and the attributes of its files,
can make git run a file monitor, filters, an external diff, a hook, or the transport of a remote.
So git reads a repository with settings of ours: `GIT_COMMON_DIR` is a folder that has a new
configuration, with the settings of `_KEPT` alone, and links to the objects and the references. The
repository's own configuration is only ever listed. Filters never run, not even those that the user
has set for all repositories: a filter may find its own program in the repository.
"""

import os
import re
import select
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

TIMEOUT_SECONDS = 5.0
_CHUNK = 1 << 16
_LISTED = r"^(core|extensions|status)\."
# Settings that change what git reads, and that name no program: all others are left out.
_KEPT = frozenset(
    {"core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase"}
    | {"core.precomposeunicode", "core.trustctime", "core.checkstat", "core.sparsecheckout"}
    | {"core.sparsecheckoutcone", "core.repositoryformatversion", "extensions.objectformat"}
    | {"extensions.compatobjectformat", "extensions.refstorage", "status.showuntrackedfiles"}
)
_FILES = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
_OURS = {
    "core.fsmonitor": b"false",
    "core.hookspath": b"/dev/null",
    "core.pager": b"cat",
    "core.untrackedcache": b"false",
    "core.quotepath": b"false",
    "core.bare": b"false",
    "diff.autorefreshindex": b"false",
}
_SHARED = ("refs", "packed-refs", "reftable", "info", "shallow")
# Variables of git that are kept: which files it reads.
_PASSED_ON = frozenset(
    {"GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_EXEC_PATH"}
)
_SAFE = {
    "GIT_OPTIONAL_LOCKS": "0",  # a lock on the index could break a concurrent commit
    "GIT_TERMINAL_PROMPT": "0",
    # Nothing is fetched for a partial clone.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


@final
@dataclass(frozen=True, eq=False)
class Repository:
    """A git repository.

    Attributes:
        root: the root of its working tree.
        environ: the environment of git.
        configured: the same with its own configuration, of which only settings may be asked.
    """

    root: Path
    environ: Mapping[str, str]
    configured: "Repository | None" = None


def as_configured(folder: Path, environ: Mapping[str, str]) -> Repository:
    """Return the repository around `folder` with its own configuration.

    Only what finds the repository and lists its configuration may be asked of it.
    """
    return Repository(folder, {**environ, **_SAFE})


def with_safe_settings(folder: Path, root: Path, environ: Mapping[str, str]) -> Repository | None:
    """Return the repository around `folder` with settings of ours; None if git does not answer.

    Args:
        folder: a folder in the repository.
        root: the root of its working tree.
        environ: the environment, which may name the repository.

    Raises:
        OSError: the settings cannot be written.
    """
    asked = as_configured(folder, environ)
    git_folder = path_of(query(asked, ["rev-parse", "--absolute-git-dir"]))
    shared = path_of(query(asked, ["rev-parse", "--git-common-dir"]))
    if git_folder is None or shared is None:
        return None
    shared = (folder / shared).absolute()
    own = Path(tempfile.mkdtemp(prefix="git-settings-"))
    named = {
        "GIT_DIR": str(git_folder),
        "GIT_COMMON_DIR": str(own),
        "GIT_WORK_TREE": str(root),
        "GIT_OBJECT_DIRECTORY": str(shared / "objects"),
        # There, and not in the home of the user, git looks for the configuration of the user.
        "HOME": str(own),
        "XDG_CONFIG_HOME": str(own),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    passed_on = {k: v for k, v in environ.items() if k in _PASSED_ON or not k.startswith("GIT_")}
    given = {k: v for k, v in passed_on.items() if k.startswith("GIT_")}
    repository = Repository(root, {**passed_on, **named, **given, **_SAFE}, asked)
    weakref.finalize(repository, shutil.rmtree, own, ignore_errors=True)
    for name in _SHARED:
        if os.path.lexists(shared / name):
            (own / name).symlink_to(shared / name)
    (own / "config").write_bytes(_config(_settings_of(asked) | _files_of(asked, root, environ)))
    return repository


def setting(repository: Repository, key: str) -> bytes | None:
    """Return a setting of the repository's own configuration, or of the user's."""
    return query(repository.configured or repository, ["config", "--get", key])


def query(repository: Repository, arguments: Sequence[str], given: bytes = b"") -> bytes | None:
    """Return the output of git; None if it fails, is not installed, or takes too long."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        process = run(repository, arguments, given)
        return None if process.returncode else process.stdout
    return None


def run(
    repository: Repository, arguments: Sequence[str], given: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run git with `given` as its input.

    Raises:
        OSError: git is not installed.
        subprocess.SubprocessError: it takes too long.
    """
    return subprocess.run(
        _command(repository, arguments),
        input=given,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env=repository.environ,
        check=False,
    )


def stream(
    repository: Repository, arguments: Sequence[str], seconds: float
) -> Generator[bytes | None, None, None]:
    """Yield the output of git in pieces; yield None if git fails, or does not end in `seconds`."""
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
            if chunk is None or process.wait(TIMEOUT_SECONDS):
                yield None
        finally:
            process.kill()


def path_of(output: bytes | None) -> Path | None:
    """Return the path that git printed."""
    return Path(os.fsdecode(output.removesuffix(b"\n"))) if output else None


def _settings_of(asked: Repository) -> dict[str, bytes]:
    """Return the last value of each listed setting, of the repository, the user and the system."""
    listed = query(asked, ["config", "-z", "--get-regexp", _LISTED]) or b""
    fields = (entry.partition(b"\n") for entry in listed.split(b"\0")[:-1])
    return {os.fsdecode(key): value if sep else b"true" for key, sep, value in fields}


def _files_of(asked: Repository, root: Path, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Return the settings that name the user's files of patterns to ignore and of attributes."""
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    paths = {
        key: path_of(query(asked, ["config", "--path", "--get", key])) or Path(home, "git", name)
        for key, name in _FILES.items()
    }
    return {key: os.fsencode(root / path) for key, path in paths.items()}


def _config(settings: Mapping[str, bytes]) -> bytes:
    """Return a configuration with the settings that are kept, and ours."""
    kept = {k: v for k, v in settings.items() if k in _KEPT or k in _FILES} | _OURS
    lines = (b"[%s]\n\t%s = %s\n" % (*_split(key), _quoted(v)) for key, v in kept.items())
    return b"".join(lines)


def _split(key: str) -> tuple[bytes, bytes]:
    section, _, name = key.encode().partition(b".")
    return section, name


def _quoted(value: bytes) -> bytes:
    escaped = re.sub(rb'(["\\])', rb"\\\1", value).replace(b"\n", b"\\n")
    return b'"%s"' % escaped


def _command(repository: Repository, arguments: Sequence[str]) -> list[str]:
    return ["git", "--no-pager", "-C", str(repository.root), *arguments]


def _read_before(descriptor: int, deadline: float) -> bytes | None:
    """Return available bytes, b"" at the end, or None after the deadline."""
    left = max(deadline - time.monotonic(), 0.0)
    return os.read(descriptor, _CHUNK) if select.select([descriptor], [], [], left)[0] else None
