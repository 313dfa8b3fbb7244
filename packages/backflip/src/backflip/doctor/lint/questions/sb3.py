"""Algorithms and environments of Stable-Baselines3: what a program makes, and in what layers."""

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from backflip.doctor.lint.questions.makers import own_function, trace
from backflip.doctor.lint.questions.records import objects, visible_options
from backflip.doctor.lint.questions.values import text_of
from backflip.doctor.lint.source import Source, argument, last_word

PACKAGES = ("stable_baselines3", "sb3_contrib")
REPLAYS = ("DQN", "QRDQN", "SAC", "TD3", "DDPG", "TQC")
ROLLOUTS = ("PPO", "RecurrentPPO", "MaskablePPO")
ALGORITHMS = (*REPLAYS, *ROLLOUTS, "A2C", "TRPO", "CrossQ")
VECTORS = ("DummyVecEnv", "SubprocVecEnv", "make_vec_env", "make_atari_env")
MOST_LAYERS = 12


class Layer(NamedTuple):
    """A call that makes an environment, or wraps one.

    Attributes:
        call: the call.
        by: the calls of own functions that led to it: two calls make two environments.
    """

    call: ast.Call
    by: tuple[ast.Call, ...]


def is_of_sb3(node: ast.AST, source: Source, *names: str) -> TypeGuard[ast.Call]:
    """Return whether code calls something of Stable-Baselines3 with one of the names."""
    if not isinstance(node, ast.Call):
        return False
    name = source.dotted(node.func)
    if name.startswith(PACKAGES):
        return name.rpartition(".")[2] in names
    found = _algorithms_of(source, node)
    return bool(found) and found <= set(names)


def _algorithms_of(source: Source, call: ast.Call) -> set[str]:
    """Return which algorithms `algos[name]("MlpPolicy", env)` may make; empty if some are unseen.

    Its first argument is a policy, so that no other call is followed.
    """
    if not source.imports_any(*PACKAGES):
        return set()
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "policy")]
    if not any(text_of(source, one).endswith("Policy") for one in given):
        return set()
    classes = [source.dotted(one) for one in objects(source, call.func) or ()]
    is_seen = all(one.startswith(PACKAGES) for one in classes)
    return {one.rpartition(".")[2] for one in classes} if is_seen else set()


def made_by_name(source: Source, call: ast.Call) -> str:
    """Return the one algorithm that a call makes; empty if it may be one of several."""
    name = source.dotted(call.func)
    found = {name.rpartition(".")[2]} if name.startswith(PACKAGES) else _algorithms_of(source, call)
    return found.pop() if len(found) == 1 else ""


def algorithms(source: Source) -> Iterator[ast.Call]:
    """Yield the calls that make an algorithm."""
    return (call for call, _ in source.calls() if is_of_sb3(call, source, *ALGORITHMS))


def environment_of(source: Source, algorithm: ast.Call) -> ast.expr | None:
    """Return the environment that an algorithm is given."""
    return visible_options(source, algorithm).get("env") or argument(algorithm, "env", 1)


def layers(source: Source, node: ast.expr | None) -> list[Layer]:
    """Return the calls that make an environment, the outermost first, as far as they are seen."""
    found: list[Layer] = []
    by: tuple[ast.Call, ...] = ()
    while node is not None and len(found) < MOST_LAYERS:
        steps = list(trace(source, node))
        by += tuple(
            one
            for one in steps[:-1]
            if isinstance(one, ast.Call) and own_function(source, one) is not None
        )
        made = steps[-1]
        if not isinstance(made, ast.Call):
            return found
        found.append(Layer(made, by))
        node = _inside(source, made)
    return found


def _inside(source: Source, call: ast.Call) -> ast.expr | None:
    """Return the environment that a call wraps; None for one that makes it."""
    if is_load(call):
        return argument(call, "venv", 1)
    if last_word(call.func) in map(str.lower, VECTORS) or source.dotted(call.func) == (
        "gymnasium.make"
    ):
        return None
    return argument(call, "venv") or argument(call, "env", 0)


def is_normaliser(call: ast.Call) -> bool:
    """Return whether a call makes a new `VecNormalize`."""
    return last_word(call.func) == "vecnormalize"


def is_load(call: ast.Call) -> bool:
    """Return whether a call is `VecNormalize.load(...)`."""
    match call.func:
        case ast.Attribute(value=owner, attr="load"):
            return last_word(owner) == "vecnormalize"
        case _:
            return False


def is_vector(source: Source, node: ast.expr) -> bool:
    """Return whether a value is a vector environment of Stable-Baselines3."""
    return any(is_of_sb3(one.call, source, *VECTORS) for one in layers(source, node))
