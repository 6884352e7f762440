"""The main job on a session that is generated here, in a folder that is removed again."""

import json
import os
import random
import subprocess
import sys
import tempfile
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
    """Save by hook, save by hand, prove, damage one byte, see it caught."""
    with tempfile.TemporaryDirectory(prefix="savepoint-demo-") as folder:
        demo = Demo(Path(folder))
        demo.say("1. a project with a git repository, and a session of 2,000 records")
        demo.git("init", "-q")
        (demo.project / "a.py").write_text("print('hello')\n")
        demo.write_records(2_000)
        demo.run("init", "--instance", "Demo #1")
        demo.say("2. the agent is about to compact: its hook fires")
        demo.fire()
        demo.say("3. the session goes on, and is saved by hand")
        demo.write_records(500)
        demo.run("create", "--transcript", str(demo.transcript))
        demo.run("list")
        demo.say("4. proof: every byte, signature and link")
        demo.run("verify", "--all")
        demo.say("5. the transcript is deleted; it comes back byte for byte")
        before = demo.transcript.read_bytes()
        demo.transcript.unlink()
        same = demo.output("show", "latest", "--only", "conversation") == before
        demo.say(f"   {len(before)} bytes, the same: {same}")
        demo.say("6. somebody changes one byte of a pack")
        demo.flip_a_byte()
        code = demo.run("verify", "--all", expect=20)
        demo.say(f"   caught: exit code {code}")
        if not same:
            raise SystemExit("demo: error: the transcript came back changed")


class Demo:
    """A made-up home, project and session below one folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.session = str(uuid.UUID(int=random.Random(1).getrandbits(128), version=4))
        self.transcript = folder / f"{self.session}.jsonl"
        self._count = 0
        self._environment = {
            **os.environ,
            "SAVEPOINT_HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        }

    def say(self, line: str) -> None:
        """A line of the story."""
        print(line, flush=True)

    def git(self, *args: str) -> None:
        """Run git in the project."""
        subprocess.run(["git", *args], cwd=self.project, check=True)

    def run(self, *args: str, expect: int = 0) -> int:
        """Run savepoint as a user does; stop the demo at another exit code than expected."""
        print(
            f"$ savepoint {' '.join(args)}".replace(str(self.transcript), "SESSION.jsonl"),
            flush=True,
        )
        done = self._savepoint(*args)
        for line in (done.stdout + done.stderr).decode().splitlines():
            print("  ", line)
        if done.returncode != expect:
            raise SystemExit(f"demo: error: exit code {done.returncode}, expected {expect}")
        return done.returncode

    def output(self, *args: str) -> bytes:
        """What savepoint prints, as bytes."""
        return self._savepoint(*args).stdout

    def _savepoint(self, *args: str) -> "subprocess.CompletedProcess[bytes]":
        command = [BIN / "savepoint", *args]
        return subprocess.run(
            command, cwd=self.project, env=self._environment, capture_output=True, check=False
        )

    def fire(self) -> None:
        """What the agent does before it compacts."""
        payload = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": "PreCompact",
            "trigger": "manual",
        }
        command = [BIN / "python", "-I", BIN / "savepoint-hook", "PreCompact"]
        subprocess.run(
            command,
            cwd=self.project,
            env=self._environment,
            input=json.dumps(payload).encode(),
            check=True,
        )

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
