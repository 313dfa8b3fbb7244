"""MinAtar games equal the reference step by step, along recorded games."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.spaces import Discrete
from backflip.envs.native.minatar.asterix import Asterix, AsterixV0
from backflip.envs.native.minatar.base import Game, MinAtar
from backflip.envs.native.minatar.breakout import Breakout, BreakoutV0
from backflip.envs.native.minatar.freeway import TIME_LIMIT, Freeway, FreewayV0
from backflip.envs.native.minatar.seaquest import Seaquest, SeaquestV0
from backflip.envs.native.minatar.space_invaders import SpaceInvaders, SpaceInvadersV0
from backflip.envs.registry import make_native
from backflip.inspect.env_facts import action_meanings, special_facts
from runshelf.errors import UsageError

DATA = Path(__file__).parents[2] / "data" / "minatar"
CLASSES = [Breakout, Asterix, Freeway, SpaceInvaders, Seaquest]
OLDER = [BreakoutV0, AsterixV0, FreewayV0, SpaceInvadersV0, SeaquestV0]
RECORDINGS = range(3)


def recording(game: Game, number: int) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{game.name}.npz") as file:
        names = [name for name in file.files if name.endswith(str(number))]
        return {name[:-1]: file[name] for name in names}


def replayed(game: Game, recorded: dict[str, np.ndarray]) -> Any:
    """Return observations, rewards and losses under the recorded actions and random choices."""
    ramping = bool(recorded["ramping"])

    def body(state: Any, row: tuple[Any, Any]) -> tuple[Any, tuple[Any, Any, Any]]:
        moment = game.advance(state, *row, ramping)
        seen = jnp.stack(game.planes(moment.state), -1)
        return moment.state, (seen, moment.reward, moment.lost)

    def run(start: Any, actions: Any, drawn: Any) -> Any:
        first = game.start(start)
        if game is Breakout.game:
            first = first._replace(bricks=jnp.asarray(recorded["bricks"]))
        return jax.lax.scan(body, first, (actions, drawn))[1]

    return jax.jit(run)(recorded["start"], recorded["action"], recorded["drawn"])


@pytest.mark.medium
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.slow if place else ())
        for place, number in enumerate(RECORDINGS)
    ],
)
@pytest.mark.parametrize("kind", CLASSES)
def test_equals_the_reference_step_for_step(kind: type[MinAtar], number: int) -> None:
    game, recorded = kind.game, recording(kind.game, number)
    obs, reward, lost = replayed(game, recorded)
    cells = 100 * len(game.channels)
    expected = np.unpackbits(recorded["obs"], axis=1)[:, :cells].reshape(obs.shape)
    wrong = np.flatnonzero((np.asarray(obs) != expected).any((1, 2, 3)))
    assert not wrong.size, f"first difference at step {wrong[0]}"
    np.testing.assert_array_equal(reward, recorded["reward"])
    if game.can_be_lost:
        np.testing.assert_array_equal(lost, recorded["lost"])
    assert not (game is Freeway.game and recorded["lost"].any())


def test_recordings_contain_rare_events() -> None:
    """Rare events: new bricks, six divers rescued, waves shot, harder games."""
    records = {kind: [recording(kind.game, n) for n in RECORDINGS] for kind in CLASSES}
    total = {kind: [int(r["reward"].sum()) for r in records[kind]] for kind in CLASSES}
    assert max(total[Breakout]) > 60
    assert max(total[SpaceInvaders]) > 48
    assert max(r["reward"].max() for r in records[Seaquest]) > 5
    assert min(total[Freeway]) > 2
    assert all(len(r["lost"]) > 900 for r in records[Asterix])
    assert {bool(r["ramping"]) for kind in CLASSES for r in records[kind]} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Asterix, SpaceInvaders, Seaquest])
def test_recordings_depend_on_ramping(kind: type[MinAtar]) -> None:
    recorded = recording(kind.game, 0) | {"ramping": np.array(False)}
    obs, _, _ = replayed(kind.game, recorded)
    cells = 100 * len(kind.game.channels)
    expected = np.unpackbits(recorded["obs"], axis=1)[:, :cells].reshape(obs.shape)
    assert (np.asarray(obs) != expected).any()


@pytest.mark.parametrize(
    ("kind", "actions"),
    [(Breakout, 3), (Asterix, 5), (Freeway, 3), (SpaceInvaders, 4), (Seaquest, 6)],
)
def test_specs_equal_the_references(kind: type[MinAtar], actions: int) -> None:
    env, older = kind(), OLDER[CLASSES.index(kind)]()
    spec = env.spec
    assert spec.id == f"MinAtar/{kind.game.name}-v1"
    assert older.spec.id == f"MinAtar/{kind.game.name}-v0"
    assert spec.action == Discrete(actions)
    assert older.spec.action == Discrete(6)
    assert spec.observation.shape == (10, 10, len(kind.game.channels))
    assert spec.observation.high.max() == 1
    assert spec.max_episode_steps == (TIME_LIMIT if kind is Freeway else None)
    assert spec.terminates == (kind is not Freeway)


def cannon(env: MinAtar, actions: list[int], keys: Any) -> np.ndarray:
    """Return the columns of many cannons after the same actions."""

    def play(keys: Any) -> Any:
        state = env.reset(keys[0])
        for action, key in zip(actions, keys, strict=True):
            state = env.step(state, jnp.int32(action), key).state
        return state.game.x

    return np.asarray(jax.jit(jax.vmap(play))(keys))


@pytest.mark.slow
def test_minimal_actions_have_the_references_order() -> None:
    key = jax.random.key(0)

    def columns(env: MinAtar, actions: int) -> list[int]:
        steps = jax.jit(jax.vmap(env.step, (None, 0, None)))
        return steps(env.reset(key), jnp.arange(actions), key).state.game.x.tolist()

    env = SpaceInvaders(sticky=0.0)
    assert columns(env, 4) == [5, 4, 6, 5]
    assert columns(SpaceInvadersV0(sticky=0.0), 6) == [5, 4, 5, 6, 5, 5]
    fired = jax.jit(env.step)(env.reset(key), jnp.int32(3), key).state
    assert np.argwhere(env.observe(fired)[:, :, 4]).tolist() == [[8, 5]]


@pytest.mark.medium
def test_sticky_actions_have_their_probability() -> None:
    """From column 5 the actions are right, then left; final columns follow from which one sticks.

    If the first action sticks it is no-op; if the second sticks it repeats the first one executed.
    """
    count, sticky = 20_000, 0.3
    keys = jax.random.split(jax.random.key(1), (count, 2))
    columns = cannon(SpaceInvaders(sticky=sticky), [2, 1], keys)
    shares = np.bincount(columns, minlength=10) / count
    expected = {
        4: sticky * (1 - sticky),  # no-op, left
        5: (1 - sticky) ** 2 + sticky**2,  # right, left; or no-op twice
        7: (1 - sticky) * sticky,  # right twice
    }
    assert shares[list(expected)].sum() == pytest.approx(1)
    np.testing.assert_allclose(shares[list(expected)], list(expected.values()), atol=0.015)
    assert (cannon(SpaceInvaders(sticky=1.0), [2, 1], keys[:50]) == 5).all()


@pytest.mark.medium
def test_freeway_is_truncated_and_never_terminates() -> None:
    env = Freeway()
    state = env.reset(jax.random.key(0))._replace(env_steps=jnp.int32(TIME_LIMIT - 2))
    step = jax.jit(env.step)
    for last in (False, True):
        after = step(state, jnp.int32(0), jax.random.key(0))
        assert (bool(after.terminated), bool(after.truncated)) == (False, last)
        state = after.state


@pytest.mark.slow
def test_time_limit_can_be_set() -> None:
    env = Asterix(max_episode_steps=2)
    state = env.reset(jax.random.key(0))
    flags = []
    for _ in range(2):
        after = env.step(state, jnp.int32(0), jax.random.key(0))
        state = after.state
        flags.append(bool(after.truncated))
    assert flags == [False, True]


@pytest.mark.medium
@pytest.mark.parametrize("kind", [Breakout, Freeway])
def test_initial_states_and_traffic_are_uniform(kind: type[MinAtar]) -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    game: Any = jax.jit(jax.vmap(kind().reset))(keys).game
    if kind is Breakout:
        kinds = np.asarray(game.x > 0).astype(int)
        assert set(np.unique(game.x)) == {0, 9}
        np.testing.assert_array_equal(game.to_right, np.where(game.x == 0, 1, -1))
    else:
        kinds = (np.asarray(game.pace) - 1 + 5 * np.asarray(game.to_right)).ravel()
    shares = np.bincount(kinds) / kinds.size
    count = 2 if kind is Breakout else 10
    np.testing.assert_allclose(shares, 1 / count, atol=5 * 0.5 / np.sqrt(kinds.size))


@pytest.mark.parametrize(("version", "actions"), [(0, "6, all six"), (1, "3, those the game")])
def test_facts_describe_the_id(version: int, actions: str) -> None:
    facts = dict(special_facts(f"MinAtar/Breakout-v{version}", {"sticky": 0.2, "ramping": False}))
    assert facts["sticky actions"].startswith("0.2: ")
    assert facts["ramping"] == "constant difficulty"
    assert facts["actions"].startswith(actions)
    assert facts["planes"].startswith("paddle, ball")
    assert action_meanings(f"MinAtar/Breakout-v{version}", {}) is None


@pytest.mark.medium
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"sticky": 1.5}, r"`sticky` of MinAtar/Breakout-v1 must be .* got 1.5; try --env-arg"),
        ({"max_episode_steps": 0}, "whole number above 0, got 0"),
        ({"max_episode_steps": -3}, "whole number above 0, got -3"),
        ({"stick": 0.1}, "did you mean"),
    ],
)
def test_invalid_arguments_are_refused(args: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_native("MinAtar/Breakout-v1", args)
