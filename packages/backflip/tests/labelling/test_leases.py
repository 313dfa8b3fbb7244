"""Tests of `backflip.labelling.leases`."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from backflip.labelling.leases import LEASE_SECONDS, Leases


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self):
        self.seconds = 1_000_000.0

    def __call__(self):
        """The time."""
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def leases(tmp_path, clock):
    return Leases(tmp_path, clock)


def test_nobody_is_present_at_first(leases):
    assert leases.present() == frozenset()
    leases.end("ann", "one")


def test_presence_ends_six_seconds_after_the_last_touch(leases, clock):
    leases.renew("ann", "one")
    clock.seconds += LEASE_SECONDS
    leases.renew("bob", "two")
    assert leases.present() == {"ann", "bob"}
    clock.seconds += 0.01
    assert leases.present() == {"bob"}
    leases.renew("ann", "one")
    assert leases.present() == {"ann", "bob"}


def test_all_processes_see_the_same(leases, tmp_path, clock):
    leases.renew("ann", "one")
    assert Leases(tmp_path, clock).present() == {"ann"}


def test_names_of_any_letters(leases):
    names = {"Ann Lee", "../../etc", "René", "李", "a" * 40, "𝄞" * 40}
    for name in names:
        leases.renew(name, "x" * 64)
    assert leases.present() == names


def test_one_person_and_place_ends_alone(leases):
    for who in ("ann", "bob"):
        for place in ("one", "two"):
            leases.renew(who, place)
    leases.end("ann", "one")
    leases.end("bob", "one")
    leases.end("bob", "two")
    assert leases.present() == {"ann"}


def test_old_files_are_removed_when_somebody_arrives(leases, tmp_path, clock):
    for place in range(20):
        leases.renew("ann", str(place))
    clock.seconds += 100
    leases.renew("bob", "new")
    assert len(list((tmp_path / "present").iterdir())) == 1


def test_clock_that_was_set_back_ends_a_presence(leases, clock):
    leases.renew("ann", "one")
    clock.seconds -= 3600
    assert leases.present() == frozenset()
    leases.renew("ann", "one")
    assert leases.present() == {"ann"}


def test_invalid_files_are_nobody(leases, tmp_path, clock):
    leases.renew("ann", "one")
    for name, content in (("a.lease", b""), ("b.lease", b"\xff"), ("c.txt", b"cem")):
        (tmp_path / "present" / name).write_bytes(content)
        os.utime(tmp_path / "present" / name, (clock.seconds, clock.seconds))
    (tmp_path / "present" / "d.lease").mkdir()
    assert leases.present() == {"ann"}


def test_many_processes_at_once(tmp_path):
    """Threads that renew, end and read; none fails, and the last ones are seen."""

    def work(who):
        leases = Leases(tmp_path)
        for number in range(60):
            leases.renew(who, str(number % 3))
            leases.present()
            leases.end(who, str(number % 3))
        leases.renew(who, "last")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, ("ann", "bob", "cem")))
    assert Leases(tmp_path).present() == {"ann", "bob", "cem"}
