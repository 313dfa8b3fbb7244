"""Tests of `runshelf.snapshot.secret_files`: files with secrets, and files that only look so."""

import pytest

from runshelf.snapshot.secret_files import has_private_key, is_secret_file

SECRET = (
    *(".env", ".env.local", "prod.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc"),
    *(".aws/credentials", ".aws/config", ".kube/config", ".docker/config.json", ".pgpass"),
    *("kubeconfig", "prod.kubeconfig", ".htpasswd", ".git-credentials", ".my.cnf"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ed25519_sk", "deploy.pem", "a.ppk"),
    *("server.key", "a.jks", "a.p12", "a.pfx", "a.kdbx", "a.kdb", "a.keystore", "x.keytab"),
    *("terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "prod.auto.tfvars"),
    *("hf_token", "hf_token.txt", ".hf_token", "huggingface/token", "token", "token.txt"),
    *("secrets.json", "secrets.toml", "secrets.yml", "conf/secrets.yaml", "secret.ini"),
    *("my-secrets.json", "db_passwords.txt", "password.txt", "passwd", "api_key.txt", "api_keys"),
    *("api-key.json", "hf-token.json", "client_secret_12.json", "credentials", "credentials.json"),
    *("gcp-credentials-2.json", "service_account_x.json", "my-service-account.json", "auth.json"),
    *("application_default_credentials.json", "x-firebase-adminsdk-1.json", "kaggle.json"),
    *("cookies.txt", ".bash_history", ".ssh/config", ".vault-token", ".streamlit/secrets.toml"),
    *("private_key.json", "access_token", "local.settings.json", "credentials.toml"),
)
HARMLESS = (
    *("env.py", "environment.yml", "prod.env.example", ".env.sample", "secrets.toml.template"),
    *("secrets.py", "aws/credentials.py", "credentials.md", "passwords.py", "id_rsa.pub"),
    *("id_rsa.d/readme", "tokenizer.json", "tokenizer_config.json", "tokens.txt", "vocab.json"),
    *("special_tokens_map.json", "added_tokens.json", "token_dim.yaml", "tokenizer.model"),
    *("keys.py", "key.py", "keyboard.json", "monkey.txt", "config.json", "config", "model.bin"),
    *("kube/config.py", "docker/Dockerfile", "docker-compose.yml", "state.json", "password.rs"),
    *("secretary.txt", "passage.txt", "author.json", "cookies.py", "history.txt", ".ssh/a.pub"),
    *("hydra/config.yaml", "conf/train.yaml", "requirements.txt", "package-lock.json"),
    *("key_frames.json", "hotkeys.toml", "public_keys.txt", "keymap.json", "terraform.tf"),
)


@pytest.mark.attack
def test_files_with_secrets_are_known_in_any_case_and_folder(tried) -> None:
    names = [
        spelled
        for name in SECRET
        for spelled in (name, name.upper(), name.title(), f"a/b/{name}", f"A/{name.upper()}")
    ]
    assert [name for name in names if not is_secret_file(name.encode())] == []
    tried(len(names), "names of files with secrets")


def test_files_of_code_and_of_models_are_not_taken_for_secrets() -> None:
    names = [*HARMLESS, *(f"src/{name}" for name in HARMLESS)]
    assert [name for name in names if is_secret_file(name.encode())] == []


MARK = b"-" * 5  # in two parts: a file with a key is in no snapshot, this one is to be
BODY = b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n" * 3


@pytest.mark.attack
@pytest.mark.parametrize(
    "text",
    [
        *(MARK + b"BEGIN %sPRIVATE KEY-----\n" % kind + BODY for kind in (b"", b"RSA ", b"EC ")),
        MARK + b"BEGIN OPENSSH PRIVATE KEY-----\n" + BODY,
        MARK + b"BEGIN ENCRYPTED PRIVATE KEY-----\r\n" + BODY,
        MARK + b"BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n" + BODY,
        MARK + b"BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + BODY,
        b"# notes\n\nkey:\n  " + MARK + b"BEGIN PRIVATE KEY-----\n  " + BODY,
        b"PuTTY-User-%s-3: ssh-rsa\n" % b"Key-File",
        b"AGE-SECRET-KEY-1" + b"Q" * 58,
    ],
)
def test_a_file_with_a_private_key_is_known_by_its_content(tmp_path, tried, text) -> None:
    path = tmp_path / "deploy"
    path.write_bytes(text)
    assert has_private_key(path, len(text))
    tried(1, "files with a private key")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'MARK = "' + MARK + b'BEGIN PRIVATE KEY-----"\n',
        MARK + b"BEGIN CERTIFICATE-----\n" + BODY,
        MARK + b"BEGIN PUBLIC KEY-----\n" + BODY,
        MARK + b"BEGIN PRIVATE KEY-----\n<your key>\n",
    ],
)
def test_a_file_without_a_private_key_is_kept(tmp_path, text) -> None:
    path = tmp_path / "a"
    path.write_bytes(text)
    assert not has_private_key(path, len(text))
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert not has_private_key(path, 1)
