"""What off-policy algorithms of continuous actions are tested with: spaces, rows, and probes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from packages.backflip.tests.algorithms.probing import Endless

from backflip.algorithms.interface import Algorithm
from backflip.core.replay.layout import Sampled
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.host import HostDriver
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.native import probes
from backflip.envs.spec import NativeStep

LOW, HIGH = np.array([-1.0, 0.0], np.float32), np.array([3.0, 1.0], np.float32)
CENTER, HALF = np.array([1.0, 0.5]), np.array([2.0, 0.5])
LOPSIDED = EnvSpec("lopsided", Box(-LOW, LOW, LOW.dtype), Box(LOW, HIGH, LOW.dtype), None)


def drawn(spec: EnvSpec, updates: int, rows: int, seed: int = 0) -> Transition:
    """Random minibatches with ends and invalid rows."""
    rng = np.random.default_rng(seed)
    shape = (updates, rows)
    seen = (*shape, *spec.observation.shape)
    if isinstance(spec.action, Discrete):
        action: Any = rng.integers(0, spec.action.n, shape).astype(np.int32)
    else:
        low, high = spec.action.low, spec.action.high
        action = rng.uniform(low, high, (*shape, len(low))).astype(np.float32)
    terminated = rng.random(shape) < 0.3
    sampled: Any = (
        rng.choice([0.99, 0.9], shape).astype(np.float32),
        np.zeros(shape, np.int32),
        np.ones(shape, np.float32),
    )
    batch = Transition(
        obs=rng.normal(size=seen).astype(np.float32),
        action=action,
        reward=rng.normal(1, 2, shape).astype(np.float32),
        terminated=terminated,
        truncated=~terminated & (rng.random(shape) < 0.3),
        next_obs=rng.normal(size=seen).astype(np.float32),
        valid=rng.random(shape) < 0.8,
        extra=Sampled(*sampled),
    )
    return jax.tree.map(jnp.asarray, batch)


def three_rows() -> Transition:
    """A plain row, a terminated and a truncated one: each sees 1, acts 0.5, is paid 1."""
    ones = jnp.ones((3, 1))
    return Transition(
        obs=ones,
        action=0.5 * ones,
        reward=jnp.ones(3),
        terminated=jnp.array([False, True, False]),
        truncated=jnp.array([False, False, True]),
        next_obs=ones,
        valid=jnp.ones(3, bool),
        extra=Sampled(jnp.full(3, 0.5), jnp.zeros(3, jnp.int32), jnp.ones(3)),
    )


def straight(*weights: float, bias: float) -> list[Any]:
    """A network of one output without hidden layers: Σ w_i x_i + b."""
    return [{"w": jnp.array(weights)[:, None], "b": jnp.array([bias])}]


@dataclass(frozen=True)
class MatchedNumber(probes.StartsWithACoin):
    """Shows s = ±1 and pays -(a - s / 2)², so the best action depends on s. One number each."""

    env_id: ClassVar[str] = "matched number"
    action: ClassVar[Box] = probes.interval()

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Pay and end."""
        del key
        return probes.end(state, -jnp.square(action[0] - 0.5 * state.shown))


class EndlessNumber(Endless):
    """The endless probe outside JAX, with a number to choose that has no effect."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)


def endless_number_on_the_host(algorithm: Algorithm) -> HostDriver:
    return HostDriver(lambda rows: GymnasiumEnv.of("endless", EndlessNumber, rows), algorithm)
