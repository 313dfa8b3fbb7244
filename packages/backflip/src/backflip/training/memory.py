"""Check before a run that its largest parts fit into memory.

The estimates are lower bounds, so no run is refused that would fit.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import psutil

from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.interface import ReplayPlan, Settings
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.drivers.driver import Driver
from backflip.drivers.learning import layout_of
from backflip.networks.pixel_networks import is_own
from runshelf.errors import UsageError

MIB = 2**20
SHARE = 0.8  # of the free memory
PPO_MEASURES = 7  # metrics of each gradient step


class Need(NamedTuple):
    """A part of a run that needs memory.

    Attributes:
        what: its description.
        bytes: its size, at least.
        instead: (share that would fit) -> the option that makes it fit.
    """

    what: str
    bytes: int
    instead: Callable[[float], str]


def replay_bytes(driver: Driver, seeds: int) -> int:
    """Return the bytes of the replays of all seeds."""
    if driver.algorithm.replay is None:
        return 0
    return driver.copies_of_learners(seeds) * seeds * layout_of(driver.spec, driver.algorithm).bytes


def check_memory(driver: Driver, config: Settings, seeds: int) -> None:
    """Refuse a run if one of its parts does not fit into memory.

    Raises:
        UsageError: a part needs more than 80 % of the free memory.
    """
    _refuse(_needs(driver, config, seeds), seeds)


def check_network(config: Settings, spec: EnvSpec, seeds: int = 1) -> None:
    """Refuse networks that do not fit into memory, before one is made.

    Raises:
        UsageError: they need more than 80 % of the free memory.
    """
    _refuse(_networks(config, spec, seeds), seeds)


def report_replay_memory(driver: Driver, seeds: int, say: Callable[[str], None]) -> None:
    """Report how much memory the replays will need."""
    if driver.algorithm.replay is not None:
        say(_in_mib(_replay_in_words(driver, seeds), replay_bytes(driver, seeds)))


def _refuse(needs: Iterator[Need], seeds: int) -> None:
    free = psutil.virtual_memory().available
    for need in needs:
        if need.bytes > SHARE * free:
            fewer = " or fewer --seeds" if seeds > 1 else ""
            raise UsageError(
                f"{_in_mib(need.what, need.bytes)}, and {free / MIB:,.0f} MiB are free; "
                f"try {need.instead(SHARE * free / need.bytes)}{fewer}"
            )


def _needs(driver: Driver, config: Settings, seeds: int) -> Iterator[Need]:
    yield from _networks(config, driver.spec, seeds)
    plan, in_programs = driver.algorithm.replay, _side_by_side(seeds)
    together = in_programs if driver.runs_compiled else seeds
    if plan is not None:
        yield Need(
            _replay_in_words(driver, seeds),
            replay_bytes(driver, seeds),
            partial(_less, "--set buffer_size", plan.capacity),
        )
        yield _minibatches(driver, plan, together)
    if plan is None or not driver.runs_compiled:  # a compiled phase holds more in its replay
        yield _rollout(driver, config, together)
    if driver.runs_compiled:
        yield _evaluation(driver, in_programs)
    if _has_layers(config, driver.spec) and not _is_cem(config):
        yield _gradient(driver, config, in_programs)
    if hasattr(config, "epochs"):
        yield _gradient_steps(config, in_programs)


def _side_by_side(seeds: int) -> int:
    """Return how many seeds a compiled program has in this memory at once.

    On CPUs each device runs one seed at a time; other devices have their own memory.
    """
    return min(seeds, len(jax.devices())) if jax.default_backend() == "cpu" else 0


def _is_cem(config: Settings) -> bool:
    return isinstance(config, CEMConfig)


def _networks(config: Any, spec: EnvSpec, seeds: int) -> Iterator[Need]:
    """Yield the memory of dense networks, with Adam's two moments of each parameter."""
    if not _has_layers(config, spec):
        return
    outputs = spec.action.n if isinstance(spec.action, Discrete) else math.prod(spec.action.shape)
    sizes = (math.prod(spec.observation.shape), *config.hidden, outputs)
    copies = config.num_envs if _is_cem(config) else 3  # one for each member of CEM
    yield Need(
        f"networks of {' x '.join(f'{size:,}' for size in sizes)}{_of(seeds)}",
        4 * seeds * copies * sum(i * o for i, o in pairwise(sizes)),
        _narrower,
    )


def _has_layers(config: Any, spec: EnvSpec) -> bool:
    """Return whether networks are dense layers of the widths in `hidden`."""
    network = getattr(config, "network", "auto")
    return not is_own(network) and (not spec.is_image or network == "flat")


def _minibatches(driver: Driver, plan: ReplayPlan, seeds: int) -> Need:
    steps, rows = plan.gradient_steps, plan.batch_size
    env_steps = driver.algorithm.num_envs * driver.algorithm.rollout_length

    def instead(fits: float) -> str:
        if rows > steps:
            return _less("--set batch_size", rows, fits)
        ratio = steps * fits / env_steps
        fitting = _rounded(ratio) if ratio >= 1 else 2.0 ** math.floor(math.log2(ratio))
        return f"--set updates_per_step={fitting:g}"

    return Need(
        f"minibatches drawn at once, {steps:,} x {rows:,} rows{_of(seeds)}",
        seeds * steps * rows * _row_bytes(driver.spec),
        instead,
    )


def _rollout(driver: Driver, config: Any, seeds: int) -> Need:
    envs, length = config.num_envs, config.rollout_length
    # For CEM, a compiled phase stores only rewards and flags.
    bare = _is_cem(config) and driver.runs_compiled
    row = 6 if bare else _row_bytes(driver.spec)
    return Need(
        f"a rollout of {envs:,} environments x {length:,} env steps{_of(seeds)}",
        seeds * envs * length * row,
        partial(_fewer_rows, config),
    )


def _fewer_rows(config: Any, fits: float) -> str:
    """Return the option for smaller rollouts that the number of minibatches still divides."""
    names = sorted(("num_envs", "rollout_length"), key=partial(getattr, config))
    less, more = (getattr(config, name) for name in names)
    minibatches = getattr(config, "minibatches", 1)
    unit = minibatches // math.gcd(less, minibatches)
    return f"--set {names[1]}={max(_rounded(more * fits) // unit, 1) * unit}"


def _gradient(driver: Driver, config: Any, seeds: int) -> Need:
    """Return the memory of a gradient: the output of each hidden unit for every row."""
    plan, both = driver.algorithm.replay, hasattr(config, "value_coef")  # two networks in one loss
    of_rollout = config.num_envs * config.rollout_length // getattr(config, "minibatches", 1)
    rows = plan.batch_size if plan else of_rollout
    shrink = partial(_less, "--set batch_size", rows) if plan else partial(_fewer_rows, config)
    return Need(
        f"a gradient of {rows:,} rows by layers of {', '.join(map(str, config.hidden))}"
        f"{_of(seeds)}",
        seeds * rows * 4 * (1 + both) * sum(config.hidden),
        shrink,
    )


def _evaluation(driver: Driver, seeds: int) -> Need:
    limit = driver.spec.longest_episode
    return Need(
        f"random numbers for an evaluation of up to {limit:,} env steps{_of(seeds)}",
        8 * seeds * limit,
        partial(_less, "--env-arg max_episode_steps", limit),
    )


def _gradient_steps(config: Any, seeds: int) -> Need:
    epochs, steps = config.epochs, config.minibatches
    return Need(
        f"metrics of {epochs:,} epochs of {steps:,} gradient steps{_of(seeds)}",
        seeds * epochs * (8 + 4 * PPO_MEASURES * steps),
        partial(_less, "--set epochs", epochs),
    )


def _less(option: str, number: int, fits: float) -> str:
    return f"{option}={_rounded(number * fits)}"


def _narrower(fits: float) -> str:
    del fits
    return "narrower layers, as with --set hidden=64,64"


def _row_bytes(spec: EnvSpec) -> int:
    """Return the bytes of a transition: observation, successor, action, reward, two flags."""
    seen = math.prod(spec.observation.shape) * spec.observation.dtype.itemsize
    done = 1 if isinstance(spec.action, Discrete) else math.prod(spec.action.shape)
    return 2 * seen + 4 * done + 4 + 2


def _replay_in_words(driver: Driver, seeds: int) -> str:
    """Return a description of the replay: its env steps and seeds."""
    layout = layout_of(driver.spec, driver.algorithm)
    held = layout.length * layout.columns
    each = f"{seeds} seeds x {held:,}" if seeds > 1 else f"{held:,}"
    return f"replay memory for {each} env steps"


def _of(seeds: int) -> str:
    return f" of {seeds} seeds" if seeds > 1 else ""


def _in_mib(what: str, size: int) -> str:
    return f"{what}: {size / MIB:,.0f} MiB"


def _rounded(number: float) -> int:
    """Return a number rounded down to two significant digits, at least 1."""
    zeros = 10 ** max(len(str(int(number))) - 2, 0)
    return max(int(number) // zeros * zeros, 1)
