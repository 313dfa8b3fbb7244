"""The engines by name."""

from collections.abc import Callable, Mapping

from runshelf.errors import UsageError, did_you_mean
from runshelf.sweeps.definition import Sweep
from runshelf.sweeps.engines.interface import ENGINES, Engine
from runshelf.sweeps.engines.processes import Processes


def engine_named(name: str, sweep: Sweep, options: Mapping[str, str]) -> Engine:
    """Return an engine for a sweep.

    Raises:
        UsageError: there is no such engine, its extra is not installed, or an option is unknown.
    """
    if name not in _MAKERS:
        raise UsageError(
            f"unknown engine `{name}`{did_you_mean(name, ENGINES)} (there are: "
            f"{', '.join(ENGINES)})"
        )
    return _MAKERS[name](sweep, options)


def scripts_of(name: str, sweep: Sweep, options: Mapping[str, str], workers: int) -> list[str]:
    """Return the scripts that an engine would submit.

    Raises:
        UsageError: the engine has no scripts, or an option is unknown.
    """
    if name != "slurm":
        raise UsageError("--print shows the scripts of Slurm; add --engine slurm")
    from runshelf.sweeps.engines.slurm import Slurm  # noqa: PLC0415  (an extra)

    return Slurm(sweep.folder, options).scripts(workers)


def _processes(sweep: Sweep, options: Mapping[str, str]) -> Engine:
    if options:
        raise UsageError(f"the engine `processes` has no option `{next(iter(options))}`")
    return Processes(sweep.folder)


def _ray(sweep: Sweep, options: Mapping[str, str]) -> Engine:
    from runshelf.sweeps.engines.on_ray import Ray  # noqa: PLC0415  (an extra)

    return Ray(sweep.folder, options)


def _slurm(sweep: Sweep, options: Mapping[str, str]) -> Engine:
    from runshelf.sweeps.engines.slurm import Slurm  # noqa: PLC0415  (an extra)

    return Slurm(sweep.folder, options)


_MAKERS: Mapping[str, Callable[[Sweep, Mapping[str, str]], Engine]] = {
    "processes": _processes,
    "ray": _ray,
    "slurm": _slurm,
}
