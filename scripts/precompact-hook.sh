#!/bin/sh
# The specification's hook: saves the state before compaction. $1 is the utilisation of the context
# in percent. Exit codes: scripts/precompact_skill.py, which this calls with savepoint's own Python.
unset CDPATH
scripts=$(cd -- "$(dirname -- "$0")" && pwd -P) || exit 2
python=$scripts/../.venv/bin/python
if [ ! -x "$python" ]; then
    echo "savepoint: error: there is no $python" >&2
    echo "savepoint: hint: run $scripts/setup" >&2
    # An agent is never kept from compacting: 2 would do that.
    if [ ! -t 0 ] && [ -n "$(head -c 1)" ]; then exit 0; fi
    exit 2
fi
exec "$python" -I "$scripts/precompact_skill.py" ${1:+--context-utilization "$1"}
