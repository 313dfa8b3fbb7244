"""L16, L17: pictures."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.layers import returned_by
from backflip.doctor.lint.rules.makers import trace
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LONGEST_CHAIN,
    Source,
    argument,
    arguments,
    assignments,
    last_word,
    number,
    parameters,
    steps_environment,
    walk,
    written,
)
from backflip.doctor.lint.values import (
    defaults,
    entries,
    given_for,
    number_at,
    options,
    settings,
    text_of,
)

# Ids of Atari games that skip frames themselves: `ALE/Pong-v5`, `Pong-v0`, `PongDeterministic-v4`.
SKIPS = re.compile(r"^(ALE/\w+-v5|(?!\w*NoFrameskip)[A-Z]\w*-v[04])$")
PICTURES = re.compile(r"ALE/|NoFrameskip|AtariPreprocessing|GrayscaleObservation|rgb_array|ale_py")
SCALED = re.compile(r"scale_obs|ScaledFloat|ScaleObservation|RescaleObservation|as_float")
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
            if games and option is not None and not _has_unknown_options(call):
                skip = argument(call, *option)
                if skip is None or (number(skip) or 0) > 1:
                    seen = f"{games[0]!r} skips frames, and {last} skips frames of it"
                    yield Hit(call, seen)
            elif games and last in own and _repeats(call, own[last]):
                yield Hit(call, f"{games[0]!r} skips frames, and {last} skips frames of it")
            elif last in ("make_atari_env", "make_vec_env") and _skips_twice(source, call):
                id_ = text_of(source, argument(call, "env_id", 0))
                yield Hit(call, f"{id_!r} skips frames, and AtariWrapper skips frames of it")


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
        if any(map(_steps_in_turns, walk(method)))
    }


def _steps_in_turns(node: ast.AST) -> bool:
    """Return whether code is `for _ in range(k):` around `self.env.step(...)`."""
    match node:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return any(steps_environment(one) for one in ast.walk(node))
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


def _is_skipped(source: Source, id_: ast.expr | None, frameskip: ast.expr | None) -> bool:
    """Return whether a game skips frames itself: by its id, or as it is told."""
    text = text_of(source, id_)
    if frameskip is None:
        return _is_skipping_game(text)
    return _is_game(text) and (number_at(source, frameskip) or 0) > 1


def _is_game(id_: str) -> bool:
    return id_.startswith("ALE/") or id_.startswith(GAMES)


def _is_skipping_game(id_: str) -> bool:
    return _is_game(id_) and SKIPS.match(id_) is not None


def _has_unknown_options(call: ast.Call) -> bool:
    """Return whether a call has `**options`."""
    return any(one.arg is None for one in call.keywords)


def _wrapping_bytes(source: Source) -> Iterator[Hit]:
    yield from _differences_of_frames(source)
    yield from _late_scalings(source)
    attributes: dict[ast.ClassDef | None, list[tuple[str, ast.expr]]] = {}
    for scope in source.scopes:
        kept = attributes.setdefault(source.class_of(scope), [])
        kept += [one for one in _named_values(scope) if "." in one[0]]
    for scope in source.scopes:
        own = [one for one in _named_values(scope) if "." not in one[0]]
        of_bytes = _names_of_bytes(source, own + attributes[source.class_of(scope)])
        for node in walk(scope):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
                sides = [node.left, node.right]
                known = [_is_bytes(source, one) or written(one) in of_bytes for one in sides]
                sign = "a difference" if isinstance(node.op, ast.Sub) else "a sum"
                if all(known):
                    yield Hit(node, f"{sign} of two arrays of unsigned bytes")
                elif any(known) and any(map(_is_whole_number, sides)):
                    yield Hit(node, f"{sign} of unsigned bytes and a whole number")


def _differences_of_frames(source: Source) -> Iterator[Hit]:
    """Find `(frame - self.before).astype(np.float32)` in a wrapper of a game: too late."""
    if not PICTURES.search(source.text) or SCALED.search(source.text):
        return
    for body in source.bodies:
        if not isinstance(body, ast.ClassDef) or not body.bases:
            continue
        frames = _frames_of(body)
        for node in ast.walk(body):
            match node:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.BinOp(left=left, op=ast.Sub(), right=right) as late, attr="astype"
                    )
                ) if {written(left), written(right)} <= frames and not _scales(body):
                    yield Hit(late, "a difference of two frames, which are of unsigned bytes")
                case _:
                    pass


def _late_scalings(source: Source) -> Iterator[Hit]:
    """Find `(now - before).astype(np.float32) / 255`: 255 divides bytes, and so both are bytes.

    Names that a float may be given to are left out.
    """
    for node in source.nodes:
        match node:
            case ast.BinOp(
                left=ast.Call(func=ast.Attribute(value=ast.BinOp(op=ast.Sub()) as late, attr=attr)),
                op=ast.Div(),
                right=ast.Constant(value=255 | 255.0),
            ) if attr in ("astype", "float"):
                names = {written(late.left), written(late.right)}
                if all(names) and not any(_may_be_float(source, late, name) for name in names):
                    yield Hit(late, "a difference of two pictures of unsigned bytes")
            case _:
                pass


def _may_be_float(source: Source, node: ast.AST, name: str) -> bool:
    """Return whether a name is set to a float, or a parameter that is given one, or not here."""
    scope = source.function_of(node)
    values = [value for target, value, _ in assignments(scope) if written(target) == name]
    if isinstance(scope, FUNCTIONS) and name in {one.arg for one in parameters(scope)}:
        given = list(given_for(source, scope, name))
        values += given
        if not given:
            return True
    texts = [ast.unparse(value) for value in values]
    return any("float" in text or "/" in text for text in texts)


def _scales(body: ast.ClassDef) -> bool:
    """Return whether a class divides something by 255."""
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and number(node.right) == 255
        for node in ast.walk(body)
    )


def _frames_of(body: ast.ClassDef) -> set[str]:
    """Return the names in a class that are only set to observations of the environment inside."""
    pairs: list[tuple[str, ast.expr]] = []
    for method in body.body:
        for target, value, _ in assignments(method) if isinstance(method, ast.FunctionDef) else ():
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            pairs.append((written(first), value))
    certain = {name for name, value in pairs if _observes(value)}
    return {
        name
        for name in certain | {name for name, value in pairs if written(value) in certain}
        if all(
            _observes(value) or written(value) in certain or _is_none(value)
            for one, value in pairs
            if one == name
        )
    } - {""}


def _observes(value: ast.expr) -> bool:
    """Return whether a value is what the environment inside of a wrapper gives, or a copy of it."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="copy")):
            return _observes(inner)
        case ast.Subscript(value=inner, slice=ast.Constant(value=0)):
            return _observes(inner)
        case ast.Call(func=ast.Attribute(value=owner, attr="step" | "reset")):
            return written(owner) == "self.env"
        case _:
            return False


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_whole_number(node: ast.expr) -> bool:
    """Return whether an expression is such as 128: with bytes it gives bytes, 128.0 does not."""
    return isinstance(node, ast.Constant) and type(node.value) is int


def _named_values(scope: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return names and what they are set to: rows of an array keep its type, and are left out."""
    return [
        (written(target), value)
        for target, value, _ in assignments(scope)
        if not isinstance(target, ast.Subscript)
    ]


def _names_of_bytes(source: Source, pairs: list[tuple[str, ast.expr]]) -> set[str]:
    """Return the names whose values are bytes, or names of bytes, all of them."""
    certain = set[str]()
    for _ in range(LONGEST_CHAIN):
        certain |= {name for name, value in pairs if _stays_bytes(source, value, certain)} - {""}
    while True:
        wrong = {
            name
            for name, value in pairs
            if name in certain and not _stays_bytes(source, value, certain)
        }
        if not wrong:
            return certain
        certain -= wrong


def _stays_bytes(source: Source, value: ast.expr, certain: set[str]) -> bool:
    """Return whether a value is made of bytes, or computed from them and whole numbers."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub | ast.Mult):
        sides = (value.left, value.right)
        known = [_stays_bytes(source, one, certain) for one in sides]
        return any(known) and all(
            one or _is_whole_number(side) for one, side in zip(known, sides, strict=True)
        )
    return _is_bytes(source, value) or written(value) in certain


def _is_bytes(source: Source, node: ast.expr) -> bool:
    """Return whether a value is surely an array of unsigned bytes."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        return bool(node.args) and _names_bytes(source, node.args[0])
    place = 1 if last_word(node.func) in ("zeros", "ones", "empty", "array", "asarray") else None
    dtype = argument(node, "dtype", place)
    return source.dotted(node.func) == "numpy.uint8" or (
        dtype is not None and _names_bytes(source, dtype)
    )


def _names_bytes(source: Source, node: ast.expr) -> bool:
    named = source.dotted(node).rpartition(".")[2]
    return named == "uint8" or (isinstance(node, ast.Constant) and node.value == "uint8")


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
    Rule(
        "L17",
        "sums and differences of bytes",
        "They wrap: 10 - 20 is 246. Differences of frames then show bright pixels where it got "
        "dark.",
        "Convert first: `frame.astype(np.float32)`.",
        "Rahtz 2018; NumPy, documentation of integer overflow",
        _wrapping_bytes,
    ),
)
