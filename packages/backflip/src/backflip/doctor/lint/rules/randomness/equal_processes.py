"""Processes and threads that all draw with one seed: a part of L18."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import own_function
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.randomness.equal_workers import (
    is_one_for_all,
    makes_others,
    numbered,
    seeds_of,
)
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Function,
    Source,
    argument,
    arguments,
    assignments,
    has_word,
    last_word,
    names_in,
    written,
)

STARTS = ("process", "thread")
SUBMITS = ("submit", "apply_async", "start_new_thread")
GENERATORS = ("numpy.random.default_rng", "numpy.random.seed", "numpy.random.RandomState")
OF_PYTHON = ("random.seed", "random.Random")


def equal_processes(source: Source) -> Iterator[Hit]:
    """Find workers, started in a loop, that all seed their environments with one number."""
    for call, _ in source.calls():
        made = _started(call)
        worker = None if made is None else own_function(source, made)
        counters = _counters(source, call)
        if made is None or worker is None or not counters:
            continue
        own = numbered(worker, made, counters)
        seeds = [*seeds_of(source, worker), *_generators(source, worker)]
        if not any(counters & names_in(one) for one in arguments(made)):
            continue  # one that cannot tell workers apart may get its number elsewhere
        if makes_others(worker, own) or _seeds_by_number(worker, own):
            continue
        if seeds and all(is_one_for_all(seed, worker, own) for _, seed in seeds):
            first = min(seeds, key=lambda one: one[0].lineno)
            yield Hit(first[0], "every worker draws with the same seed")


def _started(call: ast.Call) -> ast.Call | None:
    """Return the call that `Process(target=f, args=(i, cfg))` or `pool.submit(f, i)` makes."""
    last = last_word(call.func)
    target, args = argument(call, "target", 1), argument(call, "args", 3)
    if last in STARTS and target is not None:
        if args is not None and not isinstance(args, ast.Tuple | ast.List):
            return None
        given = argument(call, "kwargs", 4)
        if given is not None:
            return None
        return ast.Call(target, [] if args is None else args.elts, [])
    if last in SUBMITS and call.args:
        return ast.Call(call.args[0], call.args[1:], call.keywords)
    return None


def _counters(source: Source, call: ast.Call) -> set[str]:
    """Return the names that differ from one turn to the next of the loops around a call."""
    found: set[str] = set()
    node: ast.AST = call
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        match node:
            case ast.ListComp(generators=loops):
                found |= {name for one in loops for name in names_in(one.target)}
            case ast.For(target=target):
                found |= names_in(target)
            case _:
                pass
        if isinstance(node, LOOPS):
            new = {written(one) for one, _, _ in assignments(node)} - {""}
            found |= new | {name.partition(".")[0] for name in new}
        node = source.parents[node]
    return found


def _generators(source: Source, worker: Function) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls that seed a generator of numpy or Python, and the seeds."""
    for call, name in source.calls(worker):
        if name in (*GENERATORS, *OF_PYTHON):
            seed = argument(call, "seed", 0)
            if seed is not None:
                yield call, seed


def _seeds_by_number(worker: ast.AST, own: set[str]) -> bool:
    """Return whether a call with `seed` in its name, or an argument `seed`, gets the number."""
    for call in ast.walk(worker):
        if isinstance(call, ast.Call):
            named = [one.value for one in call.keywords if has_word(one.arg or "", "seed")]
            given = arguments(call) if has_word(last_word(call.func), "seed") else named
            if any(own & names_in(one) for one in given):
                return True
    return False
