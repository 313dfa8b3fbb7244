"""Programs with their small functions put where they are called."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from backflip.doctor.lint.files import lint_text
from backflip.doctor.lint.inlining import inlined, place_of
from backflip.doctor.lint.source import Source

PROGRAM = """
import contextlib
no_grad = contextlib.nullcontext
SCALE = 3.0

def scaled(x, by=SCALE):
    y = x * by
    return y + 1

def pair(x, *, shift):
    y = scaled(x, 2)
    return x - shift, y

half = lambda z: z / 2

def largest(rows, x):
    y = x + 1
    return max(rows, key=lambda n: n * y)

class Sum:
    def __init__(self, first):
        self.total = first
    def add(self, x):
        "Add a number."
        y = scaled(x)
        self.total += y
    def mean(self, n):
        with no_grad():
            share = self.total / n
            return share
    def twice(self, n):
        return 2 * self.mean(n)

def run(y):
    kept = Sum(y)
    for x in range(4):
        kept.add(x)
        low, high = pair(x + y, shift=half(y))
        y = scaled(low) - half(high)
    n = kept.mean(5) + kept.twice(3)
    return y, n, kept.total, half(y) + half(n), largest([1.0, 3.0, 2.0], y - y)

print(*map(run, [7.0]))
"""


def whole(text: str) -> Source:
    found = inlined(Source(Path("program.py"), text))
    assert found is not None
    return found


def test_a_program_does_the_same_with_its_functions_put_elsewhere(tmp_path: Path) -> None:
    found = whole(PROGRAM)
    (run,) = (one for one in found.scopes if getattr(one, "name", "") == "run")
    called = {ast.unparse(one.func) for one in ast.walk(run) if isinstance(one, ast.Call)}
    assert called == {"Sum", "range", "no_grad", "max"}
    texts = {"as_written.py": PROGRAM, "inlined.py": ast.unparse(found.tree)}
    said = set[str]()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        command = [sys.executable, str(tmp_path / name)]
        said.add(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(said) == 1


def test_every_node_knows_its_place_in_the_text() -> None:
    found, lines = whole(PROGRAM), PROGRAM.splitlines()
    (run,) = (one for one in found.scopes if getattr(one, "name", "") == "run")
    places = {
        place_of(node)[0]
        for node in ast.walk(run)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    }
    assert {lines[at - 1].strip() for at in places} == {
        "y = x * by",
        "return 2 * self.mean(n)",
        "return max(rows, key=lambda n: n * y)",
    }
    first, last = run.lineno, run.end_lineno
    assert all(first <= one.lineno <= last for one in ast.walk(run) if hasattr(one, "lineno"))


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return f(x - 1)\ny = f(3)",
        "def f(*xs):\n    return xs\ny = f(1)",
        "def f(x):\n    if x:\n        return 1\n    return 2\ny = f(1)",
        "def f(x):\n    yield x\ny = f(1)",
        "def f(x):\n    return x\ny = [f(z) for z in range(3)]",
        "def f(x):\n    return x\ny = f(1, 2)",
        "def f(x):\n    return x\ny = f(**kept)",
        "def f(x):\n    return x\ndef f(x):\n    return -x\ny = f(1)",
        "@cache\ndef f(x):\n    return x\ny = f(1)",
        "import f\ny = f.g(1)\nclass A:\n    def g(self, x):\n        return x",
        "class A:\n    def g(self, x):\n        return x\nclass B:\n    def g(self, x):\n"
        "        return -x\ny = one.g(1)",
        "class Walk:\n    def step(self, action):\n        return action\ny = Walk().step(1)",
    ],
)
def test_what_cannot_be_put_elsewhere_stays(text: str) -> None:
    found = inlined(Source(Path("program.py"), text))
    assert found is None or ast.unparse(found.tree) == ast.unparse(ast.parse(text))


def test_results_of_steps_are_taken_apart() -> None:
    text = (
        "def play(env):\n    result = env.step(0)\n    return result[0], result[2] or result[3]\n"
        "def keep(env):\n    result = env.step(0)\n    print(result)\n    return result[0]\n"
    )
    found = ast.unparse(whole(text).tree)
    assert "result_0, result_1, result_2, result_3, result_4 = env.step(0)" in found
    assert "return (result_0, result_2 or result_3)" in found
    assert "return result[0]" in found


def test_a_mistake_is_said_where_it_is_written_and_can_be_left_out_there() -> None:
    text = (
        "import torch.nn.functional as F\n"
        "def scores(net, obs):\n"
        "    return F.softmax(net(obs), dim=-1)\n"
        "def loss(net, obs, actions):\n"
        "    return F.cross_entropy(scores(net, obs), actions)\n"
    )
    assert [(one.rule.id, one.line) for one in lint_text(Path("a.py"), text)] == [("L09", 5)]
    quiet = text.replace(", actions)\n", ", actions)  # rl: ignore[L09] measured\n")
    assert lint_text(Path("a.py"), quiet) == []
