"""The command template of a sweep: a command line with `{placeholders}`, without a shell."""

from collections.abc import Sequence

from runshelf.errors import UsageError, did_you_mean
from runshelf.recorder.command_templates import filled, placeholders, unescaped
from runshelf.recorder.self_recording import has_option, self_recording
from runshelf.sweeps.space import RESERVED, Space, Values, text_of

_OF_BLOCK = ("first_seed", "seeds")


def check_template(command: Sequence[str], space: Space, *, names_seeds: bool = False) -> None:
    """Check that a command line has a place for each parameter and for the seed.

    Args:
        command: in words.
        space: the parameters.
        names_seeds: the command may name its seeds itself.

    Raises:
        UsageError: a placeholder is unknown or missing.
    """
    if not command:
        raise UsageError(
            "a new sweep needs a command after `--`: runshelf sweep NAME --over lr=1e-4..1e-2:log "
            "-- python train.py --lr {lr} --seed {seed}"
        )
    used = placeholders(command)
    unknown = sorted(used - set(space) - set(RESERVED))
    if unknown:
        if names_seeds:
            raise UsageError(
                f"the command has `{{{unknown[0]}}}`; only `{{seed}}`, or `{{first_seed}}` and "
                "`{seeds}`, are filled in"
            )
        hint = did_you_mean(unknown[0], [*space, *RESERVED])
        raise UsageError(f"the command has `{{{unknown[0]}}}`, which no --over names{hint}")
    missing = [name for name in space if name not in used]
    if missing:
        raise UsageError(
            f"the command has no `{{{missing[0]}}}`, so every value of `{missing[0]}` would run "
            f"the same program; add it, as in --{missing[0]} {{{missing[0]}}}"
        )
    if not used & {"seed", "first_seed"} and not names_seeds:
        raise UsageError(
            "the command has no `{seed}`, so every seed would run the same program; add it, as in "
            "--seed {seed}"
        )
    if "seed" in used and used & set(_OF_BLOCK):
        raise UsageError(
            "the command has `{seed}` and `{first_seed}` or `{seeds}`: use `{seed}` for one seed "
            "in each process, or the other two for several"
        )
    if self_recording(command) is not None and has_option(command, "--home"):
        raise UsageError("leave `--home` out of the command: the sweep's home is used")


def takes_one_seed(command: Sequence[str]) -> bool:
    """Return whether one process of a command runs one seed that it is told."""
    return "seed" in placeholders(command)


def takes_many_seeds(command: Sequence[str]) -> bool:
    """Return whether one process of a command runs several seeds."""
    return "seeds" in placeholders(command)


def with_values(command: Sequence[str], values: Values, first_seed: int, seeds: int) -> list[str]:
    """Return a command line with values in place of its placeholders."""
    texts = {name: text_of(value) for name, value in values.items()}
    texts |= {"seed": str(first_seed), "first_seed": str(first_seed), "seeds": str(seeds)}
    return [unescaped(filled(word, texts)) for word in command]
