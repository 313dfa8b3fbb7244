"""Tests of the configuration of JAX and its environment variables."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from backflip.core.paths import default_home
from backflip.training import runtime

PROGRAM = """
import json
from backflip.training import runtime
import jax
runtime.prepare()
print(json.dumps([len(jax.devices()), jax.config.jax_compilation_cache_dir]))
runtime.prepare()
"""


COMPILES = """
from backflip.training import runtime
import jax
runtime.prepare()
print(jax.jit(lambda x: 2 * x)(21.0))
"""


def prepared(**environment: str) -> list[object]:
    """Return devices and cache folder of a new process."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment = {**ours, "JAX_PLATFORMS": "cpu", **environment}
    command = [sys.executable, "-c", PROGRAM]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


@pytest.mark.medium
def test_defaults_for_cores_and_cache_yield_to_environment_variables(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    home = str(tmp_path)
    assert prepared(XDG_CACHE_HOME=home) == [cores, f"{home}/backflip/jax"]
    assert prepared(JAX_NUM_CPU_DEVICES="3", JAX_COMPILATION_CACHE_DIR=home) == [3, home]


def precision_after_prepare(
    monkeypatch: pytest.MonkeyPatch, backend: str, chosen: str | None = None
) -> str | None:
    """Return the precision of products of matrices on a backend."""
    config: Any = jax.config
    before = config.jax_default_matmul_precision
    jax.config.update("jax_default_matmul_precision", chosen)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    try:
        runtime.prepare()
        return config.jax_default_matmul_precision
    finally:
        jax.config.update("jax_default_matmul_precision", before)


def test_a_gpu_computes_in_float32_and_takes_no_memory_in_advance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    assert precision_after_prepare(monkeypatch, "gpu") == "float32"
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert precision_after_prepare(monkeypatch, "cpu") is None


def test_the_user_chooses_the_precision_and_memory_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    assert precision_after_prepare(monkeypatch, "gpu", "tensorfloat32") == "tensorfloat32"
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"


@pytest.mark.slow
def test_an_unfinished_entry_of_the_cache_is_compiled_without_a_warning(tmp_path: Path) -> None:
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPILES]
    subprocess.run(command, env=environment, check=True)
    entries = list(tmp_path.glob("*-cache"))
    for entry in entries:
        os.truncate(entry, entry.stat().st_size // 2)
    again = subprocess.run(command, env=environment, check=True, text=True, capture_output=True)
    assert entries
    assert again.stdout == "42.0\n"
    assert again.stderr == ""


def test_the_home_is_set_by_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFLIP_HOME", "/somewhere")
    assert default_home() == Path("/somewhere")
    monkeypatch.delenv("BACKFLIP_HOME")
    assert default_home() == Path()


def test_memory_is_plausible() -> None:
    assert 20 < runtime.peak_memory_mib() < 100_000
