"""L16: frames that are skipped twice."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.questions.layers import returned_by
from backflip.doctor.lint.questions.makers import trace
from backflip.doctor.lint.questions.records import entries, number_at, options
from backflip.doctor.lint.questions.sb3 import layers
from backflip.doctor.lint.questions.values import defaults, settings, text_of
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    argument,
    arguments,
    assignments,
    last_word,
    number,
    walk,
    written,
)

# Ids of Atari games that skip frames themselves: `ALE/Pong-v5`, `Pong-v0`, `PongDeterministic-v4`.
SKIPS = re.compile(r"^(ALE/\w+-v5|(?!\w*NoFrameskip)[A-Z]\w*-v[04])$")
GAMES = (
    "Pong",
    "Breakout",
    "Seaquest",
    "SpaceInvaders",
    "Enduro",
    "Qbert",
    "BeamRider",
    "MsPacman",
)
OF_ATARI = "Deterministic-v4"  # how only ids of Atari games end
SKIPPERS = {
    "MaxAndSkipEnv": ("skip", 1),
    "MaxAndSkipObservation": ("skip", 1),
    "AtariPreprocessing": ("frame_skip", 2),
    "AtariWrapper": ("frame_skip", 2),
}


def _skipped_twice(source: Source) -> Iterator[Hit]:
    own = _own_skippers(source)
    for scope in source.scopes:
        games = [id_ for call, _ in source.calls(scope) if (id_ := _skipping(source, call))]
        for call, name in source.calls(scope):
            last = name.rpartition(".")[2]
            option = SKIPPERS.get(last)
            if option is not None and not _has_unknown_options(call):
                inside = games or _skipping_inside(source, call)
                skip = argument(call, *option)
                if inside and (skip is None or (number_at(source, skip) or 0) > 1):
                    seen = f"{inside[0]!r} skips frames, and {last} skips frames of it"
                    yield Hit(call, seen)
                elif first := "" if inside else _skipping_wrapper(source, call):
                    yield Hit(call, f"{first} skips frames, and {last} skips frames of it")
            elif games and last in own and _repeats(call, own[last]):
                yield Hit(call, f"{games[0]!r} skips frames, and {last} skips frames of it")
            elif last in ("make_atari_env", "make_vec_env") and _skips_twice(source, call):
                id_ = text_of(source, argument(call, "env_id", 0))
                yield Hit(call, f"{id_!r} skips frames, and AtariWrapper skips frames of it")


def _skipping_wrapper(source: Source, call: ast.Call) -> str:
    """Return the wrapper that skips frames of what such a wrapper gets; empty without one."""
    if not call.args or not _skips(source, call):
        return ""
    inner = call.args[0]
    if isinstance(inner, ast.Name):  # `env = MaxAndSkipEnv(env)`, then `env = AtariWrapper(env)`
        before = [
            value
            for target, value, statement in assignments(source.function_of(call))
            if written(target) == inner.id and statement.lineno < call.lineno
        ]
        inner = before[-1] if before else inner
    skips = isinstance(inner, ast.Call) and _skips(source, inner)
    return _class_of(inner) if isinstance(inner, ast.Call) and skips else ""


def _skips(source: Source, call: ast.Call) -> bool:
    """Return whether a call is of a known wrapper that surely skips frames."""
    option = SKIPPERS.get(_class_of(call))
    if option is None or _has_unknown_options(call):
        return False
    skip = argument(call, *option)
    return skip is None or (number_at(source, skip) or 0) > 1


def _class_of(call: ast.Call) -> str:
    return written(call.func).rpartition(".")[2]


def _skips_twice(source: Source, call: ast.Call) -> bool:
    """Return whether a function of Stable-Baselines3 surely makes a game that skips twice."""
    given = options(source, call)
    if given is None:
        return False
    wrapper_class = given.get("wrapper_class")
    if last_word(call.func) != "make_atari_env" and (
        wrapper_class is None or last_word(wrapper_class) != "atariwrapper"
    ):
        return False
    game, wrapper = (_seen(source, given.get(f"{one}_kwargs")) for one in ("env", "wrapper"))
    if game is None or wrapper is None:
        return False
    skip = wrapper.get("frame_skip")
    is_off = skip is not None and (number_at(source, skip) or 0) <= 1
    return not is_off and _is_skipped(source, argument(call, "env_id", 0), game.get("frameskip"))


def _seen(source: Source, node: ast.expr | None) -> dict[str, ast.expr] | None:
    """Return the entries of options; empty without any, None if some cannot be seen."""
    if node is None:
        return {}
    *_, last = names = list(trace(source, node))
    if isinstance(last, ast.Constant) and last.value is None:
        return {}
    if isinstance(last, ast.Attribute):
        last = settings(source).get(last.attr, last)
    return entries(source, next((one for one in names[-2:-1] if written(one)), last))


def _own_skippers(source: Source) -> dict[str, ast.ClassDef]:
    """Return the program's own wrappers that step an environment several times, by name."""
    return {
        body.name: body
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and body.bases
        for method in body.body
        if isinstance(method, ast.FunctionDef) and method.name == "step"
        if any(_steps_in_turns(source, one) for one in walk(method))
    }


def _steps_in_turns(source: Source, node: ast.AST) -> bool:
    """Return whether code is `for _ in range(k):` around `self.env.step(...)`."""
    match node:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return any(steps_environment(source, one) for one in ast.walk(node))
        case _:
            return False


def _repeats(call: ast.Call, wrapper: ast.ClassDef) -> bool:
    """Return whether a wrapper surely repeats actions: by an argument, or by default."""
    own = [one for one in wrapper.body if isinstance(one, ast.FunctionDef)]
    numbers = [number(one) for one in arguments(call)]
    if not any(numbers) and not _has_unknown_options(call):
        numbers = [
            number(one) for it in own if it.name == "__init__" for one in defaults(it).values()
        ]
    return any(one is not None and one > 1 for one in numbers)


def _skipping(source: Source, call: ast.Call) -> str:
    """Return the id of a game that skips frames itself; empty for other calls.

    A function of the program may make the game.
    """
    made = returned_by(source, call)
    if not isinstance(made, ast.Call) or source.dotted(made.func) != "gymnasium.make":
        return ""
    given = options(source, made)
    id_ = argument(made, "id", 0)
    if given is None or not _is_skipped(source, id_, given.get("frameskip")):
        return ""
    return text_of(source, id_)


def _skipping_inside(source: Source, wrapper: ast.Call) -> list[str]:
    """Return the id of a game that is wrapped, also elsewhere, if it skips frames itself."""
    found = [_skipping(source, one.call) for one in layers(source, argument(wrapper, "env", 0))]
    return [id_ for id_ in found if id_]


def _is_skipped(source: Source, id_: ast.expr | None, frameskip: ast.expr | None) -> bool:
    """Return whether a game skips frames itself: by its id, or as it is told."""
    text = text_of(source, id_)
    if frameskip is None:
        return _is_skipping_game(text)
    return _is_game(text) and (number_at(source, frameskip) or 0) > 1


def _is_game(id_: str) -> bool:
    return id_.startswith(("ALE/", *GAMES)) or id_.endswith(OF_ATARI)


def _is_skipping_game(id_: str) -> bool:
    return _is_game(id_) and SKIPS.match(id_) is not None


def _has_unknown_options(call: ast.Call) -> bool:
    """Return whether a call has `**options`."""
    return any(one.arg is None for one in call.keywords)


RULES = (
    Rule(
        "L16",
        "frames are skipped twice",
        "The policy sees one frame of sixteen, and repeats every action as often: games become "
        "unplayable.",
        "Make the game with `frameskip=1`, or use a `NoFrameskip-v4` id.",
        "RL-Adventure#12; Machado et al. 2018, arXiv:1709.06009",
        _skipped_twice,
    ),
)
