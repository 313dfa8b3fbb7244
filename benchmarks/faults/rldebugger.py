"""The rules of RLDebugger, another tool, as far as logged signals can carry them.

RLDebugger (github.com/rached1997/RLDebugger, commit 1bb210b) looks at training from calls that are
put into the training loop. Its default thresholds are used here. One logged point stands for one of
its periods. Where its program does something else than its documentation says, the rule follows the
documentation. Rules that need single actions, weights, activations or a second model are left out,
and so are those that compare with the reward at which a task counts as solved: most environments
name none.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from backflip.doctor.log import Log

EXPLORATION = 0.2  # share of the env steps
REGION = 10  # points of its entropy rules
LOSSES = ("value_loss", "q_loss")
ROUNDING = 1e-4  # it asks for equal bits, which no healthy run has
Values = np.ndarray[Any, Any]


def warnings_of(log: Log) -> list[str]:
    """Return the names of the rules that would have warned at least once."""
    return [name for name, rule in RULES.items() if rule(log)]


def _entropy_starts_low(log: Log) -> bool:
    values = _entropies(log)
    return len(values) >= 3 and float(values[:3].mean()) < 0.3


def _entropy_rises(log: Log) -> bool:
    return any(slope > 0.1 for slope in _early_slopes(log))


def _entropy_stays(log: Log) -> bool:
    return any(abs(slope) < 1e-3 for slope in _early_slopes(log))


def _entropy_falls_fast(log: Log) -> bool:
    bends = [np.gradient(np.gradient(region)) for region in _regions(_early(log))]
    return any(np.mean(bend < -0.1) >= 0.2 for bend in bends)


def _entropy_fluctuates(log: Log) -> bool:
    return any(_rmse_around_line(region) > 0.1 for region in _regions(_entropies(log)))


def _kl_is_high(log: Log) -> bool:
    return bool(np.any(_values(log, "approx_kl") > 0.1))


def _loss_is_not_finite(log: Log) -> bool:
    return not all(np.all(np.isfinite(_raw(log, name))) for name in LOSSES)


def _loss_stays(log: Log) -> bool:
    """Return whether five losses in a row each fall by less than 5 %, or rise."""
    return any(_run_of(1 - ratios < 0.05, 4) for ratios in _loss_ratios(log))


def _loss_diverges(log: Log) -> bool:
    """Return whether five losses in a row at least double."""
    return any(_run_of(ratios >= 2, 4) for ratios in _loss_ratios(log))


def _loss_fluctuates(log: Log) -> bool:
    """Return whether, in 50 losses, more than half of the turns are changes of direction."""
    turns = [np.diff(ratios > 1).astype(float) for ratios in _loss_ratios(log)]
    return any(
        np.any(np.convolve(one, np.ones(48), "valid") > 25) for one in turns if len(one) >= 48
    )


def _returns_vary_little(log: Log) -> bool:
    """Return whether the stds of three returns hardly change while the agent explores."""
    returns = _before(log, "episode_return_mean", EXPLORATION)
    spread = [np.std(returns[at : at + 3], ddof=1) for at in range(0, len(returns) - 2, 3)]
    return len(spread) >= 5 and _rmse_around_line(np.asarray(spread)) < 0.1


def _exploration_starts_elsewhere(log: Log) -> bool:
    epsilon = _values(log, "epsilon")
    return len(epsilon) > 0 and float(epsilon[0]) < 0.9  # the first value is logged after a rollout


def _exploration_rises(log: Log) -> bool:
    epsilon = _values(log, "epsilon")
    return len(epsilon) > 1 and _slope(epsilon) > 0.01


def _exploration_jumps(log: Log) -> bool:
    epsilon = _values(log, "epsilon")
    return len(epsilon) > 2 and bool(np.any(np.abs(np.gradient(np.gradient(epsilon))) > 0.22))


def _target_network_stays(log: Log) -> bool:
    changes = _values(log, "target_update_ratio")
    return len(changes) > 0 and not np.any(changes)


def _targets_are_others(log: Log) -> bool:
    return log.algorithm == "dqn" and bool(np.any(_values(log, "target_error_max") > ROUNDING))


def _observations_are_large(log: Log) -> bool:
    return bool(np.any(_values(log, "obs_abs_mean") > 10))


def _observations_stay(log: Log) -> bool:
    return bool(np.any(_values(log, "obs_std_max") <= 1e-3))


def _rewards_are_large(log: Log) -> bool:
    low, high = _values(log, "reward_min"), _values(log, "reward_max")
    return bool(np.any(low < -10) or np.any(high > 10))


RULES: dict[str, Callable[[Log], bool]] = {
    "entropy starts low": _entropy_starts_low,
    "entropy rises": _entropy_rises,
    "entropy stays": _entropy_stays,
    "entropy falls fast": _entropy_falls_fast,
    "entropy fluctuates": _entropy_fluctuates,
    "KL is high": _kl_is_high,
    "loss is not finite": _loss_is_not_finite,
    "loss stays": _loss_stays,
    "loss diverges": _loss_diverges,
    "loss fluctuates": _loss_fluctuates,
    "returns vary little": _returns_vary_little,
    "exploration starts elsewhere": _exploration_starts_elsewhere,
    "exploration rises": _exploration_rises,
    "exploration jumps": _exploration_jumps,
    "target network stays": _target_network_stays,
    "targets are others": _targets_are_others,
    "observations are large": _observations_are_large,
    "observations stay": _observations_stay,
    "rewards are large": _rewards_are_large,
}
OF_LOSS_CURVES = frozenset(("loss stays", "loss diverges", "loss fluctuates"))


def _raw(log: Log, name: str) -> Values:
    return log.signals[name].y if name in log.signals else np.zeros(0)


def _values(log: Log, name: str) -> Values:
    values = _raw(log, name)
    return values[np.isfinite(values)]


def _before(log: Log, name: str, share: float) -> Values:
    if name not in log.signals:
        return np.zeros(0)
    signal = log.signals[name]
    early = (signal.x <= share * log.budget) & np.isfinite(signal.y)
    return signal.y[early]


def _entropies(log: Log) -> Values:
    """Return the entropies of discrete actions, in nats: it computes no others."""
    return _values(log, "entropy") if "entropy_max" in log.signals else np.zeros(0)


def _early(log: Log) -> Values:
    return _before(log, "entropy", EXPLORATION) if "entropy_max" in log.signals else np.zeros(0)


def _early_slopes(log: Log) -> list[float]:
    values = _early(log)
    return [_slope(values[:end]) for end in range(REGION, len(values) + 1)]


def _regions(values: Values) -> list[Values]:
    return [values[end - REGION : end] for end in range(REGION, len(values) + 1)]


def _slope(values: Values) -> float:
    """Return the change for each point of the line of least squares."""
    return float(np.polyfit(np.arange(len(values)), values, 1)[0])


def _rmse_around_line(values: Values) -> float:
    x = np.arange(len(values))
    return float(np.sqrt(np.mean((values - np.polyval(np.polyfit(x, values, 1), x)) ** 2)))


def _loss_ratios(log: Log) -> list[Values]:
    losses = [_values(log, name) for name in LOSSES]
    return [one[1:] / one[:-1] for one in losses if len(one) >= 2 and np.all(one[:-1])]


def _run_of(wrong: Values, length: int) -> bool:
    """Return whether `length` values in a row are true."""
    return bool(np.any(np.convolve(wrong.astype(int), np.ones(length, int), "valid") == length))
