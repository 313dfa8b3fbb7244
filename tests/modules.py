"""Imports programs that are in no package: those of docs/ and of benchmarks/."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def module_at(path: str, name: str | None = None) -> ModuleType:
    """Return the module in a file.

    Args:
        path: the file, relative to the repository.
        name: the name by which other modules find it; by default they do not.
    """
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(name or f"{file.stem}_alone", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if name is not None:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
