"""Variants of a build: the same program in surroundings that show what it should not depend on.

`pattern` and `zero` give every local array and number a first value of its own, and fill fresh memory of the heap with
bytes that the runner chooses. `delayed` lets a thread sleep now and then between a load and a store, plain or atomic,
so that a sum that two threads share is lost to one of them on a busy machine too; the compiler's instrumentation for
races says where, and what it calls is defined here. Teams of more threads than a program has are noted. `deployed` is
the program as it is.

What is ours in a build is hidden: a program's function is all that a library exports, and the runner finds our state by
the entry that a file of the ELF format states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from opsmith.targets.native.layout import DELAYED, DEPLOYED, PATTERN, ZERO
from opsmith.targets.native.signature import FUNCTION


@dataclass(frozen=True)
class Variant:
    """What a build adds to its flags, and a text in C that is linked with the program."""

    name: str = ""  # "": the program as it is
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    surroundings: str = ""


EXPORTS = f"{{ global: {FUNCTION}; local: *; }};\n"  # the linker's version script of libraries with surroundings
EXPORTS_FILE = "exports.map"

_STATE = """
#define OPSMITH_OWN __attribute__((visibility("hidden"), noinline))
static struct {
  const char *junk;
  __SIZE_TYPE__ size, place;
  unsigned threads, asked, seed;
  int stores, loads, entries;
} opsmith_state;
OPSMITH_OWN void *opsmith_entry(void) { return &opsmith_state; }
"""
_HEAP = """
extern __SIZE_TYPE__ malloc_usable_size(void *);
extern void *__real_malloc(__SIZE_TYPE__);
extern void *__real_realloc(void *, __SIZE_TYPE__);
extern void *__real_aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
extern int __real_posix_memalign(void **, __SIZE_TYPE__, __SIZE_TYPE__);
OPSMITH_OWN void opsmith_fill(char *memory, __SIZE_TYPE__ used) {
  if (!memory || !opsmith_state.size) return;
  __SIZE_TYPE__ size = malloc_usable_size(memory), place = opsmith_state.place;
  while (used < size) {
    __SIZE_TYPE__ piece = opsmith_state.size - place;
    if (piece > size - used) piece = size - used;
    __builtin_memcpy(memory + used, opsmith_state.junk + place, piece);
    used += piece;
    place = 0;
  }
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
_TEAM_START = """
extern int omp_in_parallel(void);
OPSMITH_OWN unsigned opsmith_team(unsigned asked) {
  if (asked <= opsmith_state.threads || omp_in_parallel()) return asked;  /* a team within a team has one thread */
  if (asked > opsmith_state.asked) opsmith_state.asked = asked;
  return opsmith_state.threads;
}
"""
_TEAM = """
extern {1} __real_{0}(void (*)(void *), void *, unsigned{2});
OPSMITH_OWN {1} __wrap_{0}(void (*body)(void *), void *data, unsigned threads{3}) {{
  return __real_{0}(body, data, opsmith_team(threads){4});
}}
"""
_LOOPS = ("dynamic", "guided", "nonmonotonic_dynamic", "nonmonotonic_guided", "static")  # with a size of chunks
_FREE_LOOPS = ("maybe_nonmonotonic_runtime", "nonmonotonic_runtime", "runtime")
_TEAMS = {  # what the compiler calls to start a team, by name: its result, and the types behind the number of threads
    "GOMP_parallel": ("void", ("unsigned",)),
    "GOMP_parallel_reductions": ("unsigned", ("unsigned",)),
    "GOMP_parallel_sections": ("void", ("unsigned", "unsigned")),
    **{f"GOMP_parallel_loop_{name}": ("void", (*("long",) * 4, "unsigned")) for name in _LOOPS},
    **{f"GOMP_parallel_loop_{name}": ("void", (*("long",) * 3, "unsigned")) for name in _FREE_LOOPS},
}


def _write_teams() -> str:
    return _TEAM_START + "".join(
        _TEAM.format(
            name,
            result,
            "".join(f", {type_}" for type_ in types),
            "".join(f", {type_} a{place}" for place, type_ in enumerate(types)),
            "".join(f", a{place}" for place, _ in enumerate(types)),
        )
        for name, (result, types) in _TEAMS.items()
    )


_DELAYS = """
extern int usleep(unsigned);
OPSMITH_OWN void opsmith_delay(int *left) {
  static __thread unsigned state;
  state = state * 1664525u + 1013904223u + opsmith_state.seed + (unsigned)(__UINTPTR_TYPE__)&state;
  if (state >> 29 == 0 && *left > 0 && __atomic_fetch_sub(left, 1, __ATOMIC_RELAXED) > 0) usleep(60);
}
OPSMITH_OWN void opsmith_store(void) { opsmith_delay(&opsmith_state.stores); }
OPSMITH_OWN void opsmith_load(void) { opsmith_delay(&opsmith_state.loads); }
OPSMITH_OWN void __tsan_init(void) {}
OPSMITH_OWN void __tsan_func_entry(void *caller) {  /* of a thread's part of a region too: they come one by one */
  (void)caller;
  if (__atomic_fetch_sub(&opsmith_state.entries, 1, __ATOMIC_RELAXED) > 0) usleep(opsmith_state.seed >> 20 & 255);
  opsmith_state.seed = opsmith_state.seed * 1664525u + 1013904223u;
}
OPSMITH_OWN void __tsan_func_exit(void) {}
OPSMITH_OWN void __tsan_read_range(void *place, __SIZE_TYPE__ size) { (void)place; (void)size; }
OPSMITH_OWN void __tsan_write_range(void *place, __SIZE_TYPE__ size) { (void)place; (void)size; opsmith_store(); }
OPSMITH_OWN void __tsan_atomic_thread_fence(int order) { (void)order; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
OPSMITH_OWN void __tsan_atomic_signal_fence(int order) { (void)order; __atomic_signal_fence(__ATOMIC_SEQ_CST); }
"""
_COPY = """
extern void *__real_{0}(void *, const void *, __SIZE_TYPE__);
OPSMITH_OWN void *__wrap_{0}(void *to, const void *from, __SIZE_TYPE__ size) {{
  opsmith_store();
  __real_{0}(to, from, size);
  opsmith_load();
  return to;
}}
"""
_COPIES = ("memcpy", "memmove")
_ACCESS = """
OPSMITH_OWN void __tsan_read{0}(void *place) {{ (void)place; }}
OPSMITH_OWN void __tsan_write{0}(void *place) {{ (void)place; opsmith_store(); }}
OPSMITH_OWN void __tsan_unaligned_read{0}(void *place) {{ (void)place; }}
OPSMITH_OWN void __tsan_unaligned_write{0}(void *place) {{ (void)place; opsmith_store(); }}
OPSMITH_OWN void __tsan_volatile_read{0}(void *place) {{ (void)place; }}
OPSMITH_OWN void __tsan_volatile_write{0}(void *place) {{ (void)place; opsmith_store(); }}
"""
_ATOMIC = """
OPSMITH_OWN {1} __tsan_atomic{0}_load(const volatile {1} *place, int order) {{
  (void)order;
  {1} value = __atomic_load_n(place, __ATOMIC_SEQ_CST);
  opsmith_load();
  return value;
}}
OPSMITH_OWN void __tsan_atomic{0}_store(volatile {1} *place, {1} value, int order) {{
  (void)order; opsmith_store(); __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
}}
OPSMITH_OWN {1} __tsan_atomic{0}_exchange(volatile {1} *place, {1} value, int order) {{
  (void)order; opsmith_store(); return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);
}}
OPSMITH_OWN _Bool __tsan_atomic{0}_compare_exchange_strong(volatile {1} *place, {1} *old, {1} value, int a, int b) {{
  (void)a; (void)b;
  opsmith_store();
  return __atomic_compare_exchange_n(place, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
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
    return "".join([_DELAYS, *accesses, *atomics, *updates, *(_COPY.format(name) for name in _COPIES)])


def _wrap(*names: str) -> tuple[str, ...]:
    return tuple(f"-Wl,--wrap={name}" for name in names)


@cache
def _make_variant(name: str, threads: int) -> Variant:
    """With our hooks: `name` says which."""
    first = "zero" if name == ZERO else "pattern"
    is_delayed, has_teams = name == DELAYED, threads > 1
    compile_flags = (f"-ftrivial-auto-var-init={first}", *(("-fsanitize=thread", "-U__SANITIZE_THREAD__") * is_delayed))
    hidden = (f"-Wl,--version-script={EXPORTS_FILE}", "-Wl,-e,opsmith_entry")
    link_flags = (*hidden, *_wrap(*_WRAPPED), *_wrap(*_TEAMS) * has_teams, *_wrap(*_COPIES) * is_delayed)
    text = _STATE + _HEAP + _write_teams() * has_teams + _write_hooks() * is_delayed
    return Variant(name, compile_flags, link_flags, text)


BARE = Variant()


def choose_variants(threads: int, is_full: bool = False) -> tuple[Variant, ...]:
    """Those that the passes over a program need. `is_full`: also the one that a user has."""
    names = (PATTERN, ZERO) if threads == 1 else (PATTERN, ZERO, DELAYED)
    variants = tuple(_make_variant(name, threads) for name in names)
    return (*variants, Variant(DEPLOYED)) if is_full else variants
