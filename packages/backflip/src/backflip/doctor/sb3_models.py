"""Models and environments of Stable-Baselines3, as the callback of the doctor asks them."""

import contextlib
import importlib
import sys
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

# Neither is among our packages, so that type checkers do not know them.
torch: Any = importlib.import_module("torch")
gymnasium: Any = importlib.import_module("gymnasium")

VARIANTS = {"maskableppo": "ppo", "recurrentppo": "ppo"}  # that learn as the other does
LIBRARIES = ("stable_baselines3.", "sb3_contrib.")
# Wrappers that leave rewards and ends of episodes as they are.
PLAIN = frozenset(
    (
        "Monitor",
        "PassiveEnvChecker",
        "OrderEnforcing",
        "TimeLimit",
        "RecordEpisodeStatistics",
        "FlattenObservation",
        "NormalizeObservation",
        "RescaleObservation",
        "DtypeObservation",
        "ClipAction",
        "RescaleAction",
        "RecordVideo",
    )
)


def algorithm_of(model: Any) -> str:
    """Return the name of the algorithm, of a subclass that of the library's own class."""
    known = (one for one in type(model).__mro__ if one.__module__.startswith(LIBRARIES))
    name = next(known, type(model)).__name__.lower()
    return VARIANTS.get(name, name)


def at_start(setting: Any) -> Any:
    """Return a setting, or the first value of its schedule."""
    return setting(1.0) if callable(setting) else setting


def number_of_actions(model: Any) -> int:
    """Return the number of discrete actions; 0 for continuous ones."""
    space = model.action_space  # that of Gymnasium, or of Gym in old versions
    return int(space.n) if type(space).__name__ == "Discrete" else 0


def env_of(model: Any) -> str | None:
    """Return the environment's id if its logged returns are those of the registered one, else None.

    An argument, another time limit, or a wrapper that may change rewards or ends makes it another
    one. A `VecMonitor` logs returns as the wrappers inside it leave them.
    """
    vec: Any = model.get_env()
    try:
        spec: Any = vec.get_attr("spec")[0]
        wrappers = _changing(spec.additional_wrappers)
    except (AttributeError, NotImplementedError):  # environments that are not of Gymnasium
        return None
    while hasattr(vec, "venv"):
        wrappers |= {"VecMonitor"} & {type(vec).__name__}
        vec = vec.venv
    known: Any = gymnasium.registry.get(spec.id)
    if known is None or spec.max_episode_steps != known.max_episode_steps:
        return None
    arguments = {name: x for name, x in spec.kwargs.items() if name != "render_mode"}
    return spec.id if arguments == known.kwargs and wrappers <= PLAIN else None


def _changing(wrappers: Sequence[Any]) -> set[str]:
    """Return the names of wrappers that may change logged returns, given from the innermost on.

    Wrappers of actions or observations change neither rewards nor ends, and wrappers of rewards
    do not change what a `Monitor` inside them logs.
    """
    found, is_logged = set[str](), False
    for one in wrappers:
        harmless = (gymnasium.ActionWrapper, gymnasium.ObservationWrapper)
        harmless += (gymnasium.RewardWrapper,) if is_logged else ()
        is_logged |= one.name == "Monitor"
        kind = _loaded(one.entry_point)
        if not (isinstance(kind, type) and issubclass(kind, harmless)):
            found.add(one.name)
    return found


def _loaded(entry_point: str) -> Any:
    """Return a class by `module:Class` if its module is loaded; nothing is imported."""
    module, _, name = entry_point.partition(":")
    return getattr(sys.modules.get(module), name, None)


def evaluating(callback: Any) -> Generator[Any, None, None]:
    """Yield the callbacks that evaluate, within lists and events, as `EvalCallback` does."""
    if hasattr(callback, "last_mean_reward") and hasattr(callback, "eval_freq"):
        yield callback
    for one in (*getattr(callback, "callbacks", ()), getattr(callback, "callback", None)):
        if one is not None:
            yield from evaluating(one)


@contextlib.contextmanager
def as_in_updates(model: Any) -> Generator[None, None, None]:
    """Evaluate a policy as its update does: dropout drops, and batches are normalised.

    What this changes is put back: the mode, the statistics of batches, and random numbers.
    """
    policy: Any = model.policy
    mode, kept = policy.training, [(one, one.clone()) for one in policy.buffers()]
    policy.set_training_mode(True)
    try:
        with own_random_numbers(model.device):
            yield
    finally:
        policy.set_training_mode(mode)
        for buffer, before in kept:
            buffer.copy_(before)


@contextlib.contextmanager
def own_random_numbers(device: Any) -> Generator[None, None, None]:
    """Draw minibatches and actions without changing what training draws next."""
    state = np.random.get_state()  # noqa: NPY002  (Stable-Baselines3 draws from it)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def is_recurrent(model: Any) -> bool:
    """Return whether a policy has a memory, as that of `RecurrentPPO`."""
    return hasattr(model.rollout_buffer, "hidden_states_pi")


def action_values(model: Any, batch: Any) -> tuple[Any, Any] | None:
    """Return Q(s, a) of a batch, and the value of what comes after its rewards.

    None for critics of another form than those of DQN, QR-DQN, SAC, TD3 and DDPG.
    """
    with torch.no_grad():
        if hasattr(model, "q_net"):
            q, later = model.q_net, model.q_net_target(batch.next_observations)
            return q(batch.observations).gather(1, batch.actions.long()), _best(later)
        if hasattr(model, "quantile_net"):
            q = model.quantile_net(batch.observations).mean(1)
            later = model.quantile_net_target(batch.next_observations).mean(1)
            return q.gather(1, batch.actions.long()), _best(later)
        critic = getattr(model, "critic_target", None)
        if not hasattr(critic, "q_networks") or hasattr(critic, "n_quantiles"):
            return None
        action, bonus = _next_action(model, batch.next_observations)
        q = model.critic(batch.observations, batch.actions)[0]
        later = torch.stack(model.critic_target(batch.next_observations, action)).amin(0)
        return q, later + bonus


def _best(values: Any) -> Any:
    return values.max(1, keepdim=True)[0]


def _next_action(model: Any, obs: Any) -> tuple[Any, Any]:
    """Return the actions of the target, and what their entropy adds: -α log π of SAC, else 0."""
    if not hasattr(model, "log_ent_coef"):
        return model.policy.actor(obs), 0.0
    action, log_prob = model.policy.actor.action_log_prob(obs)
    learned = model.log_ent_coef
    temperature = model.ent_coef_tensor if learned is None else learned.exp()
    return action, -temperature * log_prob.reshape(-1, 1)


def all_parameters(module: Any) -> np.ndarray:
    """Return all parameters of a module, one after the other."""
    return np.concatenate([one.detach().cpu().numpy().ravel() for one in module.parameters()])
