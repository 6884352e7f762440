"""The main job on a session that is generated here, in a folder that is removed again."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
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
    """Save by hook, save by hand, push, prove, lose the session, damage one byte, see it caught."""
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
        demo.prove()
        before = demo.transcript.read_bytes()
        demo.transcript.unlink()
        same = demo.run("show", "latest", "--only", "conversation") == before
        demo.say("rm SESSION.jsonl", f"the agent's own copy is gone: {len(before)} bytes")
        demo.say("savepoint show latest --only conversation", f"back, byte for byte: {same}")
        demo.flip_a_byte()
        demo.run("verify", "--all", expect=20)
        demo.say("savepoint verify --all", "one bit of a pack was flipped: TAMPERED, exit 20")
        demo.run("fsck", "--repair")
        demo.run("verify", "--all")
        demo.say("savepoint fsck --repair", "the pack came back from git; VERIFIED again")
        if not same:
            raise SystemExit("demo: error: the transcript came back changed")


class Demo:
    """A made-up home, project and session below one folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.remote = folder / "remote.git"
        self._lines = 0
        self.session = str(uuid.UUID(int=random.Random(1).getrandbits(128), version=4))
        self.transcript = folder / f"{self.session}.jsonl"
        self._count = 0
        self._environment = {
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
            env=self._environment,
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
            env=self._environment,
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
                    "uuid": str(uuid.UUID(int=self._count)),
                    "sessionId": self.session,
                    "message": {"role": kind, "content": text},
                }
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
                self._count += 1

    def flip_a_byte(self) -> None:
        """Change one bit in the middle of the newest pack."""
        pack = max(self.home.glob("stores/*/objects/*/*.pack"), key=lambda one: one.stat().st_mtime)
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 1
        pack.write_bytes(data)


if __name__ == "__main__":
    main()
