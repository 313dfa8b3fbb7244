"""A fault: one change that breaks an algorithm, and the runs that it is put into."""

import importlib
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from unittest.mock import patch

from backflip.algorithms.entry import AlgorithmEntry

Wrap = Callable[[Any], Any]  # algorithm -> algorithm
Change = Callable[[Any], Any]  # the original function -> another one


@dataclass(frozen=True)
class Case:
    """An algorithm on an environment, with a budget in which it learns.

    With `labels`, it learns a reward from the answers of an oracle.
    """

    algorithm: str
    env: str
    env_steps: int
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    labels: int = 0

    @property
    def name(self) -> str:
        """The case in one word."""
        taught = f"-{self.labels}-labels" if self.labels else ""
        return f"{self.algorithm}-{self.env.removesuffix('-v1')}{taught}"


@dataclass(frozen=True)
class Fault:
    """One change that breaks an algorithm.

    Attributes:
        name: its name.
        family: faults of one family have one kind of cause; a split never divides a family.
        causes: ids of the causes that name it; the first is the truest.
        algorithms: the algorithms that it is put into.
        settings: the change as settings.
        patches: `module:name` or `module:Class.method` -> what replaces the function there.
        wrap: the change as a function of the built algorithm.
    """

    name: str
    family: str
    causes: tuple[str, ...]
    algorithms: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    patches: Mapping[str, Change] = field(default_factory=dict[str, Change])
    wrap: Wrap | None = None


@contextmanager
def broken(fault: Fault) -> Generator[None, None, None]:
    """Break the algorithm in this process for the time of the block."""
    with ExitStack() as stack:
        for place, change in fault.patches.items():
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            owner = reduce(getattr, owners, importlib.import_module(f"backflip.{module}"))
            stack.enter_context(patch.object(owner, name, change(getattr(owner, name))))
        if fault.wrap is not None:
            stack.enter_context(_wrapped(fault.wrap))
        yield


def _wrapped(wrap: Wrap) -> Any:
    build = AlgorithmEntry.build

    def built(entry: AlgorithmEntry, config: Any, spec: Any) -> Any:
        return wrap(build(entry, config, spec))

    return patch.object(AlgorithmEntry, "build", built)


def on_batch(change: Callable[[Any], Any]) -> Wrap:
    """Return a wrapper that changes each batch before an update."""

    def wrap(algorithm: Any) -> Any:
        def update(state: Any, batch: Any, key: Any) -> Any:
            return algorithm.update(state, change(batch), key)

        return algorithm._replace(update=update)

    return wrap


def on_observations(change: Callable[[Any], Any], *, acting: bool = True) -> Wrap:
    """Return a wrapper that changes what the networks see, in learning and perhaps in acting."""

    def wrap(algorithm: Any) -> Any:
        def act(state: Any, obs: Any, key: Any) -> Any:
            return algorithm.act(state, change(obs) if acting else obs, key)

        def evaluation_action(state: Any, obs: Any, key: Any) -> Any:
            return algorithm.evaluation_action(state, change(obs) if acting else obs, key)

        def update(state: Any, batch: Any, key: Any) -> Any:
            seen = batch._replace(obs=change(batch.obs), next_obs=change(batch.next_obs))
            return algorithm.update(state, seen, key)

        def sample(state: Any, obs: Any, key: Any) -> Any:
            return algorithm.sample(state, change(obs) if acting else obs, key)

        return algorithm._replace(
            act=act,
            evaluation_action=evaluation_action,
            update=update,
            sample=None if algorithm.sample is None else sample,
        )

    return wrap


def on_actions(change: Callable[[Any], Any]) -> Wrap:
    """Return a wrapper that changes what the algorithm chose, before anybody sees it."""

    def wrap(algorithm: Any) -> Any:
        def act(state: Any, obs: Any, key: Any) -> Any:
            action, extra = algorithm.act(state, obs, key)
            return change(action), extra

        return algorithm._replace(act=act)

    return wrap
