"""L13: settings that leave nothing to learn, or from."""

import ast
from collections.abc import Callable, Iterator
from functools import partial

from backflip.doctor.lint.questions.makers import made_at
from backflip.doctor.lint.questions.records import number_at, options, possible_options
from backflip.doctor.lint.questions.sb3 import (
    REPLAYS,
    ROLLOUTS,
    environment_of,
    is_of_sb3,
    layers,
    made_by_name,
)
from backflip.doctor.lint.questions.values import parsed
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.acting.early_decays import early_decays
from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    number,
    written,
)

# Returns the number that an expression stands for.
Value = Callable[[ast.expr | None], float | None]

SIZES = {"n_steps": 3, "batch_size": 4}  # and their places
SIZES_BY_DEFAULT = {"ppo": (2048, 64), "maskableppo": (2048, 64), "recurrentppo": (128, 128)}


def _budgets(source: Source) -> Iterator[Hit]:
    value = partial(number_at, source)
    for call, _ in source.calls():
        if is_of_sb3(call, source, *ROLLOUTS):
            yield from _uneven(source, call, value)
        match call.func:
            case ast.Attribute(value=owner, attr="learn"):
                model = made_at(source, owner)
                steps = value(argument(call, "total_timesteps", 0))
            case _:
                continue
        if is_of_sb3(model, source, *REPLAYS) and steps is not None:
            yield from _too_short(source, call, model, steps, value)


def _too_short(
    source: Source, call: ast.Call, model: ast.Call, steps: float, value: Value
) -> Iterator[Hit]:
    """Find runs that end, or stop exploring, before the first gradient step."""
    for given in possible_options(source, model) or ():  # of each preset
        names = ("learning_starts", "exploration_fraction")
        starts, share = (value(given.get(one)) for one in names)
        if starts is not None and steps <= starts:
            yield Hit(call, f"the run has {steps:g} steps, and learning starts at {starts:g}")
        elif starts is not None and share is not None and share * steps < starts:
            decay = f"ε ends its decay after {share * steps:g} steps"
            yield Hit(call, f"{decay}, and learning starts at {starts:g}")
        else:
            continue
        return


def _uneven(source: Source, made: ast.Call, value: Value) -> Iterator[Hit]:
    """Find rollouts that minibatches do not divide, with a known number of environments."""
    given = options(source, made)
    if given is None or any(isinstance(one, ast.Starred) for one in made.args):
        return
    by_default = SIZES_BY_DEFAULT.get(made_by_name(source, made).lower())
    if by_default is None:
        return
    found: list[float | None] = []
    for (name, place), usual in zip(SIZES.items(), by_default, strict=True):
        size = given.get(name) or argument(made, name, place)
        found.append(usual if size is None else value(size))
    steps, batch = found
    envs = _environments(source, environment_of(source, made), value)
    if steps and batch and envs and steps * envs % batch:
        many = f" in {envs:g} environments" if envs > 1 else ""
        yield Hit(made, f"rollouts of {steps:g} steps{many}, minibatches of {batch:g}")


def _environments(source: Source, env: ast.expr | None, value: Value) -> float | None:
    """Return the number of environments in what an algorithm is given; None if it is not seen."""
    if env is None:
        return None
    if isinstance(made_at(source, env), ast.Constant):  # an id
        return 1
    inner = [one.call for one in layers(source, env)][-1:]
    match inner:
        case [ast.Call(func=func)] if source.dotted(func) == "gymnasium.make":
            return 1
        case [ast.Call(keywords=keywords) as made]:
            if any(one.arg is None for one in keywords):  # `**options` may have it
                return None
        case _:
            return None
    if is_of_sb3(made, source, "DummyVecEnv", "SubprocVecEnv"):
        return _length(source, argument(made, "env_fns", 0), value)
    if not is_of_sb3(made, source, "make_vec_env", "make_atari_env"):
        return None
    count = argument(made, "n_envs", 1)
    return 1 if count is None else value(count)


def _length(source: Source, functions: ast.expr | None, value: Value) -> float | None:
    """Return the length of a list: `[f]`, `[f] * 4`, or `[f(i) for i in range(4)]`."""
    match None if functions is None else made_at(source, functions):
        case ast.List(elts=elements) if not any(isinstance(one, ast.Starred) for one in elements):
            return float(len(elements)) or None
        case ast.BinOp(left=ast.List(elts=[_]), op=ast.Mult(), right=count):
            return value(count)
        case ast.ListComp(
            generators=[
                ast.comprehension(iter=ast.Call(func=ast.Name(id="range"), args=[count]), ifs=[])
            ]
        ):
            return value(count)
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
    yield from early_decays(source)


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
