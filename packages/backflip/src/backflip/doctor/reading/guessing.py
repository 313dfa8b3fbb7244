"""Facts that a log does not state, from what it holds."""

from collections.abc import Mapping

import numpy as np

from backflip.doctor.log import Signal

# What a network of action values logs; a table of them explores with an ε, too.
OF_NETWORKS = ("q_loss", "total_loss", "q_mean", "td_error_abs_mean", "grad_norm")
# Libraries with no other algorithm that learns from rewards.
OF_PPO = ("rsl_rl", "sample_factory")
# Dopamine's algorithms by signals that no other of them logs.
OF_DOPAMINE = {"q_loss": "dqn", "temperature": "sac", "entropy": "ppo"}
# Both are measured before a gradient step.
OF_MOVES = ("approx_kl", "clip_fraction")


def algorithm_of(library: str, signals: Mapping[str, Signal]) -> str | None:
    """Return the algorithm that logs such signals; None if several do."""
    if library == "dopamine":
        return next((one for name, one in OF_DOPAMINE.items() if name in signals), None)
    if "clip_fraction" in signals or ("approx_kl" in signals and "value_loss" in signals):
        return "ppo"
    if library in OF_PPO and "policy_loss" in signals:
        return "ppo"
    if "temperature" in signals and "q_loss" in signals:
        return "sac"
    has_network = library != "unknown" or any(name in signals for name in OF_NETWORKS)
    if "epsilon" in signals and has_network:
        return "dqn"
    if library == "sb3" and "value_loss" in signals and "policy_loss" in signals:
        return "a2c"
    return None


def with_action_values(library: str, signals: Mapping[str, Signal]) -> Mapping[str, Signal]:
    """Return the signals with `q_mean`, which Stable-Baselines3 logs as a loss.

    The loss of a policy that learns from action values is -E[Q]; of SAC, α E[log π] is added.
    """
    loss = signals.get("policy_loss")
    if library != "sb3" or loss is None or "q_loss" not in signals or "q_mean" in signals:
        return signals
    how = "minus the loss of the policy, of SAC with the bonus for entropy"
    return {**signals, "q_mean": Signal(loss.x, -loss.y, f"minus {loss.logged_as}", how)}


def with_loss_of_q(library: str, signals: Mapping[str, Signal]) -> Mapping[str, Signal]:
    """Return the signals with `q_loss`, which Stable-Baselines3's DQN logs as its only loss."""
    loss = signals.get("total_loss")
    if library != "sb3" or loss is None or "epsilon" not in signals:
        return signals
    rest = {name: one for name, one in signals.items() if name != "total_loss"}
    return {**rest, "q_loss": loss._replace(how="of DQN: the Huber loss")}


def without_first_steps(
    signals: Mapping[str, Signal], steps: Signal
) -> tuple[Mapping[str, Signal], tuple[str, ...]]:
    """Return the signals without those of Sample Factory that see no gradient step, and a note.

    It measures how far an update moves the policy in the last minibatch, before its gradient step.
    If this step is the only one, the policy has not moved: both tell how old the data are.

    Args:
        signals: by our name.
        steps: the number of gradient steps of updates.
    """
    left_out = [signals[name].logged_as for name in OF_MOVES if name in signals]
    if not left_out or not np.all(steps.y <= 1):
        return signals, ()
    named = " and ".join(f"`{name}`" for name in left_out)
    note = f"{named} left out: an update has one gradient step, and they are measured before it"
    return {name: one for name, one in signals.items() if name not in OF_MOVES}, (note,)
