#!/usr/bin/env bash
# make_objects_corpus.sh OUT-DIRECTORY: makes the seeds of the objects fuzzer: libraries of less than
# 4 KB with symbols, call-frame information, inlined functions (DWARF 4 and 5, and packed), symbols
# of a kernel, mangled names. The first byte of each tells what it is (objects_fuzzer.c).
set -euo pipefail
out=$(mkdir -p "${1:?usage: make_objects_corpus.sh OUT-DIRECTORY}" && cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >library.c <<'END'
static volatile int v;
static inline __attribute__((always_inline)) int in(int n) { return v * n; }
static inline __attribute__((always_inline)) int mid(int n) { return in(n) + 1; }
__attribute__((noinline, visibility("default"))) int work(int n) { return mid(n) ^ 1; }
int root(int n) { return work(n) + work(n + 1) + v; }
END
# shellcheck disable=SC2054 # The commas are the linker's.
small=(-shared -nostdlib -fPIC -O2 -Wl,-z,noseparate-code -Wl,-z,max-page-size=64 -Wl,-z,norelro
    -Wl,--hash-style=gnu)

# library NAME FIRST-BYTE OPTION...
library() {
    local name=$1 first=$2
    shift 2
    gcc "${small[@]}" "$@" library.c -o lib.so
    objcopy -R .comment -R .gnu.hash lib.so
    { printf '%b' "\\x0$first" && cat lib.so; } >"$out/$name.bin"
    [[ $(stat -c %s "$out/$name.bin") -le 4096 ]]
}
library dwarf5 0 -g -gdwarf-5 -Wl,--build-id=none
library dwarf4 0 -g -gdwarf-4 -Wl,--build-id=none
library read 1 -g -gdwarf-5 -Wl,--build-id=none
library packed 0 -g -gdwarf-5 -gz=zlib -Wl,--build-id=none
library debug_frame 1 -g -gdwarf-4 -fno-asynchronous-unwind-tables -Wl,--build-id=none

gcc "${small[@]}" -Wl,--build-id=sha1 library.c -o lib.so
objcopy --only-keep-debug -R .eh_frame lib.so mini
xz mini
objcopy -S -R .comment -R .gnu.hash --add-section .gnu_debugdata=mini.xz lib.so
{ printf '\x00' && cat lib.so; } >"$out/debugdata.bin"

# A row of 2^28 registers, which has to be refused; and what else rows are made of.
cat >library.c <<'END'
__asm__(".globl work\nwork:\n.cfi_startproc\nnop\n.cfi_escape " ESCAPE "\nret\n.cfi_endproc\n");
END
library many_registers 0 -DESCAPE='"0x05,0xff,0xff,0xff,0x7f,0x01"' -Wl,--build-id=none
library rows 0 -DESCAPE='"0x0a,0x09,6,3,0x14,12,1,0x15,13,0x7f,0x16,14,2,0x77,8,0x07,15,0x0b"' -Wl,--build-id=none

printf '\x02%s\n' 'ffffffff81000000 T _text' >"$out/kallsyms.bin"
printf '%s\n' 'ffffffff81000100 t first' 'ffffffff81000200 D data' 'ffffffff81000200 W second' >>"$out/kallsyms.bin"
printf '%s\t%s\n' 'ffffffffc0000000 t in_module' '[mod]' 'ffffffffc0000040 t other' '[mod2]' >>"$out/kallsyms.bin"
names=(_ZN11G1Allocator21unsafe_max_tlab_allocEv _ZN3foo3barEi.constprop.0 _Z3addIiET_S0_S0_
    _ZZN3FooC4EvENKUlvE_clEv _ZN4core3fmt5write17h0123456789abcdefE _Z1fI1AIiiEEvT_S1_)
for i in "${!names[@]}"; do
    printf '\x03%s' "${names[i]}" >"$out/name-$i.bin"
done
