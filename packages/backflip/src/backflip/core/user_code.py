"""User code that is named as `module:function`."""

import importlib
import sys
from pathlib import Path
from typing import Any

from runshelf.errors import UsageError, did_you_mean, one_line


def find_object(name: str) -> Any:
    """Return the object `module:object`, from the current folder or an installed package.

    Raises:
        UsageError: there is no such module or object, or importing the module raised.
    """
    module, _, attribute = name.partition(":")
    if module.endswith(".py"):
        hint = f"{Path(module).stem}:{attribute or 'my_function'}"
        raise UsageError(f"`{name}` names a file, not a module: drop `.py`, as in {hint}")
    if not module or module.startswith(".") or not attribute.isidentifier():
        raise UsageError(f"`{name}` must be module:name, as in my_file:my_function")
    found = _import(module)
    if not hasattr(found, attribute):
        hint = did_you_mean(attribute, [key for key in vars(found) if not key.startswith("_")])
        raise UsageError(f"module `{module}` has no `{attribute}`{hint}")
    return getattr(found, attribute)


def _import(module: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UsageError(f"`{module}` needs `{error.name}`, which is not installed") from error
        where = f"{Path.cwd()} or among the installed packages"
        raise UsageError(f"there is no module `{module}` in {where}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also a script that calls `sys.exit` when imported
        raise UsageError(f"`{module}` cannot be imported: {one_line(error)}") from error
