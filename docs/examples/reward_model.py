"""An example of a reward model: linear in the observation, fitted by gradient descent.

Try it in this folder:

    backflip teach CartPole-v1 --teacher oracle --set reward_model=reward_model:MyRewardModel
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from backflip.core.losses import preference_loss
from backflip.core.spec import newest_frame
from backflip.rewards.interface import Fitted, Opinions


class Parameters(NamedTuple):
    """r(x) = wᵀ x, with x the observation after the step."""

    weights: np.ndarray


class MyRewardModel:
    """Implements backflip.rewards.interface.RewardModel."""

    def __init__(self, spec, labels, clip_length):
        self.spec, self.labels = spec, labels
        self.size = int(np.prod(spec.observation.shape)) // spec.frame_stack
        self.descend = jax.jit(descend)

    def initial(self, seeds):
        """Return weights of zero, with a leading axis of seeds."""
        return Parameters(np.zeros((seeds, self.size), np.float32))

    def predict(self, parameters, batch):
        """Return the reward of each transition (T, N); a pure JAX function."""
        x = newest_frame(self.spec, batch.next_obs)
        x = x.reshape(*x.shape[:2], -1).astype(jnp.float32)
        return x @ parameters.weights

    def observe(self, record):
        """Ignore the random policy: this model uses only labels."""

    def fit(self, previous, comparisons, keys):
        """Continue from each seed's previous weights; labels are padded, so one program is used."""
        rows, metrics = [], []
        for weights, labels in zip(np.asarray(previous.weights), comparisons, strict=True):
            room = max(self.labels, len(labels))
            difference = np.zeros((room, self.size), np.float32)
            preferred, used = np.zeros((2, room), np.float32)
            for i, label in enumerate(labels):
                left, right = label.clips()
                difference[i] = self.total(left) - self.total(right)
                preferred[i], used[i] = label.left_preferred, 1.0
            fitted = self.descend(weights, difference, preferred, used)
            rows.append(np.asarray(fitted) if labels else np.zeros_like(weights))
            metrics.append({"reward_model_labels": float(len(labels))})
        return Fitted(Parameters(np.stack(rows)), metrics)

    def opinions(self, parameters, clips):
        """Return the predictions of the ensemble's only member; None before any label."""
        weights = np.asarray(parameters.weights)
        if not weights.any():
            return None
        reward = np.stack([self.vectors(clip) @ weights for clip in clips]).astype(np.float32)
        return Opinions(reward, np.zeros_like(reward), reward.sum(1, keepdims=True))

    def total(self, clip):
        """Return the sum of x over the steps before the episode's end."""
        return self.vectors(clip).sum(0)

    def vectors(self, clip):
        """Return x of each step of a clip, zero after the episode's end."""
        x = clip.next_obs.reshape(len(clip.alive), -1).astype(np.float32)
        return x * clip.alive[:, None]


def descend(weights, difference, preferred, used):
    """Return the weights after 300 steps of gradient descent on the loss and a penalty."""
    scale = jnp.sqrt(jnp.square(difference).sum() / jnp.maximum(used.sum(), 1.0)) + 1e-6

    def loss(w):
        left = difference / scale @ w
        losses = preference_loss(left, jnp.zeros_like(left), preferred, 0.1)
        return (losses * used).sum() / jnp.maximum(used.sum(), 1.0) + 1e-3 * jnp.square(w).sum()

    def step(w, _):
        return w - 1.0 * jax.grad(loss)(w), None

    return jax.lax.scan(step, weights * scale, None, length=300)[0] / scale
