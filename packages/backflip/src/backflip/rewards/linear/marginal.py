"""The log evidence of a linear model in Laplace's approximation.

With the most probable logits m = Φ w, and there a and W, the gradient and the Fisher information of
the log-likelihood,

    log Z = Σ log p - ½ mᵀa - ½ log|I + ΦᵀWΦ|

and the same for the width of ties. Where some answers are random, the likelihood of a label is flat
at large logits. W is nearly 0 there, and the approximation counts a volume that is not there: with
a prior variance of 300 and ε = .2, labels that share nothing get -.33 nats each, where log ½ = -.69
is the truth. So models that memorise have too much evidence. docs/decisions/0005 (2026-11-27) has
two alternatives, which were not better where agents were taught with them.

Source: Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", equation 3.32, with
the Fisher information as in section 3.7.
"""

import numpy as np
from jaxtyping import Float

from backflip.rewards.linear.design import Designs
from backflip.rewards.linear.posterior import WIDTH_DEVIATION, MostProbable


def log_evidence(designs: Designs, found: MostProbable) -> Float[np.ndarray, " V"]:
    """Return the log evidence of each model in nats.

    Args:
        designs: of the models.
        found: the most probable weights.
    """
    of_width = 0.5 * np.log1p(WIDTH_DEVIATION**2 * found.score.width_fisher)
    return found.log_posterior - designs.half_log_det(found.score.fisher) - of_width
