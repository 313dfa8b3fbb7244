"""The import contracts of pyproject.toml hold, and each of them is seen to fail when broken."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "backflip"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]

# (contract, module that is given a forbidden import, the import)
BREACHES = [
    ("layers", "core/errors.py", "import backflip.envs"),
    ("layers", "core/errors.py", "import backflip.cli"),
    ("layers", "envs/__init__.py", "import backflip.algorithms"),
    ("layers", "networks/layers.py", "import backflip.envs"),
    ("layers", "algorithms/__init__.py", "import backflip.archive"),
    ("layers", "archive/__init__.py", "import backflip.preferences"),
    ("layers", "algorithms/__init__.py", "import backflip.training"),
    ("layers", "training/__init__.py", "import backflip.preferences"),
    ("layers", "preferences/__init__.py", "import backflip.looking"),
    ("layers", "looking/__init__.py", "import backflip.cli"),
    ("metrics", "archive/records.py", "import backflip.archive.series"),
    ("pure", "core/errors.py", "import logging"),
    ("pure", "algorithms/__init__.py", "import sqlite3"),
    ("light", "archive/__init__.py", "import jax"),
    ("light", "envs/views/film.py", "import jax"),
    ("light", "preferences/labels.py", "import jax"),
    ("light", "preferences/queries.py", "import optax"),
    ("layers", "looking/__init__.py", "import backflip.web"),
    ("light", "web/state.py", "import jax"),
    ("light", "web/__init__.py", "import backflip.networks.torsos"),
    ("light", "preferences/people/desk.py", "import optax"),
]

Linter = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def lint(tmp_path: Path) -> Linter:
    """A function that lints a copy of the source, `tmp_path`/backflip, under the real contracts."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, tmp_path / "backflip", ignore=ignore)

    def run(contract: str) -> subprocess.CompletedProcess[str]:
        program = "import sys; from importlinter.cli import lint_imports_command as main; main()"
        config = str(ROOT / "pyproject.toml")
        arguments = ["--no-cache", "--config", config, "--contract", contract]
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("contract", [contract["id"] for contract in CONTRACTS])
def test_contract_holds(lint: Linter, contract: str) -> None:
    result = lint(contract)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 kept, 0 broken" in result.stdout


@pytest.mark.parametrize(("contract", "module", "statement"), BREACHES)
def test_contract_is_seen_to_break(
    lint: Linter, tmp_path: Path, contract: str, module: str, statement: str
) -> None:
    path = tmp_path / "backflip" / module
    path.write_text(f"{path.read_text()}\n{statement}\n")
    result = lint(contract)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "0 kept, 1 broken" in result.stdout


def test_every_contract_has_a_breach() -> None:
    assert {contract["id"] for contract in CONTRACTS} == {contract for contract, _, _ in BREACHES}


def test_every_package_is_in_a_layer() -> None:
    layers = next(contract["layers"] for contract in CONTRACTS if contract["id"] == "layers")
    named = {part.strip(" ()") for layer in layers for part in layer.split("|")}
    found = {
        f"backflip.{path.stem}"
        for path in SOURCE.iterdir()
        if (path.suffix == ".py" and path.stem not in {"__init__", "__main__"})
        or (path.is_dir() and (path / "__init__.py").exists())
    }
    assert found <= named


def test_the_web_pages_are_held_light_once_they_exist() -> None:
    light = next(contract for contract in CONTRACTS if contract["id"] == "light")
    assert (SOURCE / "web").exists() == ("backflip.web" in light["source_modules"])
