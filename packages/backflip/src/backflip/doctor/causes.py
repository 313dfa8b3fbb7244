"""What may be wrong in a training, and the experiment that tells each cause from the others."""

from collections.abc import Callable, Mapping
from typing import Any

from backflip.doctor.check import Cause, Experiment

USUAL_RATE = 3e-4  # Adam's step size that is safe in most tasks
RATES = ("learning_rate", "actor_learning_rate", "critic_learning_rate")


def _be(value: Any) -> Callable[[Any], Any]:
    """Return a change to a value."""
    return lambda present: value


def _times(factor: float) -> Callable[[Any], Any]:
    """Return a change that multiplies; a whole number stays one."""
    return lambda present: type(present)(present * factor)


def _at_most(limit: float, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a change that ends at a limit of the setting."""
    return lambda present: min(limit, change(present))


def _fewer(present: int) -> int:
    """Return a tenth of a count, at least 1."""
    return max(1, present // 10)


def _lower(present: float) -> float:
    """Return a much lower learning rate, at most a usual one."""
    return min(0.2 * present, USUAL_RATE)


def _higher(present: float) -> float:
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
        "steps-too-large",
        "Steps of the optimiser are too large: the learning rate, the number of epochs or the "
        "clip range is too high.",
        "Lower the learning rate, or use fewer epochs.",
        Experiment(
            "lower the learning rate to a fifth, at most 3e-4",
            "the finding disappears and the return rises",
            _UNCHANGED,
            dict.fromkeys(RATES, _lower),
        ),
        3.0,
    ),
    Cause(
        "steps-too-small",
        "Steps of the optimiser are too small: the learning rate is too low, or ends too early.",
        "Raise the learning rate, or let its schedule end with the run.",
        Experiment(
            "raise the learning rate ten times, at least to 3e-4",
            "policy and values move, and the return rises",
            _UNCHANGED,
            dict.fromkeys(RATES, _higher),
        ),
        2.0,
    ),
    Cause(
        "entropy-bonus",
        "The entropy bonus is too large against the advantages.",
        "Lower the weight of the entropy.",
        Experiment(
            "set the weight of the entropy to 0",
            "the entropy falls and the return rises",
            "the policy stays random: look at advantages and policy loss",
            {"entropy_coef": _be(0.0), "entropy_coef_end": _be(0.0)},
        ),
        1.5,
        algorithms=("ppo", "a2c", "vpg"),
    ),
    Cause(
        "too-little-exploration",
        "Exploration ends too early: the entropy bonus has the wrong sign, the noise is too small, "
        "or ε falls too soon.",
        "Explore for longer: a small positive entropy bonus, or more env steps until ε is low.",
        Experiment(
            "explore for longer",
            "the policy stays stochastic and the best return rises",
            _UNCHANGED,
            {"entropy_coef": _be(0.01)},
        ),
        1.5,
    ),
    Cause(
        "too-much-exploration",
        "Exploration does not end: ε stays high, or the noise is too large.",
        "Let ε fall within the first tenth of the run.",
        Experiment(
            "let ε end at 0.05",
            "the return of training rises to that of evaluation",
            _UNCHANGED,
            {"epsilon_end": _be(0.05)},
        ),
        algorithms=("dqn",),
    ),
    Cause(
        "policy-loss",
        "The policy loss is wrong: its sign, its ratio, a gradient that does not reach the policy, "
        "or a gradient that flows where it must not.",
        "Test it on probe environment 4: one state, two actions, a reward of 1 and -1.",
        Experiment(
            "run the probe environments",
            "values are right and the policy is wrong on probe 4",
            "probe 4 passes: the mistake is elsewhere",
        ),
        2.0,
        probes=_probes(0.05, 0.8),
    ),
    Cause(
        "acting-and-learning-disagree",
        "Acting and learning compute different probabilities for the same observation and action: "
        "dropout, a normaliser that moved, wrong pairs, or a changed action.",
        "Use the same inputs and the same mode of the network in both; store log π(a|s) as acted.",
        Experiment(
            "compute log π(a|s) of the stored rows again, without dropout and with the stored "
            "normaliser",
            "the ratio of the first minibatch is 1 with one of them",
            "it stays away from 1: observations and actions are paired wrongly",
        ),
        1.5,
        probes=_probes(0.2, 0.6, {"1": 0.05, "5": 0.85}),
    ),
    Cause(
        "advantages",
        "Advantages are wrong: they leak through the ends of episodes, have a wrong sign or shift, "
        "or are off by one step.",
        "Compare them with the definition on ten steps by hand, with an end in between.",
        Experiment(
            "set λ to 1 and then to 0",
            "one of both learns: the recursion is wrong",
            "both fail: rewards or values are wrong",
            {"gae_lambda": _be(1.0)},
        ),
        1.5,
        algorithms=("ppo", "a2c", "vpg"),
        probes=_probes(0.05, 0.7),
    ),
    Cause(
        "value-targets",
        "Targets of the values are wrong: no discount, no bootstrap at a time limit, a bootstrap "
        "at a terminal state, or a reward of another step.",
        "Compute targets of a stored batch again, with and without the mask of ends.",
        Experiment(
            "run the probe environments",
            "values are wrong on probe:3 (discount) or probe:truncation (time limit)",
            "these pass: the targets are right",
        ),
        2.0,
        probes=_probes(0.4, 0.2, {"3": 0.8, "row": 0.7, "truncation": 0.7}),
    ),
    Cause(
        "values-do-not-learn",
        "The value function does not learn: its loss has no weight or the wrong sign, or no "
        "gradient reaches it.",
        "Fit the values of one stored batch: the loss must go to 0.",
        Experiment(
            "raise the weight of the value loss to 1",
            "the explained variance rises",
            "it stays low: returns cannot be predicted from observations, or targets are wrong",
            {"value_coef": _be(1.0)},
        ),
        1.5,
        probes=_probes(0.85, 0.2),
    ),
    Cause(
        "target-network",
        "The target network is wrong: never updated, updated too often, or an alias of the online "
        "network.",
        "Hash its parameters at each update: they must change when the setting says so.",
        Experiment(
            "update it ten times as often",
            "values follow their targets",
            _UNCHANGED,
            {"tau": _at_most(1.0, _times(10.0)), "target_update_interval": _fewer},
        ),
        1.5,
        algorithms=("dqn", "ddpg", "td3", "sac"),
        probes=_probes(0.2, 0.2, {"3": 0.6, "row": 0.6, "truncation": 0.7}),
    ),
    Cause(
        "replay",
        "The replay is wrong: rows are mixed up, it is too small, or learning starts too late.",
        "Compare ten rows of the replay with the env steps they came from.",
        Experiment(
            "double the size of the replay, and start to learn at once",
            "the return rises",
            _UNCHANGED,
            {"buffer_size": _times(2.0)},
        ),
        algorithms=("dqn", "ddpg", "td3", "sac"),
        probes=_probes(0.6, 0.4, {"1": 0.1, "truncation": 0.2, "5": 0.7}),
    ),
    Cause(
        "temperature",
        "The temperature of the entropy does not fit: fixed too high or too low, or the target "
        "entropy has the wrong sign.",
        "Let the temperature adapt, to a target entropy of minus the number of action dimensions.",
        Experiment(
            "set the initial temperature to a tenth",
            "the policy becomes less random and the return rises",
            _UNCHANGED,
        ),
        algorithms=("sac",),
        probes=_probes(0.2, 0.4),
    ),
    Cause(
        "reward-scale",
        "Rewards have a scale that the algorithm cannot use: squared errors or the entropy bonus "
        "dominate.",
        "Divide rewards by a constant, so that discounted returns have a deviation near 1.",
        Experiment(
            "scale the rewards by a running deviation",
            "losses are near 1 and the return rises",
            _UNCHANGED,
            {"normalize_rewards": _be(True)},
        ),
        2.0,
        probes=_probes(0.8, 0.2),
    ),
    Cause(
        "reward-sign",
        "The reward that the algorithm learns from has another sign or shift than the true reward.",
        "Do not subtract a mean from rewards; look at the sign of the wrapper.",
        Experiment(
            "log the mean reward of a batch beside the return per env step",
            "one rises when the other falls",
            "both move together",
        ),
        1.5,
        probes=_probes(0.85, 0.7, {"1:sign": 0.7}),
    ),
    Cause(
        "no-reward-signal",
        "The rewards say nothing: they are constant, random, or too rare to be found.",
        "Look at the environment with `backflip look`; shape the reward or explore longer.",
        Experiment(
            "measure the environment with a random policy (`backflip look ENV`)",
            "no reward differs from the others",
            "rewards differ: the algorithm does not use them",
        ),
        1.5,
        probes=_probes(0.85, 0.7),
    ),
    Cause(
        "observations",
        "Observations are not usable: constant, late, shuffled, or far from unit scale.",
        "Look at what the network receives; normalise it.",
        Experiment(
            "normalise observations",
            "explained variance and return rise",
            "they do not: look for late or constant observations with `backflip look ENV`",
            {"normalize_obs": _be(True)},
        ),
        2.0,
        probes=_probes(0.2, 0.2, {"2": 0.85, "3": 0.6, "row": 0.7, "5": 0.85}),
    ),
    Cause(
        "discount",
        "The discount does not fit the length of the task.",
        "Use 1 - 1/horizon, with the number of env steps between an action and its reward.",
        Experiment(
            "set the discount to 0.99",
            "the return rises",
            _UNCHANGED,
            {"discount": _be(0.99)},
        ),
    ),
    Cause(
        "initialisation",
        "The network starts badly: its last layer or its gains are too large, or units are dead.",
        "Start the policy's last layer with a gain of 0.01.",
        Experiment(
            "look at the entropy of the first update",
            "it is far below the maximum",
            "it is near the maximum: the network starts well",
        ),
    ),
    Cause(
        "actions",
        "Actions do not reach the environment as chosen: clipped, scaled twice, delayed or "
        "replaced.",
        "Step the environment from one seeded state with each action, and compare.",
        Experiment(
            "compare the stored actions with those that the environment received",
            "they differ",
            "they are equal",
        ),
        1.5,
        probes=_probes(0.05, 0.8),
    ),
    Cause(
        "reward-model",
        "The learned reward does not agree with the person: wrong labels, too few, or overfitted.",
        "Look at the clips it is most wrong about, on the run's page.",
        Experiment(
            "ask 20 fresh pairs of the newest behaviour",
            "agreement is near one half",
            "agreement is high: the policy does not learn this reward",
        ),
        2.0,
        is_of_teaching=True,
    ),
    Cause(
        "labels",
        "Labels say little: all the same key, all ties, or given at random.",
        "Answer ten pairs again, and compare.",
        Experiment(
            "answer ten of the pairs a second time",
            "answers differ",
            "answers agree: the model does not fit them",
        ),
        is_of_teaching=True,
    ),
    Cause(
        "branches-differ",
        "The two branches of a comparison are not one function: each has its own dropout mask or "
        "its own batch statistics.",
        "Run both clips of a pair through one call, with one mask; leave out batch normalisation.",
        Experiment(
            "compute P(A ≻ A) in the mode of training",
            "it is not ½",
            "it is ½: both branches are alike",
        ),
        0.5,
        is_of_teaching=True,
    ),
    Cause(
        "reward-paths",
        "The learned reward sees other inputs where the agent learns from it than where it is "
        "fitted: normalised or stacked on one path only, or from another step.",
        "Compute the reward in one function, and call it from both places.",
        Experiment(
            "compute the reward of the same 100 steps in both places",
            "they do not lie on a line",
            "they do: inputs are alike",
        ),
        0.5,
        is_of_teaching=True,
    ),
    Cause(
        "evaluation",
        "The evaluation is not like the training: other statistics normalise the observations, a "
        "wrapper is missing, or actions without noise are worse.",
        "Evaluate with the wrappers of the training and with its saved statistics.",
        Experiment(
            "evaluate the final policy in the training's own environment, with and without noise",
            "its return is that of the training with noise, or in this environment",
            "it is low there, too: the training's return is not that of the policy",
        ),
        0.5,
    ),
    Cause(
        "unlucky-or-slow",
        "Nothing is broken: the task is hard, or the budget is short.",
        "Run more seeds, for longer.",
        Experiment(
            "run three more seeds with twice the budget",
            "some of them learn",
            "none does: look for a mistake",
        ),
        2.0,
    ),
    Cause(
        "machine",
        "The program or the machine slows down: a cost grows with time, or memory runs out.",
        "Measure how long acting, learning and logging take per 1,000 env steps.",
        Experiment(
            "log the time of each part per 1,000 env steps",
            "one part grows",
            "all are constant: other programs use the machine",
        ),
    ),
    Cause(
        "logging",
        "The log does not hold what it says: names, steps or units are wrong.",
        "Compare one logged value with the same value printed by the program.",
        Experiment(
            "print one value where it is computed",
            "it differs from the log",
            "it is the same",
        ),
        0.5,
    ),
)
BY_ID = {cause.id: cause for cause in CAUSES}
