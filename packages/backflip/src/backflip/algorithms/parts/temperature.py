"""The price of entropy, learnt so that a policy keeps as much of it as is wanted."""

import jax
from jaxtyping import Array, Float


def temperature_loss(
    log_temperature: Float[Array, ""], entropy: Float[Array, ""], wanted: float
) -> Float[Array, ""]:
    """Return log α (H - H̄): a policy with more entropy than is wanted makes α fall.

    The gradient reaches log α alone, whose sign it does not depend on.

    Source: Haarnoja et al. 2018, arXiv:1812.05905, eq. 18, with log α in the place of α, as in the
    authors' code: the minimum is the same, and α stays above 0.

    Args:
        log_temperature: log α.
        entropy: H, of the policy, in nats.
        wanted: H̄.
    """
    return log_temperature * jax.lax.stop_gradient(entropy - wanted)
