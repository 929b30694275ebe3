#!/usr/bin/env bash
# Usage: check_tables.sh BUILD_DIRECTORY [TOOL_PREFIX], for example: build-aarch64 aarch64-linux-gnu-
# Each kernel library must define its table, and no global symbol without the name of its instruction
# set: of two copies of a function that are compiled with different flags, the linker keeps one, and
# older processors would meet instructions that they lack. And nothing element-wise may be fused: a*b+c would then round differently per
# instruction set. Products of matrices are, where they fuse, exact or fused by BLAS as well; so is linear algebra.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -d "$1" ]; then
    echo "usage: $0 BUILD_DIRECTORY [TOOL_PREFIX]" >&2
    exit 2
fi
prefix=${2-}
status=0
checked=0
for library in "$1"/src/kernels/lib{kernels,linalg,matmul}_*.a; do
    [ -e "$library" ] || continue
    table=$(basename "$library" .a)
    table=${table#lib}
    symbols=$("${prefix}nm" --extern-only --defined-only --format=posix "$library" |
        awk 'NF > 1 { print $1 }')
    unnamed=$(grep -v "_${table#*_}\$" <<<"$symbols" || true)
    if [ -n "$unnamed" ] || ! grep -qx "$table" <<<"$symbols"; then
        printf '%s lacks %s, or its instruction set in a name:\n%s\n' "$library" "$table" "$unnamed" >&2
        status=1
    fi
    checked=$((checked + 1))
    [ "${table%%_*}" = kernels ] || continue
    # A failing objdump must not pass for code without fused instructions.
    code=$("${prefix}objdump" --disassemble --no-show-raw-insn "$library")
    if fused=$(grep -E '\b(vfn?m(add|sub)|fn?m(add|sub|la|ls))[0-9a-z]*\b' <<<"$code"); then
        printf '%s fuses multiplications with additions:\n%s\n' "$library" "$fused" >&2
        status=1
    fi
done
if [ "$checked" -eq 0 ]; then
    echo "no kernel library in $1/src/kernels" >&2
    exit 2
fi
[ "$status" -ne 0 ] || echo "$checked kernel libraries: every symbol of one instruction set, nothing element-wise fused"
exit "$status"
