"""Tests of `backflip.preferences.films`: strips are lossless, named by content, checked."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from backflip.preferences.films import has_film, read_film, write_film
from runshelf.errors import DamagedFile


def noise(count, height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def frame(strip, film, number):
    """Return a frame of a strip, as a player finds it."""
    row, column = divmod(number, film.columns)
    left, top = column * film.width, row * film.height
    return strip[top : top + film.height, left : left + film.width]


@pytest.mark.medium
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 12))
def test_frames_round_trip_bit_for_bit(tmp_path_factory, count, height, width):
    frames = noise(count, height, width)
    folder = tmp_path_factory.mktemp("films")
    film = write_film(folder, frames, fps=30.0)
    strip = np.asarray(Image.open(io.BytesIO(read_film(folder, film.file))).convert("RGB"))
    for number in range(count):
        assert (frame(strip, film, number) == frames[number]).all()


def test_a_long_film_stays_within_the_limits_of_a_picture(tmp_path):
    film = write_film(tmp_path, np.zeros((1000, 64, 64, 3), np.uint8), fps=30.0)
    rows = -(-film.frames // film.columns)
    assert max(rows * film.height, film.columns * film.width) <= 16_383


def test_equal_films_share_a_file(tmp_path):
    one, same, other = (write_film(tmp_path, noise(3, 4, 5, s), fps=30.0) for s in (1, 1, 2))
    assert one.file == same.file != other.file
    assert len(list(tmp_path.iterdir())) == 2


def test_a_missing_film_is_named(tmp_path):
    film = write_film(tmp_path, noise(3, 4, 5), fps=30.0)
    assert has_film(tmp_path, film)
    (tmp_path / film.file).unlink()
    assert not has_film(tmp_path, film)
    with pytest.raises(DamagedFile, match=rf"the film `{film.file}` is missing"):
        read_film(tmp_path, film.file)


def test_a_damaged_film_is_refused_and_moved(tmp_path):
    frames = noise(3, 4, 5)
    film = write_film(tmp_path, frames, fps=30.0)
    data = bytearray((tmp_path / film.file).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / film.file).write_bytes(data)
    with pytest.raises(DamagedFile, match="is damaged"):
        read_film(tmp_path, film.file)
    assert not has_film(tmp_path, film)
    assert write_film(tmp_path, frames, fps=30.0) == film
    assert read_film(tmp_path, film.file)
