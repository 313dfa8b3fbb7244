"""Two teachers for Pendulum-v1.

In the folder of this file:

backflip teach Pendulum-v1 --teacher teacher:upright --labels 50
backflip teach Pendulum-v1 --teacher teacher:looks_upright --labels 50
"""

import numpy as np


def upright(left, right):
    """Prefer the clip in which the pendulum is higher, computed from the observations."""
    return better(height(left), height(right))


def height(clip):
    # An observation is (cos θ, sin θ, angular velocity); θ = 0 points up.
    return clip.observations[clip.alive, 0].mean()


def looks_upright(left, right):
    """Prefer the same clip, computed from the pictures that people see."""
    return better(height_in_frames(left), height_in_frames(right))


def height_in_frames(clip):
    frames = clip.frames().astype(float)  # (L, H, W, 3)
    drawn = np.abs(frames - frames[:, :1, :1]).sum(-1)  # distance of each pixel from the background
    row = np.arange(drawn.shape[1])
    return -((drawn.sum(2) * row).sum(1) / drawn.sum((1, 2))).mean()  # row 0 is at the top


def better(left, right, tie=0.02):
    if abs(left - right) <= tie:
        return "tie"
    return "left" if left > right else "right"
