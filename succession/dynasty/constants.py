"""The succession protocol's constants under the specification's names, and bounds of our own."""

from __future__ import annotations

from savepoint.core import limits

VAULT_MAX_LINES = 50  # lines of vault.md: each counts
VAULT_PROMOTION_SESSIONS = 3  # successions in whose reign an entry was referenced
DEVIANT_NUDGE_SESSIONS = 5  # sessions until a deviant is nudged about
DEVIANT_RESOLVE_SESSIONS = 10  # sessions until its resolution is asked for
DUSK_LAYER1_MAX = 100  # lines of entries as written
DUSK_LAYER2_MAX = 50  # lines
DUSK_LAYER3_MAX = 30  # lines
DAY_ENTRY_LIMIT = 30  # entries; more suggest a succession
SESSIONS_BEFORE_SUCCESSION = 5  # sessions
STALE_RATIO_THRESHOLD = 0.6  # of the entries of Day
REF_TIER1_SCORE = 2  # points: the very path
REF_TIER2_SCORE = 1  # points: its directory
REF_TIER3_SCORE = 1  # points: words
REF_TIER3_MIN_KEYWORDS = 2  # words that must be shared

EPITHET_KEYWORDS = {
    "the Builder": ("feature", "add", "create", "new", "implement", "build"),
    "the Gatekeeper": ("auth", "security", "permission", "token", "jwt", "csrf", "cors"),
    "the Debugger": ("fix", "bug", "debug", "error", "issue", "patch", "resolve"),
    "the Reformer": ("refactor", "rename", "restructure", "clean", "simplify", "extract"),
    "the Painter": ("ui", "css", "style", "layout", "component", "design", "theme"),
    "the Chronicler": ("database", "migration", "schema", "prisma", "sql", "model"),
    "the Sentinel": ("test", "spec", "assert", "coverage", "vitest", "jest", "playwright"),
    "the Engineer": ("ci", "cd", "deploy", "docker", "pipeline", "infra", "config"),
    "the Ambassador": ("api", "endpoint", "route", "controller", "rest", "graphql"),
    "the Scribe": ("doc", "readme", "comment", "jsdoc", "typedoc"),
    "the Swift": ("performance", "optimize", "cache", "speed", "lazy", "bundle"),
}

# What the specification leaves to us (succession-decisions.md), and what keeps it all bounded.
RULER = "Claude"  # name of the rulers where dynasty.json has none
LAYERS_MAX = (DUSK_LAYER1_MAX, DUSK_LAYER2_MAX, DUSK_LAYER3_MAX)
DETAILED_REF = 3  # an entry with this score keeps its whole text in Layer 1
LAYER_CHARS = 4 * 1024 * 1024  # characters of a layer, decrees apart: Dusk can always be read again
LAYER3_SUCCESSIONS = 3  # in Layer 3 without a reference, then it goes to the lineage
DECREE_SESSIONS = 2  # sessions that referenced a decision: it is a decree then
STALE_SESSIONS = 2  # counted sessions that an entry is old before it can be stale
ONE_LINE_CHARS = 120  # characters of a one-liner
COMPRESSED_CHARS = 60  # characters of a compressed one
WISDOM_ENTRIES = 10  # entries of Dusk that Dawn takes along
WORD_LETTERS = 4  # of a word that counts for a match
BAR_CELLS = 16  # of the vault in the ceremony
TITLE_CHARS = 200  # characters of a title
SEARCHED_CHARS = 64 * 1024  # characters of an entry in which paths and words are looked for
BRIEFING_CHARS = 8000  # characters; above 10,000 the client shows a preview alone (claude-e2e.md 5)
COMMITS_SHOWN = 5  # commits in Dawn
COMMITS_READ = 100  # commits looked through for those since the last look
PATHS_KEPT = 20  # paths of an entry that are remembered when its text is compressed
PATHS_SHOWN = 20  # paths in an observation
LIST_NAMES = 3  # names in one line
SESSIONS_KEPT = 64  # sessions whose place in their transcript is known
CALLS_KEPT = 8192  # ids of tool calls that were counted
TRANSCRIPT_BYTES = 64 * 1024 * 1024  # of a transcript, read at one Stop; older ones are passed over
FILE_BYTES = limits.DYNASTY_FILE_BYTES  # of one file of the dynasty
BUNDLE_BYTES = 4 * FILE_BYTES  # of all its files together
SAVEPOINTS_LOOKED_AT = 200  # the last ones, for one that has a broken dynasty whole
GIT_SECONDS = 2.0  # seconds to list commits
