"""The learned reward of a run: its fits, and what is measured and said about it."""

from collections.abc import Mapping
from typing import Any, final

from backflip.core.types import Transition
from backflip.training.queries.fresh_checks import FreshChecks, fresh_until, metrics_of
from backflip.training.queries.unlabelled import Unlabelled
from backflip.training.reward_learning.reward_fits import RewardFits
from backflip.training.reward_learning.reward_notes import RewardNotes
from backflip.training.reward_learning.reward_paths import RewardPaths
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.plan import TeachPlan


@final
class LearnedReward:
    """Fits the reward to labels, and watches it.

    Args:
        inputs: what the session is given.
        plan: the plan of a new run.

    Attributes:
        unlabelled: pairs for pseudo-labels.
        fits: the fits of the reward model.
        notes: which reward model each seed uses.
        fresh_checks: the reward alarm.
    """

    def __init__(self, inputs: TeachInputs, plan: TeachPlan) -> None:
        self._session = inputs.session
        self._paths = RewardPaths(inputs.model, inputs.config.clip_length)
        self.unlabelled = Unlabelled(inputs.config, inputs.driver.spec, inputs.seeds)
        self.fits = RewardFits(inputs.model, inputs.store, inputs.seeds, self.unlabelled)
        self.notes = RewardNotes(inputs.config.reward_model, inputs.model, inputs.seeds, inputs.say)
        fresh = fresh_until(inputs.store, inputs.seeds, plan.before.env_steps) + sum(plan.due.fresh)
        self.fresh_checks = FreshChecks(inputs.store, inputs.seeds, fresh, inputs.run.alarms())

    def fit(self, reward: Any, env_steps: int) -> Any:
        """Return the parameters fitted to the labels until `env_steps`; say what has changed."""
        fitted = self.fits.fit(reward, env_steps)
        self.notes.announce(fitted, self.fits.metrics)
        return fitted

    def check(self) -> dict[str, float]:
        """Return the metrics of the reward alarm; announce it when it is raised."""
        if not self.fresh_checks.planned:
            return {}
        say, record = self._session.reporter.say, self._session.writer.record_alarm
        return metrics_of(self.fresh_checks.announce(say, record))

    def metrics(
        self, reward: Any, record: Transition, checked: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the metrics of the last fit, of `check`, and of the reward along a record."""
        return {**self.fits.mean_metrics(), **checked, **self._paths.metrics(reward, record)}
