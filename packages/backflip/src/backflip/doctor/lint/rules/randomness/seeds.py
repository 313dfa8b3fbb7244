"""L18, L19: random numbers that are not as random, or as repeatable, as they should be."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.inlining import place_of
from backflip.doctor.lint.questions.own_draws import (
    GRADIENTS,
    NOT_DRAWS,
    always_run,
    assigned,
    draws_of,
)
from backflip.doctor.lint.questions.values import value_of
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.randomness.carried_keys import carried_keys
from backflip.doctor.lint.rules.randomness.equal_processes import equal_processes
from backflip.doctor.lint.rules.randomness.equal_workers import VECTORS, equal_workers
from backflip.doctor.lint.rules.randomness.narrow_counters import narrow_counters
from backflip.doctor.lint.rules.randomness.passed_keys import passed_keys
from backflip.doctor.lint.source import (
    FUNCTIONS,
    INNER,
    LOOPS,
    Function,
    Scope,
    Source,
    argument,
    arguments,
    assignments,
    has_word,
    last_word,
    names_in,
    walk,
    written,
)

METHODS = ("reset", "step")
CALLED_OFTEN = ("act", "step", "sample", "update", "__call__", "select_action", "get_action")
GENERATORS = ("default_rng", "seed", "Generator", "RandomState", "SeedSequence", "Random")
LEARNS = ("backward", "learn", "update", "train", "optimize", "train_step", "fit")


def _equal_seeds(source: Source) -> Iterator[Hit]:
    for call, name in source.calls():
        if name.rpartition(".")[2] not in VECTORS or not call.args:
            continue
        for node in ast.walk(call.args[0]):
            if isinstance(node, ast.ListComp) and _repeats_a_seed(node):
                yield Hit(node, "every environment gets the same seed")


def _repeats_a_seed(node: ast.ListComp) -> bool:
    made = node.elt.body if isinstance(node.elt, ast.Lambda) else node.elt
    counters = {name for one in node.generators for name in names_in(one.target)}
    if not isinstance(made, ast.Call) or counters & names_in(made):
        return False
    names = {name for one in arguments(made) for name in names_in(one)}
    return any(has_word(name.rpartition(".")[2], "seed") for name in names)


def _equal_resets(source: Source) -> Iterator[Hit]:
    """Find loops over environments that reset each with the same seed."""
    for node in source.nodes:
        if isinstance(node, ast.For):
            own = names_in(node.target)
            new = own | {written(target) for target, _, _ in assignments(node)}
            for call in (one for one in walk(node) if isinstance(one, ast.Call)):
                if _resets_one_of(call, own) and _seed_is_one_of_all(call, new):
                    yield Hit(call, "every environment gets the same seed")


def _equal_lists(source: Source) -> Iterator[Hit]:
    """Find `envs.reset(seed=[0] * 8)`."""
    for call in source.calls_of.get("reset", ()):
        seed = argument(call, "seed")
        if seed is not None and _are_equal(seed):
            yield Hit(call, "every environment gets the same seed")


def _are_equal(seeds: ast.expr) -> bool:
    """Return whether an expression is a list of several seeds that are all the same."""
    match seeds:
        case ast.BinOp(left=ast.List(elts=[_]), op=ast.Mult()):
            return True
        case ast.List(elts=[first, _, *_] as elements):
            return all(ast.dump(one) == ast.dump(first) for one in elements)
        case ast.ListComp(elt=made, generators=loops):
            counters = {name for one in loops for name in names_in(one.target)}
            return not isinstance(made, ast.Call) and not counters & names_in(made)
        case _:
            return False


def _equal_episodes(source: Source) -> Iterator[Hit]:
    """Find loops that learn, and begin each episode with the seed `env.reset(seed=42)`."""
    for call in source.calls_of.get("reset", ()):
        seed = argument(call, "seed")
        if seed is None or value_of(seed, source.constants) is None:
            continue
        loop = source.parents[call]
        while not isinstance(loop, (*LOOPS, *FUNCTIONS, ast.Module)):
            loop = source.parents[loop]
        inside = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
        called = [last_word(one.func) for one in inside]
        learns = "step" in called and bool({*called} & {*LEARNS})
        # A loop with more resets is one over training runs.
        if isinstance(loop, LOOPS) and learns and called.count("reset") == 1:
            yield Hit(call, "every episode begins with the same seed")


def _resets_one_of(call: ast.Call, names: set[str]) -> bool:
    match call.func:
        case ast.Attribute(value=owner, attr="reset"):
            return written(owner) in names
        case _:
            return False


def _seed_is_one_of_all(call: ast.Call, new: set[str]) -> bool:
    """Return whether the seed of a reset is a name that each turn of the loop leaves as it is."""
    seed = next((one.value for one in call.keywords if one.arg == "seed"), None)
    return isinstance(seed, ast.Name | ast.Attribute) and not new & names_in(seed)


def _unseeded_environments(source: Source) -> Iterator[Hit]:
    for node in source.nodes:
        if not isinstance(node, ast.ClassDef) or not _is_environment(source, node):
            continue
        used = _used_in_episodes(node)
        for method in node.body:
            if isinstance(method, FUNCTIONS) and method.name in used:
                for call, name in source.calls(method):
                    drawn = name.rpartition(".")[2] not in GENERATORS
                    if drawn and name.startswith(("numpy.random.", "random.")):
                        seen = f"`{ast.unparse(call.func)}` does not use the seed of `reset`"
                        yield Hit(call, seen)


def _used_in_episodes(node: ast.ClassDef) -> set[str]:
    """Return the names of `reset`, `step`, and of the methods that they call."""
    methods = {one.name: one for one in node.body if isinstance(one, FUNCTIONS)}
    found = set[str](METHODS)
    while True:
        more = {
            call.func.attr
            for name in found & set(methods)
            for call in walk(methods[name])
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and written(call.func.value) == "self"
        }
        if more <= found:
            return found
        found |= more


def _is_environment(source: Source, node: ast.ClassDef) -> bool:
    return any(
        source.dotted(base) in ("gymnasium.Env", "gymnasium.core.Env") for base in node.bases
    )


def _seeds(source: Source) -> Iterator[Hit]:
    yield from _equal_seeds(source)
    yield from equal_workers(source)
    yield from equal_processes(source)
    yield from _equal_resets(source)
    yield from _equal_lists(source)
    yield from _equal_episodes(source)
    yield from _unseeded_environments(source)


def _reused_keys(source: Source) -> Iterator[Hit]:
    yield from narrow_counters(source)
    if not any(name.startswith("jax") for name in source.imports.values()):
        return
    for scope in source.scopes:
        yield from _Keys(source, scope).follow()
    yield from passed_keys(source)
    yield from carried_keys(source)
    for body in source.bodies:
        if isinstance(body, ast.ClassDef):
            yield from _kept_keys(source, body)


def _kept_keys(source: Source, body: ast.ClassDef) -> Iterator[Hit]:
    """Find `self.key` that every call of a method draws with, and that is never replaced."""
    methods = [one for one in body.body if isinstance(one, FUNCTIONS)]
    made, replaced = set[str](), set[str]()
    for method in methods:
        for target, value, _ in assignments(method):
            name = source.dotted(value.func) if isinstance(value, ast.Call) else ""
            is_first = method.name == "__init__" and name.startswith("jax.random.")
            (made if is_first else replaced).update(_attributes(target))
    for method in methods:
        if method.name not in CALLED_OFTEN:
            continue
        for call, name in source.calls(method):
            key = written(call.args[0]) if call.args else ""
            draws = name.startswith("jax.random.") and name.rpartition(".")[2] not in NOT_DRAWS
            if draws and key in made - replaced:
                yield Hit(call, f"the key `{key}` is never replaced, and gives the same numbers")


def _attributes(target: ast.expr) -> set[str]:
    """Return the attributes of `self` that an assignment sets."""
    return {name for name in names_in(target) if name.startswith("self.")}


class _Keys:
    """Follows the keys of one scope through its statements."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self._source, self._scope, self._draws = source, scope, draws_of(source)
        self._hits: dict[ast.AST, Hit] = {}
        self._last_uses: dict[str, ast.Call] = {}
        self._entered: set[ast.AST] = set()  # inner functions: one may run again with its key

    def follow(self) -> Iterator[Hit]:
        """Yield the second uses of keys."""
        self._block(self._scope.body, set())
        yield from self._hits.values()

    def _block(self, statements: list[ast.stmt], used: set[str]) -> set[str]:
        """Return the keys that are used up after some statements."""
        for statement in statements:
            used = self._statement(statement, used)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                break
        return used

    def _statement(self, node: ast.stmt, used: set[str]) -> set[str]:
        if isinstance(node, INNER):
            return used
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                used = self._expression(test, used)
                after = [self._block(one, set(used)) for one in (body, orelse) if not _leaves(one)]
                return set[str]().union(*after) if after else used
            case ast.For(iter=iter_, body=body) | ast.While(test=iter_, body=body):
                used = self._expression(iter_, used)
                targets = names_in(node.target) if isinstance(node, ast.For) else set[str]()
                once = self._block(body, used - targets)
                return self._block(body, once - targets)  # a second time: keys of before the loop
            case ast.With(body=body) | ast.Try(body=body):
                return self._block(body, used)
            case ast.Match(cases=cases):
                return used.union(*(self._block(one.body, set(used)) for one in cases))
            case _:
                return _forgotten(self._expression(node, used), assigned(node))

    def _expression(self, node: ast.AST, used: set[str]) -> set[str]:
        used = set(used)
        for call in (one for one in always_run(node) if isinstance(one, ast.Call)):
            keys = dict.fromkeys(self._draws.used_by(call), call) | self._used_inside(call)
            for key, place in keys.items():
                if key in used and not self._is_again(key, place):
                    seen = f"the key `{key}` is used a second time, and gives the same numbers"
                    self._hits.setdefault(place, Hit(place, seen))
                self._last_uses[key] = place
            used |= set(keys)
        return used

    def _is_again(self, key: str, call: ast.Call) -> bool:
        """Return whether an own function gets all that it got before: it is computed again."""
        before = self._last_uses.get(key, call)
        if before is call:
            return False
        function = self._draws.called(call.func)
        if hasattr(before, "came_from"):  # put here from a function; there, it was followed
            inside = call if function is None else function
            return inside.lineno <= place_of(before)[0] <= (inside.end_lineno or inside.lineno)
        given = [list(map(ast.unparse, arguments(one))) for one in (call, before)]
        is_same = function is not None and self._draws.called(before.func) is function
        return is_same and given[0] == given[1]

    def _used_inside(self, call: ast.Call) -> dict[str, ast.Call]:
        """Return the keys that the function in `jax.grad(loss)` uses up, each once."""
        inner = self._inner_function(call)
        if inner is None or inner in self._entered:
            return {}
        self._entered.add(inner)
        return self._draws.used_inside(inner)

    def _inner_function(self, call: ast.Call) -> Function | ast.Lambda | None:
        """Return the function that gradients are computed of, or that is called."""
        func = call.args[0] if last_word(call.func) in GRADIENTS and call.args else call.func
        if isinstance(func, ast.Lambda):
            return func
        inner = self._draws.called(func)
        is_inside = inner is not None and self._source.function_of(inner) is self._scope
        return inner if is_inside and not isinstance(self._scope, ast.Module) else None


def _forgotten(used: set[str], assigned: set[str]) -> set[str]:
    """Return the used keys without those that are new: of `state` also `state.key`."""
    return {key for key in used if not any(f"{key}.".startswith(f"{x}.") for x in assigned)}


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


RULES = (
    Rule(
        "L18",
        "random numbers that seeds do not control",
        "Environments or workers with one seed collect the same episodes: a batch has part of the "
        "data. Environments that use global generators cannot be repeated.",
        "Give environment i the seed `seed + i`; draw from `self.np_random` after "
        "`super().reset(seed=seed)`.",
        "SB3#292, #342; Gymnasium, documentation of Env.reset",
        _seeds,
    ),
    Rule(
        "L19",
        "a key is used twice, or a counter is too narrow",
        "Two draws are equal, or depend on each other: noise that should be independent is the "
        "same. A count of 32 bits is negative after 2,147,483,647 steps.",
        "Split first: `key, draw = jax.random.split(key)`, and carry the new key on. Count in "
        "int64, or in Python's int.",
        "JAX, documentation of random numbers; purejaxrl#19",
        _reused_keys,
    ),
)
