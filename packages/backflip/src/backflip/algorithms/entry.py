"""One registry entry per algorithm: its settings, defaults and spaces. Imports no JAX."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from backflip.core.settings import Setting, settings_of
from backflip.envs.ids import HOST_PREFIX
from backflip.networks.pixel_networks import GRID_SIDE

if TYPE_CHECKING:
    from backflip.algorithms.interface import Algorithm
    from backflip.core.spec import EnvSpec

Kind = Literal["discrete", "continuous", "small continuous", "pixels", "grid"]
Values = Mapping[str, Any]  # settings by name

SMALL = 4  # length of an observation; classic control's are at most this long, MuJoCo's longer


def _no_defaults(spec: "EnvSpec", settings: Values) -> Values:
    del spec, settings
    return {}


@dataclass(frozen=True)
class AlgorithmEntry:
    """The registry's record of an algorithm, available without JAX.

    Attributes:
        name: the name on the command line.
        config: the frozen dataclass of settings, annotated as in `backflip.core.settings`.
        function: `module:function`, which builds the algorithm from (config, spec).
        discrete: it supports discrete action spaces.
        continuous: it supports continuous action spaces (`Box`).
        images: the action spaces that it supports when observations are images.
        defaults: settings by kind of environment; they override those of the dataclass.
        environments: settings by environment id; they override those of the kind.
        derive: (spec, settings) -> defaults that follow from other settings.
    """

    name: str
    config: type[Any]
    function: str
    discrete: bool = True
    continuous: bool = True
    images: Literal["both", "discrete", "neither"] = "both"
    defaults: Mapping[Kind, Values] = field(default_factory=dict[Kind, Values])
    environments: Mapping[str, Values] = field(default_factory=dict[str, Values])
    derive: Callable[["EnvSpec", Values], Values] = _no_defaults

    @property
    def settings(self) -> dict[str, Setting]:
        """Settings by name, with types and bounds."""
        return settings_of(self.config)

    @property
    def has_replay(self) -> bool:
        """Whether the algorithm learns from a replay."""
        return "buffer_size" in self.settings

    @property
    def page(self) -> str:
        """Path of the documentation page."""
        return f"docs/algorithms/{self.name}.md"

    def build(self, config: Any, spec: "EnvSpec") -> "Algorithm":
        """Return the algorithm for the spaces of `spec`; imports JAX.

        Raises:
            UsageError: the settings are invalid together or for this environment.
        """
        module, _, function = self.function.partition(":")
        return getattr(importlib.import_module(module), function)(config, spec)

    def supports(self, spec: "EnvSpec") -> bool:
        """Return whether the algorithm can learn in an environment."""
        return self.supports_actions(spec) and (not spec.is_image or self._supports_images(spec))

    def supports_actions(self, spec: "EnvSpec") -> bool:
        """Return whether the algorithm supports the action space of an environment."""
        return self.discrete if is_discrete(spec) else self.continuous

    def _supports_images(self, spec: "EnvSpec") -> bool:
        return self.images == "both" or (self.images == "discrete" and is_discrete(spec))

    def defaults_for(self, spec: "EnvSpec", named: Values) -> dict[str, Any]:
        """Return default settings for an environment; `named` are those that the user gave."""
        of_kind = next(
            (self.defaults[kind] for kind in kinds_of(spec) if kind in self.defaults), {}
        )
        chosen = {**of_kind, **self.environments.get(spec.id.removeprefix(HOST_PREFIX), {})}
        return {**chosen, **self.derive(spec, {**chosen, **named})}


def kinds_of(spec: "EnvSpec") -> tuple[Kind, ...]:
    """Return the kinds of an environment, the most specific first."""
    if spec.is_image:
        return ("grid",) if max(spec.observation.shape[:2]) <= GRID_SIDE else ("pixels",)
    if is_discrete(spec):
        return ("discrete",)
    small = spec.observation.shape[0] <= SMALL
    return ("small continuous", "continuous") if small else ("continuous",)


def is_discrete(spec: "EnvSpec") -> bool:
    """Return whether the actions of an environment are discrete."""
    from backflip.core.spaces import Discrete  # noqa: PLC0415  (imports NumPy)

    return isinstance(spec.action, Discrete)
