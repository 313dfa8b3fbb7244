"""L13: settings that leave nothing to learn, or from."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeGuard

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.layers import returned_by
from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    last_word,
    number,
    written,
)
from backflip.doctor.lint.values import number_at, options, parsed

# Returns the number that an expression stands for.
Value = Callable[[ast.expr | None], float | None]

REPLAYS = ("DQN", "QRDQN", "SAC", "TD3", "DDPG", "TQC")
ROLLOUTS = ("PPO", "RecurrentPPO", "MaskablePPO")


def _budgets(source: Source) -> Iterator[Hit]:
    value = partial(number_at, source)
    made = [(target, one) for scope in source.scopes for target, one, _ in assignments(scope)]
    for _, one in made:
        if _is_model(one, source):
            yield from _uneven(source, one, value)
    for call, _ in source.calls():
        match call.func:
            case ast.Attribute(value=owner, attr="learn"):
                model = _model_of(source, owner, made)
                steps = value(argument(call, "total_timesteps", 0))
            case _:
                continue
        if model is not None and steps is not None:
            yield from _too_short(source, call, model, steps, value)


def _is_model(made: ast.expr, source: Source) -> TypeGuard[ast.Call]:
    """Return whether a value is a model of Stable-Baselines3."""
    if not isinstance(made, ast.Call):
        return False
    return source.dotted(made.func).startswith("stable_baselines3")


def _model_of(
    source: Source, owner: ast.expr, made: list[tuple[ast.expr, ast.expr]]
) -> ast.Call | None:
    """Return the model that a name of a place is; None if it is not seen which one it is.

    Of several in a function, it is the last before the place, if that is in no other branch.
    """
    name = written(owner)
    home = source.home(owner, name)
    found = [
        one for target, one in made if written(target) == name and source.home(target, name) is home
    ]
    if len(found) > 1:
        before = [one for one in found if one.lineno < owner.lineno][-1:]
        found = [one for one in before if _is_always_before(source, one, owner)]
    return _built(source, found[0]) if found else None


def _built(source: Source, made: ast.expr) -> ast.Call | None:
    """Return the model that a value is, or that a function of the program builds."""
    return built if _is_model(built := returned_by(source, made), source) else None


def _is_always_before(source: Source, statement: ast.AST, node: ast.AST) -> bool:
    """Return whether a statement runs whenever a later node of the same function does."""
    while not isinstance(statement, ast.stmt):
        statement = source.parents[statement]
    block = source.parents[statement]
    while not isinstance(node, ast.Module):
        node, inside = source.parents[node], node
        if node is block:
            bodies = (getattr(block, name, []) for name in ("body", "orelse", "finalbody"))
            return any(statement in one and inside in one for one in bodies)
    return False


def _too_short(
    source: Source, call: ast.Call, model: ast.Call, steps: float, value: Value
) -> Iterator[Hit]:
    """Find runs that end, or stop exploring, before the first gradient step."""
    if source.dotted(model.func).rpartition(".")[2] not in REPLAYS:
        return
    given = options(source, model) or {}
    starts, share = (value(given.get(one)) for one in ("learning_starts", "exploration_fraction"))
    if starts is not None and steps <= starts:
        yield Hit(call, f"the run has {steps:g} steps, and learning starts at {starts:g}")
    elif starts is not None and share is not None and share * steps < starts:
        seen = f"ε ends its decay after {share * steps:g} steps, and learning starts at {starts:g}"
        yield Hit(call, seen)


def _uneven(source: Source, made: ast.Call, value: Value) -> Iterator[Hit]:
    """Find rollouts that minibatches do not divide, with a known number of environments."""
    if source.dotted(made.func).rpartition(".")[2] not in ROLLOUTS:
        return
    given = options(source, made) or {}
    steps, batch = (value(given.get(name)) for name in ("n_steps", "batch_size"))
    envs = _environments(source, given.get("env") or argument(made, "env", 1), value)
    if steps and batch and envs and steps * envs % batch:
        many = f" in {envs:g} environments" if envs > 1 else ""
        yield Hit(made, f"rollouts of {steps:g} steps{many}, minibatches of {batch:g}")


def _environments(source: Source, env: ast.expr | None, value: Value) -> float | None:
    """Return the number of environments in what an algorithm is given; None if it is not seen."""
    if isinstance(env, ast.Name):
        made = [
            one
            for scope in source.scopes
            for target, one, _ in assignments(scope)
            if written(target) == env.id
        ]
        env = made[0] if len(made) == 1 else None
    match env:
        case ast.Constant():
            return 1
        case ast.Call(func=func) if source.dotted(func) == "gymnasium.make":
            return 1
        case ast.Call(func=func, keywords=keywords) if last_word(func) == "make_vec_env":
            if any(one.arg is None for one in keywords):  # `**options` may have it
                return None
            count = argument(env, "n_envs", 1)
            return 1 if count is None else value(count)
        case _:
            return None


def _settings(source: Source) -> Iterator[Hit]:
    """Compare `total_timesteps` with `learning_starts` where both are set in one place."""
    for body in source.bodies:
        found = {
            written(target).rpartition(".")[2]: (number(value), statement)
            for target, value, statement in assignments(body)
        }
        starts, steps = found.get("learning_starts"), found.get("total_timesteps")
        match starts, steps:
            case (float(first), _), (float(last), statement) if last <= first:
                yield Hit(
                    statement, f"the run has {last:g} steps, and learning starts at {first:g}"
                )
            case _:
                pass


def _parsed(source: Source) -> Iterator[Hit]:
    """Compare the settings that `argparse` has by default."""
    found = {name: (number(value), value) for name, value in parsed(source)}
    match found.get("learning_starts"), found.get("total_timesteps"):
        case (float(first), _), (float(last), value) if last <= first:
            yield Hit(value, f"the run has {last:g} steps, and learning starts at {first:g}")
        case _:
            pass


def _too_little(source: Source) -> Iterator[Hit]:
    yield from _budgets(source)
    yield from _settings(source)
    yield from _parsed(source)


RULES = (
    Rule(
        "L13",
        "the settings leave nothing to learn",
        "The run ends before the first gradient step, explores only before it, or leaves a "
        "minibatch that is too small.",
        "Make `total_timesteps` many times `learning_starts`, and `exploration_fraction * "
        "total_timesteps` larger than it; make `n_steps * n_envs` a multiple of `batch_size`.",
        "SB3#526, SB3#529",
        _too_little,
    ),
)
