"""Values that normalised scores take as 0 and 1, each with its source.

A score is s = (x - low) / (high - low). The low value is the mean return of a random policy, the
high value a known good one. Where lower values are better, as of a cost, low is the higher number.
The user's own values come first.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, cast, final

from runshelf.errors import UsageError, did_you_mean, shown
from runshelf.received_json import parse_json
from runshelf.store.files import disk_errors

Better = Literal["higher", "lower"]

_LARGEST = 1 << 20  # bytes
_RANDOM = "random: mean of 100 to 2,000 episodes"
_THRESHOLD = f"{_RANDOM}; high: reward threshold of Gymnasium"
_D4RL = "random and expert policy of D4RL, arXiv:2004.07219"
_ATARI = "random policy and human player of Wang et al. 2016, arXiv:1511.06581"


@final
class Reference(NamedTuple):
    """The values that are 0 and 1 in one environment, and where they are from."""

    low: float
    high: float
    source: str


KNOWN: Mapping[str, Reference] = {
    "CartPole-v1": Reference(22.1, 500.0, f"{_RANDOM}; high: the time limit"),
    "Acrobot-v1": Reference(-497.4, -100.0, _THRESHOLD),
    "MountainCar-v0": Reference(-200.0, -110.0, _THRESHOLD),
    "MountainCarContinuous-v0": Reference(-33.3, 90.0, _THRESHOLD),
    "Pendulum-v1": Reference(-1230.7, -150.0, f"{_RANDOM}; high: the scores of SAC in our docs"),
    **{
        f"{name}-v{version}": Reference(low, high, _D4RL)
        for name, low, high in (
            ("Hopper", -20.3, 3234.3),
            ("HalfCheetah", -280.2, 12135.0),
            ("Walker2d", 1.6, 4592.3),
        )
        for version in (2, 3, 4, 5)
    },
    **{
        f"{prefix}{game}{suffix}": Reference(low, high, _ATARI)
        for game, low, high in (
            ("Asterix", 210.0, 8503.3),
            ("Boxing", 0.1, 12.1),
            ("Breakout", 1.7, 30.5),
            ("Enduro", 0.0, 860.5),
            ("Freeway", 0.0, 29.6),
            ("Pong", -20.7, 14.6),
            ("Qbert", 163.9, 13455.0),
            ("Seaquest", 68.4, 42054.7),
            ("SpaceInvaders", 148.0, 1668.7),
        )
        for prefix, suffix in (("ALE/", "-v5"), ("", "NoFrameskip-v4"))
    },
}


def references(
    envs: Iterable[str],
    low: Iterable[str] = (),
    high: Iterable[str] = (),
    file: Path | None = None,
    *,
    of_return: bool = True,
    better: Better = "higher",
) -> dict[str, Reference]:
    """Return the reference of each environment that has one.

    Args:
        envs: the environments.
        low: `ENV=X`, as on the command line.
        high: `ENV=Y`.
        file: a JSON file `{"ENV": {"low": X, "high": Y, "source": TEXT}}`.
        of_return: whether the metric is a return; the known references are returns, of which
            higher ones are better.
        better: whether higher or lower values are better.

    Raises:
        UsageError: a value is not a number, an environment is unknown, or low is not worse than
            high.
    """
    envs = list(envs)
    is_known = of_return and better == "higher"
    given = _of_file(file) if file else {}
    lows, highs = (_pairs(texts, name, envs) for texts, name in ((low, "--low"), (high, "--high")))
    found: dict[str, Reference] = {}
    for env in envs:
        known = given.get(env) or (KNOWN.get(env) if is_known else None)
        below = lows.get(env, known.low if known else None)
        above = highs.get(env, known.high if known else None)
        if below is None and above is None:
            continue
        if below is None or above is None:
            raise UsageError(f"`{env}` has only one of --low and --high: give both")
        by_user = env in lows or env in highs
        source = "given" if by_user or known is None else known.source
        found[env] = _checked(env, Reference(below, above, source), better)
    return found


def _checked(env: str, one: Reference, better: Better) -> Reference:
    is_apart = one.low < one.high if better == "higher" else one.low > one.high
    if not is_apart or not math.isfinite(one.low + one.high):
        where = "below" if better == "higher" else "above"
        why = "" if better == "higher" else ", since lower values are better"
        raise UsageError(
            f"low must be {where} high in `{env}`{why}, got {one.low:g} and {one.high:g}"
        )
    return one


def _pairs(texts: Iterable[str], option: str, envs: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        env, equals, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not equals or math.isnan(number):
            raise UsageError(f"{option} must be ENV=NUMBER, got `{text}`; try CartPole-v1=22")
        if env not in envs:
            raise UsageError(f"no group has the environment `{env}`{did_you_mean(env, envs)}")
        found[env] = number
    return found


def _of_file(path: Path) -> dict[str, Reference]:
    with disk_errors(path):
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"`{path}` has more than 1 MiB: it does not hold references")
        data = path.read_bytes()
    try:
        value = parse_json(data)
    except ValueError as error:
        raise UsageError(f"`{path}` is not JSON ({shown(str(error))})") from error
    if not isinstance(value, dict):
        raise UsageError(f'`{path}` must hold an object: {{"ENV": {{"low": 0, "high": 1}}}}')
    entries = cast("dict[str, object]", value).items()
    return {env: _of_entry(path, env, one) for env, one in entries}


def _of_entry(path: Path, env: str, value: object) -> Reference:
    fields = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
    low, high = fields.get("low"), fields.get("high")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        raise UsageError(f"`{env}` in `{path}` needs the numbers `low` and `high`")
    source = fields.get("source")
    named = source if isinstance(source, str) and source else path.name
    return Reference(float(low), float(high), named)
