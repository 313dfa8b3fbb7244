"""L61: random numbers that a compiler draws once."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import FUNCTIONS, Function, Source

COMPILERS = ("tensorflow.function", "jax.jit", "jax.pmap")


def _frozen_randomness(source: Source) -> Iterator[Hit]:
    """Find `np.random.rand()` in a function with `@tf.function` or `@jax.jit`."""
    for scope in source.scopes:
        if not isinstance(scope, FUNCTIONS) or not _is_compiled(source, scope):
            continue
        for node in ast.walk(scope):
            if not isinstance(node, ast.Call):
                continue
            name = source.dotted(node.func)
            if name.startswith(("numpy.random.", "random.")) and name != "random.Random":
                yield Hit(node, f"`{name}` runs once, when the function is traced")


def _is_compiled(source: Source, function: Function) -> bool:
    """Return whether a decorator compiles a function."""
    for one in function.decorator_list:
        called = one.func if isinstance(one, ast.Call) else one
        names = [source.dotted(called)]
        if isinstance(one, ast.Call):  # functools.partial(jax.jit, static_argnums=0)
            names += [source.dotted(given) for given in one.args]
        if any(name in COMPILERS for name in names):
            return True
    return False


RULES = (
    Rule(
        "L61",
        "a compiled function draws its random numbers once",
        "Python runs when the function is traced, and never after: the same number decides in "
        "every step whether to explore.",
        "Use `tf.random.uniform(())`, or `jax.random.uniform(key)` with a new key in each call.",
        "TensorFlow's guide to `tf.function`; JAX, Sharp bits",
        _frozen_randomness,
    ),
)
