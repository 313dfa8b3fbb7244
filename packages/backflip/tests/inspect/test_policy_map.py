"""Policy maps show value and greedy action at each state."""

import numpy as np

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.registry import make_native
from backflip.inspect.policy_map import POINTS, map_policy, picture, state_space_of


def test_pendulum_states_are_observed_as_in_the_environment() -> None:
    env = Pendulum()
    space = state_space_of("gymnasium:Pendulum-v1", env.spec)
    assert space is not None
    points = np.array([[0.5, -3.0], [-2.0, 1.0]])
    expected = [[np.cos(a), np.sin(a), v] for a, v in points]
    np.testing.assert_allclose(space.observe(points), expected)


def test_first_dimension_is_horizontal_and_second_vertical() -> None:
    native = make_native("MountainCar-v0")
    assert native is not None
    space = state_space_of("MountainCar-v0", native.spec)
    assert space is not None
    assert space.names == ("position", "velocity")
    found = map_policy(space, lambda obs: (obs[:, 1] > 0).astype(int) * 2, lambda obs: obs[:, 0])
    assert found.value is not None
    np.testing.assert_allclose(found.value[3], np.linspace(-1.2, 0.6, POINTS), rtol=1e-5)
    assert found.action[0].tolist() == [0] * POINTS
    assert found.action[-1].tolist() == [2] * POINTS
    drawn = picture(found, native.spec)
    assert picture(found._replace(value=None), native.spec).shape[1] * 2 == drawn.shape[1]
    told = found.to_json()
    assert told["axes"][1] == {
        "name": "velocity",
        "low": -0.07000000029802322,
        "high": told["axes"][1]["high"],
    }
    assert len(told["value"]) == POINTS


def test_other_state_spaces_have_no_map() -> None:
    for env_id in ("CartPole-v1", "dot", "probe:3"):
        native = make_native(env_id)
        assert native is not None
        assert state_space_of(env_id, native.spec) is None


def test_very_large_bounds_give_no_map() -> None:
    low, high = (np.full(2, x, np.float32) for x in (-3.4e38, 3.4e38))
    spec = EnvSpec("mine:Huge", Box(low, high, low.dtype), Discrete(2), 10)
    assert state_space_of("mine:Huge", spec) is None
