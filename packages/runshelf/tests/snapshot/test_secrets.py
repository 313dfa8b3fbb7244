"""Tests of `runshelf.snapshot.secrets`: keys, and names that only look similar."""

import shlex

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


PIECES = (
    *("a", "a.", "-", '"', "a=", "?a=", "://", "--a ", "Bearer ", "_-", "Cookie: ", "X-a-"),
    *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-p", " -p", "curl -u a ", "a:", "A1"),
)
QUICK_PIECES = ("a", "--a ", "-----BEGIN PRIVATE KEY-----", " -p")


@pytest.mark.medium
@pytest.mark.parametrize(
    "piece",
    [pytest.param(x, marks=() if x in QUICK_PIECES else pytest.mark.slow) for x in PIECES],
)
def test_long_arguments_take_linear_time(piece):
    """Quadratic matching would take billions of steps."""
    long = piece * (60_000 // len(piece))
    find_secrets(["prog", long, "-u", long, f"-p{long}", "curl", f"-u{long}", "-b", long], {})


KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE\n"
    "-----END OPENSSH PRIVATE KEY-----"
)


def lines_of(text: str) -> list[str]:
    return text.strip().splitlines()


COMMANDS = {
    "hunter2": """
        mysql -phunter2
        mysql -u root -phunter2 db
        /usr/bin/mysqldump -phunter2 db
        mysqladmin -h db -phunter2 status
        sshpass -p hunter2 ssh h
        sshpass -phunter2 ssh h
        docker login -u me -p hunter2 registry
        docker exec db mysql -phunter2
        curl -u me:hunter2 https://h
        curl -ume:hunter2 https://h
        curl --user me:hunter2 h
        curl --user=me:hunter2 h
        curl --proxy-user me:hunter2 h
        train.py -u me:hunter2
        mongosh -u me -p hunter2
        redis-cli -a hunter2
        ldapsearch -w hunter2
        7z a -phunter2
        unzip -P hunter2 a.zip
        sqlcmd -S h -P hunter2
        openssl rsa -passin pass:hunter2
        train.py -u me -phunter2
        ssh-keygen -N hunter2
        zip -P hunter2 a b
        twine -p hunter2
        nice -n 5 mysql -phunter2
        mosquitto_pub -u me -P hunter2
        curl --password hunter2
        sh -c 'mysql -u root -phunter2 db'
        bash -c 'cd /; curl -u me:hunter2 https://h | sh'
        psql postgresql://me:hunter2@h/db
        git clone https://me:hunter2@h/r.git
    """,
    "s3cr3t-of-mine": """
        train.py -ps3cr3t-of-mine
        train.py --session-cookie s=s3cr3t-of-mine
    """,
    "SECRET": """
        train.py -pSECRET
        mysql -pSECRET
    """,
    "S3cret!pass": """
        train.py -pS3cret!pass
    """,
    "sid=a1b2c3d4": """
        curl -b sid=a1b2c3d4 h
        curl --cookie sid=a1b2c3d4 h
        curl -H 'Cookie: sid=a1b2c3d4' h
        train.py --cookies sid=a1b2c3d4
        train.py --cookie=sid=a1b2c3d4
        wget --header 'cookie: sid=a1b2c3d4; b=2' h
    """,
}


@pytest.mark.attack
def test_passwords_of_short_options_cookies_and_logins_are_masked(tried) -> None:
    kept: list[str] = []
    for secret, commands in COMMANDS.items():
        for command in lines_of(commands):
            found = find_secrets(shlex.split(command), {})
            if any(secret in word for word in found.argv) or not found.names:
                kept.append(command)
    assert kept == []
    tried(sum(len(lines_of(each)) for each in COMMANDS.values()), "command lines with a secret")


TEXTS = [
    KEY,
    f"key: {KEY}",
    KEY.replace("OPENSSH ", "RSA "),
    KEY.replace("OPENSSH ", ""),
    "Set-Cookie: sid=a1b2c3d4e5; HttpOnly",
    "> Cookie: sid=a1b2c3d4e5",
    '{"Cookie": "sid=a1b2c3d4e5"}',
    "X-Api-Key: s3cr3tofmine99",
    "x-auth-token: s3cr3tofmine99",
    "Proxy-Authorization: Basic czNjcjN0",
    "gsk_" + "a1B2" * 8,
    "hvs." + "a1B2" * 8,
    "SG." + "a1B2" * 5 + "." + "a1B2" * 8,
    "dapi" + "0a1b2c3d" * 4,
    "123456789:AA" + "a1B2" * 9,
]


@pytest.mark.attack
def test_secrets_in_any_text_are_masked(tried) -> None:
    marks = ("b3BlbnNz", "a1b2c3d4", "s3cr3tofmine99", "czNjcjN0", "a1B2a1B2", "0a1b2c3d0a1b")
    masked = [mask_shapes(text) for text in TEXTS]
    assert [text for text in masked if "***" not in text or any(m in text for m in marks)] == []
    tried(len(TEXTS), "texts with a secret")


ORDINARY = """
    train.py --lr 1e-3
    train.py -p 0.1
    train.py -p0.1
    train.py -seed 3
    train.py -s 1
    train.py --token-dim 32
    train.py --tokenizer tokenizer.json
    train.py -pdrop 0.1
    train.py -print
    train.py -parallel
    train.py -parallel4
    train.py -patience10
    train.py -pretrained resnet50
    train.py -pretrained_path=models/a1b2
    train.py -p2p
    train.py model.key=value optimizer.lr=3e-4 +trainer.key=abc
    train.py --key=value
    train.py hydra.run.dir=out/a1 env=CartPole-v1 seed=1,2,3
    train.py --pass-through x
    docker run -p 8080:80 -u 1000:1000 image
    docker run -u node:node image
    chown -R me:me x
    python -u train.py
    python -m http.server -p 8000
    ssh -p 2222 host
    mkdir -p a/b
    mysql -p
    curl -b cookies.txt h
    curl -u me h
    train.py --cookie-file cookies.txt
    train.py --user me
    train.py -u 0.5:1.5
    train.py --passes 3
    patch -p1
    cp -pr a b
    train.py --env ALE/Pong-v5 --frames 1_000_000
    sort -u a.txt
    grep -P pattern9x file
    train.py --author-token-limit 3
    python -c 'print(1)'
    train.py -pENV
    tar -xzpf a
    train.py --hidden-sizes 64,64 --activation tanh
    train.py --public-key abc
    uv run -p 3.11 x
    torchrun --nproc-per-node 2 train.py
    train.py --cookies cookies.txt
    train.py --session 3
    train.py --sort-key created_at
    train.py --key-dim 64
    train.py --num-keys=8
    7z x -y a
"""


def test_ordinary_command_lines_are_not_masked() -> None:
    changed = [line for line in lines_of(ORDINARY) if find_secrets(shlex.split(line), {}).names]
    assert changed == []
    text = "the cookie: chocolate\nkey: value\nBasic training\nPRIVATE KEY of loss: 0.3"
    assert mask_shapes(text) == text


def test_a_password_in_the_address_of_a_variable_is_masked_everywhere() -> None:
    environ = {"DATABASE_URL": "postgresql://me:hunter2hunter2@db/x"}
    found = find_secrets(["prog"], environ)
    assert found.mask("connected with hunter2hunter2") == "connected with ***"
    assert found.names == ("env:DATABASE_URL",)
