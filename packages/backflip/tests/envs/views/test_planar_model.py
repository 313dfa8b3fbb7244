"""Which models are planar, and where their parts are: compared with MuJoCo's own numbers."""

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

from backflip.envs.views.outlines import DIRECTIONS
from backflip.envs.views.planar_model import PlanarModel
from backflip.envs.views.sight import (
    FROM_ABOVE,
    FROM_THE_FRONT,
    FROM_THE_SIDE,
    NotPlanarError,
    Sight,
)

_mujoco: Any = mujoco
JOINTS = '<joint type="{}" axis="{}"/>'


def of_xml(folder: Path, *joints: str, geom: str = '<geom size=".1 .5" type="capsule"/>') -> Any:
    """Return the model of an environment whose robot is a chain with these joints."""
    bodies = "".join(f'<body pos="0 0 1">{joint}{geom}' for joint in joints)
    ends = "</body>" * len(joints)
    text = f"<mujoco><worldbody>{bodies}{ends}</worldbody></mujoco>"
    (folder / "own.xml").write_text(text)
    return PlanarModel("InvertedPendulum-v5", {"xml_file": str(folder / "own.xml")})


@pytest.mark.parametrize(
    ("name", "sight", "robot", "follows_ground"),
    [
        ("Hopper-v5", FROM_THE_SIDE, "torso", True),
        ("Hopper-v4", FROM_THE_SIDE, "torso", True),
        ("Walker2d-v5", FROM_THE_SIDE, "torso", True),
        ("HalfCheetah-v5", FROM_THE_SIDE, "torso", True),
        ("Swimmer-v5", FROM_ABOVE, "torso", False),
        ("Reacher-v5", FROM_ABOVE, "body0", False),
        ("InvertedPendulum-v5", FROM_THE_SIDE, "cart", False),
        ("InvertedDoublePendulum-v5", FROM_THE_SIDE, "cart", True),
    ],
)
def test_planar_models(name: str, sight: Sight, robot: str, follows_ground: bool) -> None:
    planar = PlanarModel(name, {})
    assert planar.sight is sight
    assert planar.model.body(planar.robot).name == robot
    assert (planar.ground is not None) == follows_ground


@pytest.mark.parametrize("name", ["Ant-v5", "Humanoid-v5", "HumanoidStandup-v5", "Pusher-v5"])
def test_models_in_space_are_not_planar(name: str) -> None:
    with pytest.raises(NotPlanarError):
        PlanarModel(name, {})


@pytest.mark.parametrize(
    ("joints", "sight"),
    [
        ([("hinge", "0 1 0"), ("hinge", "0 -1 0")], FROM_THE_SIDE),
        ([("hinge", "0 0 1"), ("slide", "1 0 0")], FROM_ABOVE),
        ([("slide", "0 1 1"), ("hinge", "1 0 0")], FROM_THE_FRONT),
        ([("slide", "0 1 0"), ("slide", "1 0 0")], FROM_ABOVE),
        ([("slide", "1 0 0")], FROM_THE_SIDE),
        ([("hinge", "0 1 0"), ("hinge", "1 0 0")], None),
        ([("hinge", "0 1 0"), ("slide", "0 1 0")], None),
        ([("hinge", "0 1 1")], None),
        ([("ball", "0 1 0")], None),
    ],
)
def test_joints_decide(joints: list[tuple[str, str]], sight: Sight | None, tmp_path: Path) -> None:
    texts = [JOINTS.format(*joint) for joint in joints]
    if sight is None:
        with pytest.raises(NotPlanarError):
            of_xml(tmp_path, *texts)
    else:
        assert of_xml(tmp_path, *texts).sight is sight


@pytest.mark.parametrize(
    ("name", "axes", "count"),
    [
        ("Hopper-v5", [0, 2], 4),
        ("Walker2d-v5", [0, 2], 7),
        ("HalfCheetah-v5", [0, 2], 8),
        ("Swimmer-v5", [0, 1], 3),
        ("Reacher-v5", [0, 1], 9),
        ("InvertedDoublePendulum-v5", [0, 2], 4),
    ],
)
def test_parts_are_where_mujoco_has_them(name: str, axes: list[int], count: int) -> None:
    """The ends of each capsule too: they turn with it."""
    planar = PlanarModel(name, {})
    env: Any = gymnasium.make(name).unwrapped
    model, data = env.model, _mujoco.MjData(env.model)
    geoms = [geom for geom in range(model.ngeom) if model.geom_type[geom] != 0]
    assert len(planar.parts) == len(geoms) == count
    for seed in range(5):
        data.qpos[:] = np.random.default_rng(seed).uniform(-2, 2, model.nq)
        _mujoco.mj_forward(model, data)
        placed = planar.place(np.concatenate([data.qpos, data.qvel]))
        centres = data.geom_xpos[geoms][:, axes]
        np.testing.assert_allclose(placed.centres, centres, atol=1e-12)
        outlines = planar.outlines(placed)
        for part, geom in enumerate(geoms):
            along = data.geom_xmat[geom].reshape(3, 3)[axes, 2]
            if model.geom_type[geom] == _mujoco.mjtGeom.mjGEOM_CAPSULE:
                radius, half, _ = model.geom_size[geom]
                reach = ((outlines[part] - centres[part]) @ along).max()
                # The outline has 32 points, so that it may miss the tip by a little.
                assert radius * np.cos(np.pi / 32) + half - 1e-9 <= reach <= radius + half + 1e-9
        total = data.subtree_com[planar.robot][axes]
        np.testing.assert_allclose(placed.mass, total, atol=1e-12)


def test_pendulum_by_hand() -> None:
    """The cart at .5 m, the pole of .6 m a quarter turn to the right: its middle is .3 m away."""
    planar = PlanarModel("InvertedPendulum-v5", {})
    placed = planar.place(np.array([0.5, np.pi / 2, 0, 0]))
    rail, cart, pole = placed.centres
    # The pole's upper end is 1 mm aside in the model.
    np.testing.assert_allclose([rail, cart, pole], [[0, 0], [0.5, 0], [0.8, 0]], atol=1e-3)
    np.testing.assert_allclose(placed.hinges, [[0.5, 0]], atol=1e-12)
    outlines = planar.outlines(placed)
    assert outlines[2, :, 0].max() == pytest.approx(0.5 + 0.6 + 0.049, abs=1e-5)
    np.testing.assert_allclose(placed.turns[2], [[0, 1], [-1, 0]], atol=1e-9)


def test_robot_is_what_is_driven(tmp_path: Path) -> None:
    """Not the target, although it has more joints."""
    slides = JOINTS.format("slide", "1 0 0") + JOINTS.format("slide", "0 0 1")
    (tmp_path / "own.xml").write_text(
        f"<mujoco><worldbody><body name='aim'>{slides}<geom size='.1'/></body><body name='arm'>"
        "<joint name='drive' axis='0 1 0'/><geom size='.1'/></body></worldbody>"
        "<actuator><motor joint='drive'/></actuator></mujoco>"
    )
    planar = PlanarModel("InvertedPendulum-v5", {"xml_file": str(tmp_path / "own.xml")})
    assert planar.model.body(planar.robot).name == "arm"


def test_shapes_that_are_hidden_are_no_parts(tmp_path: Path) -> None:
    shown = '<geom size=".1"/>'
    hidden = '<geom size=".1" rgba="1 0 0 0"/><geom size=".1" group="3"/>'
    planar = of_xml(tmp_path, JOINTS.format("hinge", "0 1 0"), geom=shown + hidden)
    assert len(planar.parts) == 1
    np.testing.assert_allclose(planar.parts[0].outline, 0.1 * DIRECTIONS)


def test_goals_are_found_by_name(tmp_path: Path) -> None:
    """Sites are drawn only if they are goals, also in a hidden group."""
    geom = '<geom size=".1"/><site name="tip"/><site name="Goal" size=".3" group="4"/>'
    planar = of_xml(tmp_path, JOINTS.format("hinge", "0 1 0"), geom=geom)
    assert [part.goal for part in planar.parts] == [False, True]
    assert [part.goal for part in PlanarModel("Reacher-v5", {}).parts] == [False] * 8 + [True]
