"""The main job on a session that is generated here, in a folder that is removed again."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing
from pathlib import Path

BIN = Path(sys.executable).parent
WORDS = [
    "the",
    "agent",
    "reads",
    "a",
    "file",
    "and",
    "thinks",
    "about",
    "locks",
    "and",
    "then",
    "writes",
    "a",
    "test",
    "for",
    "the",
    "parser",
]


def main() -> None:
    """Save by hook and by hand, push, anchor, prove, damage each place, lose all, bring it back."""
    with tempfile.TemporaryDirectory(prefix="savepoint-demo-") as folder:
        demo = Demo(Path(folder))
        demo.make_project()
        demo.write_records(2_000)
        demo.run("init", "--instance", "Demo #1")
        demo.say("savepoint init", "a store, a key and an age identity, outside the project")
        demo.run("config", "remote", str(demo.remote))
        demo.say("savepoint config remote …", "a bare git repository beside it, chosen by you")
        seconds = demo.fire()
        demo.say("savepoint-hook PreCompact", f"the agent is about to compact: {seconds:.2f} s")
        demo.write_records(500)
        made = demo.created()
        demo.say("savepoint create", f"number {made['seq']} by hand: {made['layer_2_status']}")
        demo.run("sync", "--wait")
        demo.say("savepoint sync --wait", "anchored on the embedded ledger of this machine")
        demo.prove()
        for place in demo.places():
            demo.show_damage(place)
        demo.pack().change()
        demo.run("fsck", "--repair")
        demo.run("verify", "--all")
        demo.say("savepoint fsck --repair", "a damaged pack came back from git; VERIFIED again")
        demo.back_up()
        before = demo.transcript.read_bytes()
        demo.lose_everything()
        same = demo.bootstrap() == before
        demo.rest()
        demo.say("cmp OLD NEW", f"the conversation is back, byte for byte: {same}")
        if not same:
            raise SystemExit("demo: error: the transcript came back changed")


class File:
    """A file of which one bit can be flipped, and flipped back."""

    def __init__(self, name: str, witness: str, path: Path) -> None:
        self.name = name
        self.witness = witness  # who must notice
        self._path = path

    def change(self) -> None:
        """One bit in its middle; git writes its files read-only."""
        data = bytearray(self._path.read_bytes())
        data[len(data) // 2] ^= 1
        self._path.chmod(0o600)
        self._path.write_bytes(data)


class Account(File):
    """The newest entry, in the file of the embedded ledger: one bit of its snapshot hash."""

    def change(self) -> None:
        """Where a cluster would have it, nobody could."""
        with closing(sqlite3.connect(self._path)) as db, db:
            found = "SELECT address, data FROM accounts WHERE length(data) = 465"
            ((address, data),) = db.execute(found).fetchall()
            changed = data[:100] + bytes([data[100] ^ 1]) + data[101:]
            db.execute("UPDATE accounts SET data = ? WHERE address = ?", (changed, address))


class Demo:
    """A made-up home, project and session below one folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.remote = folder / "remote.git"
        self._lines = 0
        self.session = str(uuid.UUID(int=random.Random(1).getrandbits(128), version=4))
        (folder / "claude").mkdir()
        self.transcript = folder / "claude" / f"{self.session}.jsonl"
        self.keys = folder / "keys.age"
        self.passphrase = folder / "passphrase"
        self._count = 0
        self.environment = {
            **os.environ,
            "SAVEPOINT_HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        }

    def say(self, command: str, told: str) -> None:
        """A line of the story."""
        self._lines += 1
        print(f"{self._lines:2}. {command:42} {told}", flush=True)

    def make_project(self) -> None:
        """A git repository with a file, and a bare one to push savepoints to."""
        self._git("init", "--quiet", str(self.project))
        self._git("init", "--quiet", "--bare", str(self.remote))
        (self.project / "a.py").write_text("print('hello')\n")

    def _git(self, *args: str) -> None:
        subprocess.run(["git", *args], cwd=self.project, check=True)  # noqa: S607  # a user's git

    def run(self, *args: str, expect: int = 0) -> bytes:
        """Run savepoint as a user does and give what it prints; another exit code ends the demo."""
        done = subprocess.run(
            [BIN / "savepoint", *args],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            check=False,
        )
        if done.returncode != expect:
            told = (done.stdout + done.stderr).decode()
            raise SystemExit(f"demo: error: savepoint {args[0]}: {done.returncode}\n{told}")
        return done.stdout

    def created(self) -> dict[str, object]:
        """Save by hand."""
        out = self.run("create", "--transcript", str(self.transcript), "--json")
        made: dict[str, object] = json.loads(out)
        return made

    def prove(self) -> None:
        """Check every witness of every savepoint."""
        report = json.loads(self.run("verify", "--all", "--json"))
        witnesses = report["savepoints"][-1]["witnesses"]
        told = ", ".join(f"{name} {one['verdict']}" for name, one in witnesses.items())
        self.say("savepoint verify --all", told)

    def back_up(self) -> None:
        """The keys in one file, under a passphrase."""
        self.passphrase.write_text("made up for the demo\n")
        self.passphrase.chmod(0o600)
        given = ("-o", str(self.keys), "--passphrase-file", str(self.passphrase))
        self.run("keys", "backup", *given)
        self.say("savepoint keys backup -o KEYS", "one file, sealed with a passphrase")

    def lose_everything(self) -> None:
        """Project, agent's folder and home: what is left is the remote, and the file of keys."""
        self.rest()
        for lost in (self.project, self.home, self.transcript.parent):
            shutil.rmtree(lost)
        self.project.mkdir()
        self.say("rm -rf PROJECT ~/.claude ~/.savepoint", "all is gone but the remote and KEYS")

    def rest(self) -> None:
        """Wait for the worker: it would write into a folder that is being removed."""
        while json.loads(self.run("worker", "--status", "--json"))["running"]:
            time.sleep(0.05)

    def bootstrap(self) -> bytes:
        """Bring the newest savepoint back; what the agent would go on from."""
        given = ("--keys", str(self.keys), "--passphrase-file", str(self.passphrase))
        out = self.run("bootstrap", "--remote", str(self.remote), *given, "--json")
        back = json.loads(out)
        self.say(
            "savepoint bootstrap --remote … --keys KEYS",
            f"{back['recovered']['messages']} messages; {back['instance']} goes on from "
            f"{back['previous_instance']} with `claude --resume {back['session']['id'][:8]}…`",
        )
        return Path(back["session"]["file"]).read_bytes()

    def fire(self) -> float:
        """What the agent does before it compacts. Seconds that it took, the push included."""
        payload = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": "PreCompact",
            "trigger": "manual",
        }
        command = [str(BIN / "python"), "-I", str(BIN / "savepoint-hook"), "PreCompact"]
        begun = time.monotonic()
        subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            input=json.dumps(payload).encode(),
            check=True,
        )
        return time.monotonic() - begun

    def write_records(self, count: int) -> None:
        """Let the agent go on for `count` records."""
        words = random.Random(self._count)
        with self.transcript.open("a") as file:
            for _ in range(count):
                kind = "assistant" if self._count % 2 else "user"
                text = " ".join(words.choices(WORDS, k=60))
                record = {
                    "type": kind,
                    "uuid": str(uuid.UUID(int=self._count + 1)),
                    "parentUuid": str(uuid.UUID(int=self._count)) if self._count else None,
                    "sessionId": self.session,
                    "message": {"role": kind, "content": text},
                }
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
                self._count += 1

    def pack(self) -> File:
        """The newest one."""
        return File("pack", "local", self._newest("objects/*/*.pack"))

    def places(self) -> list[File]:
        """Each place that holds something of the newest savepoint."""
        return [
            File("snapshot", "local", self._newest("instances/*/logs/precompact-saves/*.json")),
            self.pack(),
            File("record", "local", self._newest("instances/*/logs/precompact-savepoint.jsonl")),
            File("git object", "git", self._newest("repo.git/objects/pack/*.pack")),
            Account("account", "chain", self._newest("ledger.db")),
        ]

    def show_damage(self, place: File) -> None:
        """Flip one bit there, see it caught by the right witness, and flip it back."""
        place.change()
        report = json.loads(self.run("verify", "--all", "--json", expect=20))
        verdicts = {one["witnesses"][place.witness]["verdict"] for one in report["savepoints"]}
        if "TAMPERED" not in verdicts:
            raise SystemExit(f"demo: error: {place.name}: {report['verdict']}")
        place.change()
        told = f"{report['verdict']}, exit 20, by the {place.witness} witness"
        self.say(f"one bit of the {place.name} flipped", told)

    def _newest(self, pattern: str) -> Path:
        found = self.home.glob(f"stores/*/{pattern}")
        return max(found, key=lambda one: one.stat().st_mtime_ns)


if __name__ == "__main__":
    main()
