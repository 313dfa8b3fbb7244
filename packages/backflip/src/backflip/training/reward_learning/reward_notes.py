"""What a fit says about its representation: which was chosen, and whether it has collapsed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from backflip.rewards.auto import AutoRewardModel
from backflip.rewards.interface import RewardModel

COLLAPSED = "reward_model_collapsed"
LABELS = "reward_model_labels"  # how many a fit had


def collapse_shown(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return what the health line shows of collapsed representations; nothing if there is none."""
    share = sum(bool(one.get(COLLAPSED)) for one in metrics) / len(metrics)
    return {COLLAPSED: share} if share else {}


@final
class RewardNotes:
    """Says in words what changed since the last fit.

    Args:
        name: the name of the reward model.
        model: the reward model.
        seeds: the seeds of the run.
        say: shows a line to the user.
    """

    def __init__(
        self, name: str, model: RewardModel, seeds: Sequence[int], say: Callable[[str], None]
    ) -> None:
        self._name, self._model, self._seeds, self._say = name, model, seeds, say
        self._said: set[str] = set()

    def announce(self, parameters: Any, metrics: Sequence[Mapping[str, float]]) -> None:
        """Say what is chosen and what has collapsed, unless the last fit said the same."""
        lines = set(self.lines(parameters, metrics))
        for line in sorted(lines - self._said):
            self._say(line)
        self._said = lines

    def lines(self, parameters: Any, metrics: Sequence[Mapping[str, float]]) -> list[str]:
        """Return what there is to say, a line each."""
        said: list[str] = []
        used = self.used(parameters)
        if isinstance(self._model, AutoRewardModel) and any(one.get(LABELS) for one in metrics):
            chosen = ", ".join(f"{name} of {self._of(name, used)}" for name in dict.fromkeys(used))
            said.append(f"reward model, chosen by evidence: {chosen}")
        collapsed = [i for i, one in enumerate(metrics) if one.get(COLLAPSED)]
        if collapsed:
            seeds = ", ".join(str(self._seeds[i]) for i in collapsed)
            said.append(
                f"the representation of `{self._name}` has collapsed (seed {seeds}): the labelled "
                "clips are all alike in it, so their labels teach little but actions; "
                "try --set reward_model=auto"
            )
        return said

    def used(self, parameters: Any) -> list[str]:
        """Return the name of the reward model that each seed uses."""
        if isinstance(self._model, AutoRewardModel):
            return self._model.chosen_names(parameters)
        return [self._name] * len(self._seeds)

    def record(self, parameters: Any, metrics: Sequence[Mapping[str, float]]) -> dict[str, Any]:
        """Return the same as JSON values, for the result and the measures."""
        return {
            "name": self._name,
            "used": self.used(parameters),
            "collapsed": [bool(one.get(COLLAPSED)) for one in metrics],
        }

    def _of(self, name: str, used: Sequence[str]) -> str:
        seeds = [str(seed) for seed, own in zip(self._seeds, used, strict=True) if own == name]
        return f"seed {', '.join(seeds)}"
