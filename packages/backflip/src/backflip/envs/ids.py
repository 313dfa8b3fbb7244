"""The ids of environments: native ones, Gymnasium's, and suggestions for unknown ids."""

import contextlib
import importlib
import re
from collections.abc import Sequence
from typing import Any

from runshelf.errors import UsageError, did_you_mean

HOST_PREFIX = "gymnasium:"
FIXED_PREFIX = "fixed:"
ATARI_PREFIX = "ALE/"
CONTROL_PREFIX = "dm_control:"
PREFIXES = (HOST_PREFIX, FIXED_PREFIX, CONTROL_PREFIX)
NATIVE = {
    "dot": "backflip.envs.native.dot:Dot",
    "Acrobot-v1": "backflip.envs.native.acrobot:Acrobot",
    "CartPole-v1": "backflip.envs.native.cartpole:CartPole",
    "FrozenLake-v1": "backflip.envs.native.frozen_lake:FrozenLake",
    "FrozenLake8x8-v1": "backflip.envs.native.frozen_lake:FrozenLake8x8",
    "MinAtar/Asterix-v0": "backflip.envs.native.minatar.asterix:AsterixV0",
    "MinAtar/Asterix-v1": "backflip.envs.native.minatar.asterix:Asterix",
    "MinAtar/Breakout-v0": "backflip.envs.native.minatar.breakout:BreakoutV0",
    "MinAtar/Breakout-v1": "backflip.envs.native.minatar.breakout:Breakout",
    "MinAtar/Freeway-v0": "backflip.envs.native.minatar.freeway:FreewayV0",
    "MinAtar/Freeway-v1": "backflip.envs.native.minatar.freeway:Freeway",
    "MinAtar/Seaquest-v0": "backflip.envs.native.minatar.seaquest:SeaquestV0",
    "MinAtar/Seaquest-v1": "backflip.envs.native.minatar.seaquest:Seaquest",
    "MinAtar/SpaceInvaders-v0": "backflip.envs.native.minatar.space_invaders:SpaceInvadersV0",
    "MinAtar/SpaceInvaders-v1": "backflip.envs.native.minatar.space_invaders:SpaceInvaders",
    "MountainCar-v0": "backflip.envs.native.mountain_car:MountainCar",
    "MountainCarContinuous-v0": (
        "backflip.envs.native.mountain_car_continuous:MountainCarContinuous"
    ),
    "Pendulum-v1": "backflip.envs.native.pendulum:Pendulum",
    "probe:1": "backflip.envs.native.probes:ConstantReward",
    "probe:2": "backflip.envs.native.probes:ObservedReward",
    "probe:3": "backflip.envs.native.probes:DelayedReward",
    "probe:4": "backflip.envs.native.probes:ChosenReward",
    "probe:5": "backflip.envs.native.probes:MatchedReward",
    "probe:truncation": "backflip.envs.native.probes:EndlessReward",
    "probe:continuous": "backflip.envs.native.probes:QuadraticReward",
    "probe:idle": "backflip.envs.native.extra_probes:IdleChoice",
    "probe:row": "backflip.envs.native.extra_probes:OneRowReward",
    "probe:scale": "backflip.envs.native.extra_probes:FarFromZero",
    "probe:bound": "backflip.envs.native.extra_probes:BestAtBound",
    "probe:zero": "backflip.envs.native.extra_probes:BestAtZero",
    "probe:memory": "backflip.envs.native.extra_probes:RememberedReward",
    "probe:distractor": "backflip.envs.native.extra_probes:Distracted",
    "probe:action": "backflip.envs.native.extra_probes:ActionReward",
}
OLD_ATARI = re.compile(r"(\w+?)(?:NoFrameskip|Deterministic)?-(v0|v4)")
SHIMMY = re.compile(r"dm_control/(\w+-\w+?)(?:-v\d+)?")  # names of dm_control's tasks elsewhere
STICKY = {"v0": "0.25", "v4": "0"}  # probability of repeating the previous action


def gymnasium_spec(env_id: str) -> Any:
    """Return Gymnasium's registration of an id, which may be ale-py's or `module:Id-v0`.

    Raises:
        UsageError: the id is not registered; suggests similar ids.
    """
    import gymnasium  # noqa: PLC0415

    name = env_id.removeprefix(HOST_PREFIX).rpartition(":")[2]
    if name not in gymnasium.registry:
        _register_atari()
    if name not in gymnasium.registry:
        known = [*NATIVE, *(x for x in gymnasium.registry if not _is_old_atari(x))]
        raise UsageError(
            f"unknown environment `{env_id}`{_did_you_mean(env_id, known)} "
            f"(native: {', '.join(NATIVE)}; or a Gymnasium id; or `{CONTROL_PREFIX}domain-task`; "
            "or `module:Class` or `module:function` for your own)"
        )
    return gymnasium.registry[name]


def refuse_old_atari(env_id: str) -> None:
    """Refuse Atari ids before -v5, which observe raw frames and have other sticky actions.

    Raises:
        UsageError: the id is such an id; suggests the -v5 id with arguments.
    """
    import gymnasium  # noqa: PLC0415

    found = OLD_ATARI.fullmatch(env_id)
    if found is None or (env_id in gymnasium.registry and not _is_old_atari(env_id)):
        return
    _register_atari()
    name = f"{ATARI_PREFIX}{found[1]}-v5"
    if name in gymnasium.registry:
        raise UsageError(
            f"environment `{env_id}` has raw frames; for the papers' preprocessing try {name} "
            f"--env-arg repeat_action_probability={STICKY[found[2]]}, for Gymnasium's own "
            f"{HOST_PREFIX}{env_id}"
        )


def family(env_id: str) -> str:
    """Return a Gymnasium id without its version and our prefixes."""
    return _bare_id(env_id.removeprefix(HOST_PREFIX).removeprefix(FIXED_PREFIX))


def newest(env_id: str) -> str:
    """Return the id of the newest version of a Gymnasium environment, or an empty text."""
    import gymnasium  # noqa: PLC0415

    same = [x for x in gymnasium.registry if _bare_id(x) == _bare_id(env_id)]
    return max(same, key=_version, default="")


def _did_you_mean(env_id: str, known: Sequence[str]) -> str:
    """Return `, did you mean ...?` with ids of the same name, or with a similar one."""
    elsewhere = SHIMMY.fullmatch(env_id)
    if elsewhere is not None:
        return f", did you mean `{CONTROL_PREFIX}{elsewhere[1]}`?"
    latest: dict[str, str] = {}
    for x in known:
        if _bare(x) == _bare(env_id):
            latest[_bare_id(x)] = max(latest.get(_bare_id(x), x), x, key=_version)
    if latest:
        return f", did you mean {' or '.join(f'`{x}`' for x in list(latest.values())[:3])}?"
    return did_you_mean(env_id, known)


def _is_old_atari(env_id: str) -> bool:
    """Return whether a registered id is an Atari id before -v5."""
    import gymnasium  # noqa: PLC0415

    entry_point = str(gymnasium.registry[env_id].entry_point)
    return bool(OLD_ATARI.fullmatch(env_id)) and entry_point.startswith("ale_py")


def _register_atari() -> None:
    """Register ale-py's ids with Gymnasium, if ale-py is installed."""
    with contextlib.suppress(ImportError):
        importlib.import_module("ale_py")


def _bare(env_id: str) -> str:
    """Return an id's name in lower case, without package and version."""
    return _bare_id(env_id).rpartition("/")[2].rpartition(":")[2].casefold()


def _bare_id(env_id: str) -> str:
    """Return an id without its version."""
    return re.sub(r"-v\d+$", "", env_id)


def _version(env_id: str) -> int:
    found = re.search(r"-v(\d+)$", env_id)
    return int(found[1]) if found else 0
