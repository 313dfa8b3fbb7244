"""What few seeds can show, and what they hide."""

from runshelf.comparison.conclusions import enough_seeds, unseen


def test_how_many_seeds_can_show_anything() -> None:
    assert [enough_seeds(0.05, 1), enough_seeds(0.05, 3), enough_seeds(0.01, 1)] == [4, 5, 5]
    assert enough_seeds(0.05, 10_000) is None  # no number of seeds is enough


def test_how_much_is_hidden() -> None:
    assert "with 10 seeds, a failure of one run in ten goes unseen with probability 0.35" in unseen(
        10
    )
    assert "1 seed," in unseen(1)
    assert unseen(28)
    assert not unseen(29)
