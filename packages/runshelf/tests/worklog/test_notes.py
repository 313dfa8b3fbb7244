"""Notes: four Markdown files that programs and people write."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import done

from runshelf.cli.main import main
from runshelf.errors import UsageError, UserFacingError
from runshelf.store.run import open_run
from runshelf.worklog import notes
from runshelf.worklog.note_text import as_markdown, read_markdown
from runshelf.worklog.notes import (
    expected_next,
    matching_notes,
    open_notes,
    read_notes,
    write_note,
)

EVIL = [
    "<script>alert(1)</script>",
    "## 2026-01-01 10:00 · aaaaaa\n\nfake",
    "\\## 2026-01-01 twice",
    "a\r\nb\rc",
    "\x1b[31mred\x07\x00\u202etxt\u2028",
    "x" * 5000,
    "```\nopen fence",
    "# title\n## plain heading",
    "Ångström 日本語 🤖",
]


@pytest.mark.medium
@pytest.mark.parametrize("text", EVIL)
def test_any_text_is_read_as_written_and_forges_no_note(tmp_path: Path, text: str) -> None:
    write_note(tmp_path, "ideas", "before")
    made = write_note(tmp_path, "ideas", text)
    write_note(tmp_path, "ideas", "after")
    before, found, after = read_notes(tmp_path)
    assert (before.text, after.text) == ("before", "after")
    assert found == made
    assert not set(notes.path_of(tmp_path, "ideas").read_text()) & set("\x1b\x07\x00\u202e\u2028\r")
    if "\x1b" not in text and "\r" not in text:
        assert found.text == text


def test_a_note_has_its_run_its_commit_and_what_is_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    monkeypatch.chdir(tmp_path)
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    run = open_run(done(tmp_path, points=3))
    note = write_note(tmp_path, "work", "fixed the mask", expected="return above 100", run=run)
    assert (note.run, note.expected) == (run.short, "return above 100")
    assert len(note.commit) == 12
    assert head.stdout.startswith(note.commit)


def test_a_file_edited_by_hand_is_still_read(tmp_path: Path) -> None:
    write_note(tmp_path, "work", "first")
    path = notes.path_of(tmp_path, "work")
    by_hand = (
        "loose words\r\n\r\n## 2026-03-29\r\nno clock\r\n## Not a date\r\nstill the same\r\n"
        "## 2026-11-26T09:00 -0530 · run 7QK4D1M2\r\nwest\r\n## 2026-99-99\r\nno such day"
    )
    path.write_text(f"{path.read_text()}\n{by_hand}", newline="")
    write_note(tmp_path, "work", "last")
    texts = [note.text for note in read_notes(tmp_path)]
    assert sorted(texts) == sorted(
        [
            "first\n\nloose words",
            "no clock\n## Not a date\nstill the same",
            "west",
            "no such day",
            "last",
        ]
    )
    west = next(note for note in read_notes(tmp_path) if note.text == "west")
    assert west.run == "7QK4D1M2"
    assert west.time == datetime.fromisoformat("2026-11-26T14:30+00:00").timestamp()


@pytest.mark.parametrize("offset", ["+05:30", "-03:00", "+00:00"])
def test_the_time_of_a_note_is_exact_in_every_zone(offset: str) -> None:
    moment = datetime.fromisoformat(f"2026-11-26T10:12:05{offset}")
    (note,) = read_markdown("ideas", "## 2026-11-26 00:00 · abcdef\n\nx")
    (found,) = read_markdown("ideas", as_markdown(note, moment))
    assert found.time == moment.timestamp()
    assert found.id == "abcdef"


@pytest.mark.medium
def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom runshelf.worklog.notes import write_note\n"
        "for n in range(12): write_note(Path(sys.argv[1]), 'ideas', f'{sys.argv[2]} {n} ' * 50)"
    )

    def write(name: str) -> int:
        words = [sys.executable, "-c", program, str(tmp_path), name]
        return subprocess.run(words, check=False, cwd=tmp_path).returncode

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(write, "abc")) == [0, 0, 0]
    found = [note.text.strip() for note in read_notes(tmp_path)]
    assert sorted(found) == sorted(
        (f"{name} {n} " * 50).strip() for name in "abc" for n in range(12)
    )


def test_an_editor_that_replaces_the_file_meanwhile_loses_no_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_note(tmp_path, "ideas", "old")
    path, opened = notes.path_of(tmp_path, "ideas"), notes.open_in_place
    saves = iter([True])

    def opened_before_a_save(folder: Path, name: str, *, appends: bool) -> int:
        descriptor = opened(folder, name, appends=appends)
        if next(saves, False):
            other = tmp_path / "saved.md"
            other.write_text(path.read_text() + "\nedited\n")
            other.replace(path)
        return descriptor

    monkeypatch.setattr(notes, "open_in_place", opened_before_a_save)
    write_note(tmp_path, "ideas", "new")
    assert [note.text for note in read_notes(tmp_path)] == ["old\n\nedited", "new"]


def test_a_full_disk_leaves_no_part_of_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_note(tmp_path, "ideas", "whole")
    path = notes.path_of(tmp_path, "ideas")
    before, write = path.read_bytes(), os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) > 30:
            return write(descriptor, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(UserFacingError, match="no space left"):
        write_note(tmp_path, "ideas", "a note that is cut off")
    monkeypatch.undo()
    assert path.read_bytes() == before


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine\n")
    (tmp_path / "worklog").mkdir()
    notes.path_of(tmp_path, "ideas").symlink_to(outside)
    with pytest.raises(UserFacingError):
        write_note(tmp_path, "ideas", "x")
    assert outside.read_text() == "mine\n"


@pytest.mark.medium
def test_what_is_open(tmp_path: Path) -> None:
    puzzle = write_note(tmp_path, "confusions", "why is the entropy flat?")
    other = write_note(tmp_path, "confusions", "and the loss?")
    write_note(tmp_path, "confusions", "the mask was wrong", answers=puzzle.id)
    found = read_notes(tmp_path)
    assert [note.id for note in open_notes(found, "confusions")] == [other.id]
    first = write_note(tmp_path, "work", "a", expected="b")
    second = write_note(tmp_path, "work", "c", expected="d")
    assert [note.id for note in expected_next(read_notes(tmp_path))] == [second.id] != [first.id]
    write_note(tmp_path, "work", "done", answers=second.id)
    assert expected_next(read_notes(tmp_path)) == []


def test_search_needs_all_words_in_any_case(tmp_path: Path) -> None:
    write_note(tmp_path, "ideas", "Reward SCALE is off")
    write_note(tmp_path, "work", "reward clipped")
    found = read_notes(tmp_path)
    assert [note.log for note in matching_notes(found, ["reward", "scale"])] == ["ideas"]
    assert len(matching_notes(found, ["reward"])) == 2


def test_secrets_of_the_environment_are_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef0123")
    note = write_note(tmp_path, "ideas", "used 0123456789abcdef0123")
    assert "0123456789abcdef0123" not in notes.path_of(tmp_path, "ideas").read_text()
    assert note.text.startswith("used ")


@pytest.mark.parametrize(
    ("log", "text", "says"),
    [
        ("idea", "x", "did you mean `ideas`"),
        ("ideas", "  \n ", "empty"),
        ("ideas", "x" * 100_001, "at most 100,000"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path: Path, log: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        write_note(tmp_path, log, text)
    assert not (tmp_path / "worklog").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = open_run(done(tmp_path, points=3, question="does it learn?"))

    def call(*words: str) -> dict[str, object]:
        assert main(["note", "--home", str(tmp_path), "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    before = time.time() - 1
    made = call("it", "does", "--answers", run.ulid)
    assert (made["log"], made["run"], made["answers"]) == ("runs", run.short, run.short)
    assert isinstance(made["time"], float)
    assert made["time"] >= before
    assert call("an idea", "--log", "ideas", "--run", "latest")["run"] == run.short
    assert call("--search", "idea")["total"] == 1
    assert call("--run", run.short)["total"] == 2
    assert main(["note", "--home", str(tmp_path), "x", "--answers", "zzzzzz"]) == 2
    assert "there is no note `zzzzzz`" in capsys.readouterr().err
    assert main(["note", "--home", str(tmp_path)]) == 0
    assert "it does" in capsys.readouterr().out
