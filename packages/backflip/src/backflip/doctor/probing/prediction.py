"""The values that a hypothesis predicts on a probe, and how far learned values are from them.

One sweep sets V(s) to the mean target T V(s) under the hypothesis, from V = 0 on. A learner whose
values are still rising is on the way that sweeps take; one that has converged is at its end.
"""

import itertools

import numpy as np
from jaxtyping import Float

from backflip.doctor.probing.chains import Chain, Episode
from backflip.doctor.probing.hypotheses import Hypothesis

UNCONVERGED = 0.1  # what it costs a hypothesis that values are still on their way
EARLY = 0.2  # what it costs more that they are where they began
UNKNOWN = 0.1  # the least error where it says nothing about a state
SWEEPS = 32  # on the way; in between, and after them, the way is straight
FAR = 1e6  # stands for values without bound

Points = Float[np.ndarray, "points states"]


def distance(
    learned: Float[np.ndarray, "seeds shown"], of: Hypothesis, chain: Chain, discount: float
) -> float:
    """Return the largest error of a seed's values, if the hypothesis is true.

    An error is |v - p| / max(1, max|v|, max|p|), for a learned value v and the nearest values p
    that the hypothesis predicts. Values on the way to them count as `UNCONVERGED` more, and
    before the first sweep, up to `EARLY` more the nearer they are to 0, where all ways begin.
    """
    ways = [way(of, chain, discount, decay) for decay in of.decays]
    ends = np.stack([one[-1] for one in ways])
    if of.runs_away:
        ends = np.concatenate([ends, FAR * ends])
    return max(
        min(_error(seed, ends), *(UNCONVERGED + _on_the_way(seed, one) for one in ways))
        for seed in learned
    )


def predicted(of: Hypothesis, chain: Chain, discount: float) -> Float[np.ndarray, " states"]:
    """Return the values that a hypothesis converges to; NaN where it says nothing."""
    return way(of, chain, discount, of.decays[0])[-1]


def way(of: Hypothesis, chain: Chain, discount: float, decay: float) -> Points:
    """Return values after each sweep from V = 0 on, then those of convergence.

    Values of a state that the hypothesis never learns are NaN.
    """
    constant, weights, is_learned = _targets(of, chain, discount, decay)
    points = [np.zeros(len(constant))]
    for _ in range(SWEEPS):
        points.append(constant + weights @ points[-1])
    if np.abs(np.linalg.eigvals(weights)).max() < 1.0 - 1e-9:
        end = np.linalg.solve(np.eye(len(constant)) - weights, constant)
    else:
        end = points[-1] + FAR * (points[-1] - points[-2])
    return np.where(is_learned, np.stack([*points, end]), np.nan)


def _targets(
    of: Hypothesis, chain: Chain, discount: float, decay: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return c and W with T V = c + W V, and which states are learned."""
    count = 1 + max(max(step.state, step.next_state) for one in chain for step in one)
    sums, visits = np.zeros((count, count + 1)), np.zeros((count, 1))
    for episode in of.change(chain):
        targets = _of_episode(episode, of.discount(discount), decay, count)
        for step, target in zip(episode, targets, strict=True):
            sums[step.state] += of.share(discount) * target
            visits[step.state] += 1
    means = sums / np.maximum(visits, 1)
    return means[:, -1], means[:, :-1], visits[:, 0] > 0


def _of_episode(episode: Episode, discount: float, decay: float, count: int) -> list[np.ndarray]:
    """Return the λ-return of each step, as its weights of V and then its constant.

    G_t = r_t + γ b_t ((1 - λ) V(s_{t+1}) + λ G_{t+1}), with V(s_{t+1}) for G after the last step.
    """
    unit, found = np.eye(count + 1), list[np.ndarray]()
    for step in reversed(episode):
        value = unit[step.next_state]
        later = (1 - decay) * value + decay * found[-1] if found else value
        found.append(step.reward * unit[-1] + discount * step.bootstraps * later)
    return found[::-1]


def _on_the_way(values: Float[np.ndarray, " shown"], points: Points) -> float:
    """Return the error to the nearest point of a way; more if that is before the first sweep."""
    first = np.nan_to_num(points[1, : len(values)])
    size = float(first @ first)
    share = min(max(float(values @ first) / size, 0.0), 1.0) if size else 1.0
    return min(_error(values, points[1:]), _error(values, points[:2]) + EARLY * (1.0 - share))


def _error(values: Float[np.ndarray, " shown"], points: Points) -> float:
    """Return the error to the nearest point of a line through points."""
    line = points[:, : len(values)]
    known = ~np.isnan(line[-1])
    if not known.any():
        return UNKNOWN
    here, line = values[known], line[:, known]
    segments = list(itertools.pairwise(line)) or [(line[0], line[0])]
    least = min(_relative(here, _nearest(here, *segment)) for segment in segments)
    return least if known.all() else max(least, UNKNOWN)


def _nearest(here: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    length = float(np.square(end - start).sum())
    share = float((here - start) @ (end - start)) / length if length else 0.0
    return start + min(max(share, 0.0), 1.0) * (end - start)


def _relative(here: np.ndarray, there: np.ndarray) -> float:
    size = max(1.0, float(np.abs(here).max()), float(np.abs(there).max()))
    return float(np.abs(here - there).max()) / size
