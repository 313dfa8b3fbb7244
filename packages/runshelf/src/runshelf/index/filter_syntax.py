"""The parser of filters and sort orders.

    filter  =  term (blank term)*                          all terms must hold
    term    =  [-] (word | key op value)                   - negates the term
    op      =  =  !=  <  <=  >  >=  ~                      ~ means contains

Words, keys and values may be in double quotes. In quotes, a backslash precedes a quote or a
backslash. Parsing takes time linear in the length of the text.
"""

import re
from typing import NamedTuple, final

from runshelf.errors import UsageError

LONGEST = 10_000
MOST_TERMS = 100
MOST_SORT_KEYS = 10
_OPERATORS = ("!=", "<=", ">=", "=", "<", ">", "~")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
# These match at every position, except where a quote is not closed.
_KEY = re.compile(rf'{_QUOTED}|(?!")(?:(?!!=)[^\s=<>~])*', re.DOTALL)
_VALUE = re.compile(rf'{_QUOTED}|(?!")\S*', re.DOTALL)
_SORT_KEY = re.compile(rf'{_QUOTED}|(?!")[^,]*', re.DOTALL)
_BLANKS = re.compile(r"\s*")
_QUOTES_HINT = 'put text with blanks in "quotes"'


@final
class Term(NamedTuple):
    """One condition of a filter.

    Attributes:
        key: the left side; empty for a word, which is searched in several fields.
        operator: the comparison; empty for a word.
        value: the right side, or the word.
        negated: whether the condition must not hold.
        position: position of its first character in the text, from 1.
    """

    key: str
    operator: str
    value: str
    negated: bool
    position: int


@final
class SortKey(NamedTuple):
    """One key of a sort order."""

    key: str
    descending: bool
    position: int


def parse_filter(text: str) -> list[Term]:
    """Return the terms of a filter.

    Raises:
        UsageError: the text is malformed; the message names the position.
    """
    _check_length(text, "filter")
    terms: list[Term] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        term, position = _term(text, position)
        terms.append(term)
        if len(terms) > MOST_TERMS:
            raise UsageError(f"the filter has more than {MOST_TERMS} terms: remove some")
        if position < len(text) and not text[position].isspace():
            raise _error("expected a space", text, position)
        position = _skip_blanks(text, position)
    return terms


def parse_sort(text: str) -> list[SortKey]:
    """Return the keys of a sort order such as `-created,lr`.

    Raises:
        UsageError: the text is malformed; the message names the position.
    """
    _check_length(text, "sort order")
    keys: list[SortKey] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        descending = text[position] == "-"
        key, end = _word(_SORT_KEY, text, position + descending)
        if not key:
            raise UsageError(f"no sort key at character {position + 1} of `{text}`: add one")
        keys.append(SortKey(key, descending, position + 1))
        position = _skip_blanks(text, end)
        if position < len(text) and text[position] != ",":
            raise UsageError(f"expected `,` at character {position + 1} of `{text}`")
        position = _skip_blanks(text, position + 1)
    if len(keys) > MOST_SORT_KEYS:
        raise UsageError(f"more than {MOST_SORT_KEYS} sort keys: remove some")
    return keys


def _term(text: str, start: int) -> tuple[Term, int]:
    """Return the term that begins at `start`, and the position after it."""
    negated = text[start] == "-"
    key, end = _word(_KEY, text, start + negated)
    operator = next((op for op in _OPERATORS if text.startswith(op, end)), "")
    if not operator:
        if not key:
            raise _error("expected a word" + (" after `-`" if negated else ""), text, end)
        return Term("", "", key, negated, start + 1), end
    if not key:
        raise UsageError(f"no key before `{operator}` at character {start + 1}: type lr{operator}1")
    end += len(operator)
    if end == len(text) or text[end].isspace():
        typed = f"{key}{operator}"[:60]
        hint = f'type {typed}VALUE without blanks, or {typed}""'
        raise _error(f"no value after `{typed}`", text, end, hint)
    value, end = _word(_VALUE, text, end)
    return Term(key, operator, value, negated, start + 1), end


def _word(pattern: re.Pattern[str], text: str, start: int) -> tuple[str, int]:
    """Return the word at `start` without its quotes, and the position after it."""
    found = pattern.match(text, start)
    if found is None:
        raise _error("a quote is not closed", text, start, 'type another `"`')
    word = found[0]
    if word.startswith('"'):
        return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL), found.end()
    return word.strip(), found.end()


def _skip_blanks(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def _check_length(text: str, what: str) -> None:
    if len(text) > LONGEST:
        raise UsageError(f"the {what} has {len(text):_} characters: the limit is {LONGEST:_}")


def _error(what: str, text: str, position: int, hint: str = _QUOTES_HINT) -> UsageError:
    if len(text) > 60:
        first = max(position - 30, 0)
        text = f"...{text[first : first + 60]}..."
    return UsageError(f"{what} at character {position + 1} of `{text}`: {hint}")
