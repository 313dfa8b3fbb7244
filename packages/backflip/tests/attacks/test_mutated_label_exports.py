"""Mutated files of `labels export`: read in whole, or refused in a line that says where."""

import random
import shutil
from pathlib import Path

import pytest
from packages.backflip.tests.labelling.page.prepared_run import add_pairs
from packages.runshelf.tests.attacks.commands import no_hang
from packages.runshelf.tests.attacks.mutations import mutations
from tests.attack_figures import Tried

from backflip.preferences.exchange import export_labels, import_labels, read_labels
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from runshelf.errors import UserFacingError

pytestmark = [pytest.mark.attack, pytest.mark.medium]


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv"])
def test_a_mutated_export_adds_all_its_labels_or_none(
    tmp_path: Path, name: str, tried: Tried
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    add_pairs(source, 4, frames=4)
    with LabelStore.open(source / LABELS) as store:
        for query in (1, 2, 3, 4):
            store.add_label(query, "left", "me", 1.0)
        assert export_labels(store, tmp_path / name) == 4
    data = (tmp_path / name).read_bytes()
    rng, count, refused = random.Random(20261123), 150, 0
    blank = tmp_path / "blank"
    blank.mkdir()
    LabelStore.open(blank / LABELS).close()
    for number, mutation in zip(range(count), mutations(data, name, rng), strict=False):
        path = tmp_path / f"{number}-{name}"
        path.write_bytes(mutation.data)
        folder = Path(shutil.copytree(blank, tmp_path / str(number)))
        with no_hang(), LabelStore.open(folder / LABELS) as store:
            said, added = "", 0
            try:
                added = import_labels(store, read_labels(path), [0], name)
            except UserFacingError as error:
                said = str(error)
            assert store.counts(0).labels == added, mutation.how
            assert not said or "label" in said, (mutation.how, said)
            assert len(said) < 2_000, mutation.how
            refused += bool(said)
    assert refused > count / 4
    tried(count, "mutated files of labels")
