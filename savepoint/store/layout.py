"""Where everything is kept below $SAVEPOINT_HOME (docs/format.md)."""

from __future__ import annotations

from os.path import join

from savepoint.core import spelling
from savepoint.core.named import NamedTuple

SNAPSHOT_FOLDER = "logs/precompact-saves"
INDEX_FILE = "logs/precompact-savepoint.jsonl"
DYNASTY = "dynasty"  # folder of a store with what is remembered
THREADS = "handoff"  # of a store: the log of its threads; name of that log's trusted head
SET_ASIDE = ".damaged-"  # in the name of a repository, or an index, that a repair has replaced


class Home(NamedTuple):
    """The folder of all stores of a user."""

    path: str

    @property
    def stores_file(self) -> str:
        """Cache: project folder → store."""
        return join(self.path, "stores.json")

    @property
    def hook_log(self) -> str:
        """Fires that found no store or made one."""
        return join(self.path, "hook.log")

    @property
    def installed(self) -> str:
        """The agent's settings as they were before `install` added to them."""
        return join(self.path, "installed.json")

    @property
    def lock(self) -> str:
        """Held while a store begins, or a folder changes its store."""
        return join(self.path, "stores.lock")

    @property
    def stores(self) -> str:
        """One folder a store."""
        return join(self.path, "stores")

    @property
    def payer(self) -> str:
        """Who pays for entries on a ledger, unless the config names another: a Solana keypair."""
        return join(self.path, "keys", "payer.json")

    def store(self, store_id: str) -> Store:
        """The store of that id, whether it exists or not."""
        return Store(self.path, store_id)


class Store(NamedTuple):
    """One project's savepoints."""

    home: str
    id: str  # 16 random bytes, hex

    @property
    def path(self) -> str:
        """The store's folder."""
        return join(self.home, "stores", self.id)

    @property
    def config(self) -> str:
        """Written by `savepoint config`; never read from the project's tree."""
        return join(self.path, "config.json")

    @property
    def instances(self) -> str:
        """One folder an instance."""
        return join(self.path, "instances")

    @property
    def lock(self) -> str:
        """Held while a record is added."""
        return join(self.path, "lock")

    @property
    def saving(self) -> str:
        """Held shared by each save from its first pack to its record; alone by who removes packs
        or rewrites an index. One descriptor, however many sessions there ever were.
        """
        return join(self.path, "saving.lock")

    @property
    def objects(self) -> str:
        """Packs, by their first two digits."""
        return join(self.path, "objects")

    @property
    def sessions(self) -> str:
        """Caches and locks of sessions."""
        return join(self.path, "sessions")

    @property
    def pending(self) -> str:
        """What a deadline or a missing key left."""
        return join(self.path, "pending")

    @property
    def outbox(self) -> str:
        """The worker's alone: attempts at jobs, transactions that were prepared."""
        return join(self.path, "outbox.db")

    @property
    def ledger_db(self) -> str:
        """The embedded ledger: its accounts and transactions."""
        return join(self.path, "ledger.db")

    @property
    def worker_lock(self) -> str:
        """Held by the worker at work."""
        return join(self.path, "worker.lock")

    @property
    def worker_queue(self) -> str:
        """Held by the one that waits for it to end."""
        return join(self.path, "worker.next")

    @property
    def restored(self) -> str:
        """What came back of savepoints, a folder each, where no other was named for it."""
        return join(self.path, "restored")

    @property
    def scratch(self) -> str:
        """Private copies of the user's git index while it is read."""
        return join(self.path, "scratch")

    @property
    def keys(self) -> str:
        """The only folder with secrets."""
        return join(self.home, "keys", self.id)

    @property
    def root_seed(self) -> str:
        """32 random bytes: the only signing secret."""
        return join(self.keys, "root.seed")

    @property
    def repository(self) -> str:
        """Layer 2: a bare git repository of our own."""
        return join(self.path, "repo.git")

    @property
    def age_identity(self) -> str:
        """Opens what was encrypted for git."""
        return join(self.keys, "age-identity.txt")

    @property
    def recipients(self) -> str:
        """Whom it is encrypted to: what `age -R` takes."""
        return join(self.keys, "recipients.txt")

    @property
    def backup_note(self) -> str:
        """That the keys were backed up: when, and which."""
        return join(self.keys, "backup.json")

    def pack(self, name: str) -> str:
        """The pack of that SHA-256."""
        return join(self.objects, name[:2], name + ".pack")

    def session(self, key: str) -> str:
        """Cache of a session."""
        return join(self.sessions, key + ".json")

    def session_lock(self, key: str) -> str:
        """Held from the first read of a session's files to its record."""
        return join(self.sessions, key + ".lock")

    def session_guidance(self, key: str) -> str:
        """What a session started with."""
        return join(self.sessions, key + ".guidance.json")

    def session_context(self, key: str) -> str:
        """What the agent told its status line of a session."""
        return join(self.sessions, key + ".context.json")

    def session_alarm(self, key: str) -> str:
        """That a session has reached its threshold."""
        return join(self.sessions, key + ".alarm.json")

    def pending_note(self, key: str) -> str:
        """What is to be finished for a session."""
        return join(self.pending, key + ".json")

    def instance(self, slug: str) -> InstancePaths:
        """The files of an instance."""
        return InstancePaths(self, slug)


class InstancePaths(NamedTuple):
    """What belongs to one instance of a store."""

    store: Store
    slug: str

    @property
    def path(self) -> str:
        """Folder whose relative paths stand in records and commits."""
        return join(self.store.instances, self.slug)

    @property
    def index_file(self) -> str:
        """The signed records."""
        return join(self.path, INDEX_FILE)

    @property
    def snapshots(self) -> str:
        """The snapshot files."""
        return join(self.path, SNAPSHOT_FOLDER)

    @property
    def status_log(self) -> str:
        """What became of each savepoint, for people."""
        return join(self.path, "logs/precompact-status.jsonl")

    @property
    def continuity_log(self) -> str:
        """One human-readable line an event."""
        return join(self.path, "logs/consciousness_continuity.log")

    @property
    def forks(self) -> str:
        """Indexes that were set aside for the remote's."""
        return join(self.path, "logs/forks")

    @property
    def bootstrap(self) -> str:
        """Of a successor: ids, keys, nonces, hashes; public."""
        return join(self.path, "BOOTSTRAP_VERIFICATION.json")

    @property
    def lineage(self) -> str:
        """The ancestors, as a text that nobody has verified."""
        return join(self.path, "lineage.txt")

    @property
    def arrival(self) -> str:
        """Of a successor: what its resurrection has still to put in its place."""
        return join(self.path, "arrival.json")

    @property
    def border(self) -> str:
        """Of a history that was fetched without its beginning: the first savepoint that is here."""
        return join(self.path, "border.json")

    @property
    def authority(self) -> str:
        """The derived key, a Solana keypair file."""
        return join(self.store.keys, self.slug + ".json")

    @property
    def trusted(self) -> str:
        """The highest state ever seen; outside the store, which may be rolled back."""
        return join(self.store.home, "trusted", self.store.id, self.slug + ".json")


def session_key(session_id: str) -> str:
    """The name of a session in files and records: its id, or the SHA-256 of an odd one."""
    if spelling.is_session_key(session_id):
        return session_id
    import hashlib  # hardly ever: ids are UUIDs

    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
