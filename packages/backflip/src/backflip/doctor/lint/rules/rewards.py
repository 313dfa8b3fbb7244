"""L14, L21: rewards and returns."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Scope,
    Source,
    argument,
    arguments,
    assignments,
    has_word,
    is_discount,
    is_false,
    last_word,
    names_in,
    number,
    unconverted,
    walk,
    written,
)
from backflip.doctor.lint.values import options, settings

REWARDS = ("reward", "rewards", "rew", "rews", "r")

NORMALISERS = {"VecNormalize": 6, "NormalizeReward": 1}  # and the place of `gamma`
DISCOUNT = "0.99"  # what normalisers and algorithms have by default
ERRORS = ("delta", "td_err", "rew")  # in names of what a return is summed from
SCALERS = ("norm", "scale", "running", "statistic")
# Names of what may be centred; only the order of fitness counts.
CENTRED = ("adv", "baseline", "zscore", "z_score", "rank", "fitness", "utilit")
FILLS = ("append", "insert", "appendleft")
PRODUCTS = ("dot", "matmul", "einsum", "tensordot")
DIRECTIONS = ("noise", "eps", "perturb", "direction", "mutation")
COMPARED = ("preference", "rlhf", "grpo", "rloo", "bradley")
REWARD_MODELS = ("model", "preference", "predict", "ensemble", "reward_net", "discriminator")
SHOWN = (
    *("print", "log", "debug", "info", "warning", "write", "format", "add_scalar", "add_histogram"),
    *("plot", "hist", "scatter", "bar", "boxplot", "fill_between", "title", "text", "set_title"),
)
SHOWN_OR_SPREAD = (*SHOWN, "abs", "square")


def _shifted_rewards(source: Source) -> Iterator[Hit]:
    if _is_about_preferences(source):
        return
    for scope in source.scopes:
        free = _from_a_model(scope) | _returns(source, scope)
        for node in walk(scope):
            match node:
                case ast.BinOp(left=left, op=ast.Sub(), right=mean):
                    pass
                case ast.AugAssign(target=left, op=ast.Sub(), value=mean):
                    pass
                case _:
                    continue
            if last_word(left) not in REWARDS or written(left) in free:
                continue
            shifted = _is_mean_of(mean, written(left)) or _is_standardised(source, node, mean)
            if shifted and _is_learned_from(source, scope, node):
                yield Hit(node, "the mean is subtracted from rewards")


def _is_standardised(source: Source, node: ast.AST, mean: ast.expr) -> bool:
    """Return whether code is `(reward - self.mean) / self.std`, with running statistics."""
    match source.parents[node]:
        case ast.BinOp(left=left, op=ast.Div(), right=spread) if left is node:
            words = " ".join(names_in(spread))
            return has_word(last_word(mean), "mean") and has_word(words, "std", "var", "sigma")
        case _:
            return False


def _is_mean_of(call: ast.expr, name: str) -> bool:
    """Return whether a value is `x.mean()` or `mean(x)`; not of groups, which are a baseline."""
    if not isinstance(call, ast.Call):
        return False
    if any(one.arg in ("dim", "axis", "keepdim", "keepdims") for one in call.keywords):
        return False
    own = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return last_word(call.func) == "mean" and name in (own, *map(written, call.args))


def _is_about_preferences(source: Source) -> bool:
    """Return whether a program compares answers or segments: a shift of all changes nothing."""
    defined = [getattr(body, "name", "") for body in source.bodies]
    return any(has_word(name, *COMPARED) for name in (*defined, *source.imports.values()))


def _from_a_model(scope: Scope) -> set[str]:
    """Return the names of rewards that a model says: it knows them up to a shift."""
    return {
        written(target)
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call)
        and has_word(f"{written(value.func)} {last_word(value.func)}", *REWARD_MODELS)
    } - {""}


def _returns(source: Source, scope: Scope) -> set[str]:
    """Return the names that hold discounted returns, whatever they are called."""
    sums = {
        written(target)
        for target, value, _ in assignments(scope)
        if _is_sum_of_later(value, last_word(target))
    }
    kept = {
        written(call.func.value)
        for call, _ in source.calls(scope)
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILLS
        if any(sums & names_in(one) for one in call.args)
    }
    return _renamed(scope, sums | kept | _made_by_discounting(scope)) - {""}


def _is_sum_of_later(value: ast.expr, name: str) -> bool:
    """Return whether a value is `reward + gamma * name`, also of `name[t + 1]`."""
    if not name or not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)):
        return False
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Mult)
        and name in map(last_word, ast.walk(one))
        and any(map(is_discount, names_in(one)))
        for one in ast.walk(value)
    )


def _made_by_discounting(scope: Scope) -> set[str]:
    """Return the names of what a function of discounts or returns gives."""
    return {
        written(target)
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call)
        and (
            has_word(last_word(value.func), "discount", "return", "to_go", "togo")
            or any(is_discount(written(one)) for one in arguments(value))
        )
    }


def _renamed(scope: Scope, names: set[str]) -> set[str]:
    """Return some names, and those of the same values in another type."""
    while True:
        more = {
            written(target)
            for target, value, _ in assignments(scope)
            if names & {written(unconverted(value))} - {""}
        }
        if more <= names:
            return names
        names = names | more


def _weighs_directions(scope: Scope, name: str) -> bool:
    """Return whether a value weighs the directions of a search, as evolution strategies do."""
    for node in walk(scope):
        match node:
            case ast.BinOp(op=ast.MatMult()):
                directions = True
            case ast.Call(func=func) if last_word(func) in PRODUCTS:
                directions = True
            case ast.BinOp(op=ast.Mult()):
                directions = has_word(" ".join(names_in(node)), *DIRECTIONS)
            case _:
                continue
        if directions and name in names_in(node):
            return True
    return False


def _is_learned_from(source: Source, scope: Scope, node: ast.AST) -> bool:
    """Return whether shifted rewards stay rewards: not a spread, an advantage or a picture."""
    while not isinstance(node, ast.stmt):
        node, inside = source.parents[node], node
        match node:
            case ast.FormattedValue() | ast.BinOp(op=ast.Pow()):
                return False
            case ast.Call(func=func) if inside is not func and last_word(func) in SHOWN_OR_SPREAD:
                return False
            case _:
                pass
    match node:
        case ast.Assign(targets=[target]):
            name = written(target)
            centred = has_word(name, *CENTRED) or _weighs_directions(scope, name)
            return not centred and not _is_only_shown(source, scope, name)
        case ast.Return():
            return not has_word(getattr(scope, "name", ""), *CENTRED)
        case _:
            return True


def _is_only_shown(source: Source, scope: Scope, name: str) -> bool:
    """Return whether a name is read, and only to print or to plot it."""
    read = [
        node
        for node in walk(scope)
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and written(node) == name
    ]
    return bool(read) and all(_is_shown(source, node) for node in read)


def _is_shown(source: Source, node: ast.AST) -> bool:
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
        if isinstance(node, ast.Call) and last_word(node.func) in SHOWN:
            return True
    return False


def _forward_returns(source: Source) -> Iterator[Hit]:
    for node in source.nodes:
        if not isinstance(node, ast.For) or not (_goes_forward(node.iter) or _counts_up(node)):
            continue
        backward, of_step = _backward_before(source, node), _of_the_step(node)
        for statement in walk(node):
            if not _is_recursion(statement, of_step) or _loop_of(source, statement) is not node:
                continue
            if _reads_backward(statement, node, backward) or _is_running(source, statement, node):
                continue
            seen = "the return is summed from the first reward on, not from the last"
            yield Hit(statement, seen)
    yield from _forward_scans(source)


def _loop_of(source: Source, node: ast.AST) -> ast.AST:
    """Return the innermost loop around a statement, or its function."""
    while not isinstance(node, (*LOOPS, *FUNCTIONS, ast.Module)):
        node = source.parents[node]
    return node


def _of_the_step(loop: ast.For) -> set[str]:
    """Return the names of a loop, and of errors and rewards that are computed from them."""
    found = names_in(loop.target)
    for target, value, _ in assignments(loop):
        if found & names_in(value) and has_word(last_word(target), *ERRORS):
            found.add(written(target))
    return found


def _forward_scans(source: Source) -> Iterator[Hit]:
    """Find `scan(body, 0.0, rewards)` without `reverse=True`, where body sums a return."""
    functions = {one.name: one for one in source.scopes if isinstance(one, ast.FunctionDef)}
    for call, name in source.calls():
        body, over = argument(call, "f", 0), argument(call, "xs", 2)
        if name != "jax.lax.scan" or body is None or over is None or _is_reversed(source, call):
            continue
        function = functions.get(written(body))
        scaled = has_word(getattr(source.function_of(call), "name", ""), *SCALERS)
        if function is None or scaled or not _starts_a_return(argument(call, "init", 1)):
            continue
        if not has_word(" ".join(names_in(over)), "reward", "rews"):
            continue
        match function.args.args, function.body:
            case [_, step], [*_, ast.Return(value=ast.Tuple(elts=[_, kept]))]:
                of_step = {step.arg} | _taken_from(function, step.arg)
            case _:
                continue
        for statement in walk(function):
            if _is_recursion(statement, of_step) and _sets(statement) & names_in(kept):
                yield Hit(call, "the return is summed from the first reward on: scan goes forward")


def _starts_a_return(init: ast.expr | None) -> bool:
    """Return whether a sum starts at 0, or at a value; what is kept from before is running."""
    match init:
        case ast.Call(func=func):
            return last_word(func) in ("zeros", "zeros_like") or number(init) == 0
        case ast.Name() | ast.Attribute():
            return has_word(last_word(init), "value", "last_val")
        case _:
            return number(init) == 0


def _is_reversed(source: Source, call: ast.Call) -> bool:
    """Return whether a scan goes from the last to the first, or may."""
    reverse, over = argument(call, "reverse", 4), argument(call, "xs", 2)
    if reverse is not None and not is_false(reverse):
        return True
    return over is not None and (
        _reverses(over) or bool(_backward_before(source, call) & names_in(over))
    )


def _taken_from(function: ast.FunctionDef, name: str) -> set[str]:
    """Return the names that a parameter is taken apart into, `reward, done = step`."""
    return {
        one
        for target, value, _ in assignments(function)
        if isinstance(target, ast.Tuple) and written(value) == name
        for one in names_in(target)
    }


def _sets(statement: ast.AST) -> set[str]:
    """Return the names that a statement sets."""
    return {written(one) for one in getattr(statement, "targets", [])} - {""}


def _goes_forward(node: ast.expr) -> bool:
    """Return whether a loop goes over rewards from the first to the last."""
    word = last_word(_without_enumerate(node))
    return has_word(word, "reward", "rews") and isinstance(
        _without_enumerate(node), ast.Name | ast.Attribute
    )


def _without_enumerate(node: ast.expr) -> ast.expr:
    """Return what a loop goes over; of `enumerate(x)`, x."""
    if isinstance(node, ast.Call) and last_word(node.func) == "enumerate" and node.args:
        return node.args[0]
    return node


def _backward_before(source: Source, loop: ast.For | ast.Call) -> set[str]:
    """Return the names that hold their values from the last to the first before a line."""
    backward: set[str] = set()
    for node in walk(source.function_of(loop)):
        if getattr(node, "lineno", 0) >= loop.lineno:
            continue
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="reverse"), args=[]):
                backward ^= {written(owner)}
            case ast.Assign(targets=[target], value=value):
                name = written(target)
                turned = _reverses(value) != bool(backward & names_in(value))
                backward = backward | {name} if turned else backward - {name}
            case _:
                pass
    return backward - {""}


def _reverses(value: ast.expr) -> bool:
    """Return whether an expression turns the order of something round."""
    for node in ast.walk(value):
        match node:
            case ast.Slice(step=step) if (number(step) or 0) < 0:
                return True
            case ast.Call(func=func) if last_word(func) in ("reversed", "flip", "flipud"):
                return True
            case _:
                pass
    return False


def _reads_backward(statement: ast.AST, loop: ast.For, backward: set[str]) -> bool:
    """Return whether rewards are read from the last on: a turned list, or `rewards[T - 1 - t]`."""
    over = _without_enumerate(loop.iter)
    if written(over) in backward or has_word(last_word(over), "revers", "backward", "flipped"):
        return True
    counted = names_in(loop.target)
    read = {statement, *(one for one in walk(loop) if _sets(one) & names_in(statement))}
    return any(
        isinstance(one, ast.Subscript)
        and (written(one) in backward or _counts_down(one.slice, counted))
        for part in read
        for one in ast.walk(part)
    )


def _counts_down(index: ast.expr, counted: set[str]) -> bool:
    """Return whether an index falls as a name rises."""
    for node in ast.walk(index):
        match node:
            case ast.BinOp(op=ast.Sub(), right=falling):
                pass
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=falling):
                pass
            case _:
                continue
        if counted & names_in(falling):
            return True
    return False


def _is_running(source: Source, statement: ast.AST, loop: ast.For) -> bool:
    """Return whether a sum is yielded, or only updates statistics: rewards are scaled by it."""
    own = {written(target) for target in getattr(statement, "targets", [])}
    updates, others = False, False
    for node in walk(loop):
        match node:
            case ast.Yield(value=value) if value is not None and own & names_in(value):
                return True
            case ast.Call(func=func, args=args) if any(own & names_in(one) for one in args):
                scales = last_word(func) == "update" or _gives_a_spread(source, node)
                updates, others = updates or scales, others or not scales
            case _:
                pass
    return updates and not others


def _gives_a_spread(source: Source, call: ast.Call) -> bool:
    """Return whether a call appends to a list that only a spread is computed of."""
    kept = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    read = [
        source.parents[node]
        for node in walk(source.function_of(call))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == kept
    ]
    used = [one for one in read if not (isinstance(one, ast.Attribute) and one.attr in FILLS)]
    return bool(used) and all(
        isinstance(one, ast.Call) and last_word(one.func) in ("std", "var") for one in used
    )


def _counts_up(loop: ast.For) -> bool:
    """Return whether a loop counts up, and keeps a sum for each step."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]):
            return any(_keeps(node, names_in(loop.target)) for node in walk(loop))
        case _:
            return False


def _keeps(node: ast.AST, counted: set[str]) -> bool:
    """Return whether code adds to a list, or sets the place of a step: `returns[t] = R`."""
    if isinstance(node, ast.Call):
        return last_word(node.func) in ("append", "insert")
    return any(
        isinstance(target, ast.Subscript) and bool(counted & names_in(target.slice))
        for target in getattr(node, "targets", [])
    )


def _is_recursion(statement: ast.AST, rewards: set[str]) -> bool:
    """Return whether a statement is `R = reward + gamma * R`, with names of the loop."""
    match statement:
        case ast.Assign(targets=targets, value=ast.BinOp(op=ast.Add()) as value):
            own = {one.id for one in targets if isinstance(one, ast.Name)}
            discounted = any(
                isinstance(one, ast.BinOp)
                and isinstance(one.op, ast.Mult)
                and own & names_in(one)
                and any(map(is_discount, names_in(one)))
                for one in ast.walk(value)
            )
            return bool(rewards & names_in(value)) and discounted
        case _:
            return False


def _two_discounts(source: Source) -> Iterator[Hit]:
    """Compare the discount of a normaliser of rewards with that of the algorithm."""
    normalisers: list[tuple[ast.Call, int]] = []
    algorithms: list[ast.Call] = []
    for call, name in source.calls():
        last = name.rpartition(".")[2]
        if last in NORMALISERS:
            normalisers.append((call, NORMALISERS[last]))
        elif name.startswith("stable_baselines3") and last.isupper():
            algorithms.append(call)
    if len(normalisers) != 1 or len(algorithms) > 1:
        return
    (call, place), given = normalisers[0], options(source, normalisers[0][0])
    if given is None or is_false(given.get("norm_reward")):
        return
    own = given.get("gamma") or argument(call, "gamma", place)
    scaled, learned = _as_text(own), _learned_discount(source, algorithms, own is not None)
    if learned and scaled != learned:
        seen = f"rewards are normalised with γ = {scaled}, and learned with γ = {learned}"
        yield Hit(call, seen)


def _learned_discount(source: Source, algorithms: list[ast.Call], given: bool) -> str:
    """Return the discount of an algorithm as it is written; empty for one that cannot be seen.

    Of a program without an algorithm of Stable-Baselines3, it is the option `gamma`: that is
    compared with a normaliser that is given none.
    """
    if algorithms:
        found = options(source, algorithms[0])
        return "" if found is None else _as_text(found.get("gamma"))
    option = settings(source).get("gamma")
    return "" if given or number(option) is None else _as_text(option)


def _as_text(node: ast.expr | None) -> str:
    return DISCOUNT if node is None else ast.unparse(node)


RULES = (
    Rule(
        "L14",
        "rewards are shifted",
        "Subtracting a constant changes what it is worth to stay alive: if episodes can end early, "
        "it can become best to end them.",
        "Divide rewards by a scale, and subtract nothing. Advantages and returns may be centred.",
        "Schulman 2017, Nuts and bolts: `scale and don't shift`",
        _shifted_rewards,
    ),
    Rule(
        "L21",
        "returns are summed forwards",
        "Each return then holds the rewards before it, not those after it: actions are credited "
        "with what they did not cause.",
        "Go backwards: `for reward in reversed(rewards): R = reward + gamma * R`, and reverse "
        "the list of returns.",
        "RLMutation, arXiv:2301.05651, operator NR",
        _forward_returns,
    ),
    Rule(
        "L22",
        "two discounts",
        "The normaliser scales rewards by the spread of returns with another horizon, so that "
        "targets are larger or smaller than it promises.",
        "Give `VecNormalize` or `NormalizeReward` the `gamma` of the algorithm.",
        "SB3, documentation of VecNormalize",
        _two_discounts,
    ),
)
