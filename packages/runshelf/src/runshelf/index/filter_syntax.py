"""Filters and sort keys as people type them, taken apart; never evaluated.

    filter  =  term (blank term)*                          all of them hold
    term    =  [-] (word | key op value)                   - says that it must not hold
    op      =  =  !=  <  <=  >  >=  ~                      ~ means contains

Words, keys and values may stand in double quotes, in which a backslash precedes a quote or a
backslash. One pass over the characters, so that no text takes longer than its length.
"""

from typing import NamedTuple, final

from runshelf.errors import UsageError

LONGEST = 10_000
MOST_TERMS = 100
MOST_SORT_KEYS = 10
_OPERATORS = ("!=", "<=", ">=", "=", "<", ">", "~")


@final
class Term(NamedTuple):
    """One condition.

    Attributes:
        key: what is compared; empty for a word that is looked for everywhere.
        operator: how; empty for a word.
        value: with what.
        negated: whether it must not hold.
        position: where it begins in the text, from 1.
    """

    key: str
    operator: str
    value: str
    negated: bool
    position: int


@final
class SortKey(NamedTuple):
    """One key to sort by."""

    key: str
    descending: bool
    position: int


def parse_filter(text: str) -> list[Term]:
    """Return the terms of a filter.

    Raises:
        UsageError: the text is malformed; the message says where.
    """
    reader = _Reader(_bounded(text, "filter"))
    terms: list[Term] = []
    while reader.skip_blanks():
        terms.append(_term(reader))
        if len(terms) > MOST_TERMS:
            raise UsageError(f"the filter has more than {MOST_TERMS} terms: leave some out")
    return terms


def parse_sort(text: str) -> list[SortKey]:
    """Return the keys of a sort order: `-created,lr`.

    Raises:
        UsageError: the text is malformed; the message says where.
    """
    reader = _Reader(_bounded(text, "sort order"))
    keys: list[SortKey] = []
    while reader.skip_blanks():
        position = reader.position + 1
        descending = reader.takes("-")
        key = reader.word(",", blanks=False)
        if not key:
            raise UsageError(f"no key to sort by at character {position} of `{text}`: type one")
        keys.append(SortKey(key, descending, position))
        reader.skip_blanks()
        if not reader.ended and not reader.takes(","):
            raise UsageError(f"expected `,` at character {reader.position + 1} of `{text}`")
    if len(keys) > MOST_SORT_KEYS:
        raise UsageError(f"more than {MOST_SORT_KEYS} keys to sort by: leave some out")
    return keys


def _bounded(text: str, what: str) -> str:
    if len(text) > LONGEST:
        raise UsageError(f"the {what} has {len(text):_} characters: at most {LONGEST:_} are read")
    return text


def _term(reader: "_Reader") -> Term:
    position = reader.position + 1
    negated = reader.takes("-")
    key = reader.word("".join(_OPERATORS))
    operator = next((op for op in _OPERATORS if reader.takes(op)), "")
    if not operator:
        if not reader.ended and not reader.at_blank():
            raise reader.error("expected a blank")
        if not key:
            raise reader.error("expected a word" + (" behind `-`" if negated else ""))
        return Term("", "", key, negated, position)
    if not key:
        raise UsageError(f"no key before `{operator}` at character {position}: type lr{operator}1")
    return Term(key, operator, _value(reader, f"{key}{operator}"), negated, position)


def _value(reader: "_Reader", before: str) -> str:
    if reader.ended or reader.at_blank():
        hint = f'type {before:.60}VALUE without blanks, or {before:.60}""'
        raise reader.error(f"no value after `{before:.60}`", hint)
    value = reader.word("")
    if not reader.ended and not reader.at_blank():
        raise reader.error("expected a blank")
    return value


@final
class _Reader:
    """A text, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    @property
    def ended(self) -> bool:
        return self.position >= len(self.text)

    def at(self, mark: str) -> bool:
        return self.text.startswith(mark, self.position)

    def at_blank(self) -> bool:
        return not self.ended and self.text[self.position].isspace()

    def skip_blanks(self) -> bool:
        """Read blanks; return whether something is left."""
        while self.at_blank():
            self.position += 1
        return not self.ended

    def takes(self, mark: str) -> bool:
        """Read `mark` if it comes next; return whether it did."""
        found = self.at(mark)
        self.position += len(mark) if found else 0
        return found

    def word(self, ends: str, *, blanks: bool = True) -> str:
        """Read what is in quotes, or all up to a blank or one of `ends`.

        Args:
            ends: characters that end it; `!` does only before `=`.
            blanks: whether blanks end it; otherwise those around it are left out.
        """
        if self.at('"'):
            return self._quoted()
        start = self.position
        while not self.ended and not self._ends(ends, blanks):
            self.position += 1
        word = self.text[start : self.position]
        return word if blanks else word.strip()

    def _ends(self, ends: str, blanks: bool) -> bool:
        character = self.text[self.position]
        if character == "!" and "!" in ends:
            return self.at("!=")
        return character in ends or (blanks and character.isspace())

    def _quoted(self) -> str:
        opened = self.position
        self.position += 1
        parts: list[str] = []
        while not self.at('"'):
            if self.at("\\"):
                self.position += 1
            if self.ended:
                self.position = opened
                raise self.error("a quote is not closed", 'type another `"`')
            parts.append(self.text[self.position])
            self.position += 1
        self.position += 1
        return "".join(parts)

    def error(self, what: str, hint: str = 'put what holds a blank in "quotes"') -> UsageError:
        return UsageError(f"{what} at character {self.position + 1} of `{_near(self)}`: {hint}")


def _near(reader: _Reader) -> str:
    """Return what is around the reader's place, if all is too much."""
    if len(reader.text) <= 60:
        return reader.text
    first = max(reader.position - 30, 0)
    return f"...{reader.text[first : first + 60]}..."
