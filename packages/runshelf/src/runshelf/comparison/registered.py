"""A registration beside what was done: departures from it, in words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.comparison.seed_values import SeedValue, SideValues, manifest_of
from runshelf.comparison.sides import Side
from runshelf.errors import UserFacingError
from runshelf.formatting import plural
from runshelf.registrations.kept import Kept, find, versions
from runshelf.store.times import seconds_of


@final
class Registered(NamedTuple):
    """A registration, and where the comparison departs from it.

    Attributes:
        kept: the registration.
        deviations: the departures, one sentence each; empty if all is as registered.
    """

    kept: Kept
    deviations: list[str]

    @property
    def is_fixed(self) -> bool:
        """Whether a test at one look is what was registered."""
        return self.kept.registration.looks == 1


def registration_names(sides: Sequence[Side]) -> list[str]:
    """Return the names of the registrations that runs carry, the most frequent first."""
    manifests = [manifest_of(row.folder) for side in sides for row in side.rows]
    carried = [name for one in manifests if (name := _carried(one, "name"))]
    return sorted(set(carried), key=lambda name: (-carried.count(name), name))


def beside_registration(
    home: Path,
    name: str,
    sides: Sequence[SideValues],
    *,
    version: int | None = None,
    sequential: bool = False,
) -> Registered:
    """Return a registration and the departures from it.

    Args:
        home: the home that keeps it.
        name: its name.
        sides: the values that are compared.
        version: its version; by default the newest.
        sequential: whether the looks are followed.

    Raises:
        UsageError: there is no such registration.
        DamagedFile: it cannot be read.
    """
    kept = find(home, name, version)
    departures = [f"the registration cannot be trusted: {kept.changed}"] if kept.changed else []
    if kept.version > 1:
        departures.append(f"version {kept.version} supersedes earlier ones: {kept.reason}")
    if kept.registration.looks > 1 and not sequential:
        departures.append(
            "the registered test is sequential: --sequential decides, and the p-values here ignore "
            "how often the results were looked at"
        )
    departures += _on_carried(home, kept, sides)
    departures += _on_seeds(kept, sides)
    departures += _on_times(kept, sides)
    return Registered(kept, departures)


def _on_carried(home: Path, kept: Kept, sides: Sequence[SideValues]) -> list[str]:
    """Say which seeds do not carry the registration, or carry another content of it."""
    seeds = _seeds(sides)
    without = [one for one in seeds if _carried(one.manifest, "name") != kept.name]
    found: list[str] = []
    if without:
        found.append(
            f"{len(without)} of {plural(len(seeds), 'seed')} were not started under it "
            "(--registered)"
        )
    known = {one.sha256: one.version for one in _all_versions(home, kept.name)}
    under = [one.manifest for one in seeds if _carried(one.manifest, "name") == kept.name]
    hashes = {_carried(manifest, "sha256") for manifest in under} - {""}
    if strange := hashes - known.keys():
        found.append(
            f"the hash that runs carry ({sorted(strange)[0][:12]}) is not that of the registration "
            f"({kept.sha256[:12]}): it was changed after they started"
        )
    older = sorted({known[h] for h in hashes & known.keys()} - {kept.version})
    if older:
        found.append(f"some runs were started under version {older[0]}, this is {kept.version}")
    return found


def _on_seeds(kept: Kept, sides: Sequence[SideValues]) -> list[str]:
    wanted = kept.registration.n
    found: list[str] = []
    for one in sides:
        for env, seeds in one.values.items():
            if len(seeds) != wanted and kept.registration.looks == 1:
                many = plural(len(seeds), "seed")
                found.append(f"{one.side.label}, {env}: {many}, registered were {wanted}")
    return found


def _on_times(kept: Kept, sides: Sequence[SideValues]) -> list[str]:
    since = seconds_of(kept.created) or 0.0
    created = [(one, seconds_of(one.manifest.get("created"))) for one in _seeds(sides)]
    older = [one for one, at in created if at is not None and at < since]
    if not older:
        return []
    return [f"{len(older)} of {plural(len(created), 'seed')} were run before it was registered"]


def _all_versions(home: Path, name: str) -> list[Kept]:
    found: list[Kept] = []
    for version in versions(home, name):
        try:
            found.append(find(home, name, version))
        except UserFacingError:
            continue
    return found


def _carried(manifest: Mapping[str, Any], key: str) -> str:
    registered = manifest.get("registered")
    value = registered.get(key) if isinstance(registered, dict) else None
    return value if isinstance(value, str) else ""


def _seeds(sides: Sequence[SideValues]) -> list[SeedValue]:
    return [seed for one in sides for of in one.values.values() for seed in of]
