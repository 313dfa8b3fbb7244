"""The interface between the teaching loop and a reward model.

The loop passes labelled comparisons to the model and receives parameters and metrics. The model
decides how it encodes observations, what it caches, and how it fits. A reward model never sees the
true reward: clips do not contain it, and `predict` must not read `batch.reward`.

docs/reward-models.md describes how to write one; tests/conformance/reward_model.py tests it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Shaped, UInt32

from backflip.core.types import Transition

TIE = 0.5  # `LabelledComparison.left_preferred` of a tie
TIE_WIDTH = "reward_model_tie_width"  # metric: θ of `core.losses.answer_probabilities`, in logits


class ObservedClip(NamedTuple):
    """L consecutive steps of one trajectory, without the true reward.

    Attributes:
        obs: the newest frame before each step.
        action: the action of each step.
        next_obs: the newest frame after each step.
        alive: true up to the end of the episode. The reward of later steps is zero.
    """

    obs: Shaped[np.ndarray, "L ..."]
    action: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    alive: Bool[np.ndarray, " L"]


class LabelledComparison(NamedTuple):
    """One label: two clips and the preference between them.

    Attributes:
        query: the number of the query in its run. The same number always means the same two
            clips, so a model may use it as a cache key.
        clips: loads the left and the right clip from disk.
        left_preferred: 1 for left, 0 for right, ½ for a tie.
        env_steps: env steps of the seed when the query was made.
    """

    query: int
    clips: Callable[[], tuple[ObservedClip, ObservedClip]]
    left_preferred: float
    env_steps: int


class Fitted(NamedTuple):
    """What a fit returns.

    Attributes:
        parameters: arrays with a leading axis of seeds, in the structure of `initial`.
        metrics: one dictionary of numbers for each seed; names start with `reward_model_`. A run
            logs their means over the seeds that have them. One is read:
            `TIE_WIDTH`, which queries and forecasts use; 0 if it is missing.
    """

    parameters: Any
    metrics: list[dict[str, float]]


class FitSettings(NamedTuple):
    """What a fit uses besides whole labels.

    Attributes:
        crops: cropped copies of each label; 0 for none.
        shortest_crop: the least length of a crop, as a share of a clip.
        pseudo_label_weight: λ, the weight of pseudo-labels; 0 for none.
        pseudo_label_threshold: τ, how probable an answer must be to be a pseudo-label.
    """

    crops: int = 0
    shortest_crop: float = 0.75
    pseudo_label_weight: float = 0.0
    pseudo_label_threshold: float = 0.99

    @property
    def only_labels(self) -> bool:
        """Whether a fit uses whole labels only."""
        return not self.crops and not self.pseudo_label_weight


LABELS_ONLY = FitSettings()


class Opinions(NamedTuple):
    """Predictions of one seed's reward model for C clips.

    Attributes:
        reward: the predicted reward of each step, equal to that of `predict`; 0 where not alive.
        spread: the standard deviation over members of each step's reward; 0 where not alive.
        clip_returns: each member's sum of rewards over each clip, in logits: the member's
            P[i ≻ j] is the sigmoid of the difference between clips i and j.
    """

    reward: Float[np.ndarray, "C L"]
    spread: Float[np.ndarray, "C L"]
    clip_returns: Float[np.ndarray, "C M"]


class Embedding(NamedTuple):
    """Clips and labelled pairs in a model's own features φ, to choose queries by.

    The return of a clip, in logits, is wᵀφ with w ~ N(0, I) before any label.

    Attributes:
        clips: φ of each clip, summed over its steps.
        labelled: φ_left - φ_right of each label.
        weights: the most probable w given the labels.
        tie_width: θ of `backflip.core.losses.answer_probabilities`; 0 without ties.
    """

    clips: Float[np.ndarray, "C F"]
    labelled: Float[np.ndarray, "n F"]
    weights: Float[np.ndarray, " F"]
    tie_width: float


@runtime_checkable
class EmbedsClips(Protocol):
    """A reward model that is linear in features; an optional part of the interface."""

    def embed(
        self,
        row: int,
        comparisons: Sequence[LabelledComparison],
        clips: Sequence[ObservedClip],
    ) -> Embedding | None:
        """Return clips and labels in the model's features; None without labels.

        Args:
            row: the row of the seed in the parameters.
            comparisons: the labels of the last fit of this seed.
            clips: the clips to choose from.
        """
        ...


@runtime_checkable
class FitsUnlabelled(Protocol):
    """A reward model that can learn from unlabelled pairs; an optional part of the interface."""

    def fit_unlabelled(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
        unlabelled: ObservedClip,
    ) -> Fitted:
        """Return what `fit` returns, fitted also to pairs of clips without labels.

        Args:
            previous: as of `fit`.
            comparisons: as of `fit`.
            keys: as of `fit`.
            unlabelled: arrays with leading axes of seeds, pairs, and left and right. A pair in
                which no step is alive says nothing.
        """
        ...


class Spread(NamedTuple):
    """Predictions of one seed's reward model for a batch (T, N).

    Attributes:
        reward: r̂, equal to that of `predict`.
        spread: σ, the standard deviation over members of each step's reward, in its units.
    """

    reward: Float[Any, "T N"]
    spread: Float[Any, "T N"]


@runtime_checkable
class PredictsSpread(Protocol):
    """A reward model of several members; an optional part of the interface."""

    def predict_spread(self, parameters: Any, batch: Transition) -> Spread:
        """Return the reward and its spread, for one seed's parameters; a pure function."""
        ...


@runtime_checkable
class RewardModel(Protocol):
    """A reward model for all seeds of a run, fitted to labelled comparisons.

    The constructor receives the environment's `EnvSpec`, the label budget of each seed, and the
    number of steps in a clip. Imported labels may exceed the budget.

    Parameters are arrays whose shapes depend only on the `EnvSpec`. A checkpoint saves nothing
    else. A resumed run makes a new model, calls `observe` as before, and continues from the saved
    parameters; it must compute the same bits.
    """

    def initial(self, seeds: int) -> Any:
        """Return parameters of a reward that is zero everywhere, with a leading seed axis."""
        ...

    def predict(self, parameters: Any, batch: Transition) -> Float[Any, "T N"]:
        """Return the reward of each transition in a batch (T, N), for one seed's parameters.

        A pure function, compiled as part of the training program. Observations may be stacked
        frames.
        """
        ...

    def observe(self, record: Transition) -> None:
        """Receive unlabelled transitions (T, N) of a random policy.

        Called once for each seed, in order, before the first fit. Observations are newest frames.
        A model that uses only labels does nothing here.
        """
        ...

    def fit(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the parameters fitted to all current labels of each seed.

        Labels of the previous fit may be missing, because people undo answers.

        Args:
            previous: the previous parameters; a fit may start from them or ignore them.
            comparisons: all labels of each seed. Without labels the reward must be zero.
            keys: raw JAX key data of each seed, the only source of randomness.
        """
        ...

    def opinions(self, parameters: Any, clips: Sequence[ObservedClip]) -> Opinions | None:
        """Return the predictions of one seed's parameters for clips; None before any label."""
        ...
