"""What the last pass of each battery found, kept in the home."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final

from runshelf.batteries.code_identity import Code
from runshelf.batteries.rows import row_names
from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.home import make_shared, shared
from runshelf.store.opening import read_whole
from runshelf.store.writing import replace_file

_BATTERIES = "batteries"


@final
class LastPass(NamedTuple):
    """What the last pass of a battery found.

    Attributes:
        battery: the folder of the battery.
        commit: of the code; empty without one.
        created: when it ended, in Unix seconds.
        words: the verdict on each row.
    """

    battery: str
    commit: str
    created: float
    words: dict[str, str]


def keep_pass(home: Path, battery: Path, code: Code, words: Mapping[str, str]) -> None:
    """Keep the verdict on each row of a pass; rows that it left out keep theirs.

    Raises:
        UserFacingError: the disk is full.
    """
    folder = make_shared(home, _BATTERIES)
    where = str(battery.resolve())
    name = f"{hashlib.sha256(where.encode()).hexdigest()[:16]}.json"
    before = next((one.words for one in last_passes(home) if one.battery == where), {})
    fields = LastPass(where, code.commit, time.time(), {**before, **words})._asdict()
    replace_file(folder, name, json.dumps(fields).encode() + b"\n")


def last_passes(home: Path) -> Iterable[LastPass]:
    """Yield what the last pass of each battery found; a damaged file or a link is left out."""
    folder = shared(home, _BATTERIES)
    for path in sorted(folder.glob("*.json")):
        with suppress(ValueError, TypeError, KeyError, UserFacingError):
            fields = parse_record(read_whole(folder, path.name) or b"")
            words = {str(name): str(word) for name, word in dict(fields["words"]).items()}
            created = float(fields["created"])
            yield _of_rows(str(fields["battery"]), str(fields["commit"]), created, words)


def _of_rows(battery: str, commit: str, created: float, words: Mapping[str, str]) -> LastPass:
    """Return a pass without rows that were renamed or removed: no later pass could judge them."""
    names = row_names(Path(battery))
    there = {name: word for name, word in words.items() if name in names}
    return LastPass(battery, commit, created, there)
