"""Queries the Python interpreter of a program: version, packages and import paths."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

TIMEOUT_SECONDS = 10.0

_NAME = re.compile(r"(python|pypy)(\d+(\.\d+)*)?t?(\.exe)?")
_SCRIPT = """
import json, sys
try:
    from importlib.metadata import distributions
    packages = {}
    for found in distributions():
        name = found.metadata["Name"]
        if name:
            packages.setdefault(str(name), str(found.version))
except Exception:
    packages = {}
try:
    import site
    users = [site.getusersitepackages()]
except Exception:
    users = []
path = [entry for entry in sys.path if entry]
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        found = getattr(module, "MAPPING", None)
        for place in found.values() if isinstance(found, dict) else ():
            path.append(str(place).rpartition("/")[0])
own = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *users]
json.dump({"version": sys.version.split()[0], "executable": sys.executable, "packages": packages,
           "path": list(dict.fromkeys(path)), "own": own}, sys.stdout)
"""


def find_executable(name: str, cwd: Path, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of the program `name`, links unresolved; None if not found."""
    if "/" in name:
        path = os.path.normpath(cwd / name)
        return path if os.access(path, os.X_OK) and not Path(path).is_dir() else None
    found = shutil.which(name, path=environ.get("PATH", os.defpath))
    return str(cwd / found) if found else None


def find_interpreter(executable: str, environ: Mapping[str, str]) -> str | None:
    """Return `executable` if it is a Python interpreter, or the one of its `#!` line, or None."""
    if any(
        _NAME.fullmatch(name) for name in (Path(executable).name, Path(executable).resolve().name)
    ):
        return executable
    words = _shebang(Path(executable))
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        words = [shutil.which(words[0], path=environ.get("PATH")) or ""] if words else []
    return words[0] if words and _NAME.fullmatch(Path(words[0]).name) else None


@final
class InterpreterQuery:
    """Runs a script in an interpreter in the background to get its version and packages."""

    def __init__(self, interpreter: str | None, environ: Mapping[str, str]) -> None:
        """Start the script in `interpreter`; do nothing if it is None."""
        self._interpreter = interpreter
        self._process: subprocess.Popen[bytes] | None = None
        if interpreter is not None:
            with suppress(OSError, ValueError):
                self._process = subprocess.Popen(
                    [interpreter, "-c", _SCRIPT],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd="/",  # so that no module of the program shadows the standard library
                    env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
                )

    def answer(self, root: Path) -> dict[str, Any] | None:
        """Return the manifest's `python`; None without an interpreter or an answer in time.

        Args:
            root: the root of the program's code. `paths` of the result are import paths below it;
                `outside` are other import paths, except installed packages and the interpreter's.
        """
        if self._process is None:
            return None
        try:
            output, _ = self._process.communicate(timeout=TIMEOUT_SECONDS)
            fields: dict[str, Any] = json.loads(output)
            paths = [str(path) for path in fields["path"]]
            return {
                "executable": self._interpreter,
                "version": str(fields["version"]),
                "packages": dict(sorted(fields["packages"].items(), key=lambda p: p[0].lower())),
                "paths": [path for path in paths if _is_code_below(path, root)],
                "outside": [p for p in paths if _is_outside(p, [str(root), *fields["own"]])],
            }
        except (subprocess.SubprocessError, ValueError, TypeError, KeyError, AttributeError):
            return None
        finally:
            self._process.kill()
            self._process.wait()


def _is_code_below(path: str, root: Path) -> bool:
    """Return whether an import path is in the program's code, and not in a virtual environment."""
    inside = os.path.normpath(path)
    is_below = inside == str(root) or inside.startswith(f"{root}/")
    return is_below and "site-packages" not in Path(inside).parts and not _is_of_venv(inside, root)


def _is_outside(path: str, known: Sequence[str]) -> bool:
    """Return whether an import path belongs neither to the program nor to the interpreter."""
    inside = os.path.normpath(path)
    below = any(inside == folder or inside.startswith(f"{folder}/") for folder in known)
    is_packages = {"site-packages", "dist-packages"}.intersection(Path(inside).parts)
    return not below and not is_packages and os.path.exists(inside)  # noqa: PTH110  (any text)


def _is_of_venv(path: str, root: Path) -> bool:
    here = Path(path)
    return any(
        (parent / "pyvenv.cfg").exists()
        for parent in (here, *here.parents)
        if parent != root.parent
    )


def _shebang(path: Path) -> list[str]:
    """Return the words after `#!` in a script's first line."""
    with suppress(OSError), path.open("rb") as file:
        line = file.readline(512)
        if line.startswith(b"#!"):
            return os.fsdecode(line[2:]).split()
    return []
