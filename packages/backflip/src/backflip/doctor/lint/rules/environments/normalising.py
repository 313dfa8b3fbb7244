"""L15: statistics of observations that evaluation does not have."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.layers import returned_by
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.environments.lost_statistics import (
    changing_statistics,
    new_statistics,
    raw_evaluations,
    unsaved_statistics,
)
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    last_word,
    parameters,
    written,
)

# Calls that evaluate a policy: the name and the place of the environment that they get.
EVALUATIONS = {"evaluate_policy": ("env", 1), "EvalCallback": ("eval_env", 0)}


def _lost_statistics(source: Source) -> Iterator[Hit]:
    if "VecNormalize" not in source.imports.values() and "VecNormalize" not in source.text:
        return
    made = _normalisers(source)
    fresh = {name: call for name, call in made.items() if _is_new(call) and _scales(call)}
    yield from _moving_statistics(source)
    yield from new_statistics(source)
    yield from changing_statistics(source)
    yield from unsaved_statistics(source)
    yield from raw_evaluations(source)
    for call, where in _evaluations(source) if fresh else ():
        if where not in made and _is_made_here(source, where):
            yield Hit(call, f"`{where}` is not normalised, and training is")


def _moving_statistics(source: Source) -> Iterator[Hit]:
    """Find loaded statistics that go on changing in a program that evaluates and never learns."""
    evaluates = {"predict", "evaluate_policy"} & set(source.calls_of)
    if not evaluates or "learn" in source.calls_of or "train" in source.calls_of:
        return
    if any(word in source.text for word in (".training", "set_training", "training=")):
        return
    for call, name in source.calls():
        if name.endswith("VecNormalize.load"):
            yield Hit(call, "the statistics go on changing while the policy is evaluated")


def _evaluations(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls that evaluate a policy, each with the name of its environment."""
    for call, name in source.calls():
        place = EVALUATIONS.get(name.rpartition(".")[2])
        where = argument(call, *place) if place else None
        if where is not None:
            yield call, written(where)
    if "normalize_obs" in source.text:  # of a program that scales observations by hand
        return
    for scope in source.scopes:
        if "predict" not in {last_word(call.func) for call, _ in source.calls(scope)}:
            continue
        for call, _ in source.calls(scope):
            match call.func:
                case ast.Attribute(value=ast.Name(id=name), attr="step"):
                    yield from _steps_in(source, scope, call, name)
                case _:
                    pass


def _steps_in(
    source: Source, scope: Scope, step: ast.Call, name: str
) -> Iterator[tuple[ast.Call, str]]:
    """Yield a call of `env.step`; of an environment that is a parameter, what calls give for it."""
    if isinstance(scope, ast.Module) or name not in {one.arg for one in parameters(scope)}:
        yield step, name
        return
    for given in given_for(source, scope, name):
        call = source.parents[given]
        if isinstance(call, ast.Call):
            yield call, written(given)


def _normalisers(source: Source) -> dict[str, ast.Call]:
    """Return what is made by `VecNormalize`, or loaded by it, by name.

    Names also of what a function of the program returns.
    """
    found: dict[str, ast.Call] = {}
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            made = returned_by(source, value)
            if isinstance(made, ast.Call) and "VecNormalize" in written(made.func):
                found[written(target)] = made
    return found


def _is_new(call: ast.Call) -> bool:
    return last_word(call.func) == "vecnormalize"


def _scales(call: ast.Call) -> bool:
    """Return whether observations are surely normalised."""
    if any(one.arg is None for one in call.keywords):
        return False
    scales = argument(call, "norm_obs", 2)
    return scales is None or (isinstance(scales, ast.Constant) and scales.value is True)


def _is_made_here(source: Source, name: str) -> bool:
    made = ("make", "make_vec_env", "DummyVecEnv", "SubprocVecEnv", "Monitor", "make_atari_env")
    return any(
        written(target) == name
        and isinstance(value, ast.Call)
        and source.dotted(value.func).rpartition(".")[2] in made
        for scope in source.scopes
        for target, value, _ in assignments(scope)
    )


RULES = (
    Rule(
        "L15",
        "evaluation without the statistics of training",
        "The policy sees observations on another scale than it was trained on: the return in "
        "training is good, and bad in evaluation, or after loading.",
        "Save it with `venv.save(file)`; evaluate in `VecNormalize.load(file, env)` with "
        "`training=False` and `norm_reward=False`.",
        "SB3#406, #1256, #1556, #2091; IsaacLab#2635",
        _lost_statistics,
    ),
)
