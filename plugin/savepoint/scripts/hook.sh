#!/bin/sh
# hook.sh EVENT: runs savepoint's hook, which reads the event on stdin. Without savepoint it does
# nothing, and says so once, when a session starts. The exit code is 0 whatever happens: another one
# would stop the agent, or be shown at each event.
unset CDPATH
own=$(dirname -- "$0")
. "$own/find.sh"
if hook=$(find_program "$own/.." savepoint-hook); then
    # The interpreter that its first line names, isolated: an agent that develops Python has variables
    # and modules of any name.
    read -r first <"$hook" || first=
    python=${first#"#!"}
    case ${python##*/} in
    python*) if [ -x "$python" ]; then exec "$python" -I "$hook" "$1"; fi ;;
    esac
    "$hook" "$1"
    exit 0
fi
told=${CLAUDE_PLUGIN_DATA:-/nowhere}/told
if [ "$1" = SessionStart ] && [ ! -e "$told" ]; then
    mkdir -p "${told%/*}" 2>/dev/null && : >"$told" 2>/dev/null
    echo '{"systemMessage": "savepoint: the plugin is here, the program is not, so nothing is saved. Install the package savepoint (pipx install, or scripts/setup in its checkout); savepoint doctor then looks at everything."}'
fi
exit 0
