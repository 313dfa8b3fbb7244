"""The older lines of the file of `DoctorCallback`, without Stable-Baselines3."""

import pytest

from backflip.doctor.sb3_file import lines_so_far, seconds_so_far

NAMES = ("env_steps", "entropy")
WHOLE = ["1000.0,0.5\r\n", "2000.0,0.4\r\n"]


@pytest.mark.parametrize("cut", ["", "3", "3000.0,0.3", "3000.0,0.3\r"])
def test_a_line_that_was_cut_is_left_out(tmp_path, cut):
    path = tmp_path / "doctor.csv"
    path.write_bytes(("#{}\r\nenv_steps,entropy\r\n" + "".join(WHOLE) + cut).encode())
    assert lines_so_far(path, NAMES) == WHOLE


@pytest.mark.parametrize(
    "text", [None, b"", b"#{}\n", b"#{}\nenv_steps,loss\n1,2\n", b"\xff\n\n1\n"]
)
def test_another_file_has_no_lines(tmp_path, text):
    path = tmp_path / "doctor.csv"
    if text is not None:
        path.write_bytes(text)
    assert lines_so_far(path, NAMES) == []


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [([], 0.0), (["1000.0,\r\n"], 0.0), (["1000.0,2.5\r\n", "2000.0,4.75\r\n"], 4.75)],
)
def test_time_goes_on_from_the_last_line(lines, seconds):
    assert seconds_so_far(lines, ("env_steps", "seconds")) == seconds
