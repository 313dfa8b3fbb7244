"""The import contracts of pyproject.toml hold, and every breach of them is reported."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "backflip"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]

# (module that is given a forbidden import, what it imports)
BREACHES = {
    "layers": [
        ("core/errors.py", "backflip.envs"),
        ("core/errors.py", "backflip.cli"),
        ("envs/__init__.py", "backflip.algorithms"),
        ("networks/layers.py", "backflip.envs"),
        ("algorithms/__init__.py", "backflip.archive"),
        ("archive/__init__.py", "backflip.preferences"),
        ("algorithms/__init__.py", "backflip.training"),
        ("training/__init__.py", "backflip.preferences"),
        ("preferences/__init__.py", "backflip.looking"),
        ("looking/__init__.py", "backflip.cli"),
        ("looking/__init__.py", "backflip.web"),
    ],
    "pure": [
        ("core/errors.py", "logging"),
        ("algorithms/__init__.py", "sqlite3"),
    ],
    "light": [
        ("archive/__init__.py", "jax"),
        ("envs/views/film.py", "jax"),
        ("preferences/labels.py", "jax"),
        ("preferences/queries.py", "optax"),
        ("web/state.py", "jax"),
        ("web/__init__.py", "backflip.networks.torsos"),
        ("preferences/people/desk.py", "optax"),
    ],
}


def lint(folder: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    """Lint the copy of the source in a folder under one contract, or under all."""
    program = "import sys; from importlinter.cli import lint_imports_command as main; main()"
    chosen = [] if contract is None else ["--contract", contract]
    arguments = ["--no-cache", "--config", str(ROOT / "pyproject.toml"), *chosen]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source."""
    ignore = shutil.ignore_patterns("__pycache__", "static", "templates")
    return shutil.copytree(SOURCE, tmp_path / "backflip", ignore=ignore)


def test_all_contracts_hold(copy: Path) -> None:
    result = lint(copy.parent)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(CONTRACTS)} kept, 0 broken" in result.stdout


@pytest.mark.parametrize("contract", BREACHES)
def test_every_breach_of_a_contract_is_reported(copy: Path, contract: str) -> None:
    for module, target in BREACHES[contract]:
        with (copy / module).open("a") as file:
            file.write(f"\nimport {target}\n")
    result = lint(copy.parent, contract)
    assert result.returncode == 1, result.stdout + result.stderr
    for module, target in BREACHES[contract]:
        importer = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert f"backflip.{importer} -> {target} (l." in result.stdout


def test_every_contract_has_a_breach() -> None:
    assert {contract["id"] for contract in CONTRACTS} == set(BREACHES)


def test_the_layers_are_the_packages() -> None:
    layers = next(contract["layers"] for contract in CONTRACTS if contract["id"] == "layers")
    named = {part.strip() for layer in layers for part in layer.split("|")}
    found = {
        f"backflip.{path.stem}"
        for path in SOURCE.iterdir()
        if (path.suffix == ".py" and path.stem not in {"__init__", "__main__"})
        or (path.is_dir() and (path / "__init__.py").exists())
    }
    assert found == named
