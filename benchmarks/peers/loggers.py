"""Log with one library, in one process: rows of ten numbers, or single ones.

    python peers/loggers.py LIBRARY FORM SECONDS FOLDER

Prints the number of every row that was acknowledged, while it goes, if the fifth argument is `say`;
else one JSON line at the end. Runs in the peers' environment, and for `backflip` in ours.
"""

import json
import os
import random
import sys
import time

library, form, seconds, folder = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
says = sys.argv[5:] == ["say"]
ROWS = 50_000  # more than any compression looks back upon
chance = random.Random(0)
names = [f"metric/{n}" for n in range(10)] if form == "rows" else ["loss"]
rows = [{name: chance.random() for name in names} for _ in range(ROWS)]


def backflip():
    """Ours."""
    import backflip  # noqa: PLC0415  (in its environment only; so the others)

    if form == "rows":
        return lambda row, step: backflip.log(row, step=step), lambda: None
    return lambda row, step: backflip.log("loss", row["loss"], step), lambda: None


def write():
    """The bare write of the same bytes."""
    descriptor = os.open(f"{folder}/lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    lines = [json.dumps({"step": 10_000, "time": time.time(), **row}).encode() for row in rows]
    return lambda row, step: os.write(descriptor, lines[step % ROWS]), lambda: None


def tensorboard():
    """tensorboardX, an event for each number, as it has no rows."""
    from tensorboardX import SummaryWriter  # noqa: PLC0415

    writer = SummaryWriter(folder)

    def log(row, step):
        for name, value in row.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def mlflow():
    """MLflow with SQLite."""
    import mlflow  # noqa: PLC0415

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.start_run()
    if form == "rows":
        return lambda row, step: mlflow.log_metrics(row, step=step), mlflow.end_run
    return lambda row, step: mlflow.log_metric("loss", row["loss"], step=step), mlflow.end_run


def wandb():
    """W&B, offline: nothing leaves the machine."""
    os.environ |= {"WANDB_MODE": "offline", "WANDB_DIR": folder, "WANDB_SILENT": "true"}
    os.environ |= {"WANDB_CACHE_DIR": folder, "WANDB_CONFIG_DIR": folder, "WANDB_CONSOLE": "off"}
    import wandb  # noqa: PLC0415

    run = wandb.init(project="bench", settings=wandb.Settings(x_disable_stats=True))
    return lambda row, step: run.log(row, step=step), run.finish


log, finish = {f.__name__: f for f in (backflip, write, tensorboard, mlflow, wandb)}[library]()
for step in range(20):
    log(rows[step], step)
begun, step = time.perf_counter(), 20
while time.perf_counter() - begun < seconds:
    for _ in range(1 if says or library == "mlflow" else 20):
        log(rows[step % ROWS], step)
        if says:
            os.write(1, b"%d\n" % step)
            time.sleep(0.02)
        step += 1
elapsed = time.perf_counter() - begun
finish()
whole = time.perf_counter() - begun
print(json.dumps({"rows": step, "names": len(names), "seconds": elapsed, "flushed": whole}))
