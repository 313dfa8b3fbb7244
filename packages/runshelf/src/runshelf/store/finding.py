"""Finds runs by what people type: an id, a part of one, a name, a folder, or `latest`."""

import json
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.files import disk_errors
from runshelf.store.opening import read_whole
from runshelf.store.paths import is_file
from runshelf.store.run import MANIFEST, Run, open_run
from runshelf.store.run_ids import SHORT, is_ulid, matching, short_id

LATEST = "latest"
_MOST_NAMED = 3  # runs in one message


def find_run(home: Path, name: str) -> Run:
    """Return the run that `name` identifies.

    `name` is an id, the beginning or the end of an id that no other run has, a folder, `latest`,
    or the unique name of a run. A whole name comes before a part of an id that is shorter than the
    short form.

    Raises:
        UsageError: no run matches, or several do; the message lists similar ones.
        DamagedFile: the run's `run.json` cannot be read.
    """
    ulids = list_runs(home)
    if name == LATEST:
        if not ulids:
            raise UsageError(
                f"there are no runs in `{home / 'runs'}`: start one, or give another `--home`"
            )
        return open_run(home / "runs" / ulids[-1])
    matches = matching(ulids, name)
    if len(matches) == 1 and len(name) >= SHORT:
        return open_run(home / "runs" / matches[0])
    called = _called(home, ulids, name)
    # Names of imported runs are the ends of paths.
    if name and (is_file(Path(name) / MANIFEST) or ("/" in name and not called)):
        return open_run(Path(name))
    if len(called) == 1:
        return called[0]
    if called:
        shown = _some(home, [run.ulid for run in called])
        raise UsageError(f"{len(called)} runs are named `{name}`: type the id of one, {shown}")
    if len(matches) == 1:
        return open_run(home / "runs" / matches[0])
    if matches:
        raise UsageError(
            f"the ids of {len(matches)} runs begin or end with `{name}`: type one of "
            f"{_some(home, matches)}"
        )
    raise UsageError(f"there is no run `{name}` in `{home / 'runs'}`{_nearest(name, ulids)}")


def list_runs(home: Path) -> list[str]:
    """Return the ids of the runs in `home`, oldest first.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    folder = home / "runs"
    with disk_errors(folder):
        entries = list(folder.iterdir()) if folder.is_dir() else []
    folders = (entry for entry in entries if is_ulid(entry.name) and not entry.is_symlink())
    runs = (entry.name for entry in folders if (entry / MANIFEST).is_file())
    return sorted(runs)


def _called(home: Path, ulids: Sequence[str], name: str) -> list[Run]:
    """Return the runs with a name, oldest first; unreadable runs are skipped."""
    written = json.dumps(name).encode()
    found: list[Run] = []
    for ulid in ulids if name else ():
        folder = home / "runs" / ulid
        with suppress(UserFacingError, OSError):
            # Only manifests that contain the text are parsed; there may be ten thousand.
            if written in (read_whole(folder, MANIFEST) or b""):
                found.append(open_run(folder))
    return [run for run in found if run.manifest.get("name") == name]


def _some(home: Path, ulids: Sequence[str]) -> str:
    """Return the short ids of the newest of some runs, each with what tells them apart."""
    newest = ulids[: -_MOST_NAMED - 1 : -1]
    more = len(ulids) - len(newest)
    shown = ", ".join(_described(home / "runs" / ulid) for ulid in newest)
    return shown + (f" and {more} more" if more else "")


def _described(folder: Path) -> str:
    try:
        fields = open_run(folder).manifest
    except UserFacingError:
        return f"`{short_id(folder.name)}` (damaged)"
    made_of = " ".join(str(fields[key]) for key in ("algorithm", "env") if fields.get(key))
    what = fields.get("name") or made_of or fields["command"]
    seed = f"seed {fields['seeds'][0]}" if len(fields["seeds"]) == 1 else ""
    told = ", ".join(part for part in (what, seed, fields["created"][:19]) if part)
    return f"`{short_id(folder.name)}` ({told})"


def _nearest(name: str, ulids: Sequence[str]) -> str:
    if not ulids:
        return ", nor any other"
    if get_close_matches(name.lower(), [LATEST], cutoff=0.7):
        return f", did you mean `{LATEST}`?"
    # Compared with parts of the same length, since a part is not similar to a whole id.
    parts = {ulid[: len(name)]: ulid for ulid in ulids} | {
        ulid[-len(name) :]: ulid for ulid in ulids
    }
    near = [parts[p] for p in get_close_matches(name.upper(), parts, n=_MOST_NAMED, cutoff=0.5)]
    shown = [f"`{short_id(ulid)}`" for ulid in near or ulids[: -_MOST_NAMED - 1 : -1]]
    listed = ", ".join(dict.fromkeys(shown))
    return f", did you mean {listed}?" if near else f"; the latest are {listed}"
