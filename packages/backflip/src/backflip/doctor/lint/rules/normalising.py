"""L15: statistics of observations that evaluation does not have."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, argument, assignments, last_word, written


def _lost_statistics(source: Source) -> Iterator[Hit]:
    if "VecNormalize" not in source.imports.values() and "VecNormalize" not in source.text:
        return
    made, saved = _normalisers(source), _saved(source)
    fresh = {name: call for name, call in made.items() if _is_new(call) and _scales(call)}
    saves_model = any(_saves_model(source, name) for name in saved)
    for name, call in fresh.items():
        if saves_model and name not in saved and len(fresh) == 1 and not _saves_elsewhere(source):
            seen = "the model is saved without the statistics that its observations are scaled by"
            yield Hit(call, seen)
    yield from _moving_statistics(source)
    for call, name in source.calls():
        where = _evaluated(call, name.rpartition(".")[2])
        if fresh and where not in ("", *made) and _is_made_here(source, where):
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


def _evaluated(call: ast.Call, name: str) -> str:
    """Return the name of the environment that a call evaluates in; empty if it does not."""
    places = {"evaluate_policy": ("env", 1), "EvalCallback": ("eval_env", 0)}
    where = argument(call, *places[name]) if name in places else None
    return "" if where is None else written(where)


def _normalisers(source: Source) -> dict[str, ast.Call]:
    """Return what is made by `VecNormalize`, or loaded by it, by name."""
    return {
        written(target): value
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call) and "VecNormalize" in written(value.func)
    }


def _is_new(call: ast.Call) -> bool:
    return last_word(call.func) == "vecnormalize"


def _scales(call: ast.Call) -> bool:
    """Return whether observations are surely normalised."""
    if any(one.arg is None for one in call.keywords):
        return False
    scales = argument(call, "norm_obs", 2)
    return scales is None or (isinstance(scales, ast.Constant) and scales.value is True)


def _saves_elsewhere(source: Source) -> bool:
    """Return whether a callback, `get_vec_normalize_env()` or pickle may save the statistics."""
    if "get_vec_normalize_env" in source.text or "obs_rms" in source.text:
        return True
    for call, name in source.calls():
        kept = argument(call, "save_vecnormalize")
        if kept is not None and not (isinstance(kept, ast.Constant) and kept.value is False):
            return True
        if name.rpartition(".")[2] in ("dump", "dumps") and not name.startswith("json."):
            return True
    return False


def _saved(source: Source) -> set[str]:
    return {
        written(call.func.value)
        for call, _ in source.calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr == "save"
    }


def _saves_model(source: Source, name: str) -> bool:
    """Return whether a name is an algorithm of Stable-Baselines3."""
    return any(
        written(target) == name
        and isinstance(value, ast.Call)
        and source.dotted(value.func).startswith("stable_baselines3")
        and last_word(value.func) not in ("vecnormalize", "make_vec_env")
        for scope in source.scopes
        for target, value, _ in assignments(scope)
    )


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
