"""L59, L60: one object where several are meant."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import FUNCTIONS, Source, assignments, number, walk, written

EACH_STEP = ("step", "observation", "observe")  # methods that run in each step


def _shared_arrays(source: Source) -> Iterator[Hit]:
    """Find methods that write into `self.stack[-1]` and return `self.stack` itself."""
    for scope in source.scopes:
        if not isinstance(scope, FUNCTIONS) or scope.name not in EACH_STEP:
            continue
        written_to = {
            written(target)
            for target, _, _ in assignments(scope)
            if isinstance(target, ast.Subscript) and _is_place(target)
        }
        replaced = {written(t) for t, _, _ in assignments(scope) if isinstance(t, ast.Attribute)}
        for node in walk(scope):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            name = written(parts[0]) if isinstance(parts[0], ast.Attribute) else ""
            if name in written_to - replaced:
                yield Hit(node, f"`{name}` is returned, and the next step writes into it")


def _is_place(target: ast.Subscript) -> bool:
    """Return whether a target is a part of an attribute of `self`, by place: no key of a dict."""
    is_own = isinstance(target.value, ast.Attribute)
    is_key = isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)
    return is_own and not is_key


def _repeated_objects(source: Source) -> Iterator[Hit]:
    """Find `[Critic(n)] * 2`, whose elements are one object."""
    for node in source.nodes:
        match node:
            case ast.BinOp(
                left=ast.List(elts=[ast.Call() as made]), op=ast.Mult(), right=count
            ) if number(count) != 1 and _makes_an_object(source, made):
                name = written(made.func)
                yield Hit(
                    node, f"`{name}(...)` is called once, so that all elements are one object"
                )
            case _:
                pass


def _makes_an_object(source: Source, call: ast.Call) -> bool:
    """Return whether a call makes a network, an environment or a buffer that changes later."""
    name = source.dotted(call.func)
    last = name.rpartition(".")[2]
    own = {node.name for node in source.nodes if isinstance(node, ast.ClassDef)}
    is_module = name.startswith("torch.nn.") and last[:1].isupper() and last not in STATELESS
    is_env = name in ("gymnasium.make", "gymnasium.vector.make")
    return last in own or is_module or is_env or last in ("deque", "deepcopy")


STATELESS = ("ReLU", "Tanh", "Sigmoid", "ELU", "LeakyReLU", "GELU", "SiLU", "Softplus", "Identity")

RULES = (
    Rule(
        "L59",
        "an observation is overwritten after it was returned",
        "The environment returns its own array and writes the next frame into it: in a replay, "
        "`obs` and `next_obs` are the same array, and all stored ones change with it.",
        "Return a copy: `return self.stack.copy(), reward, ...`.",
        "a common mistake in own frame stacks",
        _shared_arrays,
    ),
    Rule(
        "L60",
        "a list holds one object several times",
        "`[f()] * n` calls f once: networks that should differ share their weights, and each "
        "optimiser moves all of them.",
        "Write `[f() for _ in range(n)]`.",
        "Python's documentation, Sequence Types, note 2",
        _repeated_objects,
    ),
)
