import mujoco
import numpy as np
import pytest

from planvec.worlds.tabletop import arm
from planvec.worlds.tabletop.geometry import BASE, HAND, SHOULDER, TABLE
from planvec.worlds.tabletop.scene import scene

TOP = 0.25  # higher than any tower of what there is


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(scene())


def points(count=1000):
    """All over the table and above it, its corners included."""
    rng = np.random.default_rng(0)
    low, high = np.array([-TABLE[0], -TABLE[1], 0.0]), np.array([*TABLE, TOP])
    corners = np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), axis=-1).reshape(-1, 3)
    return np.concatenate([corners, rng.uniform(low, high, (count, 3))])


def grip_of(model, joints):
    """Where MuJoCo has the grip, and how it is turned."""
    data = mujoco.MjData(model)
    for name, angle in zip(arm.JOINTS, joints, strict=True):
        data.joint(name).qpos = angle
    mujoco.mj_kinematics(model, data)
    return data.site("grip").xpos.copy(), data.site("grip").xmat.reshape(3, 3).copy()


def test_the_grip_is_where_it_should_be_and_the_hand_keeps_the_tables_axes(model):
    for point, joints in zip(points(), arm.joints_for(points()), strict=True):
        grip, turn = grip_of(model, joints)
        np.testing.assert_allclose(grip, point, atol=1e-9)
        np.testing.assert_allclose(turn, np.eye(3), atol=1e-9)


def test_grip_at_is_the_inverse():
    np.testing.assert_allclose(arm.grip_at(arm.joints_for(points())), points(), atol=1e-9)


def test_the_elbow_is_above_the_line_from_shoulder_to_wrist():
    joints, wrist = arm.joints_for(points()), points() + np.array([0, 0, HAND])
    out = np.hypot(*(wrist[:, :2] - BASE).T)
    assert (joints[:, 1] > np.arctan2(wrist[:, 2] - SHOULDER, out)).all()
    assert (joints[:, 2] < 0).all()


def test_neighbouring_points_have_neighbouring_joints():
    way = np.linspace((-TABLE[0], -TABLE[1], 0.02), (TABLE[0], TABLE[1], TOP), 1000)
    assert np.abs(np.diff(arm.joints_for(way), axis=0)).max() < 0.01


@pytest.mark.parametrize("point", [(5.0, -7.0, 0.0), (0.0, -0.5, 0.1), (0.0, 0.0, 3.0), (1e9, 0.0, 0.0)])
def test_out_of_reach_the_arm_stretches_towards_the_point(model, point):
    joints = arm.joints_for(np.array(point))
    assert np.isfinite(joints).all()
    shoulder = np.array([*BASE, SHOULDER - HAND])
    reached, wanted = grip_of(model, joints)[0] - shoulder, np.array(point) - shoulder
    assert np.linalg.norm(reached) == pytest.approx(arm.REACH)
    np.testing.assert_allclose(reached / np.linalg.norm(reached), wanted / np.linalg.norm(wanted), atol=1e-6)
