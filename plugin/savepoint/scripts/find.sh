# To be sourced: where a program of savepoint is. In PATH, but not in this plugin's own bin, which the
# agent puts there; where pipx puts it; in the checkout that this plugin is part of.
find_program() {
    plugin=$(cd -- "$1" && pwd -P) || return 1
    old_ifs=$IFS
    IFS=:
    for folder in $PATH "${HOME:-/}/.local/bin" "$plugin/../../.venv/bin"; do
        if [ -x "$folder/$2" ] && [ "$(cd -- "$folder" && pwd -P)" != "$plugin/bin" ]; then
            IFS=$old_ifs
            echo "$folder/$2"
            return 0
        fi
    done
    IFS=$old_ifs
    return 1
}
