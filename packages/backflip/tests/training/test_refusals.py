"""Tests of settings that are refused before a run begins, for every algorithm."""

import re
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.parts.replay_settings import refuse_unworkable
from backflip.algorithms.registry import algorithms, check_spaces
from backflip.cli import training_commands
from backflip.core.settings import LARGEST_COUNT
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.registry import make_native
from backflip.teaching_api import teach
from backflip.training import memory
from backflip.training.algorithm_config import configure
from backflip.training.build import build
from backflip.training.spec_json import spec_from_json, spec_to_json
from backflip.training.train import train
from runshelf.errors import UsageError

ONES = np.ones(1, np.float32)
DISCRETE, CONTINUOUS = "CartPole-v1", "Pendulum-v1"
ALGORITHMS = algorithms()
OFF_POLICY = [name for name in ALGORITHMS if ALGORITHMS[name].has_replay]


def env_of(name: str) -> str:
    return DISCRETE if ALGORITHMS[name].discrete else CONTINUOUS


def made(name: str, **settings: object):
    return build(name, env_of(name), env_args={}, settings=settings)


def test_the_command_line_has_the_limits_of_the_settings() -> None:
    for entry in ALGORITHMS.values():
        assert entry.settings["env_steps"].bounds == (1, LARGEST_COUNT, False)
    assert training_commands.MOST_ENV_STEPS == LARGEST_COUNT


@pytest.mark.parametrize("env", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_a_time_limit_above_int32_is_refused(env: str) -> None:
    limit = {"max_episode_steps": LARGEST_COUNT + 1}
    with pytest.raises(UsageError, match=f"of {env} must be at most 2,000,000,000, got 2000000001"):
        build("ppo", env, env_args=limit, settings={})


# The suitable algorithms: discrete actions, continuous ones, and discrete ones from images.
CAN = {
    DISCRETE: ("a2c", "cem", "dqn", "ppo", "sac", "vpg"),
    CONTINUOUS: ("a2c", "cem", "ddpg", "ppo", "sac", "td3", "vpg"),
    "dot": ("a2c", "dqn", "ppo", "sac", "vpg"),
    "MinAtar/Breakout-v1": ("a2c", "dqn", "ppo", "sac", "vpg"),
}


@pytest.mark.parametrize(("env", "name"), [(env, name) for env in CAN for name in CAN[env]])
def test_the_defaults_suit_every_kind_of_environment(env: str, name: str) -> None:
    native, entry = make_native(env), ALGORITHMS[name]
    assert native is not None
    check_spaces(entry, native.spec)
    assert configure(entry, entry.defaults_for(native.spec, {})).updates >= 1


@pytest.mark.parametrize(
    ("env", "name"), [(env, name) for env in CAN for name in ALGORITHMS if name not in CAN[env]]
)
def test_an_unsuitable_algorithm_is_refused_with_suitable_ones(env: str, name: str) -> None:
    native, able = make_native(env), ", ".join(CAN[env])
    assert native is not None
    with pytest.raises(UsageError, match=f"^`{name}` (chooses|does not) .* use one of: {able}$"):
        check_spaces(ALGORITHMS[name], native.spec)


SEES_PICTURES = [name for name in ALGORITHMS if hasattr(ALGORITHMS[name].config, "network")]


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "ppo" else pytest.mark.slow) for name in SEES_PICTURES],
)
def test_a_named_network_is_used_for_images(name: str) -> None:
    """The first layer takes 8 x 8 pixels, 6 x 6, 9 cells or all 10 x 10, each with 4 channels."""
    for env, network, layer, inputs in (
        ("dot", "nature", "first", 8 * 8 * 4),
        ("dot", "patches", "patches", 6 * 6 * 4),
        ("MinAtar/Breakout-v1", "auto", "cells", 9 * 4),
        ("MinAtar/Breakout-v1", "flat", "['body'][0]", 10 * 10 * 4),
    ):
        built = build(name, env, env_args={}, settings={"network": network})
        arrays = jax.tree_util.tree_leaves_with_path(built.driver.algorithm.init(0))
        first = [x for path, x in arrays if layer in jax.tree_util.keystr(path)]
        assert {x.shape[0] for x in first if x.ndim == 2} == {inputs}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_default_network_for_images_is_contrast(name: str) -> None:
    low = np.zeros((84, 84, 4), np.uint8)
    picture = EnvSpec("picture", Box(low, low + 255, np.dtype(np.uint8)), Discrete(3), None)
    settings = ALGORITHMS[name].defaults_for(picture, {})
    assert settings.get("network") == ("contrast" if name in SEES_PICTURES else None)


@pytest.mark.parametrize("name", SEES_PICTURES)
def test_ppo_and_dqn_use_patches_for_dot(name: str) -> None:
    dot = make_native("dot")
    assert dot is not None
    expected = "patches" if name in ("ppo", "dqn") else "contrast"
    assert ALGORITHMS[name].defaults_for(dot.spec, {})["network"] == expected


def test_a_rollout_of_cem_has_its_episodes_and_the_resets_between() -> None:
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
def test_a_replay_with_fewer_rollouts_than_a_row_needs_is_refused(settings) -> None:
    """Each environment needs 40 or 20 env steps, which in whole rollouts are 64 or 24."""
    need = 64 if settings["n_step"] == 40 else 24
    with pytest.raises(UsageError, match=f"`buffer_size` must hold .* at least {8 * need}, got"):
        made("dqn", learning_starts=1_000, batch_size=8, **settings)
    made("dqn", learning_starts=1_000, batch_size=8, **(settings | {"buffer_size": 8 * need}))


@pytest.mark.medium
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
    with pytest.raises(UsageError, match=f"`network={network}` needs images of at least {side} x"):
        ALGORITHMS["ppo"].build(config, spec)
    auto = ALGORITHMS["ppo"].build(ALGORITHMS["ppo"].config(), spec)
    assert ("cells" if env != "tiny" else "patches") in auto.init(0).params


@pytest.mark.parametrize("name", OFF_POLICY)
def test_fewer_env_steps_than_the_warm_up_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no update would ever happen"):
        made(name, env_steps=500, learning_starts=500)


@pytest.mark.parametrize("name", OFF_POLICY)
def test_a_ratio_that_gives_no_whole_number_of_updates_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="updates_per_step"):
        made(name, num_envs=1, rollout_length=1, updates_per_step=0.3)


@given(num_envs=st.integers(1, 1_000), rollout=st.integers(1, 1_000), ratio=st.floats(1e-6, 1_000))
@example(num_envs=3, rollout=1, ratio=0.5)
def test_a_proposed_ratio_is_accepted(num_envs: int, rollout: int, ratio: float) -> None:
    spec = EnvSpec("mine", Box(-ONES, ONES, ONES.dtype), Box(-ONES, ONES, ONES.dtype), 9)

    def refused(ratio: float) -> str:
        fields = {"num_envs": num_envs, "rollout_length": rollout, "updates_per_step": ratio}
        try:
            refuse_unworkable(
                SACConfig(**fields, buffer_size=1, learning_starts=0), spec
            )  # another fault
        except UsageError as error:
            return str(error)
        raise AssertionError("a buffer of one row was accepted")

    said = refused(ratio)
    for proposed in re.findall(r"updates_per_step=(\S+?)(?: or (\S+?))?(?:;|$)", said):
        for text in filter(None, proposed):
            assert "updates_per_step" not in refused(float(text))
    assert ("try updates_per_step=" in said) == ("`updates_per_step` times" in said)


@pytest.mark.parametrize("name", OFF_POLICY)
def test_a_replay_that_does_not_fit_is_refused_with_the_numbers(name: str, tmp_path) -> None:
    settings = {"buffer_size": 10**9, "env_steps": 10**9}
    with pytest.raises(UsageError, match=r"10 seeds x .* MiB, and .* MiB are free; try --set"):
        train(name, env_of(name), seeds=10, settings=settings, home=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", OFF_POLICY)
def test_a_minibatch_larger_than_env_steps_is_refused(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"`batch_size` must be at most env_steps, .* try batch_size"
    ):
        made(name, batch_size=1_000_000_000)
    rounded = {"num_envs": 1, "rollout_length": 64, "env_steps": 65, "learning_starts": 64}
    assert made(name, **rounded, batch_size=128).config.updates == 1


def test_a_longer_warm_up_is_suggested_with_enough_env_steps() -> None:
    """Rollouts are of 4 x 16 env steps."""
    sizes = {"batch_size": 20_000, "buffer_size": 20_000, "env_steps": 20_000}
    with pytest.raises(UsageError, match=r"try learning_starts=20000 and --env-steps 20064$"):
        made("td3", **sizes)
    made("td3", **(sizes | {"learning_starts": 20_000, "env_steps": 20_064}))
    with pytest.raises(UsageError, match=r"try learning_starts=20000$"):
        made("td3", **(sizes | {"env_steps": 20_064}))


def test_too_many_episodes_of_cem_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^settings: `episodes` must lie [^;]*, got 1000*$"):
        made("cem", episodes=10**20)
    with pytest.raises(UsageError, match=r"must be at most 2,000,000,000 .* smaller `episodes` or"):
        made("cem", episodes=10_000, num_envs=1_000)
    with pytest.raises(UsageError, match=r"one rollout, .* try --env-steps (\d+)$") as said:
        made("cem", episodes=1_000)
    env_steps = int(str(said.value).rpartition(" ")[2])
    assert made("cem", episodes=1_000, env_steps=env_steps).config.updates == 1


@pytest.mark.parametrize("name", ["ppo", "a2c", "vpg"])
def test_undiscounted_values_of_endless_episodes_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="`discount` must be below 1 for `Pendulum-v1`"):
        build(name, CONTINUOUS, env_args={}, settings={"discount": 1.0})


def test_a_saved_spec_has_the_largest_pixel_value() -> None:
    grid = make_native("MinAtar/Breakout-v1")
    assert grid is not None
    again = spec_from_json(spec_to_json(grid.spec))
    np.testing.assert_array_equal(again.observation.high, grid.spec.observation.high)


# --- memory -----------------------------------------------------------------------------------

LONG = {"env_steps": 2_000_000_000}
# Settings that need more than 2 GiB, the message (MiB computed by hand), and the setting to lower.
# A row of CartPole: 4 numbers twice, the action and the reward of 4 bytes each, 2 flags: 42 bytes.
TOO_MUCH = [
    (
        "dqn",
        {"buffer_size": 50_000_000, **LONG},
        "replay memory for 49,999,872 env steps: 4,101",
        "buffer",
    ),
    (
        "dqn",
        {"updates_per_step": 1e9, "env_steps": 2048},
        "256,000,000,000 x 128 rows: 1,312,500,000",
        "updates_per",
    ),
    (
        "dqn",
        {"updates_per_step": 1e10, "batch_size": 4},
        "2,560,000,000,000 x 4 rows",
        "updates_per",
    ),
    (
        "dqn",
        {"batch_size": 4_000_000, "buffer_size": 4_000_000, "learning_starts": 4_000_000, **LONG}
        | {"epsilon_steps": 5_000_000, "hidden": 8, "updates_per_step": 2**-4},
        "minibatches drawn at once, 16 x 4,000,000 rows: 2,563",
        "batch_size",
    ),
    (
        "ppo",
        {"num_envs": 1_000_000, "rollout_length": 1_000, "hidden": "none", **LONG},
        "a rollout of 1,000,000 environments x 1,000 env steps: 40,054",
        "num_envs",
    ),
    (
        "ppo",
        {"rollout_length": 196_000_000, "minibatches": 7, "hidden": "none", **LONG},
        "a rollout of 8 environments x 196,000,000 env steps: 62,805",
        "rollout_length",
    ),
    (
        "cem",
        {"num_envs": 1_000_000, "rollout_length": 1_000, **LONG},
        "a rollout of 1,000,000 environments x 1,000 env steps: 5,722",
        "num_envs",
    ),
    (
        "ppo",
        {"rollout_length": 1_000_000, **LONG},
        "a gradient of 8,000,000 rows by layers of 64, 64: 7,812",
        "rollout_length",
    ),
    (
        "dqn",
        {"batch_size": 2_000_000, "buffer_size": 4_000_000, "learning_starts": 4_000_000, **LONG}
        | {"epsilon_steps": 5_000_000, "updates_per_step": 2**-8},
        "a gradient of 2,000,000 rows by layers of 256, 256: 3,906",
        "batch_size",
    ),
    ("ppo", {"epochs": 2_000_000_000}, "2,000,000,000 epochs of 1 gradient steps: 68,6", "epochs"),
]


@pytest.fixture
def two_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that 2 GiB of memory are free."""
    have(monkeypatch, 2)


def have(monkeypatch: pytest.MonkeyPatch, gib: int) -> None:
    free = psutil.virtual_memory()._replace(available=gib * 2**30)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: free)


def check(name: str, seeds: int = 1, **settings: object) -> None:
    built = made(name, **settings)
    memory.check_memory(built.driver, built.config, seeds)


@pytest.mark.usefixtures("two_gib")
@pytest.mark.parametrize(("name", "settings", "says", "less"), TOO_MUCH)
def test_too_much_memory_is_refused_with_a_setting_that_fits(
    name: str, settings: dict[str, object], says: str, less: str
) -> None:
    with pytest.raises(
        UsageError, match=rf"{says}.* MiB, and 2,048 MiB are free; try --set {less}"
    ) as said:
        check(name, **settings)
    setting, _, number = str(said.value).rpartition(" ")[2].partition("=")
    check(name, **(settings | {setting: float(number) if "." in number else int(number)}))
    with pytest.raises(UsageError):
        check(
            name, **(settings | {setting: 4 * float(number) if "." in number else 4 * int(number)})
        )


@pytest.mark.usefixtures("two_gib")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_networks_that_do_not_fit_are_refused_before_one_is_made(name: str) -> None:
    says = r"networks of \d x 65,536 x 65,536 x \d: .* try narrower layers, as with --set hidden="
    with pytest.raises(UsageError, match=says):
        made(name, hidden=(65_536, 65_536))


@pytest.mark.usefixtures("two_gib")
@pytest.mark.parametrize("name", SEES_PICTURES)
def test_the_memory_of_layers_is_counted_for_flat_images(name: str) -> None:
    def made_here(network: str) -> object:
        settings = {"hidden": (65_536, 65_536), "network": network}
        return build(name, "MinAtar/Breakout-v1", env_args={}, settings=settings)

    made_here("grid")
    with pytest.raises(UsageError, match="networks of 400 x 65,536 x 65,536 x 3: "):
        made_here("flat")


@pytest.mark.medium
@pytest.mark.usefixtures("two_gib")
def test_the_networks_of_all_seeds_and_of_all_members_are_counted() -> None:
    """1,000 seeds of 4 x 512 + 512 x 512 + 512 x 2 weights, each with its two moments of Adam."""
    wide = {"hidden": (512, 512)}
    check("ppo", seeds=100, **wide)
    with pytest.raises(UsageError, match=r"x 2 of 1000 seeds: .* or fewer --seeds$"):
        check("ppo", seeds=1_000, **wide)
    check("cem", num_envs=50, **wide, **LONG)
    with pytest.raises(UsageError, match="networks of 4 x 512 x 512 x 2: 4,047 MiB"):
        made("cem", num_envs=4_000, **wide, **LONG)


@pytest.mark.usefixtures("two_gib")
def test_outside_jax_the_rollouts_of_all_seeds_are_held_at_once() -> None:
    def check_here(env: str, seeds: int) -> None:
        long = {"num_envs": 100, "rollout_length": 20_000, **LONG, "hidden": "none"}
        built = build("ppo", env, env_args={}, settings=long)
        memory.check_memory(built.driver, built.config, seeds)

    check_here("gymnasium:CartPole-v1", 1)
    with pytest.raises(UsageError, match="20,000 env steps of 100 seeds: 8,011 MiB"):
        check_here("gymnasium:CartPole-v1", 100)
    check_here("CartPole-v1", 100)


@pytest.mark.usefixtures("two_gib")
def test_an_endless_evaluation_is_refused() -> None:
    built = build("ppo", DISCRETE, env_args={"max_episode_steps": 2_000_000_000}, settings={})
    says = r"up to 2,000,000,000 env steps: 15,259 MiB.* try --env-arg max_episode_steps=2\d{8}$"
    with pytest.raises(UsageError, match=says):
        memory.check_memory(built.driver, built.config, 1)


@pytest.mark.parametrize(("env", "name"), [(env, name) for env in CAN for name in CAN[env]])
def test_defaults_fit_into_memory(env: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, 4)
    built = build(name, env, env_args={}, settings={})
    memory.check_memory(built.driver, built.config, 1)


@pytest.mark.medium
@pytest.mark.parametrize("act", [train, teach])
def test_no_run_is_created_if_memory_is_insufficient(
    act: Callable[..., object], tmp_path: Path
) -> None:
    settings = {"num_envs": 1_000_000, "rollout_length": 1_000, **LONG}
    with pytest.raises(UsageError, match="a rollout of 1,000,000 environments x 1,000 env steps"):
        act(env=DISCRETE, settings=settings, home=tmp_path)
    assert not list(tmp_path.iterdir())
