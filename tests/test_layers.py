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
SOURCES = {name: ROOT / "packages" / name / "src" / name for name in ("backflip", "runshelf")}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]

# (contract, module that gets a forbidden import, the import)
BREACHES = [
    ("backflip", "backflip/core/errors.py", "import backflip.envs"),
    ("backflip", "backflip/algorithms/__init__.py", "import backflip.training"),
    ("backflip", "backflip/preferences/__init__.py", "import backflip.labelling"),
    ("runshelf", "runshelf/store/__init__.py", "import runshelf.recorder"),
    ("runshelf", "runshelf/index/__init__.py", "import runshelf.web"),
    ("border", "runshelf/store/__init__.py", "import backflip.core"),
    ("border", "runshelf/web/__init__.py", "import jax"),
    ("pure", "backflip/algorithms/__init__.py", "import sqlite3"),
    (
        "lint",
        "backflip/doctor/lint/questions/__init__.py",
        "import backflip.doctor.lint.rules.masks.truncation",
    ),
    ("light", "backflip/labelling/__init__.py", "import jax"),
    ("light", "backflip/preferences/labels.py", "import backflip.networks.torsos"),
]
FIRST = {one[0]: one for one in reversed(BREACHES)}.values()  # of each contract

Linter = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of both packages."""
    folder = tmp_path_factory.mktemp("sources")
    for name, source in SOURCES.items():
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def lint(sources: Path) -> Linter:
    """A function that checks one contract of the copy."""

    def run(contract: str) -> subprocess.CompletedProcess[str]:
        program = "import sys; from importlinter.cli import lint_imports_command as main; main()"
        config = str(ROOT / "pyproject.toml")
        arguments = ["--config", config, "--contract", contract, "--cache-dir", "cache"]
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=sources,
            env=os.environ | {"PYTHONPATH": str(sources)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.medium
@pytest.mark.parametrize(
    ("contract", "module", "statement"),
    [pytest.param(*one, marks=() if one in FIRST else pytest.mark.slow) for one in BREACHES],
)
def test_contract_is_seen_to_break(
    lint: Linter, sources: Path, contract: str, module: str, statement: str
) -> None:
    path = sources / module
    text = path.read_text()
    path.write_text(f"{text}\n{statement}\n")
    try:
        result = lint(contract)
    finally:
        path.write_text(text)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "0 kept, 1 broken" in result.stdout


def test_every_contract_has_a_breach() -> None:
    assert {contract["id"] for contract in CONTRACTS} == {contract for contract, _, _ in BREACHES}


def test_contracts_name_what_exists() -> None:
    for contract in CONTRACTS:
        layers = [part for layer in contract.get("layers", ()) for part in layer.split("|")]
        containers = contract.get("containers", [])
        named = [f"{container}.{layer.strip()}" for container in containers for layer in layers]
        for module in [*named, *contract.get("source_modules", ())]:
            path = SOURCES[module.split(".")[0]].parent.joinpath(*module.split("."))
            assert path.is_dir() or path.with_suffix(".py").is_file(), module
