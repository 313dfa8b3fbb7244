"""Tests of `runshelf.snapshot.secrets`: keys, and names that only look similar."""

import pytest

from runshelf.snapshot.capture import without_secrets
from runshelf.snapshot.secrets import find_secrets, mask_shapes, relevant_environment
from runshelf.store.run import RunInfo

VALUE = "s3cr3t-of-mine"


@pytest.mark.parametrize(
    "name",
    [
        *("--api-key", "--api_key", "--apiKey", "--apikey", "--token", "--hf-token", "-token"),
        *(
            "--password",
            "--db.passwd",
            "--client-secret",
            "--secret-key",
            "--auth",
            "--credentials",
        ),
        *("--pass", "--pw", "--bearer", "--pat", "--webhook", "--db-pass", "--pgpassword"),
        *("--secret", "--aws-secret-access-key", "--wandb-key", "--PASSWORD"),
    ],
)
def test_names_of_secrets(name):
    spaced = find_secrets(["prog", name, VALUE, "x"], {})
    assert spaced.argv == ("prog", name, "***", "x")
    assert spaced.names == (name,)
    assert find_secrets(["prog", f"{name}={VALUE}"], {}).argv == ("prog", f"{name}=***")
    bare = name.lstrip("-")
    assert find_secrets(["prog", f"{bare}={VALUE}"], {}).argv == ("prog", f"{bare}=***")


@pytest.mark.parametrize(
    "argv",
    [
        ["--keyboard", "qwerty-layout"],
        ["--monkey=capuchin3"],
        ["--token-length", "5"],
        ["--max-tokens=100"],
        ["--author", "somebody else"],
        ["--tokenizer", "gpt2-large"],
        ["--key", "3"],
        ["--some-key=a"],
        ["--sort-key=x"],
        ["--some-key", "created_at-Today"],
        ["--some-key", "model.encoder.layers"],
        ["--some-key", "two words12"],
        ["--first-pass", "3"],
        ["--pat", "src/*.py"],
        ["--login", "me"],
        ["--login", "1000:1000"],
        ["-c", "f(token=get_token(), secret=os.environ['X'], key=lambda x: x)"],
        ["-c", "export TOKEN=$OTHER"],
        ["--question", "Basic understanding, the key: why"],
        ["https://h/?key=abc&page=3"],
        ["https://git@example.com/a/b"],
        ["--rng-key", "abcdefghij"],
        ["--sort-key", "created-at"],
        ["--secret-size=12"],
        ["--use-auth-token", "--verbose"],
        ["--token-file", "/home/me/token.txt"],
        ["--password-file", "/home/me/password.txt"],
        ["--password", "true"],
        ["hockey=ice-stadium"],
        ["https://example.com/path"],
        ["git@example.com:a/b.git"],
    ],
)
def test_names_similar_to_those_of_secrets(argv):
    found = find_secrets(["prog", *argv], {})
    assert found.argv == ("prog", *argv)
    assert found.names == ()


SHAPES = [
    "sk-abcdefghijklmnopqrstuvwx",
    "ghp_" + "a1" * 18,
    "hf_" + "Ab" * 17,
    "AKIA" + "ABCDEFGH12345678",
    *("sk_live_" + "a1" * 8, "sk_test_" + "a1" * 8, "rk_live_" + "a1" * 8),
    "xoxb-1234567890-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_def-123",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_values_with_the_shape_of_a_key(shape):
    found = find_secrets(["prog", shape, f"--x=a{'/'}{shape}"], {})
    assert shape not in "".join(found.argv)
    assert found.names == ("argument 1", "--x")


def test_a_password_in_a_url():
    found = find_secrets(["prog", "postgresql://me:hunter2@db.example/x"], {})
    assert found.argv[1] == "postgresql://me:***@db.example/x"
    assert mask_shapes("see http://host:8080/a@b") == "see http://host:8080/a@b"


def test_the_value_of_a_secret_variable_is_masked_everywhere():
    environ = {"WANDB_API_KEY": VALUE, "PATH": "/bin", "PWD": "/home/me", "SEED": "3"}
    found = find_secrets(["prog", f"--config={{'k': '{VALUE}'}}"], environ)
    assert found.argv[1] == "--config={'k': '***'}"
    assert found.names == ("--config", "env:WANDB_API_KEY")
    assert found.mask_all({"a": [VALUE, 3], VALUE: None}) == {"a": ["***", 3], "***": None}


def test_a_short_value_of_a_variable_is_not_masked_in_text():
    assert find_secrets(["prog", "--name", "dev-run"], {"MY_TOKEN": "dev"}).argv[2] == "dev-run"


def test_a_secret_given_twice_is_masked_twice():
    found = find_secrets(["prog", "--token", VALUE, f"http://host/?t={VALUE}"], {})
    assert VALUE not in "".join(found.argv)


def test_only_relevant_variables_are_kept_and_masked():
    environ = {"OMP_NUM_THREADS": "2", "HOME": "/root", "JAX_X": f"a{VALUE}", "A_KEY": VALUE}
    kept = relevant_environment(environ, find_secrets([], environ))
    assert kept == {"OMP_NUM_THREADS": "2", "JAX_X": "a***"}


@pytest.mark.parametrize(
    ("argument", "masked"),
    [
        (f"export API_KEY={VALUE}; python x.py", "export API_KEY=***; python x.py"),
        (f"cd x; API_KEY='{VALUE}' python x.py", "cd x; API_KEY='***' python x.py"),
        (f"python x.py --token {VALUE} --lr 3", "python x.py --token *** --lr 3"),
        (f"python x.py --token={VALUE} --lr 3", "python x.py --token=*** --lr 3"),
        (f'{{"api_key": "{VALUE}", "lr": 3}}', '{"api_key": "***", "lr": 3}'),
        (f"{{'password': '{VALUE}'}}", "{'password': '***'}"),
        (f'{{\\"token\\": \\"{VALUE}\\"}}', '{\\"token\\": \\"***\\"}'),
        (f"Authorization: Bearer {VALUE}", "Authorization: Bearer ***"),
        ("Authorization: Basic bWU6cHc=", "Authorization: Basic ***"),
        (f"curl -H 'authorization: bearer {VALUE}' h", "curl -H 'authorization: bearer ***' h"),
        (f"X-Api-Key: {VALUE}", "X-Api-Key: ***"),
        (f"https://h/x?a=1&token={VALUE}", "https://h/x?a=1&token=***"),
        (f"https://h/x?api_key={VALUE}&a=1", "https://h/x?api_key=***&a=1"),
        (f"https://h/x?access_token={VALUE}", "https://h/x?access_token=***"),
        (f"https://h/x?sig={VALUE}", "https://h/x?sig=***"),
        (f"https://{VALUE}@h/x", "https://***@h/x"),
        (f"https://{VALUE}:@h/x", "https://***:@h/x"),
        ("https://hooks.slack.com/services/T0/B0/abcd", "https://hooks.slack.com/services/***"),
    ],
)
def test_secrets_within_a_longer_argument(argument, masked):
    found = find_secrets(["prog", "-c", argument], {})
    assert found.argv == ("prog", "-c", masked)
    assert found.names == ("argument 2",)


def test_a_login_with_a_password():
    assert find_secrets(["p", "--login", "me:hunter2"], {}).argv == ("p", "--login", "***")
    assert find_secrets(["p", "--login=me:hunter2"], {}).argv == ("p", "--login=***")


def test_a_secret_within_an_argument_is_masked_in_other_texts():
    found = find_secrets(["sh", "-c", f"export API_KEY={VALUE}"], {})
    assert found.mask(f"run of {VALUE}") == "run of ***"
    asked = without_secrets(RunInfo(VALUE, f"g {VALUE}", f"{VALUE}?", (VALUE, "x")), found)
    assert asked == RunInfo("***", "g ***", "***?", ("***", "x"))


@pytest.mark.parametrize(
    "piece", ["a", "a.", "-", '"', "a=", "?a=", "://", "--a ", "Bearer ", "_-"]
)
def test_long_arguments_take_linear_time(piece):
    """Quadratic matching would take minutes and exceed the test's time limit."""
    find_secrets(["prog", piece * (120_000 // len(piece))], {})
