"""Maps metric names of other libraries to ours where both mean exactly the same.

Every value keeps its own name. The equivalent name of ours is added only if the meaning is
identical. A name that looks similar but differs gets a caution, which the run's manifest repeats.

The meanings are those that the libraries publish: Stable-Baselines3's page on its logger, and
CleanRL's pages on its algorithms. No source was copied.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

Number = int | float
Normaliser = Callable[[str, Number], tuple[str, Number] | None]
Library = Literal["sb3", "cleanrl", "monitor", ""]


class Meaning(NamedTuple):
    """The meaning of another library's name.

    Attributes:
        ours: our name for the same metric; empty if there is none.
        caution: a warning about the values; empty if there is none.
        sign: our value is this factor times theirs.
    """

    ours: str
    caution: str
    sign: int = 1


_SPEED = "an average since learning began, not a speed: take differences of steps over time"

MEANINGS: Mapping[Library, Mapping[str, Meaning]] = {
    "sb3": {
        "train/entropy_loss": Meaning("entropy", "minus the entropy, which is above 0 here", -1),
        "train/approx_kl": Meaning("", "mean over the last epoch only, not over all"),
        "train/clip_fraction": Meaning("clip_fraction", ""),
        "train/value_loss": Meaning("", "mean squared error without ½: twice our `value_loss`"),
        "train/explained_variance": Meaning(
            "explained_variance", "against returns that contain the value itself; NaN if constant"
        ),
        "time/fps": Meaning("", f"{_SPEED}; wrong after `reset_num_timesteps=False`"),
        "time/total_timesteps": Meaning("env_steps", ""),
        "time/time_elapsed": Meaning("seconds", "since learning began, in whole seconds"),
        "rollout/ep_rew_mean": Meaning(
            "", "mean over the last 100 episodes; raw or normalised by the order of the wrappers"
        ),
        "rollout/ep_len_mean": Meaning("", "mean over the last 100 episodes"),
        "train/std": Meaning("", "mean of exp(log_std) over the actions"),
    },
    "cleanrl": {
        "losses/entropy": Meaning("", "of the last minibatch only"),
        "losses/approx_kl": Meaning("", "of the last minibatch only"),
        "losses/old_approx_kl": Meaning(
            "", "of the last minibatch only; this estimate may be below 0 without any mistake"
        ),
        "losses/clipfrac": Meaning("clip_fraction", ""),
        "losses/value_loss": Meaning(
            "", "of the last minibatch only; with ½, perhaps with clipped values"
        ),
        "losses/policy_loss": Meaning("", "of the last minibatch only"),
        "losses/explained_variance": Meaning(
            "explained_variance", "against returns that contain the value itself; NaN if constant"
        ),
        "charts/SPS": Meaning("", _SPEED),
        "charts/episodic_return": Meaning("episode_return", "of single episodes"),
        "charts/episodic_length": Meaning("episode_length", "of single episodes"),
        "charts/learning_rate": Meaning("learning_rate", ""),
    },
    "monitor": {
        "r": Meaning(
            "episode_return", "raw or normalised by the order of the wrappers; of single episodes"
        ),
        "l": Meaning("episode_length", "of single episodes"),
        "t": Meaning("seconds", "since the monitor was made"),
    },
}

# Properties of a library that its logs do not show.
REMARKS: Mapping[Library, str] = {
    "sb3": "the norm of the gradient before clipping is not logged",
    "cleanrl": "PPO takes time limits for ends of episodes; the gradient's norm is not logged",
}
NO_EPISODES = (
    "no episode is logged: with Gymnasium 1.0 or newer, CleanRL's scripts silently log none"
)


def library_of(tags: Iterable[str]) -> Library:
    """Return the library that logs such names; empty if unknown."""
    found = set(tags)
    if "charts/SPS" in found or "charts/episodic_return" in found:
        return "cleanrl"
    if "time/fps" in found or "time/total_timesteps" in found:
        return "sb3"
    return ""


def normaliser(library: Library) -> Normaliser:
    """Return a function that maps a name and value to ours, or to None without an equivalent."""
    meanings = MEANINGS.get(library, {})

    def normalised(name: str, value: Number) -> tuple[str, Number] | None:
        meaning = meanings.get(name)
        return (meaning.ours, meaning.sign * value) if meaning and meaning.ours else None

    return normalised


def cautions(library: Library, tags: Iterable[str]) -> dict[str, str]:
    """Return cautions by name; the one about the whole log has an empty name."""
    found = set(tags)
    meanings = MEANINGS.get(library, {})
    cautions = {name: meaning.caution for name, meaning in meanings.items() if name in found}
    remarks = [REMARKS[library]] if library in REMARKS else []
    if library == "cleanrl" and "charts/episodic_return" not in found:
        remarks.append(NO_EPISODES)
    whole = {"": "; ".join(remarks)} if remarks else {}
    return whole | {name: caution for name, caution in cautions.items() if caution}
