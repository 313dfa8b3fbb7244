"""`backflip lint`: every rule on programs with and without its mistake, and odd input."""

import ast
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages.backflip.tests.doctor.lint_samples import MISTAKES, RIGHT, SAMPLES, Sample

from backflip.cli.main import main
from backflip.doctor.lint.files import LARGEST_FILE, lint, lint_text
from backflip.doctor.lint.registry import RULES
from backflip.doctor.lint.report import in_words
from backflip.doctor.lint.source import number

ROOT = Path(__file__).parents[4]
PATH = Path("train.py")


def lines(text: str, rule: str = "") -> list[tuple[str, int]]:
    """Return the rule and the line of each finding."""
    found = [(one.rule.id, one.line) for one in lint_text(PATH, text)]
    return [one for one in found if one[0] == rule] if rule else found


@pytest.mark.medium
@pytest.mark.parametrize("sample", MISTAKES, ids=str)
def test_a_rule_finds_its_mistake_where_it_is_and_no_other_rule_does(sample: Sample) -> None:
    assert sample.marked, "no line has the mark `# here`"
    assert lines(sample.text) == [(sample.rule, line) for line in sample.marked]


@pytest.mark.parametrize("sample", RIGHT, ids=str)
def test_no_rule_finds_anything_in_a_right_program(sample: Sample) -> None:
    assert lines(sample.text) == []


def test_every_rule_has_samples_and_an_id_of_its_own() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == [f"L{number:02}" for number in range(1, len(ids) + 1)]
    for samples in (MISTAKES, RIGHT):
        assert sorted({sample.rule for sample in samples}) == ids


@pytest.mark.slow
def test_our_own_programs_have_no_findings() -> None:
    linted = lint([ROOT / "packages" / "backflip" / "src", ROOT / "benchmarks"])
    assert [(one.path.name, one.line, one.rule.id) for one in linted.findings] == []
    assert linted.files > 200
    assert linted.unread == []


def test_progress_is_the_share_of_programs_that_are_done(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    told: list[tuple[str, float]] = []
    lint([tmp_path], on_progress=lambda what, share: told.append((what, share)))
    assert told == [("reading programs", share) for share in (0.0, 0.25, 0.5, 0.75)]


def test_a_line_is_left_out_with_a_reason_and_only_with_one() -> None:
    bad = "eps = 1.0\neps *= 1.1{}\n"
    assert lines(bad.format("")) == [("L12", 2)]
    assert lines(bad.format("  # rl: ignore[L12] a test of exploration")) == []
    assert lines(bad.format("  # rl: ignore[L11, L12] a test")) == []
    assert lines(bad.format("  # rl: ignore[L12]")) == [("L12", 2)]
    assert lines(bad.format("  # rl: ignore[L11] another rule")) == [("L12", 2)]


@pytest.mark.parametrize("end", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_lines_are_those_of_python(end: str, tmp_path: Path) -> None:
    text = f"# one{end}\neps = 1.0\neps *= 1.1  # rl: ignore[L12] a test\neps *= 1.2\n"
    assert lines(text) == [("L12", 4)]
    assert lines(text.replace("\n", "\r\n")) == [("L12", 4)]
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    assert "\n    eps *= 1.2\n" in in_words(lint([tmp_path]))


def test_a_comment_that_leaves_nothing_out_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("eps = 1.0\neps *= 1.1  # rl: ignore L12\neps *= 1.2\n")
    said = in_words(lint([tmp_path]))
    assert said.count("write `# rl: ignore[L12]` and a reason") == 1


def test_what_cannot_be_read_is_named_and_the_rest_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff\xfe'\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "deep.py").write_text("x = " + "(" * 5_000 + ")" * 5_000)
    (tmp_path / "large.py").write_text("#" * (LARGEST_FILE + 1))
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "good.py").write_text("eps = 1.0\neps *= 1.1\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "other.py").write_text("eps = 1.0\neps *= 1.1\n")
    assert main(["lint", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(Path(one["file"]).name, one["line"]) for one in found["findings"]] == [("good.py", 2)]
    assert found["files"] == 2
    assert len(found["unread"]) == 5
    for name in ("broken", "bytes", "null", "deep", "large"):
        assert any(f"{name}.py" in why and "\n" not in why for why in found["unread"]), name
    assert not any("None" in why or why.endswith(": ") for why in found["unread"])


def test_the_command_says_what_why_and_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text("eps = 1.0\neps *= 1.1\neps *= 1.2\n")
    assert main(["lint", str(file)]) == 1
    said = capsys.readouterr().out
    title = f"{file}:2:1: L12 epsilon grows, or stays large"
    assert f"{title}\n    eps *= 1.1\n  seen: ε is multiplied by 1.1" in said
    assert said.count("  fix:  Multiply by a factor below 1") == 1
    assert said.endswith("2 findings in 1 program\n")
    assert main(["lint", str(file), "--ignore", "L12"]) == 0
    assert capsys.readouterr().out == "no mistake found in 1 program\n"
    assert main(["lint", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(RULES)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "missing: FILE"),
        (["nothing.py"], "`nothing.py` does not exist"),
        ([f"{'x' * 300}.py"], "xxx.py` does not exist"),
        (["README.md"], "is not a Python program"),
        (["README.md", "--select", "L1"], "there is no rule `L1`"),
    ],
)
def test_wrong_arguments_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["lint", *words]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


def test_a_syntax_error_names_the_python_that_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text("x = 1\ntype X = = int\n")
    assert main(["lint", str(file)]) == 1
    said = capsys.readouterr().out
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert (
        f"line 2: invalid syntax; this is Python {running}, and newer syntax may be the reason"
        in said
    )
    assert "<unknown>" not in said
    file.write_text("if x:\ny = 1\n")
    assert main(["lint", str(file)]) == 1
    assert "this is Python" not in capsys.readouterr().out


@pytest.mark.parametrize("names", [[], ["notes.txt"], [".venv/train.py"], ["site-packages/a.py"]])
def test_a_folder_without_a_program_is_an_error(
    names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    assert main(["lint", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert f"`{tmp_path}` holds no Python program (.py)" in message
    assert message.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_an_error_and_is_not_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "train.py"
    os.mkfifo(pipe)
    (tmp_path / "other.py").write_text("x = 1\n")
    assert main(["lint", str(tmp_path)]) == 0
    opened: list[Path] = []
    monkeypatch.setattr("backflip.doctor.lint.files.read", lambda path: opened.append(path) or "")
    assert main(["lint", str(pipe)]) == 2
    assert opened == []
    message = capsys.readouterr().err
    assert "is neither a file nor a folder" in message
    assert message.count("\n") == 1


@pytest.mark.medium
@given(st.data())
def test_cut_and_mixed_programs_never_break_a_rule(data: st.DataObject) -> None:
    """Statements of all samples in any order: still Python, and mostly nonsense."""
    chosen = data.draw(st.lists(st.sampled_from(SAMPLES), min_size=1, max_size=3))
    text = "\n".join(sample.text for sample in chosen)
    assert all(one.line <= text.count("\n") + 1 for one in lint_text(PATH, text))


@pytest.mark.medium
def test_a_name_that_comes_by_many_ways_is_followed_once():
    """Twelve calls at each of eight levels are 430 million ways: it would not end."""
    levels = [f"def f{level}(name):\n" + f"    f{level + 1}(name)\n" * 12 for level in range(8)]
    last = "def f8(name):\n    return gym.make(name)\n"
    assert lint_text(Path("x.py"), "import gymnasium as gym\n" + "".join(levels) + last) == []


@pytest.mark.medium
def test_a_power_that_is_too_large_for_a_float_is_no_number():
    assert number(ast.parse("2.0 ** 5000", mode="eval").body) is None
    assert number(ast.parse("0.5 ** 5000", mode="eval").body) == 0.0
    assert number(ast.parse("7 // 2 + 7 % 4", mode="eval").body) == 6.0
