"""Libraries to link with instead of the C library's own, so that the result runs on an older one.

    python tools/old_glibc.py VERSION FOLDER [PROCESSOR]     then link with -LFOLDER

Zig (ziglang of PyPI) knows the symbols of each glibc, with their versions. To link for one,
it makes libraries that have these symbols and no code, and leaves them in its cache, together with
the functions that glibc itself links statically. Other linkers can use them as well.
"""

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copy

LIBRARIES = ["libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"]
OF_LIBC = ["libc.so.6", "libc_nonshared.a", "libld.so.2"]

# Headers from glibc 2.38 on name functions that read binary numbers, too, which nothing here needs.
RENAMED = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#define RENAMED(type, name)                                         \\
    type __isoc23_##name(const char *text, char **end, int base)    \\
    {                                                               \\
        return name(text, end, base);                               \\
    }
RENAMED(long, strtol)
RENAMED(long long, strtoll)
RENAMED(unsigned long, strtoul)
RENAMED(unsigned long long, strtoull)
int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int count = vsscanf(text, format, values);
    va_end(values);
    return count;
}
"""


def make(version, folder, processor):
    """Linkers look for libx.so, where packages say -lx; libc.so is a script, as glibc's is."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        (cache / "renamed.c").write_text(RENAMED)

        def zig(*arguments):
            environment = {"ZIG_GLOBAL_CACHE_DIR": name, "ZIG_LOCAL_CACHE_DIR": name}
            command = [sys.executable, "-m", "ziglang", *arguments]
            subprocess.run(command, cwd=cache, env=environment, check=True)

        target = ["-target", f"{processor}-linux-gnu.{version}"]
        compiler = ["cc", *target, "-O2", "-fPIC", "-fvisibility=hidden"]
        zig(*compiler, "-c", "renamed.c", "-o", "renamed.o")
        zig(*compiler, "-shared", "renamed.o", "-o", "renamed.so")
        zig("ar", "rcs", "librenamed.a", "renamed.o")
        for library in [*LIBRARIES, *OF_LIBC, "librenamed.a"]:
            found = list(cache.rglob(library))
            if len(found) != 1:
                raise SystemExit(f"the cache of this zig has {len(found)} of {library}, not one")
            copy(found[0], folder / library)
    for library in LIBRARIES:
        link = folder / library[: library.index(".so") + 3]
        link.unlink(missing_ok=True)
        link.symlink_to(library)
    libc, functions, loader = (folder.resolve() / library for library in OF_LIBC)
    renamed = folder.resolve() / "librenamed.a"
    script = f"GROUP ( {libc} {functions} {renamed} AS_NEEDED ( {loader} ) )\n"
    (folder / "libc.so").write_text(script)


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]), *(sys.argv[3:] or [platform.machine()]))
