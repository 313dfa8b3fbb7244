"""The ensembles of one seed, fitted round after round to more labels.

The search for probable models takes most of a fit to many labels, and a few labels more hardly
change what it finds. So it is done again only when labels have grown by a quarter since, or the
encoder has been fitted again. In the rounds between, the models that it found are fitted to all
labels. When that was follows from the labels alone, so a resumed run has the same fits.

On stored labels of eight tasks, the models that had a probability of 1e-5 kept .999 of it when
labels grew by a quarter, to 160 to 1,000 labels; with 100 labels of a teacher who errs often, .46.
So a run with few labels searches in each round. This was measured with Laplace's evidence, before
`backflip.rewards.linear.marginal` had the present one.
"""

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import UInt32

from backflip.rewards.interface import LabelledComparison
from backflip.rewards.linear.evidence import Ensemble, Labelled, fit

MANY_LABELS = 150  # with fewer, each round is searched
GROWTH = 1.25  # of the number of labels, until the next search
DOUBLED = 2.0  # growth of the number of labels, until the next fit of the encoder

_Answers = tuple[tuple[int, float], ...]  # the query and the preference of each label


class _Fitted(NamedTuple):
    """An ensemble, and the labels that it was fitted to."""

    answers: _Answers
    ensemble: Ensemble


@final
class Ensembles:
    """Fits one seed's ensembles, and keeps the last one and the last one searched.

    Args:
        groups: the sizes of the groups of features.
    """

    def __init__(self, groups: Sequence[int]) -> None:
        self._groups = groups
        self._last: _Fitted | None = None
        self._searched: _Fitted | None = None

    def fit(
        self,
        comparisons: Sequence[LabelledComparison],
        labelled: Labelled,
        key: UInt32[np.ndarray, "2"],
    ) -> Ensemble:
        """Return the ensemble fitted to the labels.

        Args:
            comparisons: the labels.
            labelled: their features.
            key: the only source of randomness, of members.
        """
        answers, count = (
            _answers_of(comparisons),
            last_search([one.env_steps for one in comparisons]),
        )
        if count == len(comparisons):
            found = fit(labelled, self._groups, key)
            self._searched = _Fitted(answers, found)
        else:
            first = Labelled(labelled.difference[:count], labelled.left_preferred[:count])
            found = fit(labelled, self._groups, key, self._search(answers[:count], first))
        self._last = _Fitted(answers, found)
        return found

    def known(self, comparisons: Sequence[LabelledComparison], labelled: Labelled) -> Ensemble:
        """Return what was fitted to these labels, or fit it: a resumed run has not.

        Its members may be others than those of a fit.
        """
        if self._last is not None and self._last.answers == _answers_of(comparisons):
            return self._last.ensemble
        return self.fit(comparisons, labelled, _NO_KEY)

    def _search(self, answers: _Answers, labelled: Labelled) -> Ensemble:
        """Return what a search among the first labels finds; a resumed run has not found it yet."""
        if self._searched is None or self._searched.answers != answers:
            self._searched = _Fitted(answers, fit(labelled, self._groups, _NO_KEY))
        return self._searched.ensemble


_NO_KEY = np.zeros(2, np.uint32)  # for ensembles whose members are not used


def _answers_of(comparisons: Sequence[LabelledComparison]) -> _Answers:
    return tuple((one.query, float(one.left_preferred)) for one in comparisons)


def last_search(query_env_steps: Sequence[int]) -> int:
    """Return how many labels there were when models were last searched for.

    Args:
        query_env_steps: env steps at which the query of each label was made.
    """
    grown = last_growth(query_env_steps, GROWTH), last_growth(query_env_steps, DOUBLED)
    return max(grown) if max(grown) >= MANY_LABELS else len(query_env_steps)


def last_growth(query_env_steps: Sequence[int], factor: float) -> int:
    """Return the number of labels at the last round after which they had grown; 0 if none.

    Args:
        query_env_steps: env steps at which the query of each label was made.
        factor: by which they had grown since the last such round, or the first one.
    """
    labels = 0
    for env_steps in sorted(set(query_env_steps)):
        so_far = sum(at <= env_steps for at in query_env_steps)
        if so_far >= factor * labels:
            labels = so_far
    return labels
