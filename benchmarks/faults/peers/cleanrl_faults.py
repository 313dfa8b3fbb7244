"""The files of CleanRL that are run, and the faults that are put into them.

A fault is an option of the file, or one short piece of text that is replaced while it runs; no line
of CleanRL is kept here. Families and true causes were written down before any log was diagnosed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

SEEDS = 3


@dataclass(frozen=True)
class Training:
    """A file of CleanRL, with options that make it short.

    Attributes:
        name: its name; a fault is named `FAULT@NAME`.
        file: its name in the folder `cleanrl` of a checkout.
        options: of its command line.
    """

    name: str
    file: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """One change that breaks a file.

    Attributes:
        name: its name.
        family: faults of one family have one kind of cause.
        causes: ids of the causes that name it; the first is the truest.
        training: the name of the training run that it is put into.
        options: the change as options.
        edit: the change as a text that occurs once in the file, and what replaces it.
    """

    name: str
    family: str
    causes: tuple[str, ...]
    training: str
    options: tuple[str, ...] = ()
    edit: tuple[str, str] = ("", "")


_SHORT = ("--env-id", "Pendulum-v1", "--total-timesteps", "6000", "--learning-starts", "500")
_PPO, _DQN = "cleanrl-ppo-CartPole", "cleanrl-dqn-CartPole"
HEALTHY = (
    Training(_PPO, "ppo.py", ("--total-timesteps", "60000")),
    Training(_DQN, "dqn.py", ("--total-timesteps", "60000", "--learning-starts", "2000")),
    Training("cleanrl-td3-Pendulum", "td3_continuous_action.py", _SHORT),
    Training("cleanrl-ddpg-Pendulum", "ddpg_continuous_action.py", _SHORT),
    Training("cleanrl-sac-Pendulum", "sac_continuous_action.py", _SHORT),
    Training("cleanrl-c51-CartPole", "c51.py", ("--total-timesteps", "30000")),
    Training(
        "cleanrl-ppo-Pendulum",
        "ppo_continuous_action.py",
        ("--env-id", "Pendulum-v1", "--total-timesteps", "60000"),
    ),
)

FAULTS = (
    Fault("rate-high", "rate", ("steps-too-large",), _PPO, options=("--learning-rate", "0.1")),
    Fault("entropy-huge", "entropy", ("entropy-bonus",), _PPO, options=("--ent-coef", "1.0")),
    Fault("discount-zero", "discount", ("discount", "value-targets"), _PPO, ("--gamma", "0")),
    Fault(
        "targets-are-rewards",
        "targets",
        ("value-targets",),
        _PPO,
        edit=("returns = advantages + values", "returns = rewards.clone()"),
    ),
    Fault(
        "policy-loss-negated",
        "policy-loss",
        ("policy-loss", "advantages"),
        _PPO,
        edit=("mb_advantages = b_adv", "mb_advantages = -b_adv"),
    ),
    Fault(
        "reward-negated",
        "reward-sign",
        ("reward-sign", "policy-loss"),
        _PPO,
        edit=("] = torch.tensor(reward)", "] = -torch.tensor(reward)"),
    ),
    Fault(
        "actions-of-others",
        "actions",
        ("actions", "acting-and-learning-disagree"),
        _PPO,
        edit=("envs.step(action.cpu().numpy())", "envs.step(action.roll(1, 0).cpu().numpy())"),
    ),
    Fault(
        "advantages-shuffled",
        "advantages",
        ("advantages",),
        _PPO,
        edit=("advantages.reshape(-1)", "advantages.reshape(-1)[torch.randperm(args.batch_size)]"),
    ),
    Fault("rate-high", "rate", ("steps-too-large",), _DQN, options=("--learning-rate", "0.1")),
    Fault("epsilon-stays", "exploration", ("too-much-exploration",), _DQN, ("--end-e", "1.0")),
    Fault(
        "target-never-updated",
        "target-network",
        ("target-network",),
        _DQN,
        options=("--target-network-frequency", "1000000000"),
    ),
    Fault(
        "reward-negated",
        "reward-sign",
        ("reward-sign", "policy-loss"),
        _DQN,
        edit=("= data.rewards", "= -data.rewards"),
    ),
    Fault(
        "worst-action-in-target",
        "targets",
        ("value-targets",),
        _DQN,
        edit=("next_observations).max(", "next_observations).min("),
    ),
    Fault(
        "no-terminal-mask",
        "targets",
        ("value-targets",),
        _DQN,
        edit=("(1 - data.dones.flatten())", "1"),
    ),
)


def faulty() -> Iterator[tuple[Fault, Training]]:
    """Yield each fault with its training run."""
    for fault in FAULTS:
        yield fault, next(one for one in HEALTHY if one.name == fault.training)


def find(name: str) -> tuple[Fault | None, Training]:
    """Return the fault and the training run of a name such as `rate-high@cleanrl-ppo-CartPole`."""
    broken = next((pair for pair in faulty() if f"{pair[0].name}@{pair[1].name}" == name), None)
    return broken or (None, next(one for one in HEALTHY if one.name == name))


def names() -> list[str]:
    """Return the names of all runs: the healthy ones first."""
    return [one.name for one in HEALTHY] + [f"{fault.name}@{of.name}" for fault, of in faulty()]
