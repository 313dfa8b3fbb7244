"""The order in which metrics are listed and drawn."""

import re

from runshelf.store.machine_metrics import is_of_machine

# Returns and scores first, then losses, then other metrics; system metrics last.
_FIRST = (
    r"^(eval|test)?.*(episode_)?returns?(_mean)?$|ep_rew_mean$|episodic_return$|eval/mean_reward$",
    r"(success|accuracy|score|win_rate)",
    r"return|reward_mean|reward$",
    r"episode_length_mean|^loss$|_loss$|/loss$|^loss/",
    r"entropy$|kl|explained_variance|grad_norm",
)


def rank(metric: str) -> tuple[int, str]:
    """Return a key that sorts metrics."""
    if is_of_machine(metric):
        return len(_FIRST) + 1, metric
    found = (n for n, pattern in enumerate(_FIRST) if re.search(pattern, metric))
    return next(found, len(_FIRST)), metric
