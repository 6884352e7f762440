"""What makes a commit recoverable without us: the README, and which frame makes which file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core.strict_json import dump

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.snapshot import StoredFile

README = r"""# A savepoint

This commit holds one savepoint of an AI coding agent's session, whole: the snapshot, the packs with
the content it refers to, and the index of signed records that leads up to it. With `git`, `age`,
`zstd` and the tools of any Unix it can be recovered without the program that made it.

| file | what it is |
| --- | --- |
| `logs/precompact-saves/*.json.zst.age` | the snapshot: what was saved, in JSON |
| `objects/*/*.pack.age` | packs: zstd frames, one a piece of a file |
| `RECOVER.tsv.age` | which frame of which pack makes which file |
| `logs/precompact-savepoint.jsonl` | the newest records of the index |
| `logs/precompact-savepoint/N.jsonl` | earlier ones, 32 each, from record N on |

What ends in `.age` is encrypted. It opens with the store's `age-identity.txt`, or with the key of
anybody else to whom the owner had it encrypted. A backup of the keys is JSON behind a passphrase;
its member `identity` is the text of that file, where `\n` ends a line. With `jq`, or by eye:

    (umask 077; age -d keys.age | jq -r .identity > age-identity.txt)

A commit without `RECOVER.tsv.age` holds records alone.

## Recover it by hand

Clone the branch of the instance and enter the clone. `git log` lists the savepoints; an older one
is had with `git checkout COMMIT`.

    git clone --branch savepoints/NAME URL copy
    cd copy

Then run this there, in a shell. `IDENTITY` names the file with the key.

```sh
set -eu
umask 077
: "${IDENTITY:=$HOME/age-identity.txt}"
mkdir recovered recovered/packs

# The snapshot. Its SHA-256 stands in a record of the index.
for file in logs/precompact-saves/*.json.zst.age; do
    age -d -i "$IDENTITY" "$file" | zstd -d -q > recovered/snapshot.json
done
hash=$(sha256sum < recovered/snapshot.json | cut -c 1-64)
grep -rqF "\"snapshot_hash\":\"sha256:$hash\"" logs

# The packs. Each has its SHA-256 as its name.
for file in objects/*/*.pack.age; do
    [ -e "$file" ] || continue
    name=$(basename "$file" .pack.age)
    age -d -i "$IDENTITY" -o "recovered/packs/$name" "$file"
    echo "$name  recovered/packs/$name" | sha256sum -c --quiet
done

# The files, piece by piece, as recovered/1, recovered/2 … RECOVER.tsv says which was what.
age -d -i "$IDENTITY" RECOVER.tsv.age > recovered/RECOVER.tsv
while IFS=$(printf '\t') read -r pack offset length bytes hash number path; do
    : >> "recovered/$number"
    [ "$pack" != - ] || continue
    tail -c "+$((offset + 1))" "recovered/packs/$pack" | head -c "$length" |
        zstd -d -q > recovered/piece
    echo "$hash  recovered/piece" | sha256sum -c --quiet
    cat recovered/piece >> "recovered/$number"
done < recovered/RECOVER.tsv
rm -rf recovered/packs recovered/piece
```

File 1 is the conversation, if there was one, in the agent's own format. The paths are those of the
machine that was saved: look at one before you put a file there.
""".encode()
# As commits from before 2026-12-01 have it: without the lines on a backup of the keys.
_BEGIN, _END = README.index(b" A backup of the keys"), README.index(b"A commit without")
EARLIER_README = (
    README[:_BEGIN] + b" " + README[_END:].replace(b"records alone.", b"records\nalone.", 1)
)

_NOTHING = hashlib.sha256(b"").hexdigest()


def recover_tsv(files: Iterable[StoredFile]) -> bytes:
    """A line for each piece of each file, in order: pack, offset and length of the frame in the
    opened pack, raw bytes, SHA-256, number of the file, its path in JSON. An empty file has one
    line, with `-` for a pack.
    """
    lines: list[bytes] = []
    for number, file in enumerate(files, 1):
        end = b"\t%d\t%b\n" % (number, dump(file.path))
        lines += [
            f"{one.pack}\t{one.offset}\t{one.length}\t{one.bytes}\t{one.sha256}".encode() + end
            for one in file.segments
        ]
        if not file.segments:
            lines.append(f"-\t0\t0\t0\t{_NOTHING}".encode() + end)
    return b"".join(lines)
