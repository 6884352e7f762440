"""`savepoint status` and `savepoint config`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from savepoint.cli.shapes.store import Status
from tests.cli.scene import SESSION, Scene


def test_status_of_a_new_store(cli: Scene) -> None:
    told = cli.good("status", "--json").json
    Status.model_validate(told)
    assert (told["savepoints"], told["jobs"], told["pending"]) == (0, [], [])
    assert (told["remote"], told["ledger"]) == (None, None)


def test_status_counts(cli: Scene) -> None:
    cli.created()
    cli.created()
    told = cli.good("status", "--json").json
    Status.model_validate(told)
    store = cli.paths.store
    files = [path for path in Path(store.path).rglob("*") if path.is_file()]
    assert told["bytes"] == sum(path.stat().st_size for path in files)
    assert (told["store"], told["instance"], told["savepoints"]) == (store.id, "Gabriel #215", 2)
    assert told["jobs"] == []


def test_status_tells_what_git_could_not_take(cli: Scene) -> None:
    cli.created()
    Path(cli.paths.store.recipients).write_text("nobody\n")
    assert cli("create").code == 1
    (job,) = cli.good("status", "--json").json["jobs"]
    assert (job["seq"], job["kind"], job["state"]) == (3, "commit", "QUEUED_FOR_COMMIT")
    assert "QUEUED_FOR_COMMIT up to 3" in cli.good("status").text


def test_a_person_sees_size_pending_and_that_keys_are_not_backed_up(cli: Scene) -> None:
    cli.created()
    note = {
        "v": 1,
        "session_id": SESSION,
        "transcript": None,
        "project": str(cli.project),
        "cwd": str(cli.project),
        "trigger": "auto",
        "since": 1_700_000_000,
        "reason": "out of \x1b[31mtime",
    }
    Path(cli.paths.store.pending_note(SESSION)).write_text(json.dumps(note))
    ran = cli.good("status")
    assert "savepoints  1, the newest is 2" in ran.text
    assert "kB in" in ran.text
    assert f"pending     session {SESSION}, for " in ran.text
    assert "\x1b" not in ran.text
    assert "KEYS NOT BACKED UP" in ran.err


def test_config_shows_everything_or_one_key(cli: Scene) -> None:
    assert cli.good("config", "--json").json == {
        "instance": "Gabriel #215",
        "exclude": [],
        "projects": [str(cli.project)],
        "remote": None,
        "push_wait": 5,
        "threshold": 85,
        "ledger": None,
        "program": None,
        "payer": None,
        "spend": None,
    }
    assert cli.good("config", "instance").text == "Gabriel #215\n"
    assert cli.good("config", "projects").text == f"{cli.project}\n"
    chosen = f"instance = Gabriel #215\nprojects = {cli.project}\npush_wait = 5\nthreshold = 85\n"
    assert cli.good("config").text == chosen


def test_exclude_is_added_to_and_taken_from(cli: Scene) -> None:
    cli.good("config", "exclude", "*.sql", "private/**")
    ran = cli.good("config", "exclude", "*.sql", "*.db", "--json").json
    assert ran == {"exclude": ["*.sql", "private/**", "*.db"]}
    ran = cli.good("config", "exclude", "--unset", "*.sql", "--json").json
    assert ran == {"exclude": ["private/**", "*.db"]}
    assert cli.good("config", "exclude", "--unset", "--json").json == {"exclude": []}


def test_excluded_files_are_listed_not_stored(cli: Scene) -> None:
    cli.good("config", "exclude", "*.sql")
    (cli.project / "dump.sql").write_text("x")
    cli.read_file("dump.sql")
    cli.created()
    (entry,) = cli.good("show", "--only", "files", "--json").json
    assert (entry["stored"], entry["reason"]) == (False, "is excluded by the config: *.sql")


def test_instance_by_name_or_slug(cli: Scene) -> None:
    cli.good("init", "--instance", "Raphael #1")
    assert cli.good("config", "instance", "Gabriel #215").text == "Gabriel #215\n"
    instances = os.listdir(Path(cli.home.stores, os.listdir(cli.home.stores)[0], "instances"))
    slug = next(one for one in instances if one.startswith("raphael"))
    assert cli.good("config", "instance", slug).text == "Raphael #1\n"
    ran = cli("config", "instance", "Uriel #7")
    assert ran.code == 1
    assert "Gabriel #215" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("colour",),
        ("projects", "elsewhere"),
        ("instance", "A #1", "B #2"),
        ("--unset",),
        ("instance", "--unset"),
        ("exclude", "x" * 1001),
        ("exclude", *map(str, range(1001))),
    ],
)
def test_what_cannot_be_set_is_2(cli: Scene, arguments: tuple[str, ...]) -> None:
    before = Path(cli.paths.store.config).read_bytes()
    assert cli("config", *arguments).code == 2
    assert Path(cli.paths.store.config).read_bytes() == before


def test_a_log_for_people_that_cannot_be_read_does_not_hide_the_store(cli: Scene) -> None:
    """A folder in the place of hook.log ended `status` with 40 before anything was shown."""
    cli.created()
    log = Path(cli.home.hook_log)
    log.unlink(missing_ok=True)
    log.mkdir()
    ran = cli.good("status")
    assert "savepoints  1" in ran.text
    assert "whether fires were missed cannot be told" in ran.err


def test_no_memory_is_no_defect(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("savepoint.cli.view.status.bytes_below", fail)
    ran = cli("status")
    assert ran.code == 1
    assert "there is not enough memory" in ran.err
    assert "defect" not in ran.err
