"""Statistics of `VecNormalize` that are new, that change, or that are not saved: parts of L15.

Environments are followed through names, parameters and own functions.
"""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import made_at
from backflip.doctor.lint.questions.sb3 import (
    ALGORITHMS,
    VECTORS,
    Layer,
    algorithms,
    environment_of,
    is_load,
    is_normaliser,
    is_of_sb3,
    layers,
)
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    argument,
    arguments,
    has_word,
    is_false,
    last_word,
    parameters,
    written,
)

# Packages whose functions save no statistics, and names of what else a program saves.
KNOWN = ("stable_baselines3", "sb3_contrib", "torch", "numpy", "jax", "gymnasium")
OTHERS = ("model", "agent", "policy", "algo", "buffer", "replay", "fig", "log", "image", "writer")
# What copies statistics from one environment to another, in ways that cannot be followed.
COPIES = ("obs_rms", "sync_envs", "pickle", "set_attr", "__dict__", "setstate", "load_running")
RAW_PACKAGES = ("gymnasium", "stable_baselines3", "sb3_contrib")
RAW = ("make", "Monitor", "VecMonitor", "VecFrameStack", "TimeLimit", *VECTORS)  # scale nothing


def new_statistics(source: Source) -> Iterator[Hit]:
    """Find policies that are evaluated in a new `VecNormalize`: it has seen no observation."""
    if any(word in source.text for word in COPIES):
        return
    trained = _trained(source)
    if trained is None or not (any(map(_is_new, trained)) or _loads_policy(source)):
        return
    known = [*trained, *_given_to_callbacks(source)]
    for _, env in evaluations(source):
        found = layers(source, env)
        for one in found:
            if is_load(one.call):
                break
            if _is_new(one) and not any(_is_same(one, other) for other in known):
                seen = "a policy is evaluated in it, and it has no statistics of training"
                yield Hit(one.call, seen)


def raw_evaluations(source: Source) -> Iterator[Hit]:
    """Find policies that are trained in `VecNormalize`, and evaluated in an own maker's raw one."""
    text = source.text
    if any(word in text for word in (*COPIES, "normalize_obs")) or _trained(source) is None:
        return
    envs = [environment_of(source, one) for one in algorithms(source)]
    if not envs or not all(any(map(_is_new, layers(source, one))) for one in envs):
        return
    for call, env in evaluations(source):
        found = layers(source, env)
        if found and found[0].by and all(_is_raw(source, one.call) for one in found):
            seen = f"`{ast.unparse(env)}` is not normalised, and training is"
            yield Hit(call, seen)


def _is_raw(source: Source, call: ast.Call) -> bool:
    """Return whether a call makes or wraps an environment, and is known to scale nothing."""
    name = source.dotted(call.func)
    return name.startswith(RAW_PACKAGES) and name.rpartition(".")[2] in RAW


def changing_statistics(source: Source) -> Iterator[Hit]:
    """Find loaded statistics that a function goes on changing while it evaluates."""
    if '"training"' in source.text or "set_training" in source.text:
        return
    for call, env in evaluations(source):
        for one in layers(source, env):
            learns = any(_learns_with(source, place) for place in (call, one.call))
            if is_load(one.call) and not learns and not _is_stopped(source, one.call):
                seen = "the statistics go on changing while the policy is evaluated"
                yield Hit(one.call, seen)


def _learns_with(source: Source, node: ast.AST) -> bool:
    """Return whether the function of a node also learns, not only in the other branch of a test."""
    scope, branches = source.function_of(node), dict(_branches(source, node))
    return any(
        all(branches.get(test, side) == side for test, side in _branches(source, call))
        for call in source.calls_of.get("learn", ())
        if source.function_of(call) is scope
    )


def _branches(source: Source, node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the tests around a node in its function, each with whether it runs where it holds."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        node, inside = source.parents[node], node
        if isinstance(node, ast.If) and inside is not node.test:
            yield node, inside in node.body


def unsaved_statistics(source: Source) -> Iterator[Hit]:
    """Find models that are saved without the statistics of the environment they learn in."""
    saved = [(one, made_at(source, one)) for one in _saved(source)]
    models = [made for _, made in saved if is_of_sb3(made, source, *ALGORITHMS)]
    others = [one for one, made in saved if made not in models]
    known = all(has_word(last_word(one), *OTHERS) for one in others)
    if "learn" not in source.calls_of or not known or saves_elsewhere(source):
        return  # what else is saved may be the statistics
    for one in models:
        env = environment_of(source, one)
        for layer in layers(source, env):
            if _is_new(layer):
                seen = (
                    "the model is saved without the statistics that its observations are scaled by"
                )
                yield Hit(layer.call, seen)


def _saved(source: Source) -> list[ast.expr]:
    """Return the objects whose `save` is called; `torch.save` is of a module."""
    return [
        call.func.value
        for call in source.calls_of.get("save", ())
        if isinstance(call.func, ast.Attribute)
        and source.dotted(call.func.value) not in source.imports.values()
    ]


def saves_elsewhere(source: Source) -> bool:
    """Return whether a callback, `get_vec_normalize_env()`, pickle or a helper may save them."""
    if "get_vec_normalize_env" in source.text or "obs_rms" in source.text:
        return True
    for call, name in source.calls():
        kept = argument(call, "save_vecnormalize")
        if kept is not None and not is_false(kept):
            return True
        package, last = name.partition(".")[0], name.rpartition(".")[2]
        if last in ("dump", "dumps") and package != "json":
            return True
        helps = has_word(last, "save", "vecnorm", "vec_norm")
        is_other = name in source.imports.values() and package not in KNOWN
        if helps and is_other and not is_normaliser(call):
            return True
    return False


def evaluations(source: Source) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls that evaluate a policy, and in which environment.

    These are `evaluate_policy`, and `step` in a function that asks for `predict`.
    """
    for call in source.calls_of.get("evaluate_policy", ()):
        env = argument(call, "env", 1)
        if env is not None:
            yield from ((call, one) for one in _with_given(source, env))
    for call in source.calls_of.get("step", ()):
        if not isinstance(call.func, ast.Attribute):
            continue
        if "predict" in _called_in(source, source.function_of(call)):
            yield from ((call, one) for one in _with_given(source, call.func.value))


def _with_given(source: Source, env: ast.expr) -> Iterator[ast.expr]:
    """Yield an environment; of one that is a parameter, also what calls give for it."""
    yield env
    scope = source.function_of(env)
    if isinstance(scope, FUNCTIONS) and written(env) in {one.arg for one in parameters(scope)}:
        yield from given_for(source, scope, written(env))


def _called_in(source: Source, scope: ast.AST) -> set[str]:
    return {last_word(call.func) for call, _ in source.calls(scope)}


def _is_new(layer: Layer) -> bool:
    """Return whether a new `VecNormalize` surely scales observations."""
    call = layer.call
    if not is_normaliser(call) or any(one.arg is None for one in call.keywords):
        return False
    scales = argument(call, "norm_obs", 2)
    return scales is None or (isinstance(scales, ast.Constant) and scales.value is True)


def _is_same(one: Layer, other: Layer) -> bool:
    """Return whether two layers may be one object: what made them is called in the same places."""
    many = min(len(one.by), len(other.by))
    return one.call is other.call and (not many or one.by[-many:] == other.by[-many:])


def _trained(source: Source) -> list[Layer] | None:
    """Return the layers of the environments that learn; None if one of them is not seen."""
    found: list[Layer] = []
    envs = [environment_of(source, one) for one in algorithms(source)]
    envs += [argument(one, "env", 0) for one in source.calls_of.get("set_env", ())]
    for call in source.calls_of.get("load", ()):
        if _loads(source, call) and "learn" in _called_in(source, source.function_of(call)):
            envs.append(argument(call, "env", 1))
    for env in envs:
        if env is None:
            continue
        inner = layers(source, env)
        if not inner and not isinstance(made_at(source, env), ast.Constant):
            return None
        found += inner
    return found


def _loads_policy(source: Source) -> bool:
    """Return whether a policy is loaded, and none is trained here."""
    loads = source.calls_of.get("load", ())
    return "learn" not in source.calls_of and any(_loads(source, one) for one in loads)


def _loads(source: Source, call: ast.Call) -> bool:
    """Return whether a call is `PPO.load(...)`, or that of another algorithm."""
    match call.func:
        case ast.Attribute(value=owner, attr="load"):
            return source.dotted(owner).rpartition(".")[2] in ALGORITHMS
        case _:
            return False


def _given_to_callbacks(source: Source) -> Iterator[Layer]:
    """Yield the layers of environments that callbacks get: `EvalCallback` copies statistics."""
    for call, name in source.calls():
        if "callback" in name.lower():
            for one in arguments(call):
                yield from layers(source, one)


def _is_stopped(source: Source, load: ast.Call) -> bool:
    """Return whether `training` of loaded statistics is set, or of something that is not seen.

    What is saved with `training = False` is loaded with it.
    """
    saved = [one.call for owner in _saved(source) for one in layers(source, owner)]
    for node in source.nodes:
        match node:
            case ast.Attribute(value=owner, attr="training", ctx=ast.Store()):
                found = [one.call for one in layers(source, owner)]
                known = [one for one in found if is_normaliser(one) or is_load(one)]
                if not known or any(one is load or one in saved for one in known):
                    return True
            case ast.keyword(arg="training"):
                call = source.parents[node]
                if not (isinstance(call, ast.Call) and is_normaliser(call)):
                    return True
            case _:
                pass
    return False
