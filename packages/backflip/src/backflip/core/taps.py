"""Taps: see what arrays inside compiled programs hold.

    with backflip.taps() as seen:
        backflip.train("ppo", "my_env:Env", env_steps=10_000)
    print(seen)

lists every array that was passed to `backflip.tap("name", array)`, in our programs or in yours.
Outside of `taps`, `tap` returns its argument and adds nothing to the compiled program.
"""

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar, final

import jax
import jax.numpy as jnp

from runshelf.errors import UsageError

T = TypeVar("T")


class Tapped(NamedTuple):
    """What one tap has seen.

    Attributes:
        calls: the number of calls; in a `vmap`, one for each element.
        low: the smallest number.
        high: the largest number.
        mean: of all numbers. Like `low` and `high` without NaN, and NaN if there was nothing else.
        nans: the number of NaN.
        first_nan: the call with the first NaN, counted from 1; None without NaN.
    """

    calls: int = 0
    low: float = float("inf")
    high: float = float("-inf")
    mean: float = float("nan")
    nans: int = 0
    first_nan: int | None = None


@final
class Taps(Mapping[str, Tapped]):
    """What the taps of a program have seen, by name; as a text, a table."""

    def __init__(self) -> None:
        self._seen: dict[str, Tapped] = {}
        self._sums: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()  # callbacks come from threads of the compiler's runtime

    def __getitem__(self, name: str) -> Tapped:
        return self._seen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __str__(self) -> str:
        head = f"{'tap':24} {'calls':>9} {'low':>12} {'high':>12} {'mean':>12} {'NaN':>9}  first"
        return "\n".join([head, *(_line(name, one) for name, one in self.items())])

    def record(self, name: str, low: Any, high: Any, total: Any, count: Any, nans: Any) -> None:
        """Add one call of a tap.

        Args:
            name: of the tap.
            low: the smallest number.
            high: the largest number.
            total: the sum of all numbers but NaN.
            count: how many these are.
            nans: the number of NaN.
        """
        with self._lock:
            before = self._seen.get(name, Tapped())
            sums, numbers = self._sums.get(name, (0.0, 0))
            sums, numbers = sums + float(total), numbers + int(count)
            self._sums[name] = sums, numbers
            first = before.calls + 1 if before.first_nan is None and nans else before.first_nan
            self._seen[name] = Tapped(
                before.calls + 1,
                min(before.low, float(low)) if count else before.low,
                max(before.high, float(high)) if count else before.high,
                sums / numbers if numbers else float("nan"),
                before.nans + int(nans),
                first,
            )


def _line(name: str, one: Tapped) -> str:
    numbers = " ".join(f"{x:12.5g}" for x in (one.low, one.high, one.mean))
    first = "" if one.first_nan is None else f"  call {one.first_nan}"
    return f"{name:24} {one.calls:9} {numbers} {one.nans:9}{first}"


_open: list[Taps] = []  # the open `taps` blocks, the innermost last


def tap(name: str, array: T) -> T:
    """Return the array; while `taps` is open, note its smallest, largest and mean number, and NaN.

    It has no effect on results or gradients. In a `vmap` it notes each element of the batch.

    Args:
        name: what the array is called in the table.
        array: of real numbers, of any shape; a Python number, a NumPy or a JAX array.

    Raises:
        UsageError: it is something else, such as a dictionary of arrays; only while `taps` is open.
    """
    if not _open:
        return array
    try:
        x = jnp.asarray(array).astype(jnp.float32)
    except (TypeError, ValueError) as error:
        kind = type(array).__name__
        raise UsageError(f"tap `{name}` takes one array of numbers, got {kind}") from error
    if x.size:
        unknown = jnp.isnan(x)
        low, high = (jnp.where(unknown, far, x) for far in (jnp.inf, -jnp.inf))
        total = jnp.where(unknown, 0.0, x).sum()
        nans = unknown.sum()
        seen = low.min(), high.max(), total, x.size - nans, nans
        jax.debug.callback(partial(_record, name), *seen)
    return array


def _record(name: str, *seen: Any) -> None:
    for one in _open:
        one.record(name, *seen)


@contextmanager
def taps() -> Generator[Taps, None, None]:
    """Yield what the taps of programs that run inside see; all programs are compiled again."""
    found = Taps()
    jax.clear_caches()
    _open.append(found)
    try:
        yield found
        jax.effects_barrier()
    finally:
        _open.remove(found)
        jax.clear_caches()
