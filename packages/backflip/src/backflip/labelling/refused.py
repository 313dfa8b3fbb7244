"""The error of a request about labels that is refused."""

from typing import Literal

from runshelf.errors import UsageError

Problem = Literal["unknown", "answered", "not yours", "invalid"]


class Refused(UsageError):
    """A request is refused; nothing was written.

    Attributes:
        problem: the reason.
    """

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem
