"""Trains the policies of a run of `teach` for a phase, on the learned reward."""

from collections.abc import Sequence
from typing import Any, final

from backflip.drivers.driver import Learner, Phase
from backflip.drivers.learning import env_steps_after
from backflip.training.memory import report_replay_memory
from backflip.training.queries.optimism import Optimism
from backflip.training.restart import restarted
from backflip.training.teaching.exploring import Exploring
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.phase_programs import PhasePrograms
from backflip.training.teaching.plan import TeachPlan


@final
class PhaseTraining:
    """Trains for a phase, and starts networks again.

    Args:
        inputs: what the session is given.
        plan: the phases.
        pictures: most pictures of each seed in the record of a phase.

    Attributes:
        optimism: the reward that the agent learns from.
        exploring: which seeds explore without a reward.
    """

    def __init__(self, inputs: TeachInputs, plan: TeachPlan, pictures: int) -> None:
        self._inputs, self._plan, self._driver = inputs, plan, inputs.driver
        self.optimism = Optimism(
            inputs.model, inputs.config.optimism, plan.due.others, len(inputs.seeds)
        )
        self.exploring = Exploring(
            inputs.driver,
            self.optimism.reward,
            inputs.seeds,
            before_labels=plan.pretrains and plan.asks,
        )
        self._programs = PhasePrograms(
            inputs.driver, inputs.config, self.optimism.reward, self.exploring, pictures
        )

    def prepare(self) -> None:
        """Make the programs of all phases."""
        self._programs.prepare(self._plan.phases)

    def compile_ahead(self, learners: Learner, reward: Any) -> None:
        """Compile the programs."""
        self._programs.compile_ahead(learners, self.optimism.parameters(reward, 0))

    def warm_up(self, learners: Learner) -> Learner:
        """Return the learners; random env steps fill the replay of an off-policy algorithm."""
        report_replay_memory(self._driver, len(self._inputs.seeds), self._inputs.say)
        algorithm = self._driver.algorithm
        report = self._inputs.session.reporter.acting_at_random(
            "warming up", env_steps_after(algorithm, 0), algorithm.num_envs
        )
        return self._driver.fill_replay(learners, report)

    def start_again(self, phase: int, learners: Learner, explored: Sequence[bool]) -> Learner:
        """Return the learners, with new networks after exploring and before the restart phase.

        Args:
            phase: the phase that begins, from 0.
            learners: of all seeds.
            explored: whether each seed explored in the phase before.
        """
        learners = self.exploring.restarted(learners, explored)
        if phase != self._plan.restart_phase:
            return learners
        return restarted(
            self._driver.algorithm,
            self._inputs.seeds,
            learners,
            keeps=self._inputs.config.restart_keeps,
            schedules=self._inputs.config.restart_schedules,
        )

    def train(self, phase: int, learners: Learner, reward: Any) -> tuple[Learner, Phase]:
        """Return the learners after a phase, and what it measured and recorded.

        Args:
            phase: the phase, from 0.
            learners: of all seeds; they may be overwritten.
            reward: parameters of the learned reward.
        """
        done, updates = self._plan.updates_before(phase), self._plan.phases[phase]
        session, phases = self._inputs.session, len(self._plan.phases)
        report = session.reporter.learning(
            self._driver.algorithm, phase, phases, done=done, updates=updates
        )
        keep = session.policy_keeper(self._inputs.built, done=done)
        rewarded = self.optimism.parameters(reward, phase)
        return self._programs.run(updates, learners, rewarded, report, keep)
