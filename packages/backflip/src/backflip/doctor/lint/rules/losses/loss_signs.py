"""L26: losses that lower what they should raise."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.mixed_states import ACTORS, CRITICS
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Scope,
    Source,
    assignments,
    has_word,
    last_word,
    names_in,
    number,
    walk,
    written,
)

# Functions and methods that keep a sign.
REDUCED = ("mean", "sum", "squeeze", "flatten", "reduce_mean", "reduce_sum")
STACKS = ("stack", "cat", "concatenate")
SMALLEST = ("min", "minimum")
LARGEST = ("max", "maximum")
LIKELIHOODS = ("log_prob", "logprob", "logp", "log_pi", "logpi", "ratio")
CREDITS = ("advantage", "adv", "gae", "returns", "td_error", "delta", "rewards_to_go")
# In names of what has the other sign, or another meaning.
NEGATIVE = ("neg", "nll", "minus", "cost", "loss")
OTHER_ENTROPIES = ("cross", "target", "max", "min", "relative", "kl", "coef", "weight", "beta")
POLICIES = ("actor", "policy", "pi_loss")
PARTS = ("policy", "actor", "pg", "surr", "critic", "value", "vf", "ppo", "clip")

Values = Mapping[str, Sequence[ast.expr]]


class Term(NamedTuple):
    """A part of a sum: its sign, 1 or -1, and the factors that it is a product of."""

    sign: int
    factors: list[ast.expr]


def _loss_signs(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        values: dict[str, list[ast.expr]] = {}
        for target, value, _ in assignments(scope):
            values.setdefault(written(target), []).append(value)
        for name, value in appended(scope):
            values.setdefault(name, []).append(value)
        turned = _with_parts(_turned(scope), values)
        for name, value, statement in losses(source, scope):
            if name in turned:
                continue
            parts = list(terms(value, _sign_of(statement)))
            if any(_takes_the_larger(one, values) for one in parts):
                yield Hit(statement, "the larger of two surrogates is taken, so nothing is clipped")
            elif any(_raises_temperature(one) for one in parts):
                yield Hit(statement, "the temperature rises where the entropy is above its target")
            elif any(_raises_credit(one, values) for one in parts):
                yield Hit(statement, "the loss falls where actions with an advantage get rarer")
            elif _lowers_entropy(parts, values):
                yield Hit(statement, "the entropy is added to the loss, so the policy loses it")
            elif has_word(name, *POLICIES) and len(parts) == 1 and _raises_value(parts[0], values):
                yield Hit(statement, "the loss falls where the critic thinks less of the action")
        for node in walk(scope):
            if isinstance(node, ast.Assign | ast.Return) and _adds_likelihood(node, values):
                yield Hit(
                    node, "the entropy is subtracted from the target: `-log_prob` is positive"
                )


def losses(source: Source, scope: Scope) -> Iterator[tuple[str, ast.expr, ast.stmt | ast.expr]]:
    """Yield the names, values and statements of losses, those that a function returns too.

    A function whose result the program negates is left out.
    """
    for target, value, statement in assignments(scope):
        if has_word(last_word(target), "loss"):
            yield written(target), value, statement
    name = getattr(scope, "name", "")
    if not isinstance(scope, FUNCTIONS) or not has_word(name, "loss"):
        return
    if any(name in _turned(one) for one in source.scopes):
        return
    for node in walk(scope):
        if isinstance(node, ast.Return) and node.value is not None:
            yield name, node.value, node


def _turned(scope: Scope) -> set[str]:
    """Return the names that a scope negates or subtracts; all of them if an optimiser maximises."""
    found: set[str] = set()
    for node in walk(scope):
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=inner) | ast.BinOp(op=ast.Sub(), right=inner):
                found |= names_in(inner)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                if any((number(one) or 0.0) < 0 for one in (left, right)):
                    found |= names_in(node)
            case ast.AugAssign(op=ast.Sub(), value=inner):
                found |= names_in(inner)
            case ast.keyword(arg="maximize"):
                found |= {written(one) for one in walk(scope)}
            case _:
                pass
    return found


def _with_parts(names: set[str], values: Values) -> set[str]:
    """Return some names, and those that their values are made from, in any number of steps."""
    while True:
        parts = {part for name in names for one in values.get(name, ()) for part in names_in(one)}
        if parts <= names:
            return names
        names = names | parts


def _sign_of(statement: ast.AST) -> int:
    is_subtracted = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Sub)
    return -1 if is_subtracted else 1


def terms(node: ast.expr, sign: int = 1) -> Iterator[Term]:
    """Yield the terms of a sum, also those inside of a mean."""
    match _unreduced(node):
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            yield from terms(inner, -sign)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from terms(left, sign)
            yield from terms(right, sign)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield from terms(left, sign)
            yield from terms(right, -sign)
        case plain:
            product = _product(plain)
            yield product._replace(sign=sign * product.sign)


def _product(node: ast.expr) -> Term:
    """Return the factors of a product, without numbers."""
    match _unreduced(node):
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            found = _product(inner)
            return found._replace(sign=-found.sign)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = _product(left), _product(right)
            return Term(one.sign * other.sign, one.factors + other.factors)
        case ast.BinOp(left=left, op=ast.Div()):
            return _product(left)
        case plain:
            value = number(plain)
            return Term(1, [plain]) if value is None else Term(-1 if value < 0 else 1, [])


def _unreduced(node: ast.expr) -> ast.expr:
    """Return what a mean or a sum is of: x of `x.mean()` and of `torch.mean(x, dim=0)`."""
    while isinstance(node, ast.Call) and last_word(node.func) in REDUCED:
        of_method = not node.args or number(node.args[0]) is not None
        if not of_method:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            break
    return node


def _takes_the_larger(term: Term, values: Values) -> bool:
    """Return whether a term is `-max(ratio * advantage, clipped * advantage)`.

    The smaller one of two that have a minus is the same.
    """
    match term.factors:
        case [ast.Call(args=[one, other]) as call] if last_word(call.func) in LARGEST:
            sign = 1
        case [ast.Call(args=[one, other]) as call] if last_word(call.func) in SMALLEST:
            sign = -1
        case _:
            return False
    return term.sign == -sign and all(_is_surrogate(part, values, sign) for part in (one, other))


def _raises_temperature(term: Term) -> bool:
    """Return whether a term is `log_alpha * (log_prob + target_entropy)`, with this sign."""
    if term.sign < 0 or len(term.factors) != 2:
        return False
    for alpha, gap in (term.factors, term.factors[::-1]):
        plain = _undetached(gap)
        if has_word(written(alpha), "alpha") and isinstance(plain, ast.BinOp):
            names = [*map(written, (plain.left, plain.right))]
            logs = any(has_word(one, *LIKELIHOODS) for one in names)
            return isinstance(plain.op, ast.Add) and logs and any("entropy" in x for x in names)
    return False


def _raises_value(term: Term, values: Values) -> bool:
    """Return whether a term is `critic(obs, actor(obs))`, or `q(obs, policy(obs))`."""
    match term.factors:
        case [ast.Call(func=func, args=[_, action])]:
            is_critic = has_word(last_word(func), *CRITICS) or last_word(func) in ("q", "q1")
            return term.sign > 0 and is_critic and _is_of_actor(action, values)
        case _:
            return False


def _is_of_actor(action: ast.expr, values: Values) -> bool:
    """Return whether an action, or what its one name is set to, is a call of the actor."""
    match action:
        case ast.Call(func=acts):
            return has_word(last_word(acts), *ACTORS)
        case ast.Name(id=name):
            known = values.get(name, ())
            return len(known) == 1 and isinstance(known[0], ast.Call) and _is_of_actor(known[0], {})
        case _:
            return False


def _adds_likelihood(statement: ast.Assign | ast.Return, values: Values) -> bool:
    """Return whether a value is `min(q1, q2) + alpha * next_log_prob`."""
    if statement.value is None:
        return False
    for node in ast.walk(statement.value):
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.BinOp() as bonus):
                known = values.get(written(left), ())
                made = known[0] if len(known) == 1 else left
            case _:
                continue
        product = _product(bonus)
        names = [_name_of(one) for one in product.factors]
        is_entropy = len(names) == 2 and any(has_word(one, "alpha", "temperature") for one in names)
        logs = [one for one in product.factors if _is_named(one, LIKELIHOODS, values)]
        is_smaller = isinstance(made, ast.Call) and last_word(made.func) in SMALLEST
        if is_smaller and product.sign > 0 and is_entropy and len(logs) == 1:
            return True
    return False


def _undetached(node: ast.expr) -> ast.expr:
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="detach")):
            return inner
        case _:
            return node


def _raises_credit(term: Term, values: Values) -> bool:
    """Return whether a term is log π(a) or a ratio, times what the action was worth."""
    if term.sign < 0:
        return False
    match term.factors:
        case [ast.Call(args=[one, other]) as call] if last_word(call.func) in SMALLEST:
            return all(_is_surrogate(part, values) for part in (one, other))
        case factors:
            return _is_policy_gradient(factors, values)


def _is_surrogate(node: ast.expr, values: Values, sign: int = 1) -> bool:
    """Return whether an expression, or what its name is set to, is a ratio times an advantage.

    With a sign of -1, it is minus that.
    """
    known = [node, *values.get(written(node), ())]
    products = [_product(one) for one in known]
    return any(one.sign == sign and _is_policy_gradient(one.factors, values) for one in products)


def _is_policy_gradient(factors: Sequence[ast.expr], values: Values) -> bool:
    likely = [one for one in factors if _is_named(one, LIKELIHOODS, values)]
    worth = [one for one in factors if one not in likely and _is_named(one, CREDITS, values)]
    return len(likely) == 1 and len(worth) == 1


def _is_named(node: ast.expr, words: Sequence[str], values: Values) -> bool:
    """Return whether a factor has one of the words in its name, and surely its sign.

    It does not where the name, or what it is set to, says that it is negated, or is a difference
    the other way round: `value - return`.
    """
    last = _name_of(node)
    if not has_word(last, *words) or has_word(last, *NEGATIVE):
        return False
    return not any(map(_may_be_negative, values.get(written(_called(node)), ())))


def _name_of(node: ast.expr) -> str:
    """Return the last word of a name, of what is called, or of the ratio in `clamp(ratio, ...)`."""
    match node:
        case ast.Call(func=func, args=[first, *_]) if last_word(func) in ("clamp", "clip"):
            return _name_of(first)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach" | "item" | "clamp" | "clip")):
            return _name_of(inner)
        case ast.Call(func=func):
            return last_word(func)
        case _:
            return last_word(node)


def _called(node: ast.expr) -> ast.expr:
    """Return the name that a factor is made from: `adv` of `adv.detach()`."""
    while isinstance(node, ast.Call):
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return node


def _may_be_negative(value: ast.expr) -> bool:
    for node in ast.walk(value):
        match node:
            case ast.UnaryOp(op=ast.USub()):
                return True
            case ast.BinOp(left=left, op=ast.Sub()) if _is_prediction(left):
                return True
            case _:
                pass
    return any(has_word(name, *NEGATIVE) for name in names_in(value))


def _is_prediction(node: ast.expr) -> bool:
    last = _name_of(node)
    return has_word(last, "value", "baseline", "critic", "pred") or last in ("v", "q")


def _lowers_entropy(parts: Sequence[Term], values: Values) -> bool:
    """Return whether a sum of losses of a policy has its entropy with the sign +."""
    entropies = [one for one in parts if one.sign > 0 and _has_entropy(one, values)]
    others = [one for one in parts if one not in entropies]
    return bool(entropies) and any(
        has_word(name.rpartition(".")[2], *PARTS)
        for one in others
        for factor in one.factors
        for name in names_in(factor)
    )


def _has_entropy(term: Term, values: Values) -> bool:
    """Return whether a factor of a term is an entropy, and surely not minus one."""
    for factor in map(_unstacked, term.factors):
        last = _name_of(factor)
        known = values.get(written(factor), ())
        if not has_word(last, "entropy") and not any(map(_is_entropy, known)):
            continue
        if has_word(last, "neg", *OTHER_ENTROPIES):
            continue
        names = {name for one in known for name in map(last_word, ast.walk(one))}
        if has_word(last, "loss") and not any(has_word(name, "entropy") for name in names):
            continue  # it may be minus the entropy
        if not any(map(_has_minus, known)):
            return True
    return False


def appended(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of lists, and what is appended to them."""
    for node in walk(scope):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[one]):
                yield name, one
            case _:
                pass


def _unstacked(node: ast.expr) -> ast.expr:
    """Return the list that `torch.stack(entropies)` is made of; other code as it is."""
    match node:
        case ast.Call(func=func, args=[ast.Name() as inner, *_]) if last_word(func) in STACKS:
            return inner
        case _:
            return node


def _is_entropy(value: ast.expr) -> bool:
    """Return whether a value is `dist.entropy()`, or its mean."""
    plain = _unreduced(value)
    return isinstance(plain, ast.Call) and last_word(plain.func) == "entropy"


def _has_minus(value: ast.expr) -> bool:
    minus = (ast.USub, ast.Sub)
    return any(isinstance(getattr(one, "op", None), minus) for one in ast.walk(value))


RULES = (
    Rule(
        "L26",
        "the loss has the wrong sign",
        "Gradient descent lowers a loss: without a minus, actions that were good get rarer, or the "
        "policy becomes certain before it has learned.",
        "Write `-(log_prob * advantage).mean()`, and subtract the entropy: "
        "`policy_loss + c1 * value_loss - c2 * entropy`.",
        "Schulman et al. 2017, arXiv:1707.06347, equation 9; Williams 1992",
        _loss_signs,
    ),
)
