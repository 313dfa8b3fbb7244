"""The causes that a person named in the premortem of a run, with their probabilities."""

from backflip.doctor.causes import BY_ID
from runshelf.errors import UserFacingError
from runshelf.store.run import Run
from runshelf.worklog.premortems import read_premortem


def expected_causes(run: Run) -> dict[str, float]:
    """Return the probabilities of causes that were written down before a run ended, by id.

    A risk names a cause if its text is the id, or begins with the id and a colon.
    """
    try:
        found = read_premortem(run)
    except UserFacingError:
        return {}
    if found is None or found.is_late:
        return {}
    named = {_id_of(risk.text): risk.probability for risk in found.risks}
    return {id: share for id, share in named.items() if id in BY_ID}


def _id_of(text: str) -> str:
    return "-".join(text.partition(":")[0].casefold().replace("_", " ").replace("-", " ").split())
