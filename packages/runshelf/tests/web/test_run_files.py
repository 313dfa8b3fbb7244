"""Listing of a run's files, pages of output, sanitized text."""

import os
import socket
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import print_to

from runshelf.web import run_files
from runshelf.web.pages.output_page import MOST_BYTES, page_after, page_before
from runshelf.web.sanitize import clean, sanitize


def test_pipes_and_sockets_are_listed_with_their_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a socket has a length limit
        listener.bind("socket")
    found, more = run_files.listed(tmp_path)
    assert [(item.path, item.kind) for item in found] == [("pipe", "pipe"), ("socket", "socket")]
    assert not more


@pytest.mark.attack
def test_listing_does_not_follow_links_and_is_limited(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    for n in range(30):
        (tmp_path / "a" / f"{n:02}").write_text("x")
    found, more = run_files.listed(tmp_path, most=10)
    assert (len(found), more) == (10, True)
    every, more = run_files.listed(tmp_path)
    assert {item.path for item in every if item.kind == "link"} == {"a/up"}
    assert (len(every), more) == (31, False)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).symlink_to("/dev/zero")])
def test_metrics_that_are_not_regular_files_are_not_read(tmp_path: Path, make: object) -> None:
    (tmp_path / "metrics-a.jsonl").write_text("{}")
    assert run_files.has_only_plain_metrics(tmp_path)
    make(tmp_path / "metrics-b.jsonl")  # type: ignore[operator]
    assert not run_files.has_only_plain_metrics(tmp_path)


# --- output --------------------------------------------------------------------------------------


def test_pages_of_output_lead_from_the_end_to_the_beginning(tmp_path: Path) -> None:
    print_to(tmp_path, [("out", f"line {n}") for n in range(1000)])
    pages, before = [], None
    while True:
        page = page_before(tmp_path, before)
        pages.insert(0, [line.text for line in page.lines])
        before = page.start
        if before == 0:
            break
    assert [line for page in pages for line in page] == [f"line {n}" for n in range(1000)]
    assert max(map(len, pages)) == 400


def test_new_output_is_read_from_the_last_position(tmp_path: Path) -> None:
    print_to(tmp_path, [("out", "one"), ("err", "two")])
    first = page_after(tmp_path, 0)
    assert [(line.stream, line.text) for line in first.lines] == [("out", "one"), ("err", "two")]
    with (tmp_path / "output.log").open("ab") as file:
        file.write(b"1.000\tout\t9\thal")
        file.flush()
        assert page_after(tmp_path, first.end).lines == []
        file.write(b"f\n")
    (line,) = page_after(tmp_path, first.end).lines
    assert (line.seconds, line.text) == ("1.000", "half")


def test_a_line_of_a_million_characters_is_cut_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_bytes(b"0.1\tout\t5\t" + b"x" * 1_000_000 + b"\n")
    text = "".join(line.text for line in page_before(tmp_path).lines)
    assert 4_000 <= len(text) < 5_000
    assert "more characters" in text
    position = 0
    for _ in range(10):
        position = page_after(tmp_path, position).end
    assert position == 1_000_011
    assert MOST_BYTES < 1_000_000


def test_a_log_in_another_format_is_shown_unchanged(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_bytes(b"\xff\xfe no tabs\n1\tout\tonly three\n")
    assert [line.text for line in page_before(tmp_path).lines] == [
        "�� no tabs",
        "1\tout\tonly three",
    ]


def test_without_a_log_there_are_no_lines(tmp_path: Path) -> None:
    assert page_before(tmp_path).lines == page_after(tmp_path, 5).lines == ()


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.attack
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil.example/\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b[2J\x1b[Hgone?", "gone?"),
        ("a\x1bPdevice\x1b\\b", "ab"),
        ("\x1b", ""),
        ("\x9b31mred", "red"),
        ("bell\x07", "bell�"),
        ("tab\tkept", "tab\tkept"),
        ("user\u202egnp.exe", "user⟨U+202E⟩gnp.exe"),
        ("<b>&", "<b>&"),
    ],
)
def test_text_is_sanitized(text: str, expected: str) -> None:
    assert sanitize(text) == expected


@pytest.mark.medium
@pytest.mark.parametrize("piece", ["\x1b]", "\x1b[", "\x1b[1;", "\x1bP", "\x1b]8;;", "\u202e"])
def test_sanitizing_takes_linear_time(piece: str) -> None:
    """A megabyte of unterminated sequences: quadratic time would never finish."""
    assert len(clean(piece * (1_000_000 // len(piece)))) < 50_000
    sanitize(piece * (1_000_000 // len(piece)))
