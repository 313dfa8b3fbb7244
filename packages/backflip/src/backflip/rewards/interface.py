"""What a reward model is, and what passes between it and the teaching loop.

The loop hands over labelled comparisons and gets parameters and metrics. Everything between (how
observations are encoded, what is cached, how the fit works) belongs to the model. A reward model
never sees the true reward: clips come without it, and `predict` must not read `batch.reward`.

How to write one: docs/reward-models.md. What one must keep: tests/conformance/reward_model.py.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Shaped, UInt32

from backflip.core.types import Transition


class ObservedClip(NamedTuple):
    """L consecutive steps of one trajectory, without the true reward.

    Attributes:
        obs: the newest frame before each step.
        action: the action of each step.
        next_obs: the newest frame after each step.
        alive: true up to the end of the episode. Later steps earn nothing: their reward is zero.
    """

    obs: Shaped[np.ndarray, "L ..."]
    action: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    alive: Bool[np.ndarray, " L"]


class LabelledComparison(NamedTuple):
    """One label: two clips shown side by side, and which of them is better.

    Attributes:
        query: the number of the pair in its run. A model may cache by it what it computes from
            the clips: the same number always means the same two clips.
        clips: loads the left and the right clip from disk.
        left_preferred: 1 for left, 0 for right, ½ for a tie.
        env_steps: how long the seed had trained when the pair was chosen.
    """

    query: int
    clips: Callable[[], tuple[ObservedClip, ObservedClip]]
    left_preferred: float
    env_steps: int


class Fitted(NamedTuple):
    """What a fit returns.

    Attributes:
        parameters: arrays with a leading axis of seeds, in the structure of `initial`.
        metrics: one dictionary for each seed; names start with `reward_model_`.
    """

    parameters: Any
    metrics: list[dict[str, float]]


class Opinions(NamedTuple):
    """What one seed's reward model predicts of C clips.

    Attributes:
        reward: the predicted reward of each step, as `predict` returns it; 0 where not alive.
        spread: the standard deviation of the members' rewards of each step; 0 where not alive.
        clip_returns: each member's sum of rewards over each clip, in logits: the member's
            P[i ≻ j] is the sigmoid of the difference between clips i and j.
    """

    reward: Float[np.ndarray, "C L"]
    spread: Float[np.ndarray, "C L"]
    clip_returns: Float[np.ndarray, "C M"]


@runtime_checkable
class RewardModel(Protocol):
    """A reward fitted to labelled comparisons, for all seeds of a run.

    The class is called with the environment's `EnvSpec`, the label budget of each seed, and the
    number of steps in a clip. Imported labels may exceed the budget.

    Parameters are data: arrays whose shapes depend on the `EnvSpec` alone. They are all that a
    checkpoint keeps. A resumed run makes a new model, calls `observe` as before, and continues
    from the saved parameters; it must compute the same bits.
    """

    def initial(self, seeds: int) -> Any:
        """Return parameters with which `predict` is zero everywhere, with a leading seed axis."""
        ...

    def predict(self, parameters: Any, batch: Transition) -> Float[Any, "T N"]:
        """Return the reward of each transition in a batch (T, N), for one seed's parameters.

        Pure, and compiled inside the training program. Observations may be stacks of frames.
        """
        ...

    def observe(self, record: Transition) -> None:
        """Take in transitions (T, N) of a random policy, without labels.

        Called once for each seed, in their order, before the first fit. Observations are newest
        frames. A model that learns from labels alone ignores it.
        """
        ...

    def fit(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the parameters for all labels that each seed has now.

        A label that was there at the last fit may be gone: people undo answers.

        Args:
            previous: the parameters so far, to start from or to ignore.
            comparisons: of each seed, all its labels. None at all must give a reward of zero.
            keys: raw JAX key data of each seed, the only source of randomness.
        """
        ...

    def opinions(self, parameters: Any, clips: Sequence[ObservedClip]) -> Opinions | None:
        """Return what one seed's parameters predict of clips; None before the first label."""
        ...
