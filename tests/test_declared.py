"""Everything that the source, the tests, the benchmarks and the examples import is declared."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"backflip", "packages", "runshelf", "tests"} | {
    file.stem for file in (Path(__file__).parents[1] / "benchmarks").glob("*.py")
}


def declared() -> set[str]:
    """Return the names of all distributions that the `pyproject.toml` files ask for."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    lists = [*groups.values()]
    for name in ("backflip", "runshelf"):
        file = ROOT / "packages" / name / "pyproject.toml"
        project = tomllib.loads(file.read_text())["project"]
        lists += [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    return {normal(re.split(r"[^\w.-]", line)[0]) for line in chain(*lists)}


def normal(name: str) -> str:
    """Return the name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(file: Path) -> set[str]:
    """Return the top-level modules that a file imports by an `import` statement."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


@pytest.mark.medium
def test_every_import_is_of_a_declared_distribution() -> None:
    brings, known = packages_distributions(), declared()
    undeclared = {
        f"{file.relative_to(ROOT)} imports {module}"
        for folder in ("packages", "tests", "docs")
        for file in (ROOT / folder).rglob("*.py")
        if file.parent.name != "lint_programs"  # texts that the linter reads, never imported
        for module in imported(file) - OURS - sys.stdlib_module_names
        if not {normal(name) for name in brings.get(module, [module])} & known
    }
    assert not undeclared
