"""The labels that a child run gets from its parent: all clips, queries, answers and films."""

from pathlib import Path

from backflip.labelling.label_queue import LabelQueue
from backflip.preferences.films import FILMS
from backflip.preferences.kept_labels import KeptLabels, LabelHash, refuse_lost_labels
from backflip.preferences.label_file import LABELS, LabelFile
from backflip.preferences.label_records import Counts
from backflip.preferences.labels import LabelStore
from runshelf.store.trees import files_below
from runshelf.store.writing import copy_file, make_folder


def inherited_counts(parent: Path) -> Counts:
    """Return the numbers of queries and answers in the folder of a run.

    Raises:
        UsageError: the run has no labels.
        DamagedFile: labels are lost, or damaged.
    """
    refuse_lost_labels(parent)
    with LabelStore.open_existing(parent / LABELS) as store:
        return store.counts()


def inherit_labels(parent: Path, child: Path) -> KeptLabels:
    """Copy the labels of a run into the folder of its child; return what the child has.

    Open queries stay open. People who ended labelling in the parent can label again.
    """
    with LabelFile.open_to_read(parent / LABELS) as labels:
        labels.copy_to(child / LABELS)
    with LabelStore.open(child / LABELS) as store:
        queue = LabelQueue(store)
        if queue.labelling_finished():
            queue.finish_labelling("backflip", finished=False)
        kept = LabelHash(store.file).first()
    make_folder(child, FILMS)
    for path in files_below(parent / FILMS):
        copy_file(parent / FILMS, child / FILMS, path.name)
    return kept
