"""Which runs were made here, or are trusted: only these may name code to import.

For each such run its home keeps a keyed hash (HMAC) of the run's id and of its `run.json`, in
`.runshelf/trusted/`. The key is a file of the user, outside of all homes. So neither a received run
nor a received home can pass for one that was made here, and a changed `run.json` is not trusted.
"""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.home import RUNS, SHARED, make_shared
from runshelf.store.opening import NoFile, read
from runshelf.store.run_ids import is_ulid
from runshelf.store.writing import replace_file

TRUSTED = "trusted"
_MANIFEST = "run.json"
_KEY_BYTES = 32
_LARGEST_MANIFEST = 1 << 26


def key_file() -> Path:
    """Return the path of the user's key."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "runshelf" / "key"


def trust(folder: Path) -> None:
    """Remember that the run in `folder` is trusted as it is now.

    Raises:
        UsageError: the folder's name is not the id of a run, or there is no key.
        UserFacingError: the home cannot be written.
    """
    tag = _tag_of(folder, make=True)
    path = _record(folder)
    if tag is None:
        raise UsageError(
            f"`{folder}` cannot be trusted: expected a folder named by the id of its run, and a "
            f"readable key of {_KEY_BYTES} bytes in `{key_file()}`"
        )
    try:
        if path.parents[2].name == RUNS:
            make_shared(path.parents[3])  # hides it from git
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.is_symlink() or path.parents[1].is_symlink():
            raise UserFacingError(f"`{path.parent}` leads elsewhere: remove the link")
    except OSError as error:
        raise UserFacingError(f"cannot write `{path}`: {error.strerror}") from error
    replace_file(path.parent, path.name, tag)


def trust_own(folder: Path) -> None:
    """Remember that the run in `folder` was made here; without a key, or room for it, do nothing.

    Then its user is asked, as for a received run.
    """
    with suppress(UserFacingError, OSError, RuntimeError):
        trust(folder)


def is_trusted(folder: Path) -> bool:
    """Return whether the run in `folder` was made here, or was trusted as it is now."""
    tag, path = _tag_of(folder, make=False), _record(folder)
    try:
        kept = read(path.parent, path.name, len(tag or b"") + 1)
    except NoFile:
        return False
    return tag is not None and hmac.compare_digest(tag, kept)


def _record(folder: Path) -> Path:
    """Return the file that remembers a run, beside the runs of its home."""
    above = folder.absolute().parents
    in_trash = len(above) > 2 and above[1].name == SHARED
    return (above[2] if in_trash else above[0]) / SHARED / TRUSTED / folder.absolute().name


def _tag_of(folder: Path, *, make: bool) -> bytes | None:
    """Return the keyed hash of a run; None without a key, or if the folder is not a run's."""
    name = folder.absolute().name
    try:
        manifest, key = read(folder.resolve(), _MANIFEST, _LARGEST_MANIFEST), _key(make=make)
    except (NoFile, OSError, RuntimeError):  # RuntimeError: the user has no home folder
        return None
    if len(key) != _KEY_BYTES or not is_ulid(name):
        return None
    text = name.encode() + hashlib.sha256(manifest).digest()
    return hmac.new(key, text, "sha256").hexdigest().encode()


def _key(*, make: bool) -> bytes:
    """Return the user's key; make it if there is none.

    Raises:
        OSError: there is none, or it cannot be made.
    """
    path = key_file()
    if make and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = path.with_name(f"key.{secrets.token_hex(8)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            with suppress(FileExistsError):  # another process was faster
                os.link(partial, path)
        finally:
            partial.unlink()
    return path.read_bytes()
