"""What a run of `teach` says to the user beside its progress."""

from typing import final

from backflip.core.spec import conversions
from backflip.preferences.careless import careless_people
from backflip.training.queries.demonstrations import demonstrations_in_words
from backflip.training.queries.initial_labels import from_elsewhere
from backflip.training.queries.recorded_clips import said_of
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.plan import TeachPlan
from backflip.training.teaching.who_teaches import who_answers, who_taught


@final
class Announcements:
    """Says who teaches what, and what is wrong with the answers.

    Args:
        inputs: what the session is given.
        plan: the plan of a new run.
    """

    def __init__(self, inputs: TeachInputs, plan: TeachPlan) -> None:
        self._inputs, self._plan = inputs, plan
        self._said_not_drawn = False
        self._said_careless: set[str] = set()

    def teacher(self) -> str:
        """Return who teaches."""
        if self._plan.asks:
            return self._inputs.source.teacher
        return who_taught(self._inputs.run, self._inputs.start, self._plan.before)

    def say_what_begins(self) -> None:
        """Say who teaches what, and from what the run starts."""
        run, driver, config = self._inputs.run, self._inputs.driver, self._inputs.config
        teaches = self.teacher()
        if self._plan.asks:
            teaches = who_answers(teaches, config, self._plan.queries)
        self._inputs.say(f"{driver.algorithm.name} learns `{run.manifest['env']}`; {teaches}")
        notes = [
            *conversions(driver.spec),
            said_of(run),
            from_elsewhere(self._inputs.start, run),
            demonstrations_in_words(run, config, self._plan.due.every),
        ]
        for line in notes:
            if line:
                self._inputs.say(line)

    def say_why_not_drawn(self) -> None:
        """Say once that the environment's own `render()` gives no pictures, and why."""
        driver = self._inputs.driver
        why = driver.drawing_problem
        if why and not self._said_not_drawn:
            self._inputs.say(f"`{driver.spec.id}` is shown as it is observed: {why}")
        self._said_not_drawn = bool(why)

    def say_who_is_careless(self) -> dict[str, float]:
        """Say once who seems to answer carelessly; return what the health line shows."""
        found = careless_people(self._inputs.store)
        for who, words in found.items():
            if who not in self._said_careless:
                self._said_careless.add(who)
                said = f"CARELESS ANSWERS of `{who}`: {words}"
                self._inputs.session.writer.record_alarm(said)
                self._inputs.say(said)
        return {"careless_people": float(len(found))} if found else {}

    def say_if_nothing_is_preferred(self) -> None:
        """Say that nothing was learned if there is no answer, or every one is `skip` or `tie`."""
        counts = self._inputs.store.counts()
        if self._plan.asks and not counts.labels:
            self._inputs.say("there are no answers: no reward was learned")
        elif counts.labels and counts.labels == counts.skip + counts.tie:
            kinds = [name for name in ("skip", "tie") if getattr(counts, name)]
            what = " or ".join(f"`{name}`" for name in kinds)
            self._inputs.say(
                f"all {counts.labels} answers are {what}: no reward was learned from them"
            )
