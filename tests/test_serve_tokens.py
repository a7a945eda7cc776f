"""Tokens: shown once, kept as hashes, of every database, and open to nobody who has not one that is valid."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.serve.auth.tokens import SESSION_SECONDS, Caller, Tokens, check_tenant
from nilregret.storage import MemoryStorage, SqlStorage

from .marks import nightly

KINDS = ["memory", "sqlite", *nightly("postgresql")]
SECRET = "nr_" + "A" * 43


class Clock:
    now = 1e9

    def __call__(self):
        return self.now


@pytest.fixture(params=KINDS)
def storage(request, places):
    place = places(request.param)()
    return place if isinstance(place, MemoryStorage) else SqlStorage(place)


def opened(storage, **more):
    tokens = Tokens(storage, **more)
    tokens.refresh()
    return tokens


def test_a_token_opens_what_it_was_made_for_and_others_know_it(storage):
    first = opened(storage)
    assert not first.any()
    assert first.check(SECRET) is None
    secret = first.new("decider", "shop", about="prices")
    (known,) = first.list()
    assert known.about == "prices"
    for tokens in (first, opened(storage)):
        assert tokens.any()
        assert tokens.check(secret) == Caller("shop", "decider", known.id)
        for wrong in (None, "", SECRET, secret[:-1], secret + "x", secret.upper(), "\udcff", "nr_" + "é" * 10):
            assert tokens.check(wrong) is None
    assert len(secret) == 46  # 3 characters of a mark, and 256 bits


def test_two_tokens_are_never_alike_and_a_token_says_nothing_of_its_id(storage):
    tokens = opened(storage)
    secrets = {tokens.new("reader", "default") for _ in range(5)}
    assert len(secrets) == len({each.id for each in tokens.list()}) == 5
    assert not any(each.id in secret for each in tokens.list() for secret in secrets)


def test_expiry_and_revocation(storage):
    clock = Clock()
    tokens = opened(storage, clock=clock)
    short, long = tokens.new("admin", "default", expires=60.0), tokens.new("reader", "default")
    of_short = tokens.check(short).token
    cookie = tokens.log_in(short)
    assert tokens.check_session(cookie) == Caller("default", "admin", of_short)
    clock.now += 59.9
    assert tokens.check(short) is not None
    clock.now += 0.1
    assert tokens.check(short) is None
    assert tokens.check_session(cookie) is None  # whoever came in with it
    assert tokens.log_in(short) is None
    of_long = tokens.check(long).token
    other = opened(storage, clock=clock)
    revoked = tokens.revoke(of_long)
    assert revoked.revoked_at == clock.now
    assert tokens.check(long) is None
    other.refresh()
    assert other.check(long) is None
    clock.now += 5
    assert tokens.revoke(of_long) == revoked  # the first time counts
    assert tokens.any()  # and nothing is open because all are revoked
    for unknown in ("nothing", "", "a\0b", "'; DROP TABLE tokens; --", of_long.upper() + "x"):
        with pytest.raises(nr.errors.InvalidInput, match="There is no token"):
            tokens.revoke(unknown)


def test_sessions_are_other_secrets_and_end(storage):
    clock = Clock()
    tokens = opened(storage, clock=clock)
    secret = tokens.new("reader", "default")
    cookie = tokens.log_in(secret)
    assert cookie != secret
    assert tokens.check(cookie) is None
    assert tokens.check_session(secret) is None
    assert opened(storage, clock=clock).check_session(cookie) is not None
    assert tokens.log_in(SECRET) is None
    tokens.log_out(cookie)
    assert tokens.check_session(cookie) is None
    assert opened(storage, clock=clock).check_session(cookie) is None
    cookie = tokens.log_in(secret)
    clock.now += SESSION_SECONDS
    assert tokens.check_session(cookie) is None
    tokens.log_in(secret)
    assert len(tokens._store.records()[1]) == 1  # what is over has been dropped
    for _ in range(60):
        clock.now += 1.0
        last = tokens.log_in(secret)
    assert len(tokens._store.records()[1]) == 50
    assert tokens.check_session(last) is not None
    tokens.revoke(tokens.list()[0].id)
    assert tokens.check_session(last) is None
    assert tokens._store.records()[1] in ([], ())


def test_what_is_kept_opens_nothing(tmp_path):
    storage = SqlStorage(f"sqlite:///{tmp_path}/a.db")
    tokens = opened(storage)
    secret = tokens.new("admin", "default")
    cookie = tokens.log_in(secret)
    storage.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in kept
    assert secret[3:].encode() not in kept
    assert cookie.encode() not in kept
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        for (hashed,) in connection.execute("SELECT hash FROM tokens UNION SELECT hash FROM sessions"):
            assert tokens.check(hashed) is None
            assert tokens.check_session(hashed) is None


def test_a_damaged_row_lets_nobody_in(tmp_path):
    storage = SqlStorage(f"sqlite:///{tmp_path}/a.db")
    tokens = opened(storage)
    tokens.new("reader", "default")
    storage.close()
    for damage in ("role = 'root'", "role = NULL", "expires_at = 'never'", "revoked_at = x'00'", "tenant = x'00'"):
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            try:
                connection.execute(f"UPDATE tokens SET {damage}")
            except sqlite3.IntegrityError:  # the database itself sees to that
                continue
        with pytest.raises(nr.errors.StorageError, match="damaged"):
            Tokens(storage).refresh()
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            connection.execute("UPDATE tokens SET role = 'reader', tenant = 'a', expires_at = NULL, revoked_at = NULL")


def test_what_a_token_can_be_for(storage):
    tokens = opened(storage)
    for role in ("root", "", "Admin", None, 3):
        with pytest.raises(nr.errors.InvalidInput, match="`role`"):
            tokens.new(role, "default")
    for tenant in ("", " ", "a/b", "a ", "x" * 65, "a\nb", "\0", "\udcff", None):
        with pytest.raises(nr.errors.InvalidInput, match="`tenant`"):
            tokens.new("reader", tenant)
    for expires in (0, -1, float("nan"), float("inf"), "soon", 1e300):
        with pytest.raises(nr.errors.InvalidInput, match="`expires`"):
            tokens.new("reader", "default", expires=expires)
    for about in ("x" * 201, "\0", 3, "\udcff"):
        with pytest.raises(nr.errors.InvalidInput, match="`about`"):
            tokens.new("reader", "default", about=about)
    assert tokens.list() == []
    assert check_tenant("Läden 3") == "Läden 3"


@pytest.mark.parametrize("kind", KINDS[1:])
def test_studies_and_tokens_do_not_disturb_each_other(places, kind):
    place = places(kind)()
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(1.5, 0.2), noise=0.1), storage=place, name="a")
    trial = study.ask()
    tokens = opened(SqlStorage(place))
    tokens.new("reader", "default")
    study.tell(trial, 0.5)
    again = nr.Study.open(storage=place, name="a")
    assert [each.reward for each in again.trials] == [0.5]
    assert SqlStorage(place).names() == ["a"]


def test_many_at_once(tmp_path):
    place = f"sqlite:///{tmp_path}/a.db"
    secrets = []

    def make():
        mine = opened(SqlStorage(place))
        secrets.extend(mine.new("reader", f"t{i}") for i in range(5))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = opened(SqlStorage(place))
    assert len(secrets) == len({tokens.check(secret).token for secret in secrets}) == 20


# -- the commands -------------------------------------------------------------------------------------------------


def run(*args, code=0):
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no such file" in run("token", "list", code=1).stderr
    made = run("token", "new", "--about", "the shop")
    secret = made.stdout.strip()
    assert secret.startswith("nr_")
    assert "decider" in made.stderr
    assert "not shown again" in made.stderr
    assert secret not in run("token", "list").stdout
    (listed,) = json.loads(run("token", "list", "--json").stdout)
    assert {name: listed[name] for name in ("role", "tenant", "about", "state")} == {
        "role": "decider", "tenant": "default", "about": "the shop", "state": "valid",
    }  # fmt: skip
    assert 364 * 86_400 < listed["expires_at"] - listed["created_at"] < 366 * 86_400
    assert opened(SqlStorage("sqlite:///nilregret.db")).check(secret).token == listed["id"]
    assert json.loads(run("token", "revoke", listed["id"], "--json").stdout)["state"] == "revoked"
    assert "opens nothing" in run("token", "revoke", listed["id"]).stdout
    assert "There is no token" in run("token", "revoke", "abc", code=1).stderr
    found = json.loads(run("token", "new", "--json").stdout)  # somewhere in a log, where no id is beside it
    assert json.loads(run("token", "revoke", found["token"], "--json").stdout)["id"] == found["id"]
    said = run("token", "revoke", found["token"][:-1] + "!", code=1).stderr
    assert "There is no such token" in said
    assert found["token"][:-1] not in said
    full = json.loads(run("token", "new", "--role", "admin", "--tenant", "t", "--expires", "never", "--json").stdout)
    assert full["expires_at"] is None
    assert full["token"].startswith("nr_")
    for wrong in ("0d", "soon", "-1d", "1", "1w", "nan", "inf"):
        assert "`--expires`" in run("token", "new", f"--expires={wrong}", code=1).stderr
    run("token", "new", "--role", "root", code=2)
    assert "`tenant`" in run("token", "new", "--tenant", "a/b", code=1).stderr


def test_a_password_may_be_kept_out_of_sight(tmp_path, monkeypatch):
    monkeypatch.setenv("NILREGRET_STORAGE", f"sqlite:///{tmp_path}/other.db")
    run("token", "new")
    assert (tmp_path / "other.db").exists()
