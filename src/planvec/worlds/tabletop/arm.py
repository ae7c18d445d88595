"""The arm's kinematics, in closed form: the hand points straight down and keeps the table's axes.

The joints are yaw, shoulder, elbow, wrist pitch and wrist roll; links and hand are as long as geometry.py says.
"""

import numpy as np

from planvec.worlds.tabletop.geometry import BASE, HAND, LINK, SHOULDER

JOINTS = ("yaw", "shoulder", "elbow", "pitch", "roll")
REACH = 1.995 * LINK  # a little short of stretched out, where the elbow's angle would no longer be well defined


def joints_for(grip: np.ndarray) -> np.ndarray:
    """The joints' angles that bring the grip to a point, or as near as the arm reaches. [..., 3] to [..., 5]"""
    x = grip[..., 0] - BASE[0]
    y = grip[..., 1] - BASE[1]
    out = np.hypot(x, y)  # from the shoulder to the wrist
    up = grip[..., 2] + HAND - SHOULDER
    distance = np.minimum(np.hypot(out, up), REACH)
    bend = np.arccos(distance / (2 * LINK))  # of the isosceles triangle shoulder, elbow, wrist
    yaw = np.arctan2(y, x)
    shoulder = np.arctan2(up, out) + bend
    elbow = -2 * bend
    return np.stack([yaw, shoulder, elbow, -shoulder - elbow, -yaw], axis=-1)


def grip_at(joints: np.ndarray) -> np.ndarray:
    """Where the grip is at the joints' angles, the hand pointing down. [..., 5] to [..., 3]"""
    yaw = joints[..., 0]
    shoulder = joints[..., 1]
    elbow = joints[..., 2]
    out = LINK * (np.cos(shoulder) + np.cos(shoulder + elbow))
    up = LINK * (np.sin(shoulder) + np.sin(shoulder + elbow))
    return np.stack([BASE[0] + out * np.cos(yaw), BASE[1] + out * np.sin(yaw), SHOULDER - HAND + up], axis=-1)
