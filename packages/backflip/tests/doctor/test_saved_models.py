"""What saved models hold besides the policy."""

import zipfile

import pytest
from packages.backflip.tests.doctor.log_writers import sb3

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import SAVED
from backflip.doctor.reading import saved_models
from backflip.doctor.reading.find import find_logs
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.reading.own_runs import POLICY
from backflip.doctor.reading.saved_models import MIB, unneeded_mib
from backflip.training import policy
from backflip.training.train import train


def model(path, policy_size=1_000, optimiser_size=2_000):
    """Write an archive with the names of Stable-Baselines3's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", bytes(policy_size))
        archive.writestr("policy.optimizer.pth", bytes(optimiser_size))


def test_optimisers_and_replays_are_counted(tmp_path):
    model(tmp_path / "model.zip")
    model(tmp_path / "best" / "best_model.zip", 10, 500)
    (tmp_path / "rl_replay_buffer_1000_steps.pkl").write_bytes(bytes(7_000))
    assert unneeded_mib(tmp_path) == pytest.approx((2_000 + 500 + 7_000) / MIB)


def test_other_files_are_no_models(tmp_path):
    assert unneeded_mib(tmp_path) is None
    assert unneeded_mib(tmp_path / "none") is None
    (tmp_path / "broken.zip").write_bytes(b"PK\x05\x06 not an archive")
    (tmp_path / "text.zip").write_text("text")
    (tmp_path / "vec_normalize.pkl").write_bytes(bytes(9))
    (tmp_path / "link.zip").symlink_to("/dev/zero")
    assert unneeded_mib(tmp_path) is None


def test_hostile_archives_are_left_out(tmp_path, monkeypatch):
    model(tmp_path / "model.zip")
    whole = (tmp_path / "model.zip").read_bytes()
    at = whole.rindex(b"PK\x01\x02")
    other_version = whole[: at + 6] + b"\xff\xff" + whole[at + 8 :]
    bad_name = whole[: at + 8] + b"\x00\x08" + whole[at + 10 :].replace(b"policy", b"\xff\xfelicy")
    for content in (whole[:-8], other_version, bad_name, b""):
        (tmp_path / "model.zip").write_bytes(content)
        assert unneeded_mib(tmp_path) is None
    (tmp_path / "model.zip").write_bytes(whole)
    assert unneeded_mib(tmp_path) is not None
    monkeypatch.setattr(saved_models, "MOST_LISTED", 100)
    assert unneeded_mib(tmp_path) is None, "the list of contents is too long"


def test_a_folder_with_large_models_has_a_remark(tmp_path):
    sb3(tmp_path)
    (tmp_path / "rl_replay_buffer_1000_steps.pkl").touch()
    with (tmp_path / "rl_replay_buffer_1000_steps.pkl").open("r+b") as file:
        file.truncate(300 * MIB)
    (log,) = logs_in(tmp_path, {})
    assert log.signals[SAVED].y[-1] == pytest.approx(300.0)
    found = diagnose(log)
    assert "SYS-SAVED" in {one.check.id for one in found.remarks}
    assert "SYS-SAVED" not in {one.check.id for one in found.findings + found.warnings}


@pytest.mark.slow
def test_the_checkpoint_of_a_run_is_compared_with_its_policy(tmp_path):
    assert POLICY == policy.POLICY
    tiny = {"num_envs": 2, "rollout_length": 8, "minibatches": 1, "epochs": 1, "hidden": (8,)}
    result = train("ppo", "CartPole-v1", settings=tiny | {"env_steps": 64}, home=tmp_path)
    (log,) = find_logs(tmp_path, str(result.folder), {})
    files = [(result.folder / name).stat().st_size for name in ("checkpoint.safetensors", POLICY)]
    assert log.signals[SAVED].y[0] == pytest.approx((files[0] - files[1]) / MIB)
