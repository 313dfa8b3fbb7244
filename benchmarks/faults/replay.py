"""Faults of DQN, SAC and TD3."""

from typing import Any

import jax.numpy as jnp
from fault import Fault, on_batch

DQN = ("dqn",)
CRITICS = ("sac", "td3")
ALL = ("dqn", "sac", "td3")
_TARGETS = (
    "algorithms.dqn:bellman_target",
    "algorithms.td3:bellman_target",
    "algorithms.sac:bellman_target",
)


def _everywhere(change: Any) -> dict[str, Any]:
    return dict.fromkeys(_TARGETS, change)


def _no_mask(original: Any) -> Any:
    def target(reward: Any, discount: Any, terminated: Any, value: Any) -> Any:
        return original(reward, discount, jnp.zeros_like(terminated), value)

    return target


def _always_masked(original: Any) -> Any:
    def target(reward: Any, discount: Any, terminated: Any, value: Any) -> Any:
        return original(reward, discount, jnp.ones_like(terminated), value)

    return target


def _undiscounted(original: Any) -> Any:
    def target(reward: Any, discount: Any, terminated: Any, value: Any) -> Any:
        return original(reward, jnp.ones_like(discount), terminated, value)

    return target


def _twice(original: Any) -> Any:
    def target(reward: Any, discount: Any, terminated: Any, value: Any) -> Any:
        return original(reward, discount, terminated, value + reward)

    return target


def _frozen(original: Any) -> Any:
    del original

    def kept(target: Any, online: Any, rate: Any) -> Any:
        del online, rate
        return target

    return kept


def _never_moves(original: Any) -> Any:
    del original

    def kept(config: Any, state: Any) -> Any:
        del config
        return state.target

    return kept


def _least_value(original: Any) -> Any:
    def least(values: Any, chooser: Any) -> Any:
        return original(values, -chooser)

    return least


def _negated_actor(original: Any) -> Any:
    def loss(*args: Any) -> Any:
        found, extra = original(*args)
        return -found, extra

    return loss


def _shuffled(name: str) -> Any:
    def change(batch: Any) -> Any:
        return batch._replace(**{name: jnp.roll(getattr(batch, name), 1, axis=1)})

    return on_batch(change)


FAULTS = (
    Fault(
        "target-frozen",
        "target-network",
        ("target-network",),
        ALL,
        patches={
            "algorithms.dqn:move_target": _never_moves,
            "algorithms.td3:polyak": _frozen,
            "algorithms.parts.sac_step:polyak": _frozen,
        },
    ),
    Fault(
        "target-is-online", "target-network", ("target-network",), CRITICS, settings={"tau": 1.0}
    ),
    Fault("no-terminal-mask", "masks", ("value-targets",), ALL, patches=_everywhere(_no_mask)),
    Fault(
        "always-terminal",
        "masks",
        ("value-targets", "discount"),
        ALL,
        patches=_everywhere(_always_masked),
    ),
    Fault(
        "replay-undiscounted",
        "replay-discount",
        ("value-targets", "discount"),
        ALL,
        patches=_everywhere(_undiscounted),
    ),
    Fault(
        "reward-twice",
        "replay-targets",
        ("value-targets", "reward-scale"),
        ALL,
        patches=_everywhere(_twice),
    ),
    Fault(
        "worst-action-in-target",
        "replay-targets",
        ("value-targets",),
        DQN,
        patches={"algorithms.dqn:value_of_choice": _least_value},
    ),
    Fault(
        "replay-rewards-mixed",
        "replay-rows",
        ("replay", "value-targets"),
        ALL,
        wrap=_shuffled("reward"),
    ),
    Fault(
        "replay-actions-mixed", "replay-rows", ("replay", "actions"), ALL, wrap=_shuffled("action")
    ),
    Fault(
        "replay-next-mixed",
        "replay-rows",
        ("replay", "value-targets"),
        ALL,
        wrap=_shuffled("next_obs"),
    ),
    Fault("replay-small", "replay-size", ("replay",), ALL, settings={"buffer_size": 256}),
    Fault(
        "epsilon-stays", "epsilon", ("too-much-exploration",), DQN, settings={"epsilon_end": 0.9}
    ),
    Fault(
        "epsilon-none",
        "epsilon",
        ("too-little-exploration",),
        DQN,
        settings={"epsilon_start": 0.0, "epsilon_end": 0.0},
    ),
    Fault("q-rate-high", "replay-rate", ("steps-too-large",), DQN, settings={"learning_rate": 0.1}),
    Fault(
        "q-rate-low",
        "replay-rate",
        ("steps-too-small",),
        DQN,
        settings={"learning_rate": 1e-7, "learning_rate_end": 0.0},
    ),
    Fault(
        "critic-rate-high",
        "replay-rate",
        ("steps-too-large",),
        CRITICS,
        settings={"critic_learning_rate": 0.1, "actor_learning_rate": 0.1},
    ),
    Fault(
        "critic-rate-low",
        "replay-rate",
        ("steps-too-small", "values-do-not-learn"),
        CRITICS,
        settings={"critic_learning_rate": 1e-7},
    ),
    Fault(
        "actor-rate-low",
        "replay-rate",
        ("steps-too-small", "policy-loss"),
        CRITICS,
        settings={"actor_learning_rate": 1e-7},
    ),
    Fault(
        "actor-sign",
        "actor",
        ("policy-loss",),
        ("td3",),
        patches={"algorithms.td3:actor_loss": _negated_actor},
    ),
    Fault(
        "temperature-high",
        "temperature",
        ("temperature",),
        ("sac",),
        settings={"initial_temperature": 100.0, "temperature_learning_rate": 1e-7},
    ),
    Fault(
        "temperature-none",
        "temperature",
        ("temperature", "too-little-exploration"),
        ("sac",),
        settings={"initial_temperature": 1e-6, "temperature_learning_rate": 1e-7},
    ),
)
