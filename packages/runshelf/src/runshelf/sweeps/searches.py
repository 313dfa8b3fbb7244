"""How a sweep chooses its configurations: one Protocol, one class each.

The configurations of a grid, of random numbers and of Sobol's sequence depend on their number only,
so every worker computes the same ones. Those of Optuna's samplers depend on what has finished; each
is written into the sweep's folder once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, final

import numpy as np

from runshelf.errors import UsageError, did_you_mean
from runshelf.sweeps.sobol import MOST_DIMENSIONS, sobol_points
from runshelf.sweeps.space import MOST_CONFIGURATIONS, Choice, Range, Space, Value, Values

SEARCHES = ("grid", "random", "sobol", "optuna:tpe", "optuna:random", "optuna:qmc")
_OPTUNA = "optuna:"


class Tried(NamedTuple):
    """A configuration that has finished, for a search that learns from it.

    Attributes:
        values: its values.
        score: the mean of the metric over its seeds; larger is better. NaN if it failed.
    """

    values: Values
    score: float


class Search(Protocol):
    """Chooses the values of a configuration."""

    @property
    def learns(self) -> bool:
        """Whether a choice depends on what has finished."""
        ...

    def configurations(self, samples: int) -> int:
        """Return the number of configurations, if `samples` are asked for.

        Raises:
            UsageError: the number is invalid for this search.
        """
        ...

    def choose(self, number: int, tried: Sequence[Tried]) -> dict[str, Value]:
        """Return the values of the configuration `number`, which counts from 0.

        Args:
            number: its number.
            tried: the configurations that have finished, if the search learns.
        """
        ...


@final
@dataclass(frozen=True)
class Grid:
    """Every combination of the choices and of the points of ranges."""

    space: Space
    learns: bool = False

    def configurations(self, samples: int) -> int:
        """Return the number of combinations; `samples` is 0 for a grid."""
        for name, parameter in self.space.items():
            if isinstance(parameter, Range) and parameter.points is None:
                raise UsageError(
                    f"a grid needs the number of values of `{name}`; try "
                    f"{name}={parameter.low:g}..{parameter.high:g}:points=5"
                )
        count = math.prod(len(values) for values in self._axes().values())
        if count > MOST_CONFIGURATIONS:
            raise UsageError(
                f"this grid has {count:,} configurations, the limit is {MOST_CONFIGURATIONS:,}; "
                "try --search sobol --samples 16"
            )
        if samples and samples != count:
            raise UsageError(f"this grid has {count} configurations; leave --samples out")
        return count

    def choose(self, number: int, tried: Sequence[Tried]) -> dict[str, Value]:
        """Return combination `number`; the last parameter changes fastest."""
        axes = self._axes()
        chosen: dict[str, Value] = {}
        for name in reversed(axes):
            number, place = divmod(number, len(axes[name]))
            chosen[name] = axes[name][place]
        return {name: chosen[name] for name in axes}

    def _axes(self) -> dict[str, Sequence[Value]]:
        return {
            name: one.options if isinstance(one, Choice) else one.values(one.points or 1)
            for name, one in self.space.items()
        }


@final
@dataclass(frozen=True)
class Random:
    """Independent uniform places in the space."""

    space: Space
    seed: int
    learns: bool = False

    def configurations(self, samples: int) -> int:
        """Return `samples`."""
        return _needed(samples)

    def choose(self, number: int, tried: Sequence[Tried]) -> dict[str, Value]:
        """Return the values at a random place."""
        places = np.random.default_rng([self.seed, number]).random(len(self.space))
        return _at(self.space, places.tolist())


@final
@dataclass(frozen=True)
class Sobol:
    """Sobol's sequence with a random digital shift: places that fill the space evenly."""

    space: Space
    seed: int
    learns: bool = False

    def configurations(self, samples: int) -> int:
        """Return `samples`."""
        if len(self.space) > MOST_DIMENSIONS:
            sobol_points(0, 1, len(self.space), None)  # raises
        return _needed(samples)

    def choose(self, number: int, tried: Sequence[Tried]) -> dict[str, Value]:
        """Return the values at point `number` of the sequence."""
        return _at(self.space, sobol_points(number, 1, len(self.space), self.seed)[0].tolist())


@final
@dataclass(frozen=True)
class Listed:
    """Configurations that were written down, as those of an ablation."""

    listed: Sequence[Values]
    learns: bool = False

    def configurations(self, samples: int) -> int:
        """Return the number of configurations in the list."""
        return len(self.listed)

    def choose(self, number: int, tried: Sequence[Tried]) -> dict[str, Value]:
        """Return configuration `number` of the list."""
        return dict(self.listed[number])


@final
@dataclass(frozen=True)
class OptunaSearch:
    """A sampler of Optuna, which is told again what has finished before each choice.

    Attributes:
        space: the search space.
        sampler: `tpe`, `random` or `qmc`.
        seed: of the sampler.
    """

    space: Space
    sampler: str
    seed: int
    learns: bool = True

    def configurations(self, samples: int) -> int:
        """Return `samples`, after a check that Optuna is installed."""
        _optuna()
        return _needed(samples)

    def choose(self, number: int, tried: Sequence[Tried]) -> dict[str, Value]:
        """Return the values that the sampler suggests after the finished configurations."""
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(direction="maximize", sampler=self._sampler(optuna, number))
        distributions = {name: _distribution(optuna, one) for name, one in self.space.items()}
        for one in tried:
            failed = not math.isfinite(one.score)
            states = optuna.trial.TrialState
            study.add_trial(
                optuna.trial.create_trial(
                    params=dict(one.values),
                    distributions=distributions,
                    value=None if failed else one.score,
                    state=states.FAIL if failed else states.COMPLETE,
                )
            )
        suggested = study.ask(distributions).params
        return {name: _rounded(self.space[name], suggested[name]) for name in self.space}

    def _sampler(self, optuna: Any, number: int) -> Any:
        seed = int(np.random.default_rng([self.seed, number]).integers(2**31))
        if self.sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        if self.sampler == "qmc":
            return optuna.samplers.QMCSampler(seed=self.seed, scramble=True)
        return optuna.samplers.TPESampler(seed=seed)


def search_named(
    name: str, space: Space, seed: int, listed: Sequence[Values] | None = None
) -> Search:
    """Return a search.

    Raises:
        UsageError: there is no such search.
    """
    if listed is not None:
        return Listed(listed)
    if name == "grid":
        return Grid(space)
    if name == "random":
        return Random(space, seed)
    if name == "sobol":
        return Sobol(space, seed)
    if name in SEARCHES:
        return OptunaSearch(space, name.removeprefix(_OPTUNA), seed)
    raise UsageError(
        f"unknown search `{name}`{did_you_mean(name, SEARCHES)} (there are: {', '.join(SEARCHES)})"
    )


def usual_search(space: Space) -> str:
    """Return the search for a space if none is named: a grid if its values are all listed."""
    has_values = (isinstance(one, Choice) or one.points is not None for one in space.values())
    return "grid" if all(has_values) else "sobol"


def _needed(samples: int) -> int:
    if not 1 <= samples <= MOST_CONFIGURATIONS:
        raise UsageError("this search needs the number of configurations; try --samples 16")
    return samples


def _at(space: Space, places: Sequence[float]) -> dict[str, Value]:
    return {name: one.at(place) for (name, one), place in zip(space.items(), places, strict=True)}


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError:
        raise UsageError(
            'Optuna is not installed; type pip install "runshelf[optuna]", or use --search sobol'
        ) from None
    return cast("Any", optuna)


def _distribution(optuna: Any, parameter: Range | Choice) -> Any:
    if isinstance(parameter, Choice):
        return optuna.distributions.CategoricalDistribution(parameter.options)
    low, high = parameter.low, parameter.high
    if parameter.whole:
        return optuna.distributions.IntDistribution(int(low), int(high), log=parameter.log)
    return optuna.distributions.FloatDistribution(low, high, log=parameter.log)


def _rounded(parameter: Range | Choice, value: Value) -> Value:
    if isinstance(parameter, Range) and not parameter.whole:
        return min(max(float(f"{float(value):.6g}"), parameter.low), parameter.high)
    return value
