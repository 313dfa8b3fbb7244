"""Faults of PPO and A2C."""

from typing import Any

import jax
import jax.numpy as jnp
from fault import Fault

BOTH = ("ppo", "a2c")
PPO = ("ppo",)


def _of(algorithm: str, name: str) -> str:
    return f"algorithms.{algorithm}:{name}"


def _in_both(name: str, change: Any) -> dict[str, Any]:
    return {_of(algorithm, name): change for algorithm in BOTH}


def _negated(original: Any) -> Any:
    def negated(*args: Any, **options: Any) -> Any:
        return -original(*args, **options)

    return negated


def _without_ends(original: Any) -> Any:
    def gae(
        rewards: Any, values: Any, after: Any, terminated: Any, truncated: Any, **o: Any
    ) -> Any:
        never = jnp.zeros_like(terminated)
        following = jnp.concatenate([values[1:], after[-1:]])
        return original(rewards, values, following, never, never, **o)

    return gae


def _no_terminal(original: Any) -> Any:
    def gae(
        rewards: Any, values: Any, after: Any, terminated: Any, truncated: Any, **o: Any
    ) -> Any:
        return original(
            rewards, values, after, jnp.zeros_like(terminated), terminated | truncated, **o
        )

    return gae


def _no_bootstrap(original: Any) -> Any:
    def gae(
        rewards: Any, values: Any, after: Any, terminated: Any, truncated: Any, **o: Any
    ) -> Any:
        return original(
            rewards, values, after, terminated | truncated, jnp.zeros_like(truncated), **o
        )

    return gae


def _undiscounted(original: Any) -> Any:
    def gae(*stream: Any, discount: float, gae_lambda: float) -> Any:
        return original(*stream, discount=1.0, gae_lambda=gae_lambda)

    return gae


def _late_reward(original: Any) -> Any:
    def gae(rewards: Any, *stream: Any, **options: Any) -> Any:
        return original(jnp.roll(rewards, 3), *stream, **options)

    return gae


def _no_advantage(original: Any) -> Any:
    def estimate(config: Any, *stream: Any) -> Any:
        advantages, targets = original(config, *stream)
        return jnp.zeros_like(advantages), targets

    return estimate


def _targets_are_values(original: Any) -> Any:
    def estimate(config: Any, *stream: Any) -> Any:
        return original(config, *stream)[0], stream[1]

    return estimate


def _reward_as_target(original: Any) -> Any:
    def estimate(config: Any, *stream: Any) -> Any:
        return original(config, *stream)[0], stream[0]

    return estimate


def _shifted_targets(original: Any) -> Any:
    def estimate(config: Any, *stream: Any) -> Any:
        advantages, targets = original(config, *stream)
        return advantages, targets[::-1]

    return estimate


def _detached(original: Any) -> Any:
    def surrogate(log_prob: Any, *others: Any) -> Any:
        return original(jax.lax.stop_gradient(log_prob), *others)

    return surrogate


def _worst_of_both(original: Any) -> Any:
    def surrogate(log_prob: Any, old: Any, advantage: Any, clip: Any) -> Any:
        ratio = jnp.exp(log_prob - old)
        return -jnp.maximum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)

    return surrogate


def _other_rows(original: Any) -> Any:
    def prepare(*args: Any) -> Any:
        rows = original(*args)
        return rows._replace(action=jnp.roll(rows.action, 1, axis=0))

    return prepare


def _other_probability(original: Any) -> Any:
    def prepare(*args: Any) -> Any:
        rows = original(*args)
        return rows._replace(log_prob=rows.log_prob + 0.5)

    return prepare


def _mixed_advantages(original: Any) -> Any:
    def prepare(*args: Any) -> Any:
        rows = original(*args)
        return rows._replace(advantage=jnp.roll(rows.advantage, 7))

    return prepare


def _noise_in_learning(original: Any) -> Any:
    def prepare(*args: Any) -> Any:
        rows = original(*args)
        keep = jax.random.bernoulli(jax.random.key(0), 0.5, rows.inputs.shape)
        return rows._replace(inputs=jnp.where(keep, rows.inputs * 2, 0.0))

    return prepare


def _scaled_in_learning(original: Any) -> Any:
    def prepare(*args: Any) -> Any:
        rows = original(*args)
        return rows._replace(inputs=rows.inputs / 10.0)

    return prepare


def _first_layers(factor: float) -> Any:
    def change(original: Any) -> Any:
        def larger(x: Any) -> Any:
            return x * factor

        def first_params(*args: Any) -> Any:
            return jax.tree.map(larger, original(*args))

        return first_params

    return change


_PARTS = "algorithms.parts.stochastic_policy:first_params"

FAULTS = (
    Fault(
        "policy-sign",
        "policy-loss",
        ("policy-loss", "advantages", "reward-sign"),
        BOTH,
        patches={
            _of("ppo", "clipped_surrogate"): _negated,
            _of("a2c", "policy_gradient"): _negated,
        },
    ),
    Fault(
        "policy-detached",
        "policy-loss",
        ("policy-loss", "steps-too-small"),
        BOTH,
        patches={
            _of("ppo", "clipped_surrogate"): _detached,
            _of("a2c", "policy_gradient"): _detached,
        },
    ),
    Fault(
        "surrogate-max",
        "policy-loss",
        ("policy-loss",),
        PPO,
        patches={_of("ppo", "clipped_surrogate"): _worst_of_both},
    ),
    Fault(
        "entropy-sign",
        "entropy",
        ("too-little-exploration", "policy-loss"),
        BOTH,
        settings={"entropy_coef": -0.05},
    ),
    Fault("entropy-large", "entropy", ("entropy-bonus",), BOTH, settings={"entropy_coef": 1.0}),
    Fault(
        "actions-of-others",
        "pairs",
        ("acting-and-learning-disagree", "actions"),
        BOTH,
        patches=_in_both("prepare", _other_rows),
    ),
    Fault(
        "old-log-prob-shifted",
        "pairs",
        ("acting-and-learning-disagree", "policy-loss"),
        PPO,
        patches={_of("ppo", "prepare"): _other_probability},
    ),
    Fault(
        "dropout-in-learning",
        "paths",
        ("acting-and-learning-disagree", "observations"),
        BOTH,
        patches=_in_both("prepare", _noise_in_learning),
    ),
    Fault(
        "scaled-in-learning",
        "paths",
        ("acting-and-learning-disagree", "observations"),
        BOTH,
        patches=_in_both("prepare", _scaled_in_learning),
    ),
    Fault(
        "advantages-of-others",
        "advantages",
        ("advantages", "acting-and-learning-disagree"),
        BOTH,
        patches=_in_both("prepare", _mixed_advantages),
    ),
    Fault(
        "advantages-zero",
        "advantages",
        ("advantages", "no-reward-signal"),
        BOTH,
        patches=_in_both("estimate", _no_advantage),
    ),
    Fault(
        "advantages-through-ends",
        "ends",
        ("value-targets", "advantages"),
        BOTH,
        patches=_in_both("gae", _without_ends),
    ),
    Fault(
        "bootstrap-at-terminal",
        "ends",
        ("value-targets", "advantages"),
        BOTH,
        patches=_in_both("gae", _no_terminal),
    ),
    Fault(
        "no-bootstrap-at-limit",
        "ends",
        ("value-targets", "advantages"),
        BOTH,
        patches=_in_both("gae", _no_bootstrap),
    ),
    Fault(
        "no-discount",
        "discount",
        ("value-targets", "discount"),
        BOTH,
        patches=_in_both("gae", _undiscounted),
    ),
    Fault(
        "discount-0", "discount", ("discount", "value-targets"), BOTH, settings={"discount": 0.0}
    ),
    Fault(
        "discount-half", "discount", ("discount", "value-targets"), BOTH, settings={"discount": 0.5}
    ),
    Fault(
        "reward-of-earlier-step",
        "targets",
        ("value-targets", "advantages"),
        BOTH,
        patches=_in_both("gae", _late_reward),
    ),
    Fault(
        "targets-are-values",
        "targets",
        ("value-targets", "values-do-not-learn"),
        BOTH,
        patches=_in_both("estimate", _targets_are_values),
    ),
    Fault(
        "targets-are-rewards",
        "targets",
        ("value-targets", "values-do-not-learn"),
        BOTH,
        patches=_in_both("estimate", _reward_as_target),
    ),
    Fault(
        "targets-reversed",
        "targets",
        ("value-targets", "values-do-not-learn"),
        BOTH,
        patches=_in_both("estimate", _shifted_targets),
    ),
    Fault(
        "value-loss-off", "value-loss", ("values-do-not-learn",), BOTH, settings={"value_coef": 0.0}
    ),
    Fault(
        "value-loss-huge",
        "value-loss",
        ("reward-scale", "values-do-not-learn"),
        BOTH,
        settings={"value_coef": 1000.0},
    ),
    Fault("rate-high", "rate", ("steps-too-large",), BOTH, settings={"learning_rate": 0.1}),
    Fault(
        "rate-low",
        "rate",
        ("steps-too-small",),
        BOTH,
        settings={"learning_rate": 1e-6, "learning_rate_end": 0.0},
    ),
    Fault(
        "clipped-to-nothing",
        "rate",
        ("steps-too-small",),
        ("a2c",),
        settings={"max_grad_norm": 1e-5},
    ),
    Fault(
        "epochs-60",
        "epochs",
        ("steps-too-large",),
        PPO,
        settings={"epochs": 60, "clip_range": 10.0},
    ),
    Fault(
        "no-clip-high-rate",
        "epochs",
        ("steps-too-large",),
        PPO,
        settings={"clip_range": 100.0, "clip_range_end": 100.0, "learning_rate": 0.02},
    ),
    Fault(
        "init-large", "initial", ("initialisation",), BOTH, patches={_PARTS: _first_layers(30.0)}
    ),
    Fault("init-zero", "initial", ("initialisation",), BOTH, patches={_PARTS: _first_layers(0.0)}),
)
