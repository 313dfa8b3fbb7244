"""What is known of an environment before anybody steps it, side_by_side its spaces."""

import inspect
from collections.abc import Mapping
from typing import Any

from backflip.envs.ids import ATARI_PREFIX, FIXED_PREFIX, HOST_PREFIX
from backflip.envs.registry import atari_facts, is_native, make_native
from backflip.envs.spec import HasFacts
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.view import View
from runshelf.errors import UserFacingError

SKIPS = ("frame_skip", "frameskip")  # what constructors call it


def is_atari(env_id: str) -> bool:
    """Return whether an id is of the Arcade Learning Environment."""
    return env_id.startswith(ATARI_PREFIX)


def special_facts(env_id: str, env_args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what else is to be known of environments of a kind, name and text."""
    if is_atari(env_id):
        return atari_facts(env_id, env_args)
    native = make_native(env_id, env_args) if is_native(env_id) else None
    return native.facts() if isinstance(native, HasFacts) else []


def frame_skip(env_id: str, env_args: Mapping[str, Any]) -> int | None:
    """Return how many steps of the simulation an env step is; None where nothing says so."""
    if is_native(env_id):
        return 1  # of ours, and of a person's own: they have no other step
    import gymnasium  # noqa: PLC0415  (takes a second to import)
    from gymnasium.envs.registration import load_env_creator  # noqa: PLC0415

    spec = gymnasium.registry.get(env_id.removeprefix(HOST_PREFIX).removeprefix(FIXED_PREFIX))
    if spec is None or spec.entry_point is None:
        return None
    creator: Any = spec.entry_point
    parameters = inspect.signature(
        load_env_creator(creator) if isinstance(creator, str) else creator
    ).parameters
    defaults = {name: parameters[name].default for name in SKIPS if name in parameters}
    given = {**defaults, **spec.kwargs, **env_args}
    skips = [given[name] for name in SKIPS if isinstance(given.get(name), int)]
    return skips[0] if skips else None


def step_seconds(env_id: str, view: View) -> float | None:
    """Return how long an env step lasts in the environment's own time; None where nobody knows.

    A view that has to start a simulator to know it may find none that can draw.
    """
    if isinstance(view, NumbersView) or (isinstance(view, PixelsView) and not is_atari(env_id)):
        return None
    try:
        return view.step_seconds()
    except UserFacingError:
        return None


def action_meanings(env_id: str, env_args: Mapping[str, Any]) -> list[str] | None:
    """Return what an environment itself calls its actions, if it does: Atari's games do."""
    if not is_atari(env_id):
        return None
    actions = dict(special_facts(env_id, env_args)).get("actions", "")
    return actions.partition(": ")[2].split(", ") if actions else None
