"""Print the steps that MLflow or W&B have kept: `python peers/loggers_read.py LIBRARY FOLDER`.

Runs in the peers' environment.
"""

import json
import sqlite3
import struct
import sys
from pathlib import Path

from wandb.proto import wandb_internal_pb2

BLOCK = 2**15
library, folder = sys.argv[1], Path(sys.argv[2])


def of_mlflow():
    """From its database."""
    rows = sqlite3.connect(folder / "mlflow.db").execute(
        "select step from metrics group by step having count(*) = 10"
    )
    return [step for (step,) in rows]


def of_wandb():
    """From its own format: blocks of 32 KiB, in them pieces of records (LevelDB's log)."""
    steps = []
    for path in folder.glob("wandb/*/*.wandb"):
        for data in records(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                steps.append(record.history.step.num)
    return steps


def records(data):
    """The whole records of a file; 7 bytes of header stand before them."""
    at, pieces = 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        piece = data[at + 7 : at + 7 + length]
        if kind not in (1, 2, 3, 4) or len(piece) < length:
            return
        at += 7 + length
        pieces = piece if kind in (1, 2) else pieces + piece
        if kind in (1, 4):
            yield pieces


print(json.dumps({"mlflow": of_mlflow, "wandb": of_wandb}[library]()))
