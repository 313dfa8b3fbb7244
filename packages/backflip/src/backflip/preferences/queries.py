"""Choice of the two clips of each query. Needs no JAX.

A method scores candidate pairs (uniform ones, ten for each query) and returns the best.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.rewards.calibration import expected_answer, sigmoid

CANDIDATES = 10  # candidate pairs for each query, as in arXiv:1706.03741, section 2.2.4
NOISE = 0.1  # share of random answers that reward models assume
REDRAWS = 20  # times that pairs which should not be asked are drawn again

Pairs = Int[np.ndarray, "candidates 2"]


def uniform_pairs(rng: np.random.Generator, clips: int, count: int) -> Int[np.ndarray, "count 2"]:
    """Return `count` uniformly drawn pairs of different clips, as indices below `clips`."""
    left = rng.integers(clips, size=count)
    right = (left + rng.integers(1, clips, size=count)) % clips
    return np.stack([left, right], axis=1)


def most_disputed(
    clip_returns: Float[np.ndarray, "clips members"],
    pairs: Pairs,
    count: int,
    tie_width: float = 0.0,
) -> Int[np.ndarray, "count 2"]:
    """Return the pairs on which the members disagree most.

    Disagreement is the variance over members of the `expected_answer` to the pair, which is
    σ(R_left - R_right) without ties. Where both answers lie within the width of ties, members
    agree, and a label says little.

    Source: Christiano et al. 2017, arXiv:1706.03741, section 2.2.4; the width is ours.

    Args:
        clip_returns: R, each member's sum of predicted rewards over each clip.
        pairs: candidate pairs, as indices of clips.
        count: the number of pairs to return.
        tie_width: θ of `backflip.core.losses.answer_probabilities`.
    """
    margin = clip_returns[pairs[:, 0]] - clip_returns[pairs[:, 1]]
    disputed = expected_answer(margin, tie_width).var(axis=1)
    return pairs[np.argsort(-disputed, kind="stable")[:count]]


def most_informative_of_members(
    clip_returns: Float[np.ndarray, "clips members"],
    pairs: Pairs,
    count: int,
    tie_width: float = 0.0,
) -> Int[np.ndarray, "count 2"]:
    """Return the pairs whose answers say most about which member is right, in nats.

        I = H(mean_m p_m) - mean_m H(p_m)

    p_m has the probabilities of the answers right, tie and left by member m, with ε = `NOISE`, and
    H is the entropy of an answer. Pairs are scored one by one, so the best may be alike.

    Source: BALD, Houlsby et al. 2011, arXiv:1112.5745, eq. 2.

    Args:
        clip_returns: R, as for `most_disputed`.
        pairs: candidate pairs, as indices of clips.
        count: the number of pairs to return.
        tie_width: θ of `backflip.core.losses.answer_probabilities`.
    """
    p = _answer_chances(clip_returns[pairs[:, 0]] - clip_returns[pairs[:, 1]], tie_width)
    information = _entropy(p.mean(2)) - _entropy(p).mean(1)
    return pairs[np.argsort(-information, kind="stable")[:count]]


def most_informative(
    mean: Float[np.ndarray, " clips"],
    covariance: Float[np.ndarray, "clips clips"],
    tie_width: float,
    pairs: Pairs,
    count: int,
) -> Int[np.ndarray, "count 2"]:
    """Return pairs whose answers together say most about the reward, chosen greedily.

    The belief about the returns of clips, in logits, is N(μ, S). For a pair with d = e_left -
    e_right, the answer has the Fisher information f(dᵀμ) about the logit dᵀR. The pair with the
    largest expected information

        ½ log(1 + f(dᵀμ) dᵀS d)

    is chosen; then S ← S - f S d dᵀS / (1 + f dᵀS d), the belief once the answer is known. So the
    second of two similar pairs is worth little. The sum is ½ log det(I + F^½ D S Dᵀ F^½).

    Source: MacKay 1992, "Information-based objective functions for active data selection", eq. 9;
    the greedy choice is within 1 - 1/e of the best (Nemhauser et al. 1978).

    Args:
        mean: μ.
        covariance: S.
        tie_width: θ of `answer_information`.
        pairs: candidate pairs, as indices of clips.
        count: the number of pairs to return.
    """
    left, right = pairs[:, 0], pairs[:, 1]
    fisher = answer_information(mean[left] - mean[right], tie_width)
    belief, chosen = covariance.astype(np.float64), list[int]()
    for _ in range(min(count, len(pairs))):
        variance = belief[left, left] + belief[right, right] - 2.0 * belief[left, right]
        worth = fisher * variance
        worth[chosen] = -np.inf
        best = int(np.argmax(worth))
        chosen.append(best)
        along = belief[:, left[best]] - belief[:, right[best]]
        belief -= np.outer(along, along) * (fisher[best] / (1.0 + worth[best]))
    return pairs[chosen]


def answer_information(
    logit: Float[np.ndarray, " pairs"], tie_width: float
) -> Float[np.ndarray, " pairs"]:
    """Return the Fisher information Σ_k p_k'² / p_k of an answer about the pair's logit.

    The answers k are right, tie and left; their probabilities are those of
    `backflip.core.losses.answer_probabilities` with ε = `NOISE`. Without ties θ is 0.
    """
    left, right = sigmoid(logit - tie_width), sigmoid(-logit - tie_width)
    informed, random = 1.0 - NOISE, NOISE / (3 if tie_width > 0 else 2)
    up, down = informed * left * (1.0 - left), informed * right * (1.0 - right)
    found = up**2 / (informed * left + random) + down**2 / (informed * right + random)
    if tie_width > 0:
        tie = np.maximum(1.0 - left - right, 0.0)
        found = found + (down - up) ** 2 / (informed * tie + random)
    return found


def posterior_covariance(
    clips: Float[np.ndarray, "clips features"],
    labelled: Float[np.ndarray, "labels features"],
    fisher: Float[np.ndarray, " labels"],
) -> Float[np.ndarray, "clips clips"]:
    """Return the covariance of the returns wᵀφ of clips, given labels, in Laplace's approximation.

        S = Φ (I + DᵀF D)⁻¹ Φᵀ,   w ~ N(0, I) before any label

    Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", eq. 3.27, whose
    matrices have the size of the labels.

    Args:
        clips: φ of each clip, the rows of Φ.
        labelled: φ_left - φ_right of each label, the rows of D.
        fisher: the diagonal of F, the Fisher information of each label.
    """
    clips, labelled = clips.astype(np.float64), labelled.astype(np.float64)
    scaled = labelled * np.sqrt(fisher)[:, None]
    inner = np.linalg.cholesky(np.eye(len(scaled)) + scaled @ scaled.T)
    known = np.linalg.solve(inner, scaled @ clips.T)
    return clips @ clips.T - known.T @ known


def farthest_first(
    differences: Float[np.ndarray, "candidates features"],
    labelled: Float[np.ndarray, "labels features"],
    count: int,
) -> Int[np.ndarray, " count"]:
    """Return the places of candidates that cover the space: each is farthest from all before it.

    "Before it" are the labelled pairs, the candidates chosen so far, and the pair of two equal
    clips, whose difference is 0. The distance of two pairs is that of their differences of
    features, min(‖a - b‖, ‖a + b‖): left and right may be swapped.

    Source: Gonzalez 1985, the greedy k-center rule; Sener & Savarese 2018, arXiv:1708.00489,
    algorithm 1.

    Args:
        differences: φ_left - φ_right of each candidate.
        labelled: the same of the labelled pairs.
        count: how many to choose.
    """
    nearest = np.linalg.norm(differences, axis=1)
    for one in labelled:
        nearest = np.minimum(nearest, _apart(differences, one))
    return greedy_cover(nearest, lambda i: _apart(differences, differences[i]), count)


def greedy_cover(
    nearest: Float[np.ndarray, " candidates"],
    distances_from: Callable[[int], Float[np.ndarray, " candidates"]],
    count: int,
) -> Int[np.ndarray, " chosen"]:
    """Return the places of candidates, each farthest from what is covered and those before it.

    Args:
        nearest: the distance of each candidate to the nearest point that is covered already.
        distances_from: returns the distances of all candidates to one of them.
        count: how many to choose; all if there are fewer.
    """
    nearest, chosen = nearest.copy(), list[int]()
    for _ in range(min(count, len(nearest))):
        best = int(np.argmax(nearest))
        chosen.append(best)
        nearest = np.minimum(nearest, distances_from(best))
        nearest[chosen] = -1.0
    return np.array(chosen, int)


def redrawn(
    rng: np.random.Generator, clips: int, pairs: Pairs, may_be_asked: Callable[[Pairs], np.ndarray]
) -> Pairs:
    """Return the pairs, where those that should not be asked are drawn again, a few times.

    Neither should a pair of the same two clips as another one. If none of the clips at hand make a
    better pair, they are asked after all.

    Args:
        rng: draws pairs.
        clips: the number of clips.
        pairs: uniform pairs.
        may_be_asked: returns for each of some pairs whether it should be asked.
    """
    pairs, wrong = pairs.copy(), np.arange(len(pairs))
    for _ in range(REDRAWS):
        wrong = wrong[~may_be_asked(pairs[wrong]) | _repeat(pairs, wrong)]
        if not len(wrong):
            break
        pairs[wrong] = uniform_pairs(rng, clips, len(wrong))
    return pairs


def _repeat(pairs: Pairs, those: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Return which of those pairs show the clips of another pair, or of an earlier one of those."""
    others = np.delete(np.arange(len(pairs)), those)
    ordered = np.sort(pairs[np.concatenate([others, those])], axis=1)
    _, first = np.unique(ordered, axis=0, return_index=True)
    return ~np.isin(np.arange(len(others), len(pairs)), first)


def _apart(many: Float[np.ndarray, "n f"], one: Float[np.ndarray, " f"]) -> np.ndarray:
    return np.minimum(np.linalg.norm(many - one, axis=1), np.linalg.norm(many + one, axis=1))


def _answer_chances(
    logit: Float[np.ndarray, "pairs members"], tie_width: float
) -> Float[np.ndarray, "answers pairs members"]:
    """Return `backflip.core.losses.answer_probabilities` with ε = `NOISE`: right, tie, left.

    Without ties θ is 0, and there are two answers: right and left.
    """
    left, right = sigmoid(logit - tie_width), sigmoid(-logit - tie_width)
    answers = [right, np.maximum(1.0 - left - right, 0.0), left] if tie_width > 0 else [right, left]
    return (1.0 - NOISE) * np.stack(answers) + NOISE / len(answers)


def _entropy(p: Float[np.ndarray, "answers ..."]) -> Float[np.ndarray, "..."]:
    return -(p * np.log(p)).sum(0)
