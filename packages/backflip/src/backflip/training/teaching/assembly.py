"""Makes the parts of a session of `teach`, restores their state, and carries out its loop."""

from dataclasses import replace

from backflip.preferences.answer_source import Answers, QueriedRun
from backflip.preferences.drawer import Drawer
from backflip.preferences.program_source import NoTeacher
from backflip.training.queries.demonstrations import Demonstrations
from backflip.training.queries.planned_rounds import PlannedRounds
from backflip.training.queries.query_maker import QueryMaker
from backflip.training.queries.query_rounds import QueryRounds
from backflip.training.queries.random_policy import FirstClips, watch_random_policy
from backflip.training.queries.recorded_clips import recorded_clips
from backflip.training.result import Result
from backflip.training.reward_learning.learned_reward import LearnedReward
from backflip.training.teaching.announcements import Announcements
from backflip.training.teaching.checkpoint import TeachCheckpoint
from backflip.training.teaching.end import EndOfTeaching
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.loop import TeachRun
from backflip.training.teaching.phase_training import PhaseTraining
from backflip.training.teaching.plan import teach_plan_of

# Most env steps of each seed and record that get a picture, where the environment draws itself: to
# choose clips from if the teacher sees them, else for the picture at the end of teaching.
PICTURES_TO_CHOOSE, PICTURES_TO_KEEP = 1_024, 128


def carry_out_teaching(inputs: TeachInputs) -> Result:
    """Complete the run of the session and return its result."""
    plan = teach_plan_of(inputs.run, inputs.built, inputs.config, inputs.start.labels)
    if not plan.asks:  # people are not needed
        inputs = replace(inputs, source=NoTeacher())
    pictures = _most_pictures(inputs)
    learned = LearnedReward(inputs, plan)
    training = PhaseTraining(inputs, plan, pictures)
    planned = PlannedRounds(inputs, plan, training.optimism)
    demonstrations = Demonstrations(inputs.run, inputs.driver.spec, inputs.config, inputs.store)
    checkpoint = TeachCheckpoint(inputs, planned, learned, training.exploring)
    env, env_args = inputs.run.manifest["env"], inputs.run.config["env_args"]
    drawer = Drawer(inputs.session.folder, env, env_args, inputs.driver.spec)
    announcements = Announcements(inputs, plan)
    announcements.say_what_begins()
    with inputs.source.open(_queried_run(inputs, planned, drawer)) as answers:
        begun = checkpoint.restore()
        first_clips = _first_clips(inputs, pictures)
        announcements.say_why_not_drawn()
        rounds = QueryRounds(
            inputs=inputs,
            planned=planned,
            fits=learned.fits,
            maker=_query_maker(inputs, first_clips, answers, drawer),
            demonstrations=demonstrations,
            first_clips=first_clips,
            answers=answers,
            drawer=drawer,
        )
        end = EndOfTeaching(
            inputs=inputs,
            plan=plan,
            learned=learned,
            announcements=announcements,
            drawer=drawer,
            first_clips=first_clips,
            answers=answers,
        )
        return TeachRun(
            inputs=inputs,
            answers=answers,
            planned=planned,
            rounds=rounds,
            learned=learned,
            training=training,
            announcements=announcements,
            checkpoint=checkpoint,
            end=end,
        ).carry_out(begun)


def _most_pictures(inputs: TeachInputs) -> int:
    """Return the most pictures of each seed and record, where the environment draws itself."""
    most = PICTURES_TO_CHOOSE if inputs.source.shows_clips else PICTURES_TO_KEEP
    return max(most, 4 * inputs.config.clip_length)


def _queried_run(inputs: TeachInputs, planned: PlannedRounds, drawer: Drawer) -> QueriedRun:
    """Return the run for the answer source."""
    return QueriedRun(
        folder=inputs.session.folder,
        env=inputs.run.manifest["env"],
        seeds=inputs.seeds,
        store=inputs.store,
        drawer=drawer,
        phases=len(planned.plan.phases),
        due_after=planned.due_after,
        budget=inputs.config.labels * len(inputs.seeds),
        say=inputs.say,
        wait=inputs.session.reporter.wait,
        book_time=inputs.session.clock.book,
    )


def _first_clips(inputs: TeachInputs, pictures: int) -> FirstClips:
    """Let the reward model see the random policy; return the clips of the first queries."""
    policy = watch_random_policy(
        inputs.driver,
        inputs.model,
        inputs.config,
        inputs.seeds,
        inputs.session.reporter,
        pictures=pictures,
        shown=inputs.source.shows_clips,
    )
    recorded = recorded_clips(inputs.run, inputs.driver.spec, inputs.config.clip_length)
    return FirstClips(policy, recorded)


def _query_maker(
    inputs: TeachInputs, first_clips: FirstClips, answers: Answers, drawer: Drawer
) -> QueryMaker:
    maker = QueryMaker(
        inputs.driver.spec.id,
        inputs.config,
        inputs.model,
        inputs.store,
        drawer if inputs.source.needs_films else None,
        answers.enough,
        shows_clips=inputs.source.shows_clips,
        say=inputs.say,
    )
    if not first_clips.recorded:
        maker.random_policy = dict(zip(inputs.seeds, first_clips.policy.clips, strict=True))
    return maker
