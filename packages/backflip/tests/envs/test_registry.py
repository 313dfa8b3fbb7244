"""Ids and arguments give the right environment, or a one-line error with a suggestion."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from backflip.envs.arguments import parse_env_args
from backflip.envs.ids import NATIVE
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.registry import is_native, make_host, make_native
from runshelf.errors import UsageError

OWN = '''
import gymnasium
import numpy as np
from dataclasses import dataclass
from typing import NamedTuple
import jax.numpy as jnp
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.native.probes import ChosenReward

def wrapped(height: int, limit: int = 6, name: str = "CartPole-v1"):
    env = gymnasium.make(name, max_episode_steps=height)
    return gymnasium.wrappers.FlattenObservation(gymnasium.wrappers.TimeLimit(env, limit))

def limited(max_episode_steps: int = 3):
    return gymnasium.wrappers.TimeLimit(Anything(), max_episode_steps)

def nothing():
    Ladder(3)

def number_three():
    return 3

def batch():
    return gymnasium.make_vec("CartPole-v1", num_envs=2)

def in_jax():
    return Probe(size=5)

def raises():
    raise RuntimeError("no licence\\nfound")

def leaves():
    raise SystemExit(3)

ONE = gymnasium.make("CartPole-v1")

def same():
    return ONE

class Ladder(gymnasium.Env):
    """Climb `height` rungs."""
    observation_space = gymnasium.spaces.Box(0, 99, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    def __init__(self, height: int, pay=1.5, names=("a", "b"), render_mode=None):
        self.height, self.pay = height, pay
    def reset(self, *, seed=None, options=None):
        self.rung = 0
        return np.array([0.0]), {}
    def step(self, action):
        self.rung += action
        return np.array([float(self.rung)]), self.pay, bool(self.rung >= self.height), False, {}

@dataclass(frozen=True)
class Probe(ChosenReward):
    size: int = 3
    goal: tuple[float, float] = (1.0, 2.0)

class Leaving(Probe):
    def observe(self, state):
        raise SystemExit(7)

class Hidden(Probe):
    @property
    def spec(self):
        raise SystemExit(8)

class Left(Ladder):
    def __init__(self):
        raise SystemExit(9)

class Anything(Ladder):
    def __init__(self, **anything):
        assert "max_episode_steps" not in anything
        super().__init__(height=9)

class Limits(Ladder):
    def __init__(self, max_episode_steps=7):
        super().__init__(height=max_episode_steps)

class Needs(Probe):
    def __init__(self, size: float, name: str, flag: bool):
        pass

class Narrow(Probe):
    def observe(self, state):
        return jnp.zeros(3)

class Table(Probe):
    low = np.zeros((3, 1), np.float32)
    spec = EnvSpec("table", Box(low, low + 1, low.dtype), Discrete(2), 9)

    def observe(self, state):
        return jnp.zeros((3, 1))

def acting(action):
    """Return a class like `Probe` with another action space."""
    class Acting(Probe):
        spec = EnvSpec("acting", Probe().spec.observation, action, 9)
        def step(self, state, action, key):
            return super().step(state, jnp.int32(0), key)
    return Acting

def between(low, high, size=1):
    low, high = np.full(size, low, np.float32), np.full(size, high, np.float32)
    return acting(Box(low, high, low.dtype))

Many, Most, Void = acting(Discrete(10**9)), acting(Discrete(100_000)), between(-1, 1, 0)
Vast, ManyDimensions = between(-3e38, 3e38), between(-1e38, 1e38)
Free, Still = between(-np.inf, 1), between(1, 1)

class Broken(Probe):
    def observe(self, state):
        raise KeyError("position")

class Nothing:
    pass

number = 3
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_envs.py").write_text(OWN)
    (tmp_path / "needy_env.py").write_text("import surely_not_installed\n")
    (tmp_path / "torn_env.py").write_text("1 / 0\n")
    (tmp_path / "script_env.py").write_text("import sys\nsys.exit(6)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_envs", raising=False)
    return "own_envs"


def test_env_args_are_parsed() -> None:
    texts = ["goal=40,60", "g=9.81", "n=3", "x=1e-3", "on=true", "off=False", "file=a=b", "one=4,"]
    assert parse_env_args([*texts, "big=inf", "mix=a,1", "empty="]) == {
        "goal": (40, 60),
        "g": 9.81,
        "n": 3,
        "x": 0.001,
        "on": True,
        "off": False,
        "file": "a=b",
        "one": (4,),
        "big": "inf",
        "mix": ("a", 1),
        "empty": "",
    }
    assert type(parse_env_args(["n=3"])["n"]) is int
    whole = parse_env_args(["a=1e5", "b=2E+3", "c=1.5e3", "d=1e-3"])
    assert whole == {"a": 100_000, "b": 2_000, "c": 1500.0, "d": 0.001}
    assert [type(number) for number in whole.values()] == [int, int, float, float]


@pytest.mark.parametrize("text", ["goal", "=3", "2x=3", "go al=3", ""])
def test_env_arg_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--env-arg must be KEY=VALUE, got `" + text):
        parse_env_args([text])


def test_repeated_env_arg_is_refused() -> None:
    with pytest.raises(UsageError, match="`g` is given twice"):
        parse_env_args(["g=1", "g=2"])


def test_built_in_ids_are_native() -> None:
    assert all(is_native(env_id) for env_id in NATIVE)
    assert make_native("Pendulum-v1", {"g": 3}) == Pendulum(g=3.0)
    assert make_native("CartPole-v1") == CartPole()
    assert make_native("dot", parse_env_args(["goal=40,60"])) == Dot(goal=(40, 60))


@pytest.mark.parametrize("env_id", ["gymnasium:CartPole-v1", "Hopper-v5", "no-such-v0"])
def test_other_ids_are_host_environments(env_id: str) -> None:
    assert not is_native(env_id)
    assert make_native(env_id) is None


def test_prefix_selects_the_host_environment_with_arguments() -> None:
    env = make_host("gymnasium:Pendulum-v1", {"g": 3, "max_episode_steps": 5}, 2, "same_step")
    assert (env.num_envs, env.spec.max_episode_steps) == (2, 5)
    assert env.spec.id == "gymnasium:Pendulum-v1"
    assert make_host("Pendulum-v1").spec.max_episode_steps == 200
    plain = make_host("gymnasium:Pendulum-v1", {}, 2)
    assert np.array_equal(env.reset([3, 4]), plain.reset([3, 4]))
    push = np.zeros((2, 1), np.float32)
    assert not np.array_equal(env.step(push).obs, plain.step(push).obs)


def test_user_gymnasium_class(own: str, capfd: pytest.CaptureFixture[str]) -> None:
    env_id = f"{own}:Ladder"
    assert not is_native(env_id)
    assert make_native(env_id, {"height": 2}) is None
    env = make_host(env_id, {"height": 2}, 2)
    assert (env.spec.id, env.spec.max_episode_steps) == (env_id, None)
    env.reset([0, 1])
    steps = [env.step(np.array([1, 0], np.int32)) for _ in range(2)]
    assert steps[1].terminated.tolist() == [True, False]
    assert steps[1].reward.tolist() == [1.5, 1.5]
    assert capfd.readouterr() == ("", "")


def test_user_gymnasium_class_gets_a_time_limit(own: str) -> None:
    """The only parameter of Taxi's constructor is the render mode."""
    for name, args in (("Ladder", {"height": 9}), ("Anything", {})):
        env = make_host(f"{own}:{name}", {**args, "max_episode_steps": 2}, 2)
        assert env.spec.max_episode_steps == 2
        env.reset([0, 1])
        steps = [env.step(np.array([1, 0], np.int32)) for _ in range(2)]
        assert [step.truncated.tolist() for step in steps] == [[False] * 2, [True] * 2]
    env = make_host(f"{own}:Limits", {"max_episode_steps": 1})
    assert env.spec.max_episode_steps is None
    env.reset([0])
    assert env.step(np.array([1], np.int32)).terminated.all()


def test_id_without_parameters_accepts_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Plain(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

    of = EnvSpec("Plain-v0", entry_point=Plain)
    monkeypatch.setitem(gymnasium.registry, "Plain-v0", of)
    assert make_host("Plain-v0", {"max_episode_steps": 3}).spec.max_episode_steps == 3


def test_a_function_makes_the_environment_behind_wrappers(own: str) -> None:
    env = make_host(f"{own}:wrapped", {"height": 9}, 2)
    assert env.spec.max_episode_steps == 6
    env.reset([0, 1])
    env.close()
    assert make_host(f"{own}:wrapped", {"height": 4}).spec.max_episode_steps == 4
    assert (
        make_host(f"{own}:wrapped", {"height": 9, "max_episode_steps": 2}).spec.max_episode_steps
        == 2
    )
    assert make_host(f"{own}:limited").spec.max_episode_steps == 3
    assert make_host(f"{own}:limited", {"max_episode_steps": 5}).spec.max_episode_steps == 5
    assert not is_native(f"{own}:wrapped")
    assert make_native(f"{own}:wrapped") is None


def test_a_function_is_called_once_for_each_row(own: str, tmp_path: Path) -> None:
    text = "import own_envs\ncalls = []\ndef make(**args):\n    calls.append(args)\n"
    (tmp_path / "counted_env.py").write_text(f"{text}    return own_envs.Anything()\n")
    make_host("counted_env:make", {"size": 2, "word": "x"}, 3).close()
    assert sys.modules["counted_env"].calls == [{"size": 2, "word": "x"}] * 3
    del sys.modules["counted_env"], own


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrapped", "requires the arguments `height`; try --env-arg height=1$"),
        ("nothing", "`own_envs:nothing` returned nothing, expected a gymnasium.Env$"),
        ("number_three", "returned an object of the class int, expected a gymnasium.Env$"),
        ("batch", "of the class CartPoleVectorEnv, expected one gymnasium.Env; backflip makes"),
        ("in_jax", "name the class itself for an environment in JAX, as in own_envs:Probe$"),
        ("raises", "`own_envs:raises` cannot be created: RuntimeError: no licence found$"),
        ("leaves", "`own_envs:leaves` cannot be created: SystemExit: 3$"),
        ("same", "`own_envs:same` returned the same environment twice; it must make a new one"),
    ],
)
def test_a_function_that_makes_no_environment_is_refused(own: str, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_host(f"{own}:{name}", {}, 2)


def test_sys_exit_in_a_constructor_is_a_failure(own: str) -> None:
    with pytest.raises(UsageError, match="`own_envs:Left` cannot be created: SystemExit: 9"):
        make_host(f"{own}:Left")


def test_user_native_class(own: str) -> None:
    env = make_native(f"{own}:Probe", {"size": 5, "goal": (1, 2)})
    assert env is not None
    assert env.size == 5  # pyright: ignore[reportAttributeAccessIssue]
    assert is_native(f"{own}:Probe")
    with pytest.raises(UsageError, match="`own_envs:Probe` is written in JAX and has no host path"):
        make_host(f"{own}:Probe")


@pytest.mark.parametrize("name", ["Most", "ManyDimensions", "Free"])
def test_user_class_may_have_many_or_unbounded_actions(own: str, name: str) -> None:
    assert make_native(f"{own}:{name}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_envs:Narrow", r"`observe` is float32\[3\], expected float32\[1\]"),
        ("own_envs:Broken", "cannot be traced: KeyError: 'position'"),
        ("own_envs:Table", r"its observation has the shape \(3, 1\); use a vector"),
        ("own_envs:Many", r"it has 1,000,000,000 actions, expected 1 to 100,000"),
        (
            "own_envs:Vast",
            "its actions have the bounds .* of at most 1e\\+38, low below high, or none",
        ),
        ("own_envs:Still", r"its actions have the bounds \[1.0\] and \[1.0\], expected bounds"),
        ("own_envs:Void", r"its action has the shape \(0,\)"),
        ("own_envs:Nothing", "`own_envs:Nothing` is not an environment: expected a subclass of"),
        ("own_envs:Prob", "`own_envs` has no class or function `Prob`, did you mean `Probe`?"),
        ("own_envs:number", "`own_envs` has no class or function `number`"),
        ("no_such_module:Env", "no module `no_such_module` in /"),
        ("own_envs.sub:Env", "unknown environment `own_envs.sub:Env`"),
        (
            "probe:6",
            r"unknown environment `probe:6`, did you mean `probe:.`\? \(known: probe:1,",
        ),
        ("dott:6", "no module `dott` in /"),
        ("needy_env:Env", "`needy_env` needs `surely_not_installed`, which is not installed"),
        ("torn_env:Env", "`torn_env` cannot be imported: ZeroDivisionError: division by zero"),
        ("script_env:Env", "`script_env` cannot be imported: SystemExit: 6"),
        ("own_envs:Leaving", "cannot be traced: SystemExit: 7"),
        ("own_envs:Hidden", "`spec` raised SystemExit: 8"),
    ],
)
def test_invalid_user_class_is_refused(own: str, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_native(name)


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("CartPol-v1", "unknown environment `CartPol-v1`, did you mean `CartPole-v1`?"),
        ("dott", "did you mean `dot`?"),
        ("mountaincar-v0", "did you mean `MountainCar-v0`?"),
        ("MountainCarContinuous-v1", "did you mean `MountainCarContinuous-v0`?"),
        ("Taxi-v1", r"did you mean `Taxi-v\d`?"),
        ("hopper-v5", "did you mean `Hopper-v5`?"),
        ("Pong", "did you mean `ALE/Pong-v5`?"),
        ("dm_control/finger-spin-v0", "did you mean `dm_control:finger-spin`?"),
        ("dm_control/point_mass-easy", "did you mean `dm_control:point_mass-easy`?"),
        ("Breakout-v5", "did you mean `MinAtar/Breakout-v1` or `ALE/Breakout-v5`?"),
        ("MinAtar/Pendulum", "did you mean `Pendulum-v1`?"),
        (":Class", "write `module:Class` for a class of your own"),
        ("own_envs:", "write `module:Class` for a class of your own"),
        ("Hopper-v3", r"cannot be created: .*; try Hopper-v5$"),
        ("gymnasium:Hoper-v5", r"did you mean `.*Hopper-v\d`?"),
        ("xxxxxxxxxxxx", r"unknown environment `xxxxxxxxxxxx` \(native: dot, "),
    ],
)
def test_unknown_environment_is_refused(env_id: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_host(env_id)


@pytest.mark.parametrize(
    ("env_id", "args", "message"),
    [
        (
            "Pendulum-v1",
            {"G": 3},
            r"`G`, did you mean `g`\?; accepted: g=10.0, max_episode_steps=200",
        ),
        ("Pendulum-v1", {"g": "x"}, "`Pendulum-v1`: --env-arg `g` must be a .*, got 'x'; try g=10"),
        ("Pendulum-v1", {"g": True}, "`g` must be a number, got True"),
        ("CartPole-v1", {"sutton_barto_reward": 1}, "must be true or false, got 1"),
        ("CartPole-v1", {"max_episode_steps": 1.5}, "must be a whole number, got 1.5"),
        ("dot", {"goal": 5}, "`goal` must be values separated by commas, got 5"),
        ("dot", {"goal": (500, 5)}, "`goal` of dot must be"),
        ("probe:1", {"size": 3}, "`size`; accepted: none"),
        ("gymnasium:Pendulum-v1", {"g": "x"}, "`g` must be a number, got 'x'"),
        ("gymnasium:CartPole-v1", {"max_episode_steps": "x"}, "must be a whole number, got 'x'"),
        ("Hopper-v5", {"gravity": 3}, "`gravity`.*xml_file=hopper.xml"),
        ("own_envs:Ladder", {}, "requires the arguments `height`; try --env-arg height=1$"),
        ("own_envs:Ladder", {"height": 1, "max_episode_steps": 0}, "must be at least 1 .*, got 0"),
        ("own_envs:Ladder", {"height": 1, "max_episode_steps": 1.5}, "a whole number, got 1.5"),
        ("own_envs:Anything", {"max_episode_steps": "x"}, "must be a whole number, got 'x'"),
        (
            "own_envs:Needs",
            {"flag": True},
            "requires the arguments `size`, `name`; try .*size=1.0 .*name=text$",
        ),
        (
            "own_envs:Ladder",
            {"height": 1, "names": 3},
            "`names` must be values separated by commas",
        ),
        (
            "own_envs:Ladder",
            {"hight": 3},
            r"`height`\?; accepted: height \(required, such as 1\), pay=1.5, names=a,b, "
            "max_episode_steps=500$",
        ),
        ("own_envs:Probe", {"size": 1.5}, "`size` must be a whole number, got 1.5"),
    ],
)
def test_invalid_arguments_are_refused(own: str, env_id: str, args: Any, message: str) -> None:
    del own
    with pytest.raises(UsageError, match=message) as caught:
        make_native(env_id, args) or make_host(env_id, args)
    assert "\n" not in str(caught.value)


def test_integer_stays_one_if_only_a_default_gives_the_type() -> None:
    env = make_host("packages.backflip.tests.inspect.faulty_envs:Grid", {"size": 7})
    env.close()
    with pytest.raises(UsageError, match="`size` must be a number, got 'x'"):
        make_host("packages.backflip.tests.inspect.faulty_envs:Grid", {"size": "x"})


def test_empty_observation_and_failing_spec_are_refused() -> None:
    with pytest.raises(UsageError, match="Box of at least one number"):
        make_host("packages.backflip.tests.inspect.faulty_envs:EmptyObservation")
    with pytest.raises(UsageError, match="`spec` raised ValueError: no spec"):
        make_native("packages.backflip.tests.inspect.faulty_envs:FailingSpec")


def test_union_types_are_passed_unchanged() -> None:
    for name in ("MaybeGrid", "OptionalGrid", "PostponedGrid"):
        make_host(f"packages.backflip.tests.inspect.faulty_envs:{name}", {"size": 7}).close()
    make_host("gymnasium:ALE/Pong-v5", {"frameskip": 2}).close()


def test_missing_simulator_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = ("gymnasium.envs.mujoco", "backflip.envs.mujoco")
    for name in [name for name in sys.modules if name.startswith(needy)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for env_id in ("Hopper-v5", "gymnasium:Hopper-v5", "fixed:Hopper-v5"):
        with pytest.raises(UsageError, match=r"needs mujoco.*pip install 'backflip\[mujoco\]'"):
            make_host(env_id)


def test_lookup_imports_neither_jax_nor_gymnasium() -> None:
    program = (
        "import sys; from backflip.envs.arguments import parse_env_args;"
        "from backflip.envs.registry import is_native;"
        "assert is_native('dot') and not is_native('Hopper-v5') and parse_env_args(['a=1']);"
        "assert not {'jax', 'gymnasium', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
