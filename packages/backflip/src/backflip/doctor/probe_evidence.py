"""What the probes of an algorithm say about the causes of a finding.

The probes run the code of the algorithm in environments and with settings that are known to work.
If the cause c is a mistake in the code, probe i fails with probability p_i(c) (`Cause.probes`). If
it is in the settings, the data or the environment, a probe fails only by chance:

    P(probes | c) = s Π_i B(f_i; p_i(c)) + (1 - s) Π_i B(f_i; q),   B(f; p) = p if f else 1 - p

where f_i says whether probe i failed, s is `IN_CODE` and q is `BY_CHANCE`. s is 0 for a cause
without probes. `SIGN` counts as one more probe: on `probe:1`, where each reward is 1, the learned
value is the reward that the algorithm receives, so it must not be negative.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from backflip.doctor.diagnosis import Ranked
from backflip.doctor.probing.outcome import Outcome

CONSTANT = "probe:1"
SIGN = "probe:1:sign"
IN_CODE = 0.5  # probability that a cause which can be in the code is there
BY_CHANCE = 0.05  # probability that a probe of a correct algorithm fails


def weigh_by_probes(causes: Sequence[Ranked], outcomes: Sequence[Outcome]) -> list[Ranked]:
    """Return the causes with P(c | probes) ∝ P(c) P(probes | c), the most probable first."""
    failed = failures(outcomes)
    weights = np.asarray([one.probability * likelihood(one.cause.probes, failed) for one in causes])
    shares = (weights / weights.sum()).tolist()
    found = [one._replace(probability=share) for one, share in zip(causes, shares, strict=True)]
    return sorted(found, key=lambda one: -one.probability)


def failures(outcomes: Sequence[Outcome]) -> dict[str, bool]:
    """Return whether each probe failed, and `SIGN`; what was not asked is left out."""
    failed = {one.probe.id: bad for one in outcomes if (bad := has_failed(one)) is not None}
    for one in outcomes:
        if one.probe.id == CONSTANT and not math.isnan(one.value):
            failed[SIGN] = one.value < -one.probe.tolerance
    return failed


def has_failed(one: Outcome) -> bool | None:
    """Return whether what a probe is about is wrong: the actions, if it asks for them.

    The values of a probe that asks for actions are those of the policy: they are wrong after wrong
    actions, and say nothing by themselves. None if a learner without values was asked for them, or
    values have not converged.
    """
    if one.probe.actions is None:
        return {"passed": False, "failed": True}.get(one.verdict)
    return None if math.isnan(one.action_error) else one.action_error > one.probe.tolerance


def likelihood(probes: Mapping[str, float], failed: Mapping[str, bool]) -> float:
    """Return P(probes | c), as in the module's docstring."""
    by_chance = math.prod(BY_CHANCE if one else 1.0 - BY_CHANCE for one in failed.values())
    if not probes:
        return by_chance
    shares = {name: probes.get(name, BY_CHANCE) for name in failed}
    in_code = math.prod(shares[name] if one else 1.0 - shares[name] for name, one in failed.items())
    return IN_CODE * in_code + (1.0 - IN_CODE) * by_chance
