#!/usr/bin/env bash
# Usage: configure.sh BUILD_DIRECTORY [MESON_OPTION...]: meson setup, whether or not the directory
# is configured already. One that another Python configured is made anew: Meson keeps its path.
set -euo pipefail

build=$1
shift
python=$(command -v python)
if [ -e "$build/meson-private/coredata.dat" ] &&
    [ "$(cat "$build/python" 2>/dev/null)" = "$python" ]; then
    meson setup --reconfigure "$build" "$@"
else
    rm -rf "$build"
    meson setup "$build" "$@"
    echo "$python" >"$build/python"
fi
