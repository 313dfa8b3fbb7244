"""The words and the placeholders of command lines."""

import pytest

from runshelf.errors import UsageError
from runshelf.recorder.command_templates import filled, placeholders, unescaped, words_of


def test_placeholders_are_names_in_single_braces():
    words = ["a.py", "--lr={lr}", "{seed}", "{{seeds}}", "{1}", "{}", "x{a_1}y{b}"]
    assert placeholders(words) == {"lr", "seed", "a_1", "b"}


def test_a_word_is_filled_and_the_rest_stays():
    word = "{lr}/{unknown}/{{lr}}"
    assert filled(word, {"lr": "{seed}", "seed": "1"}) == "{seed}/{unknown}/{{lr}}"
    assert unescaped("{unknown}/{{lr}}") == "{unknown}/{lr}"


def test_two_rounds_of_values_do_not_fill_what_is_escaped():
    once = filled("{a} {{b}} {b}", {"a": "1"})
    assert unescaped(filled(once, {"b": "2"})) == "1 {b} 2"


def test_words_are_those_of_a_shell_that_does_nothing_else():
    command = "python 'a b.py' $(touch x) ; --seed {seed}"
    expected = ["python", "a b.py", "$(touch", "x)", ";", "--seed", "{seed}"]
    assert words_of(command, "it", "python") == expected


@pytest.mark.parametrize(("command", "why"), [("'a", "No closing quotation"), ("  ", "try 'b c'")])
def test_a_command_without_words_names_its_source(command, why):
    with pytest.raises(UsageError, match="`--command`.*" + why):
        words_of(command, "`--command`", "b c")
