#!/usr/bin/env bash
# Usage: check_system.sh PYTHON [TOOL...]
# Names what the system lacks, with the Debian command that installs it: a compiler's or pip's own
# message would come late and say less.
set -euo pipefail

python=$1
shift
missing=()
works() { "$@" >/dev/null 2>&1; }

works command -v cc || missing+=("a C compiler: apt-get install gcc libc6-dev")
if ! works command -v "$python"; then
    missing+=("$python: apt-get install python3 python3-venv python3-dev")
elif ! works "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    missing+=("Python 3.10 or later, which $python is not: apt-get install python3, or make PYTHON=...")
else
    works "$python" -c 'import ensurepip, venv' ||
        missing+=("venv for $python: apt-get install python3-venv")
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -e "$headers/Python.h" ] ||
        missing+=("the headers of $python: apt-get install python3-dev")
fi
for tool in "$@"; do
    works command -v "$tool" || missing+=("$tool: apt-get install $tool")
done

if [ ${#missing[@]} -gt 0 ]; then
    echo "Missing on this system:" >&2
    printf '  %s\n' "${missing[@]}" >&2
    exit 1
fi
