"""Finds what a user names: a run, a group of runs, or a folder or file of logs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from backflip.doctor.log import Log
from backflip.doctor.reading.about import checked_facts, note_on_algorithm
from backflip.doctor.reading.actions import with_actions
from backflip.doctor.reading.from_settings import with_settings, with_told
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.reading.own_runs import logs_of_run
from backflip.doctor.reading.step_counts import with_env_steps
from runshelf.errors import UsageError
from runshelf.index.run_index import open_index
from runshelf.store.finding import find_run
from runshelf.store.paths import exists, is_file
from runshelf.store.run import open_run

_MANIFEST = "run.json"


def find_logs(home: Path, name: str, mapping: Mapping[str, str]) -> list[Log]:
    """Return the logs of a run, of a group of runs, or of a folder or file of logs.

    Raises:
        UsageError: nothing has this name, or the mapping is wrong.
        UserFacingError: a file cannot be read.
    """
    path = Path(name)
    if is_file(path / _MANIFEST):
        return logs_of_run(open_run(path))
    if exists(path):
        return logs_in(path, mapping)
    folders = _folders_of_group(home, name)
    if folders:
        return [log for folder in folders for log in logs_of_run(open_run(folder))]
    try:
        return logs_of_run(find_run(home, name))
    except UsageError as error:
        raise UsageError(f"{error}; and there is no file or folder `{name}`") from None


def with_facts(log: Log, facts: Mapping[str, Any]) -> Log:
    """Return a log with facts: `algorithm`, `env`, `env_steps` or settings.

    A fact replaces what the log says of it, whichever library named it. Logged values stay.

    Args:
        log: the log.
        facts: by name. Names without a meaning are kept as settings.

    Raises:
        UsageError: a value is not possible, or env steps are planned for a log that has none.
    """
    facts = checked_facts(facts, facts)
    log = with_env_steps(log, facts)
    planned = facts.get("env_steps", log.planned)
    algorithm, env = facts.get("algorithm", log.algorithm), facts.get("env", log.env)
    guessed = tuple(name for name in log.guessed if name not in facts)
    known = replace(
        log,
        algorithm=algorithm,
        env=env,
        planned=float(planned),
        settings=with_told(log.settings, facts),
        guessed=guessed,
    )
    if "algorithm" in facts:
        known = replace(known, notes=(*log.notes, *note_on_algorithm(known)))
    return known if log.library == "backflip" else with_actions(with_settings(known))


def _folders_of_group(home: Path, name: str) -> list[Path]:
    with open_index(home) as index:
        index.refresh()
        return [Path(row.folder) for row in index.members(name)]
