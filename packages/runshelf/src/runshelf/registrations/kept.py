"""Registrations of a home: written once, hashed, never changed, only superseded.

<home>/runs/.runshelf/registrations/
    NAME/1.json     the first version, in canonical bytes: `sha256sum` prints its hash
    NAME/2.json     what supersedes it, with the reason and the hash of version 1
    hashes.jsonl    the hash of each version, written before the version itself
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from runshelf.errors import DamagedFile, UsageError, UserFacingError, did_you_mean
from runshelf.received_json import parse_record
from runshelf.registrations.registration import (
    Registration,
    canonical,
    check_name,
    digest,
    registration_of,
    values_of,
)
from runshelf.store.home import make_shared, shared
from runshelf.store.opening import read_whole
from runshelf.store.records import LinesWriter, read_lines
from runshelf.store.times import now
from runshelf.store.writing import make_folder, write_once

FOLDER = "registrations"

_HASHES = "hashes.jsonl"
_VERSION = re.compile(r"([1-9][0-9]{0,5})\.json")
_SCHEMA = 1


@final
@dataclass(frozen=True)
class Kept:
    """One version of a registration in a home.

    Attributes:
        name: its name.
        version: its version, from 1.
        created: when it was registered, ISO 8601.
        sha256: the hash of its file now.
        registration: what is registered.
        reason: why it supersedes the version before; empty for version 1.
        changed: what is wrong with its file, in words; empty if it is as it was registered.
    """

    name: str
    version: int
    created: str
    sha256: str
    registration: Registration
    reason: str = ""
    changed: str = ""

    def carried(self) -> dict[str, Any]:
        """Return what a run that is started under it keeps in its manifest."""
        return {
            "name": self.name,
            "version": self.version,
            "sha256": self.sha256,
            "created": self.created,
        }


def register(home: Path, name: str, registration: Registration, *, reason: str = "") -> Kept:
    """Keep a new registration, or with a reason a version that supersedes the newest one.

    Raises:
        UsageError: the name is taken and there is no reason, or it is free and there is one.
        UserFacingError: it cannot be written; earlier versions are intact.
    """
    known = versions(home, check_name(name))
    if known and not reason:
        raise UsageError(
            f"`{name}` is registered already, and a registration cannot be changed: add "
            "--supersede --reason 'why', or choose another name"
        )
    if reason and not known:
        raise UsageError(f"there is no registration `{name}` to supersede: leave out --supersede")
    version = known[-1] + 1 if known else 1
    document = {
        "schema": _SCHEMA,
        "name": name,
        "version": version,
        "created": now(),
        "registered": values_of(registration),
        **(_supersedes(home, name, known[-1], reason) if known else {}),
    }
    data = canonical(document)
    folder = _make_folder(home, name)
    with LinesWriter(folder.parent / _HASHES) as hashes:
        hashes.write({"name": name, "version": version, "sha256": digest(data)})
        hashes.sync()
    if not write_once(folder, f"{version}.json", data, mode=0o444):
        raise UserFacingError(
            f"another process has just registered `{name}`: look at it with "
            f"runshelf register {name} --show"
        )
    return find(home, name)


def find(home: Path, name: str, version: int | None = None) -> Kept:
    """Return a registration; the newest version by default.

    Raises:
        UsageError: there is no such registration.
        DamagedFile: it cannot be read.
    """
    known = versions(home, check_name(name))
    if not known or (version is not None and version not in known):
        hint = did_you_mean(name, names(home)) or "; runshelf register --list has all"
        which = f"registration `{name}`" if version is None else f"version {version} of `{name}`"
        raise UsageError(f"there is no {which}{hint if not known else ''}")
    return _read(home, name, known[-1] if version is None else version)


def find_intact(home: Path, name: str) -> Kept:
    """Return the newest version of a registration, under which a run may start.

    Raises:
        UsageError: there is no such registration, or its file was changed.
    """
    kept = find(home, name)
    if kept.changed:
        raise UsageError(
            f"`{name}` cannot be used: {kept.changed}; restore its file from a copy, or supersede "
            "it with a reason"
        )
    return kept


def names(home: Path) -> list[str]:
    """Return the names of the registrations of a home."""
    folder = shared(home, FOLDER)
    with suppress(OSError):
        return sorted(
            one.name for one in folder.iterdir() if one.is_dir() and versions(home, one.name)
        )
    return []


def versions(home: Path, name: str) -> list[int]:
    """Return the versions of a registration, oldest first."""
    with suppress(OSError):
        found = [_VERSION.fullmatch(one.name) for one in (shared(home, FOLDER) / name).iterdir()]
        return sorted(int(match[1]) for match in found if match)
    return []


def _read(home: Path, name: str, version: int) -> Kept:
    path = shared(home, FOLDER) / name / f"{version}.json"
    data = read_whole(path.parent, path.name) or b""
    try:
        document = parse_record(data)
        registered: Mapping[str, object] = document["registered"]
        registration = registration_of(registered)
        created, reason = str(document["created"]), str(document.get("reason", ""))
    except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise DamagedFile(f"`{path}` is damaged ({error}): restore it from a copy") from error
    sha256 = digest(data)
    changed = _change(home, name, version, sha256)
    return Kept(
        name=name,
        version=version,
        created=created,
        sha256=sha256,
        registration=registration,
        reason=reason,
        changed=changed,
    )


def _change(home: Path, name: str, version: int, sha256: str) -> str:
    """Return how a registration differs from what was registered; empty if it does not."""
    records = read_lines(shared(home, FOLDER) / _HASHES).records
    noted = [
        one.get("sha256")
        for one in records
        if one.get("name") == name and one.get("version") == version
    ]
    if sha256 in noted:
        return ""
    if not noted:
        return f"its hash was never noted in `{_HASHES}`"
    return (
        f"its file was changed after it was registered (hash {sha256[:12]}, not {noted[-1]!s:.12})"
    )


def _supersedes(home: Path, name: str, version: int, reason: str) -> dict[str, object]:
    path = shared(home, FOLDER) / name / f"{version}.json"
    before = digest(read_whole(path.parent, path.name) or b"")
    return {"supersedes": before, "reason": reason}


def _make_folder(home: Path, name: str) -> Path:
    try:
        top = make_shared(home)
    except OSError as error:
        raise UsageError(
            f"cannot write to `{home}` ({error.strerror}): give another folder with `--home`"
        ) from error
    return make_folder(top, f"{FOLDER}/{name}")
