#!/usr/bin/env bash
# Usage: wheel_aarch64.sh [NUMPY...]
# What wheel.sh does, for aarch64 on an x86-64 Debian: in an arm64 Debian of the same release, whose programs
# qemu runs. Only the compiler is one for this processor: the kernels take it minutes as it is. The Python is that
# of the release.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD/build-wheel/arm64-root
for_target=aarch64-linux-gnu

missing=()
[ "$(id -u)" -eq 0 ] || missing+=("root: it makes a system of its own, and mounts this folder there")
command -v debootstrap >/dev/null || missing+=("debootstrap: apt-get install debootstrap")
command -v $for_target-gcc >/dev/null || missing+=("a compiler: apt-get install gcc-$for_target")
# F: the kernel has opened qemu already, and needs not find it in another root.
grep --quiet --no-messages '^flags:.*F' /proc/sys/fs/binfmt_misc/qemu-aarch64 ||
    missing+=("arm64 programs to run by themselves: apt-get install qemu-user-static binfmt-support")
if [ ${#missing[@]} -gt 0 ]; then
    echo "Missing on this system:" >&2
    printf '  %s\n' "${missing[@]}" >&2
    exit 1
fi

make_root() {
    local release mirror
    # shellcheck source=/dev/null
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $release" | head -1)
    rm -rf "$root.new"
    mkdir -p "$(dirname "$root")"
    debootstrap --arch=arm64 --variant=minbase --include=libc6-dev,python3-dev,python3-venv \
        "$release" "$root.new" "$mirror"
    mv "$root.new" "$root"
}

# This machine's compiler for arm64 finds the headers and libraries of ROOT where it finds those that it has
# here: in folders that are named after the target.
copy_compiler() {
    local gcc programs=("/usr/bin/$for_target"-*) libraries
    gcc=$(dirname "$($for_target-gcc -print-libgcc-file-name)")
    programs+=("$gcc"/{cc1,collect2,lto1,lto-wrapper})
    mapfile -t libraries < <(ldd "${programs[@]}" 2>/dev/null | grep -o '/[^ :]*\.so[^ :]*' | sort -u)
    copy "$gcc" /usr/$for_target/bin /usr/bin/$for_target-*
    copy --dereference "${libraries[@]}"
}

copy() { tar --create --absolute-names "$@" | tar --extract --directory "$root" 2>/dev/null; }

[ -e "$root/usr/bin/python3" ] || make_root
copy_compiler
# A processor without SVE: with it, products of NumPy's BLAS come out wrong under qemu 7.2, NaN among them.
export QEMU_CPU=cortex-a72
export ROOT=$root CC=$for_target-gcc AR=$for_target-gcc-ar
mkdir -p "$root$PWD"
# The mounts end with this process.
# shellcheck disable=SC2016
unshare --mount bash -euc '
    for folder in "$PWD" /dev /proc /sys; do
        mount --rbind "$folder" "$ROOT$folder"
    done
    tools/wheel.sh python3 "$@"' wheel.sh "$@"
