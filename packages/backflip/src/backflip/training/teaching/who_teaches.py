"""Who teaches a run, in words for the user."""

from backflip.training.parents import Before
from backflip.training.queries.initial_labels import Start
from backflip.training.teaching.config import TeachConfig
from runshelf.store.run import Run

HOW_ANSWERED = {
    "human": ", on the page",
    "terminal": ", in this terminal",
    "oracle": ", by the true reward",
    "noisy": ", by the true reward, with mistakes",
}


def who_answers(teacher: str, config: TeachConfig, queries: int) -> str:
    """Return who answers how many queries of each seed, and how."""
    how = HOW_ANSWERED.get(teacher.partition(":")[0], "")
    asked = {
        "compare": "answers",
        "rank": f"ranks {config.clips_at_once} clips at once, for",
        "rate": f"rates clips in sets of {config.clips_at_once}, for",
    }[config.ask]
    return f"{teacher} {asked} {queries} queries of each seed{how}"


def who_taught(run: Run, start: Start, before: Before) -> str:
    """Return whose labels teach a run that makes no queries."""
    if start.reward_from:
        return f"no queries: the reward model of `{start.reward_from}` teaches"
    if before.labels:
        by = run.config["teacher"]
        return f"no queries: {before.labels} earlier labels of each seed ({by}) teach"
    return f"no queries: {start.labels} labels of each seed are imported"
