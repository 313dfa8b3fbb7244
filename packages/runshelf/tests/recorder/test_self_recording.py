"""Which command lines record their own runs."""

import sys

import pytest

from runshelf.recorder.self_recording import has_option, self_recording


@pytest.mark.parametrize(
    ("program", "is_own"),
    [
        ("backflip", True),
        ("/opt/env/bin/backflip", True),
        ("python -m backflip", True),
        ("/usr/bin/python3.12 -m backflip", True),
        ("python backflip.py", False),
        ("python -m other", False),
        ("python -m", False),
        ("echo backflip", False),
    ],
)
@pytest.mark.parametrize(
    ("command", "records"), [("train dot", True), ("teach dot", True), ("look dot", False)]
)
def test_a_command_line_that_records_itself_is_recognised(program, is_own, command, records):
    words = [*program.split(), *command.split()]
    found = self_recording(words)
    assert (found is not None) == (is_own and records)
    if found is not None:
        assert [*found.program, *found.arguments] == words
        assert " ".join(found.arguments) == command


@pytest.mark.parametrize(
    ("words", "has"),
    [("--home x", True), ("--home=x", True), ("--homes x", False), ("x", False), ("", False)],
)
def test_an_option_may_be_joined_to_its_value(words, has):
    assert has_option(words.split(), "--home") == has


def test_a_program_alone_is_no_recording():
    assert self_recording([sys.executable]) is None
    assert self_recording(["backflip"]) is None
