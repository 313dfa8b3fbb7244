"""Both wheels and source distributions work in a fresh environment outside the repository."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[1]
NAMES = ("runshelf", "backflip")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of both."""
    folder = tmp_path_factory.mktemp("dist")
    for name in NAMES:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)],
            cwd=ROOT / "packages" / name,
            check=True,
            capture_output=True,
        )
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with both wheels installed, and their dependencies from this environment.

    The dependencies come through a `.pth` file; the wheels lie in the fresh environment itself,
    so nothing is imported from the checkout.
    """
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    found = folder / "bin" / "python"
    for name in NAMES:
        wheel = next(built.glob(f"{name}-*.whl"))
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--python", str(found), "install", "--no-deps"),
                *("--no-index", "--quiet", "--disable-pip-version-check", str(wheel)),
            ],
            check=True,
        )
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return found


def run(python: Path, *arguments: str, cwd: Path, check: bool = True) -> str:
    """Return what a program in the fresh environment prints."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    result = subprocess.run(
        [python.parent / arguments[0], *arguments[1:]],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0 or not check, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_distributions_hold_types_licence_and_data(built: Path, name: str) -> None:
    wheel = zipfile.ZipFile(next(built.glob(f"{name}-*.whl"))).namelist()
    with tarfile.open(next(built.glob(f"{name}-*.tar.gz"))) as archive:
        source = archive.getnames()
    for files in (wheel, source):
        assert any(file.endswith(f"{name}/py.typed") for file in files)
        assert any(file.endswith("LICENSE") for file in files)
        for kind in (".css", ".js", ".html", ".svg"):
            assert any(file.endswith(kind) for file in files), kind
    assert not any("tests" in file or file.endswith(".pyc") for file in wheel)
    assert any("/tests/" in file for file in source)


def test_versions_agree(built: Path) -> None:
    versions = {re.findall(r"-(\d[^-]*)", path.name)[0] for path in built.glob("*.whl")}
    assert len(versions) == 1
    (version,) = versions
    assert f'"runshelf=={version}"' in (ROOT / "packages/backflip/pyproject.toml").read_text()


def test_nothing_comes_from_the_checkout(python: Path, tmp_path: Path) -> None:
    program = "import backflip, runshelf; print(backflip.__file__, runshelf.__file__)"
    said = run(python, "python", "-c", program, cwd=tmp_path)
    assert said.count(str(python.parents[1])) == 2


def test_runshelf_records_and_serves(python: Path, tmp_path: Path) -> None:
    run(python, "runshelf", "run", "--", "python3", "-c", "print('hello')", cwd=tmp_path)
    rows = json.loads(run(python, "runshelf", "runs", "--json", cwd=tmp_path))["runs"]
    assert [row["state"] for row in rows] == ["finished"]
    assert "hello" in run(python, "runshelf", "show", "latest", "--output", cwd=tmp_path)
    with serving(python, tmp_path) as address:
        page = urllib.request.urlopen(address).read().decode()
        style = re.findall(r'href="([^"]+\.css)"', page)[0]
        assert urllib.request.urlopen(address.rstrip("/") + style).status == 200


def serving(python: Path, home: Path) -> "_Serving":
    return _Serving(python, home)


class _Serving:
    """`runshelf serve` while a block lasts."""

    def __init__(self, python: Path, home: Path) -> None:
        self._command = [python.parent / "runshelf", "serve", "--no-open"]
        self._home = home

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            self._command, cwd=self._home, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        return re.findall(r"http://\S+", self._process.stdout.readline())[0]

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_importing_runshelf_imports_no_jax(python: Path, tmp_path: Path) -> None:
    program = (
        "import runshelf, sys; runshelf.log('loss', 0.25); "
        "import runshelf.web.app, runshelf.cli.main; "
        "print(sorted({'jax', 'jaxlib', 'scipy', 'gymnasium', 'backflip'} & set(sys.modules)))"
    )
    assert run(python, "python", "-c", program, cwd=tmp_path).strip().endswith("[]")


@pytest.mark.slow
def test_backflip_trains_and_teaches(python: Path, tmp_path: Path) -> None:
    small = ["--env-steps", "4096", "--json"]
    train = ["train", "ppo", "CartPole-v1", *small]
    teach = ["teach", "CartPole-v1", "--teacher", "oracle", "--labels", "10", *small]
    trained, taught = (
        json.loads(run(python, "backflip", *words, cwd=tmp_path)) for words in (train, teach)
    )
    assert len(trained["returns"]) == len(taught["returns"]) == 1
    rows = json.loads(run(python, "backflip", "runs", "--json", cwd=tmp_path))["runs"]
    assert {row["run"] for row in rows} == {trained["run"], taught["run"]}
