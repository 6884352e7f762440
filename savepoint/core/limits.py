"""Every limit of savepoint, named, with its unit. A limit that stands elsewhere is a defect."""

from __future__ import annotations

KIB = 1024  # bytes
MIB = 1024 * KIB  # bytes

# JSON that we parse strictly
JSON_DEPTH = 64  # nested arrays and objects
JSON_INTEGER_LEAST = -(2**63)  # what 64 bits hold, with a sign …
JSON_INTEGER_MOST = 2**64 - 1  # … or without: inode numbers of some file systems need all of them
JSON_INTEGER_DIGITS = 19  # characters; every integer spelled with these fits
RECORD_BYTES = 8 * KIB  # bytes of one index line without its LF
INDEX_BYTES = 8 * 1024 * MIB  # an index longer than this is not read whole
SNAPSHOT_BYTES = 8 * MIB  # bytes of one snapshot document
SMALL_DOCUMENT_BYTES = 4 * MIB  # bytes: config, stores.json, trusted heads, pending notes
SESSION_CACHE_BYTES = 64 * MIB  # bytes of sessions/<key>.json
METADATA_STRING_CHARS = 64 * KIB  # characters of one string that goes into a snapshot

# segments and packs
SEGMENT_SOFT_BYTES = 1 * MIB  # a segment ends after the first LF that makes it this long
SEGMENT_HARD_BYTES = 16 * MIB  # or at exactly this length
PACK_BYTES = 32 * MIB  # a pack that has reached this takes no further frame
PACK_SALT_BYTES = 16  # random bytes in the skippable frame that starts a pack
PACK_HEADER_BYTES = 8 + PACK_SALT_BYTES  # that frame
FRAME_BYTES = 17 * MIB  # of the longest frame: incompressible bytes and what zstd needs around them
PIECE_BYTES = 256 * KIB  # of a segment that is checked and not kept; fits a processor's cache
ZSTD_LEVEL = 3

# reading what the agent wrote
FULL_CHECK_BYTES = 64 * MIB  # a transcript up to this is hashed anew at every save
TAIL_CHECK_SEGMENTS = 2  # closed segments re-hashed before a longer one's prefix is believed
STILL_SECONDS = 0.25  # a transcript that did not grow for this long counts as flushed
STILL_WAIT_SECONDS = 2.0  # and no longer than this is waited for it
COMPANION_FILES = 10_000  # files
COMPANION_DEPTH = 8  # folders below the session's own
LOADED_FILES = 10_000  # files listed
LOADED_FILE_BYTES = 64 * MIB  # a larger loaded file is listed, not stored
LOADED_TOTAL_BYTES = 512 * MIB  # bytes of loaded files stored in one savepoint

# the user's repository
CHANGES_SECONDS = 2.0  # seconds for everything git says about the project
CHANGES_BYTES = 32 * MIB  # bytes of changes in one savepoint
CHANGES_FILES = 10_000  # files
EXCLUDE_GLOBS = 1000  # globs in a config's `exclude`; each is held against each file
EXCLUDE_GLOB_CHARS = 1000  # characters of one
GIT_OUTPUT_BYTES = 16 * MIB  # bytes read from one git process
GIT_ERROR_BYTES = 64 * KIB  # bytes kept of what it writes to stderr
GIT_REASON_CHARS = 300  # characters of a reason that git gives
GIT_INDEX_BYTES = 256 * MIB  # bytes of a repository's index
GIT_REFS_BYTES = 64 * MIB  # bytes of packed-refs
GIT_FILE_BYTES = 1 * MIB  # bytes of its other files: config, HEAD, commondir
GIT_RETRIES = 8  # times that git is asked again behind a path that it cannot judge
GIT_SYMREFS = 5  # refs that name refs, as git itself follows them

# our own repository
INDEX_CHUNK_RECORDS = 32  # records of a closed chunk of the index in a commit
COMMITS_AT_ONCE = 16  # savepoints committed by one run of git
COMMIT_RUN_BYTES = 64 * MIB  # bytes of packs after which such a run takes no further savepoint
ORPHAN_SECONDS = 0.5  # the git of a process that died is waited for, if it holds our ref
STALE_SECONDS = 60.0  # a git that has not touched its file for this long is dead or useless
RECIPIENTS = 64  # keys that a savepoint is encrypted to
KEY_LIST_BYTES = 64 * KIB  # bytes of recipients.txt and of age-identity.txt
PASSPHRASE_BYTES = 4 * KIB  # bytes of a file with the passphrase of a backup
PASSPHRASE_SHORT = 12  # characters; fewer are told to be weak: a file can be guessed at for ever
COMMIT_BYTES = 64 * KIB  # bytes of one commit object; ours have some 700
TREE_FILES = 100_000  # files of one commit
TREE_LEVELS = 8  # folders below each other; ours have 3
TREES_AT_ONCE = 256  # commits whose trees are read together
TREES_FILES = 20 * TREE_FILES  # files of all these commits
TREES_BYTES = 32 * MIB  # bytes of one level of their trees
ENCRYPTION_BYTES = 64 * KIB  # what age adds to a file: stanzas; and 16 bytes for each 64 KiB

# entries of a ledger
METADATA_BYTES = 256  # bytes of an entry's metadata
LEDGER_LOOKS = 3  # further ones at an account that is older than what was seen: an endpoint may lag
LEDGER_LOOK_SECONDS = 2.0  # between two of them
LEDGER_VERIFY_SECONDS = 60.0  # for all that one command asks a ledger
PROOF_BYTES = 64 * MIB  # bytes of a proof: some 700 for each record that leads to the anchored one
TRANSACTION_BYTES = 1232  # bytes of a transaction: what fits in one packet of IPv6
BLOCKHASH_HEIGHTS = 150  # blocks in which a transaction that names a blockhash can land
EMBEDDED_LAMPORTS = 10_000_000_000  # what whoever pays on the embedded ledger has at least
LEDGER_LAMPORTS = 10**18  # no account can hold more: there are some 6 * 10**17 in all
LEDGER_REPLY_SECONDS = 10.0  # for one reply of one endpoint, from name look-up to last byte
LEDGER_CALL_SECONDS = 30.0  # for one question, all attempts at all endpoints included
LEDGER_REPLY_BYTES = 1 * MIB  # bytes of one reply, before anything is decoded
LEDGER_RETRY_AFTER_SECONDS = 5 * 60.0  # a longer wait that an endpoint asks for counts as this
LEDGER_PAUSE_FIRST_SECONDS = 0.5  # upper end of the pause behind a first failure; each doubles it
LEDGER_PAUSE_LONGEST_SECONDS = 30.0  # and no further than this
LEDGER_BREAK_FAILURES = 5  # failures in a row; then an endpoint is not asked for …
LEDGER_BREAK_SECONDS = 10.0  # … this long
LEDGER_ATTEMPTS = 3  # at one question, for each endpoint
LEDGER_WITNESSES = 2  # endpoints that must agree about what is finalized, where there are so many
LEDGER_ENDPOINTS = 8  # URLs of one ledger
LEDGER_URL_CHARS = 2000  # characters of one
LEDGER_REASON_CHARS = 300  # characters kept of what a ledger says

# hooks (seconds from the start of the process)
HOOK_PAYLOAD_BYTES = 16 * MIB  # bytes of stdin
HOOK_PAYLOAD_SECONDS = 1.0  # for all of it, and …
HOOK_PAYLOAD_SHARE = 0.35  # … no more than this of the event's own deadline
PRECOMPACT_SECONDS = 20.0
SESSION_SECONDS = 2.0  # SessionStart and Stop
SESSION_END_SECONDS = 1.0
ALARM_MARGIN_SECONDS = 0.1  # what waits by itself gives up this long before the hook is ended
GIT_RESERVE_SECONDS = 0.5  # git is killed this long before the hook would be
PROGRESS_BYTES = 64 * MIB  # of a transcript, looked through to judge whether it is to be saved
STATUS_TAIL_BYTES = 64 * KIB  # of precompact-status.jsonl, for a status line
GREETING_CHARS = 9500  # characters that an agent takes of us when a session starts
CATCH_UP_SESSIONS = 16  # that a start of a session leaves to the worker
STOP_GROWTH_BYTES = 1 * MIB  # Stop saves when the transcript grew by this
STOP_INTERVAL_SECONDS = 15 * 60  # or when the last savepoint is this old

# locks
LOCK_WAIT_SECONDS = 15.0  # no process waits longer than this for another savepoint process
ROOTS = 1000  # roots of a store; one more with each key that is retired
LOCK_POLL_SECONDS = 0.01

# names
INSTANCE_NAME_CHARS = 64  # characters
SLUG_CHARS = 40  # characters before the key's eight
SESSION_KEY_CHARS = 64  # a session id up to this, of [A-Za-z0-9-], is its own key
SPILLED_LIST_BYTES = 256 * MIB  # bytes of a list that was too long for its snapshot

# understanding a transcript
SCAN_LINE_BYTES = 8 * MIB  # a longer line is told apart by its two ends only
SCAN_EDGE_BYTES = 64 * KIB  # of each end, kept of a line that long
SCAN_TAIL_BYTES = 2 * KIB  # how far from a line's end its type and session are looked for
SCAN_HEADS = 8  # starts of lines remembered
SCAN_SESSIONS = 64  # session ids counted one by one; the rest are summed
SCAN_SKILLS = 256  # names
SCAN_TASKS = 256  # tasks
SCAN_CALLS = 64  # file reads whose result may still name no path
SCAN_BACKTRACKS = 256  # lines parsed backwards to find the last one with a member
SCAN_STRING_CHARS = 4096  # a longer path, id or name is no path, id or name
PRIORITIES = 100  # open todos in session_state
PRIORITY_CHARS = 500  # characters of one
STATE_FILE_BYTES = 2 * MIB  # bytes of the project's session_current.json
DYNASTY_ENTRY_BYTES = 4 * MIB  # bytes of one entry that is recorded: title, Why and What
DYNASTY_FILE_BYTES = 1024 * MIB  # bytes of one file of the dynasty that are read, or appended to
DYNASTY_PAGE_BYTES = 64 * MIB  # bytes of one that is written whole: what is written can be read
DYNASTY_WAIT_SECONDS = 1.0  # a save waits no longer for a change of the dynasty
GUIDANCE_FILES = 2000  # rules, skills and agent definitions; also the names looked at in one folder
GUIDANCE_HOPS = 5  # imports that lead from a rule to a file; the client follows no more
GUIDANCE_BYTES = 1 * MIB  # of one; a longer text guides nobody

# the command line
COMMAND_SECONDS = 24 * 3600.0  # a save by hand takes the time that it takes
HOOK_LOG_BYTES = 4 * MIB  # of the end of hook.log, looked through for fires that were missed
EXPORT_LINE_BYTES = 64 * MIB  # a longer line of a transcript is exported in pieces
LISTED = 20  # entries of a list that `show` and `doctor` print; the rest is counted
DISK_LOW_BYTES = 1024 * MIB  # `doctor` warns when less is free

# resurrection
ARRIVAL_BYTES = 64 * MIB  # bytes of the list of what waits for its place
RESTORE_LINE_BYTES = 16 * MIB  # a longer record is left out of a session: no request takes it

# the worker
WORKER_LIFE_SECONDS = 15 * 60  # seconds, then it ends; the next save starts another
WORKER_AGAIN_SECONDS = 0.1  # seconds to the next round, if this one did something
WORKER_LOOK_SECONDS = 0.25  # between two looks of a sleeping worker for one that waits
WORKER_IDLE_SECONDS = 60  # seconds; it ends when nothing is due within them
RETRY_FIRST_SECONDS = 2  # seconds to the second attempt; each further pause doubles
RETRY_LONGEST_SECONDS = 5 * 60  # seconds; the next save after a network has come back tries it
RETRY_REFUSED_SECONDS = 60 * 60  # seconds until what does not succeed by itself is looked at again

# the remote
REMOTE_URL_CHARS = 2000  # characters
REMOTE_ANSWER_SECONDS = 30.0  # until it has said where its branches are
REMOTE_STALL_SECONDS = 30  # seconds of http below REMOTE_STALL_BYTES a second, then it is dead
REMOTE_STALL_BYTES = 1  # bytes a second; a server that checks a push sends 5 every 5 seconds
PUSH_STEP_BYTES = 64 * MIB  # a backlog is pushed in steps of whole commits below this
PUSH_STEP_SECONDS = 60.0  # for one step, and …
PUSH_BYTES_PER_SECOND = 128 * KIB  # … a second more for each of these bytes
FETCH_SECONDS = 10 * 60.0  # to fetch what the remote has and we have not
GLANCED_BRANCHES = 300  # branches of a remote that are asked whose they are
FETCHED_INDEX_BYTES = 256 * MIB  # bytes of an index that a remote's commit holds
REMOTE_LINE_CHARS = 300  # characters kept of what a remote says
PUSH_WAIT_SECONDS = 5  # a hook or `create` waits this long for the push (config: push_wait)
SAVE_AND_PUSH_SECONDS = 6.0  # and no longer than until this long after its own start
PUSH_POLL_SECONDS = 0.05  # between two looks at the remote-tracking ref
SYNC_LONGEST_PAUSE_SECONDS = 30.0  # between two attempts of `sync --wait`
REPACK_GIT_PACKS = 50  # git packs; from so many on the worker makes few of them
GC_AGE_SECONDS = 3600  # seconds; nothing younger is taken for left over
PENDING_SECONDS = 5 * 60.0  # seconds for one attempt of the worker: to finish a save, …
COMMIT_SECONDS = 2 * 60.0  # … to commit what was left behind, …
PUSH_SECONDS = 10 * 60.0  # … to push, …
AUDIT_SECONDS = 5 * 60.0  # … to hash a transcript anew, …
REPACK_SECONDS = 10 * 60.0  # … to make few git packs of many
READ_SECONDS = 5.0  # to ask our own repository something small
ANCHOR_SECONDS = 40.0  # … to bring an entry one step on

# anchoring
ANCHOR_POLLS_SECONDS = (0.4, 0.4, 0.8, 1.2)  # pauses between the first looks for a transaction …
ANCHOR_POLL_SECONDS = 2.0  # … and between all others, for it and for its finality
ANCHOR_HISTORY_POLLS = 5  # each such look asks for what landed long ago, too
EXPIRY_MARGIN_HEIGHTS = 5  # blocks behind its last one until a blockhash counts as expired
FEE_LAMPORTS = 5_000  # for each signature of a transaction
ENTRY_UNITS = 15_000  # compute units asked for by an entry; measured: below 4,000 …
FIRST_ENTRY_UNITS = 25_000  # … and, with its account to be made, below 8,000
PAYER_RESERVE_LAMPORTS = 2_000_000  # with so much left, the rent of a payer's account is no matter
SPEND_SECONDS = 24 * 3600  # what may be spent is counted over so long

# handoff
HANDOFF_LOG_BYTES = 64 * MIB  # bytes of the log of threads
HANDOFF_MEMORY_BYTES = 128 * MIB  # of a savepoint's threads: the log, and the files of handoffs
HANDOFF_TEXT_BYTES = 4 * KIB  # bytes of what an item, a reason or an evidence says
HANDOFF_TITLE_BYTES = 2 * KIB  # of a title without its number: a line has two
HANDOFF_TURN_BYTES = 32 * MIB  # of a transcript's end, in which a turn that goes on is looked for
HANDOFF_TURNS = 3  # turns at the end of a session whose questions and offers are candidates
HANDOFF_CANDIDATES = 1000  # candidates of one kind; the rest is one that counts them
HANDOFF_BOUND_BYTES = 4 * MIB  # bytes of a file whose row is re-pointed
HANDOFF_COMMAND_SECONDS = 10.0  # for one command of a pair that sets, or reads back, a binding
HANDOFF_ANSWER_BYTES = 4 * KIB  # bytes read of what such a command prints
HANDOFF_TOLD = 3  # reasons that a Stop tells; the rest is counted
