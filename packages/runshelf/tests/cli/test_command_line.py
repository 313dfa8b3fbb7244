"""What a command line means before a command begins: which words are options, which values."""

import io

import pytest

from runshelf.cli.main import main
from runshelf.errors import UsageError
from runshelf.worklog.notes import read_notes


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("number", ["-159", "-1230.7", "-.5", "-1e5"])
def test_a_negative_number_is_the_value_of_an_option(number, capsys):
    line = ["register", "r", "--question", "q", "--metric", "return", "--n", "5"]
    line += ["--hypothesis", "h=p", "--failure-value", number]
    assert main([*line, "--json"]) == 0, capsys.readouterr().err
    assert f'"failure_value": {float(number)}' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-"], "from stdin"),
        (["- a list item"], "- a list item"),
        (["--", "-x", "--y"], "-x --y"),
        (["-5"], "-5"),
    ],
)
def test_a_word_that_begins_with_a_dash_can_be_a_text(words, text, home, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin"))
    assert main(["note", *words]) == 0, capsys.readouterr().err
    assert [note.text for note in read_notes(home)] == [text]


@pytest.mark.parametrize("word", ["-x", "-x=1 2", "--questoin=a text", "--runn"])
def test_a_mistyped_option_is_no_text(word, home, capsys):
    assert main(["note", word]) == UsageError.exit_status
    assert f"unknown option `{word.partition('=')[0]}` of runshelf note" in capsys.readouterr().err
