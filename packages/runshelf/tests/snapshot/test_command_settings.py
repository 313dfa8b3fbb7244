"""Tests of parsing the settings in a command line."""

from runshelf.snapshot.command_settings import config_of, parse_settings


def test_every_way_to_write_a_setting():
    argv = [
        "python",
        "x.py",
        "--lr",
        "1e-3",
        "--batch-size=64",
        "epochs=3",
        "--fast",
        "--name",
        "a b",
    ]
    assert config_of(argv) == {
        "lr": 1e-3,
        "batch_size": 64,
        "epochs": 3,
        "fast": True,
        "name": "a b",
    }
    assert type(config_of(argv)["epochs"]) is int


def test_values_negative_numbers_and_booleans():
    argv = ["x", "--low", "-1.5", "--on=true", "--off", "False", "--last"]
    assert config_of(argv) == {"low": -1.5, "on": True, "off": False, "last": True}


def test_other_arguments_are_left_out():
    argv = ["a=b", "-c", "print(x == 1)", "file.txt", "/data/x=1", "-v", "--", "--x-"]
    assert set(config_of(argv)) <= {"x_"}


def test_an_option_before_a_setting_or_an_option_is_a_flag():
    assert config_of(["x", "--fast", "lr=1", "--slow", "--lr2", "2"]) == {
        "fast": True,
        "lr": 1,
        "slow": True,
        "lr2": 2,
    }


def test_hydra_overrides_and_repeated_names():
    assert config_of(["x", "+model.width=3", "++a/b=c", "model.width=4"]) == {
        "model.width": 4,
        "a/b": "c",
    }


def test_a_setting_has_its_place():
    argv = ["x", "--lr", "1", "--n=2", "--fast"]
    assert [(s.place, s.prefix) for s in parse_settings(argv)] == [(2, ""), (3, "--n="), (4, None)]
