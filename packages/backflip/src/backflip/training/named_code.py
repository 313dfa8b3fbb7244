"""The code that a run names, and the check before any of it is imported.

A run names an environment, a network, a reward model or a teacher of the user as `module:name`.
Importing a module runs it, and the name is called with arguments of the run.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, cast

from backflip.envs.ids import CONTROL_PREFIX, FIXED_PREFIX, HOST_PREFIX, NATIVE
from backflip.preferences.teachers import KINDS
from runshelf.errors import UsageError
from runshelf.store.run import Run
from runshelf.store.trust import is_trusted

_SHOWN = 3


def code_named_by(run: Run) -> list[str]:
    """Return what a run imports when it is resumed, watched or carried on: `module:name`."""
    config, env = cast("Mapping[str, Any]", run.manifest["config"]), run.manifest.get("env")
    teacher = config.get("teacher")
    names = [env] if isinstance(env, str) and _is_own_env(env) else []
    if isinstance(teacher, str) and ":" in teacher and teacher.partition(":")[0] not in KINDS:
        names.append(teacher)
    settings = (config.get(part) for part in ("settings", "teaching"))
    return [*names, *(name for each in settings for name in code_named_in(each))]


def code_named_in(settings: object) -> Iterator[str]:
    """Yield each `module:name` in settings."""
    if isinstance(settings, str):
        yield from [settings] if ":" in settings else []
    elif isinstance(settings, Mapping):
        for value in cast("Mapping[str, object]", settings).values():
            yield from code_named_in(value)
    elif isinstance(settings, list | tuple):
        for value in cast("list[object]", settings):
            yield from code_named_in(value)


def refuse_code_of(run: Run) -> None:
    """Refuse a run that names code and was neither made here nor trusted.

    Raises:
        UsageError: it is such a run; the message says how to trust it.
    """
    names = code_named_by(run)
    if names and not is_trusted(run.folder):
        listed = ", ".join(f"`{name}`" for name in names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise UsageError(
            f"run `{run.short}` was not made here, and it imports {listed}{more}; if you trust it, "
            f"type backflip trust {shlex.quote(str(run.folder))}"
        )


def _is_own_env(env: str) -> bool:
    name = env.removeprefix(HOST_PREFIX).removeprefix(FIXED_PREFIX)
    return ":" in name and name not in NATIVE and not env.startswith(CONTROL_PREFIX)
