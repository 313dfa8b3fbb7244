"""The pixels view shows images unchanged."""

import numpy as np

from backflip.envs.views.pixels import PixelsView

VIEW = PixelsView()


def test_colour_images_stay_and_others_show_the_last_channel() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 5, 4, 4), np.uint8)
    np.testing.assert_array_equal(VIEW.draw(images[..., :3]), images[..., :3])
    for channels in (1, 4):
        drawn = VIEW.draw(images[..., :channels])
        assert drawn.shape == (2, 5, 4, 3)
        for channel in range(3):
            np.testing.assert_array_equal(drawn[..., channel], images[..., channels - 1])


def test_poses_include_the_last_next_observation() -> None:
    images = np.arange(6, dtype=np.uint8).reshape(6, 1, 1, 1)
    poses = VIEW.poses(images[:3], images[3:], np.zeros(0, np.float32))
    assert poses.ravel().tolist() == [0, 1, 2, 5]
