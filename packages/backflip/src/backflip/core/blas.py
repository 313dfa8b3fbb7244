"""The number of threads of the linear algebra library."""

import importlib
from collections.abc import Generator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Factor matrices with one thread in the block.

    OpenBLAS threads that wait for each other take all cores. For 350 labels on two busy cores, a
    Cholesky factor took 46 ms with two threads and 0.6 ms with one.
    """
    # JAX factors matrices with SciPy's library, and loads it only when it first needs it.
    importlib.import_module("scipy.linalg.cython_lapack")
    with threadpool_limits(1, "blas"):
        yield
