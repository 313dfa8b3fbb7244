"""Rules of style that no linter has: what a call passes, and what a docstring promises."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).resolve().parents[1] / "packages"


def splatted_literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield `*(a, b)` and `**{"a": b}` in calls: they hide the names of the arguments."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            starred = [one.value for one in call.args if isinstance(one, ast.Starred)]
            yield from (one for one in starred if isinstance(one, (ast.Tuple, ast.List)))
            doubled = [one.value for one in call.keywords if one.arg is None]
            yield from (one for one in doubled if isinstance(one, ast.Dict))


def questions_without_truth(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield functions that say "Return whether" and return something other than a truth value."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.returns is None:
            continue
        promises = (ast.get_docstring(function) or "").startswith("Return whether")
        if promises and not _is_truth(ast.unparse(function.returns)):
            yield function


def _is_truth(annotation: str) -> bool:
    return any(word in annotation.lower() for word in ("bool", "any", "typeguard"))


@pytest.mark.medium
def test_no_file_breaks_a_rule() -> None:
    for path in PACKAGES.glob("*/src/**/*.py"):
        tree = ast.parse(path.read_text())
        for wrong in (splatted_literals, questions_without_truth):
            assert [f"{path}:{node.lineno}" for node in wrong(tree)] == [], wrong.__doc__


def test_the_rules_find_what_they_are_about() -> None:
    calls = ast.parse('f(*(1, 2), **{"a": 1})\nf(*rest, **options)')
    assert [node.lineno for node in splatted_literals(calls)] == [1, 1]
    text = 'def f() -> {}:\n    """Return whether it ends."""\n'
    assert [
        len(list(questions_without_truth(ast.parse(text.format(of))))) for of in ("str", "bool")
    ] == [1, 0]
