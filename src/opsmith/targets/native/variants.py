"""Variants of a build: the same program in surroundings that show what it should not depend on.

`pattern` and `zero` give every local array and number a first value of its own, and fill fresh memory of the heap with
a byte that the runner chooses. `delayed` lets a thread sleep now and then between a load and a store, so that a sum
that two threads share is lost to one of them on a busy machine too; the compiler's instrumentation for races says
where, and what it calls is defined here.
"""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.targets.native.layout import DELAYED, PATTERN, ZERO


@dataclass(frozen=True)
class Variant:
    """What a build adds to its flags, and a text in C that is linked with the program."""

    name: str = ""  # "": the program as it is
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    surroundings: str = ""


_HEAP = """
__attribute__((visibility("default"))) int opsmith_heap_fill;
extern __SIZE_TYPE__ malloc_usable_size(void *);
extern void *__real_malloc(__SIZE_TYPE__);
extern void *__real_realloc(void *, __SIZE_TYPE__);
extern void *__real_aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
extern int __real_posix_memalign(void **, __SIZE_TYPE__, __SIZE_TYPE__);
#define OPSMITH_OWN __attribute__((visibility("hidden"), noinline))
OPSMITH_OWN void opsmith_fill(char *memory, __SIZE_TYPE__ used) {
  if (memory) __builtin_memset(memory + used, opsmith_heap_fill, malloc_usable_size(memory) - used);
}
OPSMITH_OWN void *__wrap_malloc(__SIZE_TYPE__ size) {
  void *memory = __real_malloc(size);
  opsmith_fill(memory, 0);
  return memory;
}
OPSMITH_OWN void *__wrap_realloc(void *memory, __SIZE_TYPE__ size) {
  __SIZE_TYPE__ used = memory ? malloc_usable_size(memory) : 0;
  char *moved = __real_realloc(memory, size);
  if (moved && used < malloc_usable_size(moved)) opsmith_fill(moved, used);
  return moved;
}
OPSMITH_OWN void *__wrap_aligned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ size) {
  void *memory = __real_aligned_alloc(alignment, size);
  opsmith_fill(memory, 0);
  return memory;
}
OPSMITH_OWN int __wrap_posix_memalign(void **memory, __SIZE_TYPE__ alignment, __SIZE_TYPE__ size) {
  int error = __real_posix_memalign(memory, alignment, size);
  if (!error) opsmith_fill(*memory, 0);
  return error;
}
"""
_WRAPPED = ("malloc", "realloc", "aligned_alloc", "posix_memalign")
_HEAP_LINKS = tuple(f"-Wl,--wrap={name}" for name in _WRAPPED)

_DELAYS = """
extern int usleep(unsigned);
static int opsmith_delays;
OPSMITH_OWN void opsmith_delay(void) {
  static __thread unsigned state;
  state = state * 1664525u + 1013904223u + (unsigned)(__UINTPTR_TYPE__)&state;
  if (state >> 29 == 0 && __atomic_fetch_add(&opsmith_delays, 1, __ATOMIC_RELAXED) < 24) usleep(60);
}
__attribute__((visibility("default"))) void opsmith_allow_delays(void) { opsmith_delays = 0; }
OPSMITH_OWN void __tsan_init(void) {}
OPSMITH_OWN void __tsan_func_entry(void *caller) { (void)caller; }
OPSMITH_OWN void __tsan_func_exit(void) {}
OPSMITH_OWN void __tsan_read_range(void *place, __SIZE_TYPE__ size) { (void)place; (void)size; }
OPSMITH_OWN void __tsan_write_range(void *place, __SIZE_TYPE__ size) { (void)place; (void)size; opsmith_delay(); }
OPSMITH_OWN void __tsan_atomic_thread_fence(int order) { (void)order; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
OPSMITH_OWN void __tsan_atomic_signal_fence(int order) { (void)order; __atomic_signal_fence(__ATOMIC_SEQ_CST); }
"""
_ACCESS = """
OPSMITH_OWN void __tsan_read{0}(void *place) {{ (void)place; }}
OPSMITH_OWN void __tsan_write{0}(void *place) {{ (void)place; opsmith_delay(); }}
OPSMITH_OWN void __tsan_unaligned_read{0}(void *place) {{ (void)place; }}
OPSMITH_OWN void __tsan_unaligned_write{0}(void *place) {{ (void)place; opsmith_delay(); }}
OPSMITH_OWN void __tsan_volatile_read{0}(void *place) {{ (void)place; }}
OPSMITH_OWN void __tsan_volatile_write{0}(void *place) {{ (void)place; opsmith_delay(); }}
"""
_ATOMIC = """
OPSMITH_OWN {1} __tsan_atomic{0}_load(const volatile {1} *place, int order) {{
  (void)order; return __atomic_load_n(place, __ATOMIC_SEQ_CST);
}}
OPSMITH_OWN void __tsan_atomic{0}_store(volatile {1} *place, {1} value, int order) {{
  (void)order; __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
}}
OPSMITH_OWN {1} __tsan_atomic{0}_exchange(volatile {1} *place, {1} value, int order) {{
  (void)order; return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);
}}
OPSMITH_OWN _Bool __tsan_atomic{0}_compare_exchange_strong(volatile {1} *place, {1} *old, {1} value, int a, int b) {{
  (void)a; (void)b; return __atomic_compare_exchange_n(place, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}}
OPSMITH_OWN _Bool __tsan_atomic{0}_compare_exchange_weak(volatile {1} *place, {1} *old, {1} value, int a, int b) {{
  return __tsan_atomic{0}_compare_exchange_strong(place, old, value, a, b);
}}
"""
_UPDATE = """
OPSMITH_OWN {1} __tsan_atomic{0}_fetch_{2}(volatile {1} *place, {1} value, int order) {{
  (void)order; return __atomic_fetch_{2}(place, value, __ATOMIC_SEQ_CST);
}}
"""
_WIDTHS = {8: "unsigned char", 16: "unsigned short", 32: "unsigned", 64: "unsigned long"}
_UPDATES = ("add", "sub", "and", "or", "xor", "nand")


def _write_hooks() -> str:
    """All that instrumented code may call."""
    accesses = (_ACCESS.format(size) for size in (1, 2, 4, 8, 16))
    atomics = (_ATOMIC.format(width, type_) for width, type_ in _WIDTHS.items())
    updates = (_UPDATE.format(width, type_, name) for width, type_ in _WIDTHS.items() for name in _UPDATES)
    return "".join([_DELAYS, *accesses, *atomics, *updates])


_INITIALISED = "-ftrivial-auto-var-init={}"

BARE = Variant()
VARIANTS = {
    PATTERN: Variant(PATTERN, (_INITIALISED.format("pattern"),), _HEAP_LINKS, _HEAP),
    ZERO: Variant(ZERO, (_INITIALISED.format("zero"),), _HEAP_LINKS, _HEAP),
    DELAYED: Variant(
        DELAYED, (_INITIALISED.format("pattern"), "-fsanitize=thread"), _HEAP_LINKS, _HEAP + _write_hooks()
    ),
}


def choose_variants(threads: int) -> tuple[Variant, ...]:
    """Those that the passes over a program need."""
    names = (PATTERN, ZERO) if threads == 1 else (PATTERN, ZERO, DELAYED)
    return tuple(VARIANTS[name] for name in names)
