"""Tests of the number of threads of the linear algebra library."""

import subprocess
import sys

import pytest

CHECK = """
import os

from backflip.core.blas import one_blas_thread
from threadpoolctl import threadpool_info

def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

import jax.numpy as jnp

with one_blas_thread():
    jnp.linalg.cholesky(jnp.eye(2)).block_until_ready()  # loads JAX's library, if nothing has yet
    assert len(threads()) >= 1 and set(threads()) == {1}, threads()
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
assert set(threads()) == {min(2, cores)}, threads()
"""


@pytest.mark.medium
def test_all_libraries_have_one_thread_in_the_block_only():
    """In a process that has not factored a matrix before."""
    env = {"OPENBLAS_NUM_THREADS": "2", "JAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", CHECK], check=True, env=env)
