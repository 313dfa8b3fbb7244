"""Tests of what is refused before anything begins, for every algorithm."""

import dataclasses

import jax
import numpy as np
import psutil
import pytest

from backflip.cli import teaching
from backflip.core.errors import UsageError
from backflip.core.spec import LARGEST_COUNT, Box, Discrete, EnvSpec
from backflip.envs.registry import make_native
from backflip.training import memory
from backflip.training.bounds import BOUNDS
from backflip.training.build import build
from backflip.training.defaults import defaults_of
from backflip.training.offers import ALGORITHMS
from backflip.training.settings import resolve
from backflip.training.spec_json import spec_from_json, spec_to_json
from backflip.training.train import train

DISCRETE, CONTINUOUS = "CartPole-v1", "Pendulum-v1"
OFF_POLICY = [name for name in ALGORITHMS if hasattr(ALGORITHMS[name].config, "warm_up")]


def env_of(name: str) -> str:
    return DISCRETE if ALGORITHMS[name].discrete else CONTINUOUS


def made(name: str, **settings: object):
    return build(name, env_of(name), env_args={}, settings=settings)


def test_the_command_line_names_the_algorithms_there_are() -> None:
    assert list(teaching.ALGORITHMS) == list(ALGORITHMS)
    assert [*teaching.ON_POLICY, *OFF_POLICY] == [*teaching.ON_POLICY, "dqn", "ddpg", "td3", "sac"]
    assert {*teaching.ON_POLICY, *OFF_POLICY} == {*ALGORITHMS}


def test_the_command_line_counts_as_far_as_a_run_does() -> None:
    assert teaching.MOST_ENV_STEPS == BOUNDS["env_steps"].high == LARGEST_COUNT


@pytest.mark.parametrize("env", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_a_time_limit_that_cannot_be_counted_to_is_refused(env: str) -> None:
    limit = {"max_episode_steps": LARGEST_COUNT + 1}
    with pytest.raises(UsageError, match=f"of {env} must be at most 2,000,000,000, got 2000000001"):
        build("ppo", env, env_args=limit, settings={})


# Who can learn what, by hand: discrete actions, continuous ones, and discrete ones from images.
CAN = {
    DISCRETE: ("ppo", "a2c", "vpg", "dqn", "sac", "cem"),
    CONTINUOUS: ("ppo", "a2c", "vpg", "ddpg", "td3", "sac", "cem"),
    "dot": ("ppo", "a2c", "vpg", "dqn", "sac"),
    "MinAtar/Breakout-v1": ("ppo", "a2c", "vpg", "dqn", "sac"),
}


@pytest.mark.parametrize(("env", "name"), [(env, name) for env in CAN for name in CAN[env]])
def test_the_defaults_suit_every_kind_of_environment(env: str, name: str) -> None:
    native, offer = make_native(env), ALGORITHMS[name]
    assert native is not None
    offer.check_spaces(native.spec)
    settings = defaults_of(name, native.spec, {})
    assert resolve(offer.config, settings).updates >= 1


@pytest.mark.parametrize(
    ("env", "name"), [(env, name) for env in CAN for name in ALGORITHMS if name not in CAN[env]]
)
def test_who_cannot_learn_an_environment_says_who_can(env: str, name: str) -> None:
    native, able = make_native(env), ", ".join(CAN[env])
    assert native is not None
    with pytest.raises(UsageError, match=f"^`{name}` (chooses|does not) .* there are: {able}$"):
        ALGORITHMS[name].check_spaces(native.spec)


SEES_PICTURES = [name for name in ALGORITHMS if hasattr(ALGORITHMS[name].config, "network")]


@pytest.mark.parametrize("name", SEES_PICTURES)
def test_the_network_that_is_named_sees_pictures(name: str) -> None:
    """By what its first layer takes: blocks of 8 x 8 pixels, patches of 6 x 6, 9 cells; 4 deep."""
    for env, network, layer, inputs in (
        ("dot", "nature", "first", 8 * 8 * 4),
        ("dot", "patches", "patches", 6 * 6 * 4),
        ("MinAtar/Breakout-v1", "auto", "cells", 9 * 4),
    ):
        built = build(name, env, env_args={}, settings={"network": network})
        arrays = jax.tree_util.tree_leaves_with_path(built.driver.algorithm.init(0))
        first = [x for path, x in arrays if f"'{layer}'" in jax.tree_util.keystr(path)]
        assert {x.shape[0] for x in first if x.ndim == 2} == {inputs}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_who_names_no_network_sees_pictures_by_contrast(name: str) -> None:
    low = np.zeros((84, 84, 4), np.uint8)
    picture = EnvSpec("picture", Box(low, low + 255, np.dtype(np.uint8)), Discrete(3), None)
    settings = defaults_of(name, picture, {})
    assert settings.get("network") == ("contrast" if name in SEES_PICTURES else None)


@pytest.mark.parametrize("name", SEES_PICTURES)
def test_of_dot_those_see_patches_that_learn_it_better_so(name: str) -> None:
    dot = make_native("dot")
    assert dot is not None
    expected = "patches" if name in ("ppo", "dqn") else "contrast"
    assert defaults_of(name, dot.spec, {})["network"] == expected


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_setting_is_documented(name: str) -> None:
    config = ALGORITHMS[name].config
    missing = [
        field.name
        for field in dataclasses.fields(config)
        if f"        {field.name}: " not in (config.__doc__ or "")
    ]
    assert not missing


def test_a_rollout_of_cem_is_as_many_episodes_as_count_and_the_resets_between() -> None:
    for episodes in (1, 3):
        assert made("cem", episodes=episodes).config.rollout_length == 501 * episodes - 1
    assert made("cem", episodes=3, rollout_length=100).config.rollout_length == 100


@pytest.mark.parametrize(
    "settings",
    [
        {"num_envs": 8, "rollout_length": 32, "n_step": 40, "buffer_size": 320},
        {"num_envs": 8, "rollout_length": 12, "n_step": 20, "buffer_size": 8 * 23},
    ],
)
def test_a_replay_that_holds_fewer_whole_rollouts_than_a_row_needs_is_refused(settings) -> None:
    """Of each environment 40 and 20 env steps are needed; 64 and 24 are whole rollouts."""
    need = 64 if settings["n_step"] == 40 else 24
    with pytest.raises(UsageError, match=f"`buffer_size` must hold .* at least {8 * need}, got"):
        made("dqn", warm_up=1_000, batch_size=8, **settings)
    made("dqn", warm_up=1_000, batch_size=8, **(settings | {"buffer_size": 8 * need}))


@pytest.mark.parametrize(
    ("env", "network", "side"), [("MinAtar/Breakout-v1", "nature", 36), ("tiny", "grid", 3)]
)
def test_a_network_is_refused_images_too_small_for_it(env: str, network: str, side: int) -> None:
    if env == "tiny":
        seen = np.zeros((2, 9, 3), np.uint8)
        spec = EnvSpec("tiny", Box(seen, seen + 255, seen.dtype), Discrete(2), None)
    else:
        spec = make_native(env).spec
    config = ALGORITHMS["ppo"].config(network=network)
    with pytest.raises(UsageError, match=f"`network={network}` sees images of at least {side} x"):
        ALGORITHMS["ppo"].build(config, spec)
    auto = ALGORITHMS["ppo"].build(ALGORITHMS["ppo"].config(), spec)
    assert ("cells" if env != "tiny" else "patches") in auto.init(0).params


@pytest.mark.parametrize("name", OFF_POLICY)
def test_fewer_env_steps_than_the_warm_up_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no update would ever happen"):
        made(name, env_steps=500, warm_up=500)


@pytest.mark.parametrize("name", OFF_POLICY)
def test_a_ratio_that_gives_no_whole_number_of_updates_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="updates_per_step"):
        made(name, num_envs=1, rollout_length=1, updates_per_step=0.3)


@pytest.mark.parametrize("name", OFF_POLICY)
def test_a_replay_that_does_not_fit_is_refused_with_the_numbers(name: str, tmp_path) -> None:
    with pytest.raises(UsageError, match=r"10 seeds x .* MiB, and .* MiB are free; try --set"):
        train(name, env_of(name), seeds=10, settings={"buffer_size": 10**9}, home=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["ppo", "a2c", "vpg"])
def test_undiscounted_values_of_endless_episodes_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="`discount` must be below 1 for `Pendulum-v1`"):
        build(name, CONTINUOUS, env_args={}, settings={"discount": 1.0})


def test_a_saved_spec_has_what_networks_divide_by() -> None:
    grid = make_native("MinAtar/Breakout-v1")
    assert grid is not None
    again = spec_from_json(spec_to_json(grid.spec))
    np.testing.assert_array_equal(again.observation.high, grid.spec.observation.high)


def test_what_fits_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    free = psutil.virtual_memory()._replace(available=2 * 2**30)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: free)
    driver = made("dqn", buffer_size=50_000_000).driver
    with pytest.raises(
        UsageError, match=r"2,048 MiB are free; try --set buffer_size=(\d+)"
    ) as said:
        memory.check_memory(driver, 1)
    suggested = int(str(said.value).partition("buffer_size=")[2].partition(" ")[0])
    memory.check_memory(made("dqn", buffer_size=suggested).driver, 1)
    with pytest.raises(UsageError):
        memory.check_memory(made("dqn", buffer_size=2 * suggested).driver, 1)
