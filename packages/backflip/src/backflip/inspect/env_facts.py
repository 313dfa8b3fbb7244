"""Facts about an environment that are known before it is stepped."""

import inspect
from collections.abc import Mapping
from typing import Any

from backflip.envs.ids import ATARI_PREFIX, FIXED_PREFIX, HOST_PREFIX
from backflip.envs.registry import atari_facts, is_native, make_native
from backflip.envs.spec import HasFacts, HostEnv
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.pixels import PixelsView
from backflip.envs.views.rendered import RenderedView
from backflip.envs.views.view import View
from backflip.inspect.open_env import own_render
from runshelf.errors import UserFacingError

SKIPS = ("frame_skip", "frameskip")  # names of the constructor parameter


def is_atari(env_id: str) -> bool:
    """Return whether an id belongs to the Arcade Learning Environment."""
    return env_id.startswith(ATARI_PREFIX)


def special_facts(env_id: str, env_args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return facts that only some kinds of environments have, as (name, text) pairs."""
    if is_atari(env_id):
        return atari_facts(env_id, env_args)
    native = make_native(env_id, env_args) if is_native(env_id) else None
    return native.facts() if isinstance(native, HasFacts) else []


def frame_skip(env_id: str, env_args: Mapping[str, Any]) -> int | None:
    """Return the number of simulation steps in one env step, or None if unknown."""
    if is_native(env_id):
        return 1
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
    """Return the duration of an env step in the environment's own time, or None if unknown."""
    if isinstance(view, RenderedView):
        return view.step_seconds() if view.knows_time else None
    if isinstance(view, NumbersView) or (isinstance(view, PixelsView) and not is_atari(env_id)):
        return None
    try:
        return view.step_seconds()
    except UserFacingError:  # the view needs a simulator that cannot draw on this machine
        return None


def drawing_facts(env: HostEnv, env_steps_per_second: float) -> list[tuple[str, str]]:
    """Return what the environment's own `render()` draws and costs, as (name, text) pairs."""
    render = own_render(env)
    if render is None or not render.works or render.size is None:
        return []
    height, width = render.size
    each = render.seconds / render.pictures
    env_steps = each * env_steps_per_second
    return [
        ("drawn by", f"its own render(), {width} x {height}"),
        ("one picture", f"takes {1000 * each:.3g} ms, as long as {env_steps:.3g} env steps"),
    ]


def action_meanings(env_id: str, env_args: Mapping[str, Any]) -> list[str] | None:
    """Return the environment's own names of its actions: only Atari games have them."""
    if not is_atari(env_id):
        return None
    actions = dict(special_facts(env_id, env_args)).get("actions", "")
    return actions.partition(": ")[2].split(", ") if actions else None
