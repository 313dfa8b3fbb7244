"""What may be wrong in a training run, and the experiment that tells each cause from the others."""

import math
from collections.abc import Mapping
from typing import Any

from backflip.doctor.check import Cause, Change, Experiment
from backflip.doctor.log import Log

USUAL_RATE = 3e-4  # Adam's step size that is safe in most tasks
RATES = ("learning_rate", "actor_learning_rate", "critic_learning_rate")


def _be(value: Any) -> Change:
    """Return a change that sets a fixed value."""
    return lambda present, log: value


def _at_most(limit: float) -> Change:
    """Return a change that lowers a value to a limit."""
    return lambda present, log: min(present, limit)


def _at_least(limit: float, factor: float = 1.0, most: float = math.inf) -> Change:
    """Return a change that multiplies by a factor and raises to a limit, up to `most`."""
    return lambda present, log: max(present, min(most, max(limit, factor * present)))


def _env_steps(log: Log, share: float) -> float:
    """Return a share of the budget in env steps; infinity if the log does not count them."""
    return share * log.budget if log.is_over_env_steps else math.inf


def _like(present: float, value: float) -> float:
    """Return a value of at least 1 of the type of another; a count stays whole."""
    return type(present)(max(1, value))


def _copied_often(present: float, log: Log) -> float:
    """Return a tenth of an interval, or less, so that a short run has many of them."""
    return min(present, _like(present, min(present / 10, _env_steps(log, 0.01))))


def _followed_fast(present: float, log: Log) -> float:
    """Return ten times a step size of the target network, from 0.005 to 1."""
    return min(1.0, max(10.0 * present, 0.005))


def _annealed_soon(present: float, log: Log) -> float:
    """Return at most a tenth of the budget, and more than the first, random env steps."""
    random = 2.0 * (log.setting("learning_starts") or 0.0)
    return min(present, _like(present, max(random, _env_steps(log, 0.1))))


def _annealed_late(present: float, log: Log) -> float:
    """Return four times as many env steps, at most half of a repetition."""
    return max(present, _like(present, min(4 * present, _env_steps(log, 0.25))))


def _larger(present: float, log: Log) -> float:
    """Return twice as many rows, at least 10,000; unchanged if a repetition does not fill them."""
    if present >= _env_steps(log, 0.5):
        return present
    return _like(present, max(2 * present, min(1e4, _env_steps(log, 0.5))))


def _learns_soon(present: float, log: Log) -> float:
    """Return at most 1,000 env steps and a tenth of the budget, enough for the first minibatch."""
    needed = ("batch_size", "num_envs", "rollout_length")
    batch, envs, length = (log.setting(name) or 1.0 for name in needed)
    soon = max(batch, envs * length, min(1e3, _env_steps(log, 0.1)))
    return min(present, _like(present, soon))


def _lower(present: float, log: Log) -> float:
    """Return a much lower learning rate, at most a usual one."""
    return min(0.2 * present, USUAL_RATE)


def _higher(present: float, log: Log) -> float:
    """Return a much higher learning rate, at least a usual one."""
    return max(10.0 * present, USUAL_RATE)


def _probes(
    values: float, choices: float, others: Mapping[str, float] | None = None
) -> Mapping[str, float]:
    """Return the probability that each probe fails: those of values, of choices, and exceptions."""
    found = dict.fromkeys(("1", "2", "3", "row", "truncation"), values)
    found |= dict.fromkeys(("4", "5", "continuous", "bound", "zero"), choices)
    return {f"probe:{name}": share for name, share in (found | dict(others or {})).items()}


_UNCHANGED = "nothing changes beyond the spread of the seeds"

CAUSES: tuple[Cause, ...] = (
    Cause(
        id="steps-too-large",
        text="Steps of the optimiser are too large: the learning rate, the number of epochs or the "
        "clip range is too high.",
        fix="Lower the learning rate, or use fewer epochs.",
        experiment=Experiment(
            "lower the learning rate to a fifth, at most 3e-4",
            "the finding disappears and the return rises",
            _UNCHANGED,
            dict.fromkeys((*RATES, "learning_rate_end"), _lower),
        ),
        prior=3.0,
    ),
    Cause(
        id="steps-too-small",
        text="Steps of the optimiser are too small: the learning rate is too low, or ends too "
        "early.",
        fix="Raise the learning rate, or let its schedule end with the run.",
        experiment=Experiment(
            "raise the learning rate ten times, at least to 3e-4",
            "policy and values move, and the return rises",
            _UNCHANGED,
            dict.fromkeys(RATES, _higher),
        ),
        prior=2.0,
    ),
    Cause(
        id="entropy-bonus",
        text="The entropy bonus is too large against the advantages.",
        fix="Lower the weight of the entropy.",
        experiment=Experiment(
            "set the weight of the entropy to 0",
            "the entropy falls and the return rises",
            "the policy stays random: look at advantages and policy loss",
            dict.fromkeys(("entropy_coef", "entropy_coef_end"), _at_most(0.0)),
        ),
        prior=1.5,
        algorithms=("ppo", "a2c", "vpg"),
    ),
    Cause(
        id="too-little-exploration",
        text="Exploration ends too early: the entropy bonus has the wrong sign, the noise is too "
        "small, or ε falls too soon.",
        fix="Explore for longer: a small positive entropy bonus, or more env steps until ε is low.",
        experiment=Experiment(
            "explore for longer: three times the entropy bonus, at least 0.01, or four times as "
            "many env steps until ε is low",
            "the policy stays stochastic and the best return rises",
            _UNCHANGED,
            {
                **dict.fromkeys(("entropy_coef", "entropy_coef_end"), _at_least(0.01, 3.0)),
                "epsilon_steps": _annealed_late,
                "exploration_fraction": _at_least(0.1, 4.0, most=0.5),
            },
        ),
        prior=1.5,
    ),
    Cause(
        id="too-much-exploration",
        text="Exploration does not end: ε stays high, or the noise is too large.",
        fix="Let ε fall within the first tenth of the run.",
        experiment=Experiment(
            "let ε fall to 0.05, or lower if it is set so, within a tenth of the run",
            "the return of training rises to that of evaluation",
            _UNCHANGED,
            {
                "epsilon_end": _at_most(0.05),
                "epsilon_steps": _annealed_soon,
                "exploration_fraction": _at_most(0.1),
            },
        ),
        algorithms=("dqn",),
    ),
    Cause(
        id="policy-loss",
        text="The policy loss is wrong: its sign, its ratio, a gradient that does not reach the "
        "policy, or a gradient that flows where it must not.",
        fix="Test it on `probe:4`: one state, two actions, a reward of 1 and -1.",
        experiment=Experiment(
            "run the probes",
            "values are right and the policy is wrong on `probe:4`",
            "`probe:4` passes: the mistake is elsewhere",
        ),
        prior=2.0,
        probes=_probes(0.05, 0.8),
    ),
    Cause(
        id="acting-and-learning-disagree",
        text="Acting and learning compute different probabilities for the same observation and "
        "action: dropout, a normaliser that moved, wrong pairs, or a changed action.",
        fix="Use the same inputs and the same mode of the network in both; store log π(a|s) as "
        "acted.",
        experiment=Experiment(
            "compute log π(a|s) of the stored rows again, without dropout and with the stored "
            "normaliser",
            "the ratio of the first minibatch is 1 with one of them",
            "it stays away from 1: observations and actions are paired wrongly",
        ),
        prior=1.5,
        probes=_probes(0.2, 0.6, {"1": 0.05, "5": 0.85}),
    ),
    Cause(
        id="advantages",
        text="Advantages are wrong: they leak through the ends of episodes, have a wrong sign or "
        "shift, or are off by one step.",
        fix="Compare them with the definition on ten steps by hand, with an end in between.",
        experiment=Experiment(
            "set λ to 1, or to 0 if it is 1",
            "it learns: the recursion is wrong",
            "it fails: rewards or values are wrong",
            {"gae_lambda": lambda present, log: 0.0 if present == 1 else 1.0},
        ),
        prior=1.5,
        algorithms=("ppo", "a2c", "vpg"),
        probes=_probes(0.05, 0.7),
    ),
    Cause(
        id="value-targets",
        text="Targets of the values are wrong: no discount, no bootstrap at a time limit, a "
        "bootstrap at a terminal state, or a reward of another step.",
        fix="Compute targets of a stored batch again, with and without the mask of ends.",
        experiment=Experiment(
            "run the probes",
            "values are wrong on `probe:3` (discount) or `probe:truncation` (time limit)",
            "these pass: the targets are right",
        ),
        prior=2.0,
        probes=_probes(0.4, 0.2, {"3": 0.8, "row": 0.7, "truncation": 0.7}),
    ),
    Cause(
        id="values-do-not-learn",
        text="The value function does not learn: its loss has no weight or the wrong sign, or no "
        "gradient reaches it.",
        fix="Fit the values of one stored batch: the loss must go to 0.",
        experiment=Experiment(
            "raise the weight of the value loss to 1",
            "the explained variance rises",
            "it stays low: returns cannot be predicted from observations, or targets are wrong",
            {"value_coef": _at_least(1.0)},
        ),
        prior=1.5,
        probes=_probes(0.85, 0.2),
    ),
    Cause(
        id="target-network",
        text="The target network is wrong: never updated, updated too often, or an alias of the "
        "online network.",
        fix="Hash its parameters at each update: they must change when the setting says so.",
        experiment=Experiment(
            "update it ten times as often, or more, at least a hundred times in the run",
            "values follow their targets",
            _UNCHANGED,
            {"tau": _followed_fast, "target_update_interval": _copied_often},
        ),
        prior=1.5,
        algorithms=("dqn", "ddpg", "td3", "sac"),
        probes=_probes(0.2, 0.2, {"3": 0.6, "row": 0.6, "truncation": 0.7}),
    ),
    Cause(
        id="replay",
        text="The replay is wrong: rows are mixed up, it is too small, or learning starts too "
        "late.",
        fix="Compare ten rows of the replay with the env steps they came from.",
        experiment=Experiment(
            "make a replay that was full twice as large, at least 10,000 env steps, and start to "
            "learn soon",
            "the return rises",
            _UNCHANGED,
            {"buffer_size": _larger, "learning_starts": _learns_soon},
        ),
        algorithms=("dqn", "ddpg", "td3", "sac"),
        probes=_probes(0.6, 0.4, {"1": 0.1, "truncation": 0.2, "5": 0.7}),
    ),
    Cause(
        id="temperature",
        text="The temperature of the entropy does not fit: fixed too high or too low, or the "
        "target entropy has the wrong sign.",
        fix="Let the temperature adapt, to a target entropy of minus the number of action "
        "dimensions.",
        experiment=Experiment(
            "set the initial temperature to a tenth",
            "the policy becomes less random and the return rises",
            _UNCHANGED,
        ),
        algorithms=("sac",),
        probes=_probes(0.2, 0.4),
    ),
    Cause(
        id="reward-scale",
        text="Rewards have a scale that the algorithm cannot use: squared errors or the entropy "
        "bonus dominate.",
        fix="Divide rewards by a constant, so that discounted returns have a standard deviation "
        "near 1.",
        experiment=Experiment(
            "divide the rewards by a running standard deviation",
            "losses are near 1 and the return rises",
            _UNCHANGED,
            {"normalize_rewards": _be(True)},
        ),
        prior=2.0,
        probes=_probes(0.8, 0.2),
    ),
    Cause(
        id="reward-sign",
        text="The reward that the algorithm learns from has another sign or shift than the true "
        "reward.",
        fix="Do not subtract a mean from rewards; look at the sign of the wrapper.",
        experiment=Experiment(
            "log the mean reward of a batch beside the return per env step",
            "one rises when the other falls",
            "both move together",
        ),
        prior=1.5,
        probes=_probes(0.85, 0.7, {"1:sign": 0.7}),
    ),
    Cause(
        id="no-reward-signal",
        text="The rewards say nothing: they are constant, random, or too rare to be found.",
        fix="Look at the environment with `backflip look`; shape the reward or explore longer.",
        experiment=Experiment(
            "measure the environment with a random policy (`backflip look ENV`)",
            "no reward differs from the others",
            "rewards differ: the algorithm does not use them",
        ),
        prior=1.5,
        probes=_probes(0.85, 0.7),
    ),
    Cause(
        id="observations",
        text="Observations are not usable: constant, late, shuffled, or far from unit scale.",
        fix="Look at what the network receives; normalise it.",
        experiment=Experiment(
            "normalise observations",
            "explained variance and return rise",
            "they do not: look for late or constant observations with `backflip look ENV`",
            {"normalize_obs": _be(True)},
        ),
        prior=2.0,
        probes=_probes(0.2, 0.2, {"2": 0.85, "3": 0.6, "row": 0.7, "5": 0.85}),
    ),
    Cause(
        id="discount",
        text="The discount does not fit the length of the task.",
        fix="Use 1 - 1/horizon, with the number of env steps between an action and its reward.",
        experiment=Experiment(
            "set the discount to 0.99",
            "the return rises",
            _UNCHANGED,
            {"discount": _be(0.99)},
        ),
    ),
    Cause(
        id="initialisation",
        text="The network starts badly: its last layer or its gains are too large, or units are "
        "dead.",
        fix="Start the policy's last layer with a gain of 0.01.",
        experiment=Experiment(
            "look at the entropy of the first update",
            "it is far below the maximum",
            "it is near the maximum: the network starts well",
        ),
    ),
    Cause(
        id="actions",
        text="Actions do not reach the environment as chosen: clipped, scaled twice, delayed or "
        "replaced.",
        fix="Step the environment from one seeded state with each action, and compare.",
        experiment=Experiment(
            "compare the stored actions with those that the environment received",
            "they differ",
            "they are equal",
        ),
        prior=1.5,
        probes=_probes(0.05, 0.8),
    ),
    Cause(
        id="reward-model",
        text="The learned reward does not agree with the person: wrong labels, too few, or "
        "overfitted.",
        fix="Look at the clips it is most wrong about, on the run's page.",
        experiment=Experiment(
            "ask 20 fresh pairs of the newest behaviour",
            "agreement is near one half",
            "agreement is high: the policy does not learn this reward",
        ),
        prior=2.0,
        is_of_teaching=True,
    ),
    Cause(
        id="labels",
        text="Labels say little: all the same key, all ties, or given at random.",
        fix="Answer ten pairs again, and compare.",
        experiment=Experiment(
            "answer ten of the pairs a second time",
            "answers differ",
            "answers agree: the model does not fit them",
        ),
        is_of_teaching=True,
    ),
    Cause(
        id="branches-differ",
        text="The two branches of a comparison are not one function: each has its own dropout mask "
        "or its own batch statistics.",
        fix="Run both clips of a pair through one call, with one mask; leave out batch "
        "normalisation.",
        experiment=Experiment(
            "compute P(A ≻ A) in the mode of training",
            "it is not ½",
            "it is ½: both branches are alike",
        ),
        prior=0.5,
        is_of_teaching=True,
    ),
    Cause(
        id="reward-paths",
        text="The learned reward sees other inputs where the agent learns from it than where it is "
        "fitted: normalised or stacked on one path only, or from another step.",
        fix="Compute the reward in one function, and call it from both places.",
        experiment=Experiment(
            "compute the reward of the same 100 steps in both places",
            "they do not lie on a line",
            "they do: inputs are alike",
        ),
        prior=0.5,
        is_of_teaching=True,
    ),
    Cause(
        id="evaluation",
        text="The evaluation is not like training: other statistics normalise the "
        "observations, a wrapper is missing, or actions without noise are worse.",
        fix="Evaluate with the wrappers of training and with its saved statistics.",
        experiment=Experiment(
            "evaluate the final policy in the environment of training, with and without noise",
            "its return is that of training with noise, or in this environment",
            "it is low there, too: the return in training is not that of the policy",
        ),
        prior=0.5,
    ),
    Cause(
        id="unlucky-or-slow",
        text="Nothing is broken: the task is hard, or the budget is short.",
        fix="Run more seeds, for longer.",
        experiment=Experiment(
            "run three more seeds with twice the budget",
            "some of them learn",
            "none does: look for a mistake",
        ),
        prior=2.0,
    ),
    Cause(
        id="machine",
        text="The program or the machine slows down: a cost grows with time, or memory runs out.",
        fix="Measure how long acting, learning and logging take per 1,000 env steps.",
        experiment=Experiment(
            "log the time of each part per 1,000 env steps",
            "one part grows",
            "all are constant: other programs use the machine",
        ),
    ),
    Cause(
        id="logging",
        text="The log does not hold what it says: names, steps or units are wrong.",
        fix="Compare one logged value with the same value printed by the program.",
        experiment=Experiment(
            "print one value where it is computed",
            "it differs from the log",
            "it is the same",
        ),
        prior=0.5,
    ),
)
BY_ID = {cause.id: cause for cause in CAUSES}
