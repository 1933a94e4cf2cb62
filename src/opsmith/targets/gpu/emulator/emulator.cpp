// The runtime under a CUDA program that was compiled as C++: runs blocks one after another, the threads of a block as
// fibers, and looks at every access to memory. What it finds first ends the run. Linked into each program's library;
// the program may overwrite it, and can by that only refuse itself or compute other outputs.
//
// A record of an access says in which phase it was. Phases count up, at every block and at every barrier of a block; so
// what lies in an older phase of the same block is ordered before. Within a phase, __syncwarp orders lanes of a warp:
// each lane knows up to which clock it is ordered behind every other one. Between blocks of a launch there is no order
// but that of fence + atomic, then atomic.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define RETURN ((uint32_t)((uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start))
#define RARE(x) __builtin_expect(!!(x), 0)

extern "C" char __ehdr_start[], opsmith_shared_begin[], opsmith_shared_end[], opsmith_device_begin[],
    opsmith_device_end[], opsmith_guards_begin[], opsmith_guards_end[], _end[];

extern "C" {
__attribute__((visibility("hidden"), section(".bss.opsmith_dynamic"), aligned(1024))) char
    opsmith_dynamic_memory[256 << 10];

// What programs know as constants, of a type that the dialect says: those of the thread that runs now.
#define BUILTIN __attribute__((visibility("hidden"), aligned(64)))
BUILTIN uint32_t opsmith_thread_index[3], opsmith_block_index[3], opsmith_block_size[3], opsmith_grid_size[3];
BUILTIN int opsmith_warp_size = 32;
}

namespace {

const uint32_t THREADS = 1024, WARPS = 32, LINE = 0x80000000u;  // LINE: a line stands in place of an address of code
const uint64_t PAGE = 1 << 16, STACK = 256 << 10, GUARD = 4096, DYNAMIC = 256 << 10, ARENA = 1ull << 30,
               STACKS = 1024 * (STACK + GUARD);

// -- findings

enum FindingKind {
  NONE, RACE, UNINITIALISED, OUTSIDE, CONSTANT, DIVERGENT, WAITING, NOT_IN_MASK, MISALIGNED, BOUNDS, STOPPED, FOREIGN,
  SPINNING, LIMIT, SUSPICION, READ_ONLY
};

struct Finding {
  uint32_t kind, place, other_place, thread, other_thread, block, other_block, size;
  uint32_t is_writing, other_is_writing, region, detail, mask, other_detail;  // writing: 0 reads, 1 writes, 2 atomically
  int64_t offset, value;
};
Finding finding, suspicion;

// -- memory

enum RegionKind { NOWHERE, OWN_STACK, INPUT, SHARED, WRITABLE, DEVICE };

struct Cell {
  uint32_t wphase, wplace;
  uint16_t wthread, wclock;
  uint32_t rphase, rplace;
  uint16_t rthread, rclock;
  uint32_t rlanes;
  uint16_t rother, flags;
};
enum { MANY_WARPS = 1, ATOMIC = 2, WRITER_ATOMIC = 4 };

struct Region {
  uint64_t start, end;
  Cell *cells;
  uint32_t kind, shift;
  uint32_t birth;  // the phase from which on an entry must have been written to be read
  uint32_t since;  // and from which on two accesses may be without order
  uint32_t *read_only;  // by cell: where this launch read it through the cache that nobody may write behind; 0: nowhere
};
const uint32_t MOST_REGIONS = 1024;
Region regions[MOST_REGIONS];
uint32_t region_count, first_array;
enum { NO_REGION, STACK_REGION, DYNAMIC_REGION, DEVICE_REGION, FIRST_SHARED };

char *arena, *stacks;
uint64_t arena_used;
uint16_t owners[ARENA / PAGE], *shared_owners;
char *device_copy;

struct Chunk { char *start; uint64_t size; };
Chunk chunks[256];
uint32_t chunk_count, chunk_now;
uint64_t chunk_used;

void *map_memory(uint64_t size, char *wish = 0) {
  void *memory = mmap(wish, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

// Cells of an earlier draw have earlier phases, so that they need not be cleared.
Cell *take_cells(uint64_t count) {
  uint64_t size = (count + 1) * sizeof(Cell);
  while (chunk_now < chunk_count && chunk_used + size > chunks[chunk_now].size) chunk_now++, chunk_used = 0;
  if (chunk_now == chunk_count) {
    if (chunk_count == 256) abort();
    uint64_t length = size > (16 << 20) ? size : 16 << 20;
    chunks[chunk_count++] = Chunk{(char *)map_memory(length), length};
    chunk_used = 0;
  }
  Cell *cells = (Cell *)(chunks[chunk_now].start + chunk_used);
  chunk_used += size;
  return cells;
}

// -- the run

enum FiberState { UNSTARTED, READY, AT_BARRIER, AT_WARP, ENDED };

struct Fiber {
  void *pointer;  // of its stack, while it waits
  uint32_t stack, x, y, z;
  int32_t line;
  uint32_t operation, mask;
  uint64_t value, result;
  int32_t source;
  uint32_t predicate, has_fenced, is_fenced;  // the latter: also for its block alone
  uint64_t watched, seen;  // a place that it looks at again and again, and what it held
  uint32_t looks;
};
Fiber fibers[THREADS];
uint8_t states[THREADS];

struct Warp {
  uint32_t waiting, ended, size;  // lanes
  uint32_t is_synced;
  uint16_t clock[32], known[32][32];
  uint32_t exchanged;  // the phase of the last operation of the warp
  uint64_t gathered[32];  // what lanes gave in the last OPSMITH_GATHER
};
Warp warps[WARPS];

struct Entry { void (*kernel)(); const uint64_t *slots; };
Entry entry;
uint32_t *const grid = opsmith_grid_size, *const block = opsmith_block_size, *const block_index = opsmith_block_index;
uint32_t threads, current;
uint64_t block_number;
uint32_t phase = 1, block_phase = 1, run_phase = 1;
uint32_t shared_phase = 1, device_phase = 1;  // that the last barrier over that memory began
uint32_t started, ended, arrived;
bool is_reversed, is_unwatched, has_one_stack;
uint64_t disorder;  // 0: none; else atomics give way to other threads and see what may be old, and blocks have no order
int poison;
void *main_pointer;
uint16_t ready[THREADS + 1];
uint32_t ready_first, ready_last;
uint16_t free_stacks[THREADS];
uint32_t free_count;
uint64_t ticks;

uint32_t *block_phases;  // the first phase of each block of this launch, in the order they ran
uint64_t *block_numbers, block_room, blocks_run;

// A write by one thread where another has written without order between them is a race if the values differ.
struct Pending { uint64_t place; uint32_t size; char before[32]; Finding finding; } pending;

extern "C" void opsmith_switch(void **from, void *to);
#if defined(__x86_64__)
asm(".text\n.globl opsmith_switch\n.hidden opsmith_switch\n.type opsmith_switch,@function\nopsmith_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
const int SAVED = 6;  // words below the address to return to
#elif defined(__aarch64__)
asm(".text\n.globl opsmith_switch\n.hidden opsmith_switch\n.type opsmith_switch,@function\nopsmith_switch:\n"
    "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\n"
    "stp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n");
#else
#error "fibers are written for x86-64 and aarch64"
#endif

void become(uint32_t thread) {
  current = thread;
  opsmith_thread_index[0] = fibers[thread].x;
  opsmith_thread_index[1] = fibers[thread].y;
  opsmith_thread_index[2] = fibers[thread].z;
}

[[noreturn]] void leave_run() {
  void *nowhere;
  opsmith_switch(&nowhere, main_pointer);
  __builtin_unreachable();
}

Finding describe_access(uint32_t kind, uint32_t place, uint32_t region, uint64_t address, uint32_t size, int writing) {
  Finding f;
  memset(&f, 0, sizeof f);
  f.kind = kind;
  f.place = place;
  f.thread = current;
  f.block = (uint32_t)block_number;
  f.region = region;
  f.size = size;
  f.is_writing = (uint32_t)writing;
  f.offset = (int64_t)(address - regions[region].start);
  return f;
}

[[noreturn]] void report(const Finding &f) {
  finding = f;
  leave_run();
}

[[noreturn]] void report_event(uint32_t kind, uint32_t place, uint32_t detail) {
  Finding f;
  memset(&f, 0, sizeof f);
  f.kind = kind;
  f.place = place;
  f.thread = current;
  f.block = (uint32_t)block_number;
  f.detail = detail;
  report(f);
}

void settle_pending() {
  if (memcmp((void *)pending.place, pending.before, pending.size) != 0) report(pending.finding);
  pending.size = 0;
}

// -- order of accesses

// Blocks that a block is ordered behind: those that, after a fence, changed an atomic that this one changed later.
struct Release { uint64_t place; uint32_t launch; uint64_t *blocks; };
const uint32_t RELEASES = 4096;
Release releases[RELEASES];
uint32_t release_count, acquired_block_phase;
uint64_t *acquired, acquired_words;

uint64_t run_of_phase(uint32_t of) {
  uint64_t low = 0, high = blocks_run;
  while (high - low > 1) {
    uint64_t middle = (low + high) / 2;
    if (block_phases[middle] <= of) low = middle;
    else high = middle;
  }
  return low;
}

bool is_acquired(uint32_t of) {
  if (acquired_block_phase != block_phase) return false;
  uint64_t run = run_of_phase(of);
  return acquired[run / 64] >> run % 64 & 1;
}

void note_atomic(uint64_t place) {
  bool releasing = fibers[current].has_fenced;
  if (!releasing && release_count == 0) return;
  Release *found = 0;
  for (uint32_t i = 0; i < release_count; i++)
    if (releases[i].place == place) found = &releases[i];
  uint64_t words = acquired_words;
  if (found) {
    if (acquired_block_phase != block_phase) memset(acquired, 0, words * 8), acquired_block_phase = block_phase;
    for (uint64_t i = 0; i < words; i++) acquired[i] |= found->blocks[i];
  }
  if (!releasing) return;
  if (!found) {
    if (release_count == RELEASES) return;
    found = &releases[release_count++];
    found->place = place;
    found->blocks = (uint64_t *)calloc(words, 8);
    if (!found->blocks) abort();
  }
  uint64_t run = blocks_run - 1;
  found->blocks[run / 64] |= 1ull << run % 64;
  if (acquired_block_phase == block_phase)
    for (uint64_t i = 0; i < words; i++) found->blocks[i] |= acquired[i];
}

void forget_releases() {
  for (uint32_t i = 0; i < release_count; i++) free(releases[i].blocks);
  release_count = 0;
  acquired_block_phase = 0;
}

inline bool is_lane_ordered(uint32_t thread, uint32_t clock) {
  if (thread == current) return true;
  if (thread / 32 != current / 32) return false;
  return clock <= warps[current / 32].known[current % 32][thread % 32];
}

// Whether barriers since then left this memory out; they order what a thread does itself all the same.
inline bool is_left_out(uint32_t of, const Region *r) { return of >= (r->kind == SHARED ? shared_phase : device_phase); }

inline bool is_writer_ordered(const Cell *c, const Region *r) {
  if (c->wphase == phase) return is_lane_ordered(c->wthread, c->wclock);
  if (RARE(is_left_out(c->wphase, r))) return c->wthread == current;
  return c->wphase >= block_phase || c->wphase < r->since || is_acquired(c->wphase);
}

// The thread of the readers (or of the atomics) that is not ordered before this one; -1: all are.
inline int find_unordered_reader(const Cell *c, const Region *r) {
  if (c->rphase != phase) {
    if (RARE(is_left_out(c->rphase, r))) {
      uint32_t others = c->rthread / 32 == current / 32 ? c->rlanes & ~(1u << current % 32) : c->rlanes;
      if (others) return (int)(c->rthread / 32 * 32 + (uint32_t)__builtin_ctz(others));
      return c->flags & MANY_WARPS ? c->rother : -1;
    }
    bool is_ordered = c->rphase >= block_phase || c->rphase < r->since || is_acquired(c->rphase);
    return is_ordered ? -1 : c->rthread;
  }
  uint32_t warp = current / 32;
  if (c->flags & MANY_WARPS) return c->rthread / 32 != warp ? c->rthread : c->rother;
  if (c->rthread / 32 != warp) return c->rthread;
  for (uint32_t lanes = c->rlanes & ~(1u << current % 32); lanes; lanes &= lanes - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(lanes);
    if (c->rclock > warps[warp].known[current % 32][lane]) return (int)(warp * 32 + lane);
  }
  return -1;
}

inline void record_reader(Cell *c, uint32_t place, uint32_t flag) {
  uint32_t warp = current / 32, bit = 1u << current % 32;
  uint16_t clock = warps[warp].clock[current % 32];
  if (c->rphase == phase && (c->flags & ATOMIC) == flag) {
    if (c->rthread / 32 == warp) {
      c->rlanes |= bit;
      if (clock > c->rclock) c->rclock = clock;
    } else if (!(c->flags & MANY_WARPS)) {
      c->flags |= MANY_WARPS;
      c->rother = (uint16_t)current;
    }
    return;
  }
  c->rphase = phase;
  c->rplace = place;
  c->rthread = (uint16_t)current;
  c->rclock = clock;
  c->rlanes = bit;
  c->flags = (uint16_t)((c->flags & WRITER_ATOMIC) | flag);
}

Finding describe_race(const Cell *c, uint64_t address, uint32_t size, uint32_t place, uint32_t region, int writing,
                      bool with_writer, int thread) {
  Finding f = describe_access(RACE, place, region, address, size, writing);
  uint32_t of = with_writer ? c->wphase : c->rphase;
  f.other_place = with_writer ? c->wplace : c->rplace;
  f.other_thread = (uint32_t)thread;
  f.other_block = of < block_phase ? (uint32_t)block_numbers[run_of_phase(of)] : (uint32_t)block_number;
  f.detail = of < block_phase;  // between blocks
  f.other_is_writing = with_writer ? 1 : (c->flags & ATOMIC ? 2 : 0);
  return f;
}

// -- accesses

__attribute__((noinline)) void refine_region(Region *r, uint32_t shift) {
  uint64_t count = (r->end - r->start) >> r->shift, factor = 1ull << (r->shift - shift);
  Cell *old = r->cells, *cells = take_cells(((r->end - r->start) >> shift) + factor);
  for (uint64_t i = 0; i <= count; i++)
    for (uint64_t k = 0; k < factor; k++) cells[i * factor + k] = old[i];
  if (r->read_only) {
    uint32_t *places = (uint32_t *)calloc((count + 1) * factor, 4);
    if (!places) abort();
    for (uint64_t i = 0; i <= count; i++)
      for (uint64_t k = 0; k < factor; k++) places[i * factor + k] = r->read_only[i];
    free(r->read_only);
    r->read_only = places;
  }
  r->cells = cells;
  r->shift = shift;
}

__attribute__((noinline)) void report_late_write(Region *r, uint64_t cell, uint64_t address, uint32_t size, uint32_t place,
                                                 int writing) {
  if (!r->read_only[cell]) return;
  Finding f = describe_access(READ_ONLY, place, (uint32_t)(r - regions), address, size, writing);
  f.other_place = r->read_only[cell];
  report(f);
}

enum Access { READ, WRITE, UPDATE, REPLACE };  // REPLACE: atomic, and nothing of the old value is used

template <int A> inline void check_cell(Region *r, Cell *c, uint64_t address, uint32_t size, uint32_t place) {
  if ((A == READ || A == UPDATE) && RARE(c->wphase < r->birth))
    report(describe_access(UNINITIALISED, place, (uint32_t)(r - regions), address, size, A == READ ? 0 : 2));
  const int writing = A == READ ? 0 : A == WRITE ? 1 : 2;
  if (A != READ && RARE(r->read_only != 0)) report_late_write(r, (uint64_t)(c - r->cells), address, size, place, writing);
  if (RARE(!is_writer_ordered(c, r))) {
    if (A == WRITE) {
      if (pending.size) settle_pending();
      pending.place = address;
      pending.size = size > 32 ? 32 : size;
      memcpy(pending.before, (void *)address, pending.size);
      pending.finding =
          describe_race(c, address, size, place, (uint32_t)(r - regions), writing, true, c->wthread);
    } else if (!(A != READ && (c->flags & WRITER_ATOMIC))) {
      report(describe_race(c, address, size, place, (uint32_t)(r - regions), writing, true, c->wthread));
    }
  }
  if (A == READ ? (c->flags & ATOMIC) != 0 : true) {
    if (!((A == UPDATE || A == REPLACE) && (c->flags & ATOMIC))) {
      int other = find_unordered_reader(c, r);
      if (RARE(other >= 0))
        report(describe_race(c, address, size, place, (uint32_t)(r - regions), writing, false, other));
    }
  }
  if (A == READ) record_reader(c, place, 0);
  if (A == UPDATE || A == REPLACE) record_reader(c, place, ATOMIC);
  if (A == WRITE || (A == REPLACE && c->wphase < r->birth)) {
    c->wphase = phase;
    c->wplace = place;
    c->wthread = (uint16_t)current;
    c->wclock = warps[current / 32].clock[current % 32];
    if (A == WRITE) c->flags &= (uint16_t)~WRITER_ATOMIC;
    else c->flags |= WRITER_ATOMIC;
  }
}

template <int A>
__attribute__((noinline)) void check_outside(uint64_t address, uint32_t size, uint32_t place) {
  uint64_t in_image = address - (uintptr_t)__ehdr_start;
  if (in_image < (uint64_t)(_end - __ehdr_start)) {
    uint64_t in_shared = address - (uintptr_t)opsmith_shared_begin;
    if (in_shared >= (uint64_t)(opsmith_shared_end - opsmith_shared_begin)) {
      if (address - (uintptr_t)opsmith_guards_begin < (uint64_t)(opsmith_guards_end - opsmith_guards_begin)) return;
      if (A == READ) return;  // a table of constants
      report(describe_access(CONSTANT, place, NO_REGION, address, size, A == WRITE ? 1 : 2));
    }
  }
  uint32_t nearest = NO_REGION;
  uint64_t least = ~0ull;
  for (uint32_t i = DYNAMIC_REGION; i < region_count; i++) {
    Region *r = &regions[i];
    if (r->start == r->end && i != DYNAMIC_REGION) continue;
    uint64_t distance = address < r->start ? r->start - address : address >= r->end ? address - r->end + 1 : 1;
    if (distance < least) least = distance, nearest = i;
  }
  if (least > (64 << 20)) nearest = NO_REGION;
  report(describe_access(OUTSIDE, place, nearest, address, size, A == READ ? 0 : A == WRITE ? 1 : 2));
}

inline Region *find_region(uint64_t address) {
  uint64_t offset = address - (uint64_t)arena;
  if (__builtin_expect(offset < ARENA, 1)) return &regions[owners[offset / PAGE]];
  offset = address - (uint64_t)opsmith_shared_begin;
  if (offset < (uint64_t)(opsmith_shared_end - opsmith_shared_begin)) return &regions[shared_owners[offset / 16]];
  if (address - (uint64_t)stacks < STACKS) return &regions[STACK_REGION];
  return &regions[DEVICE_REGION];
}

template <int A>
__attribute__((noinline)) void check_many(Region *r, uint64_t address, uint32_t size, uint32_t place) {
  uint64_t last = address + size - 1;
  if (((address | size) & ((1u << r->shift) - 1)) != 0) {
    uint32_t shift = r->shift;
    while (shift && ((address - r->start) | size) & ((1u << shift) - 1)) shift--;
    if (shift != r->shift) refine_region(r, shift);
  }
  if (A == READ || A == UPDATE) {  // what is missing first
    for (uint64_t i = (address - r->start) >> r->shift; i <= (last - r->start) >> r->shift; i++)
      if (r->cells[i].wphase < r->birth)
        report(describe_access(UNINITIALISED, place, (uint32_t)(r - regions), r->start + (i << r->shift),
                               1u << r->shift, A == READ ? 0 : 2));
  }
  for (uint64_t i = (address - r->start) >> r->shift; i <= (last - r->start) >> r->shift; i++)
    check_cell<A>(r, &r->cells[i], r->start + (i << r->shift), 1u << r->shift, place);
}

template <int A> inline void check_access(const void *pointer, uint32_t size, uint32_t place) {
  if (RARE(is_unwatched)) return;
  uint64_t address = (uint64_t)pointer;
  Region *r = find_region(address);
  if (A != READ && RARE(pending.size)) settle_pending();
  if (RARE(address < r->start || address + size > r->end)) return check_outside<A>(address, size, place);
  if (r->kind <= INPUT) {
    if (r->kind == INPUT) {
      if (A == READ) return;
      report(describe_access(CONSTANT, place, (uint32_t)(r - regions), address, size, A == WRITE ? 1 : 2));
    }
    uint64_t slot = (address - r->start) / (STACK + GUARD);
    if (RARE(slot != fibers[current].stack))
      report(describe_access(FOREIGN, place, STACK_REGION, address, size, A == READ ? 0 : 1));
    return;
  }
  uint64_t offset = address - r->start;
  if (__builtin_expect(size == 1u << r->shift && (offset & (size - 1)) == 0, 1))
    check_cell<A>(r, &r->cells[offset >> r->shift], address, size, place);
  else
    check_many<A>(r, address, size, place);
}

// A read through the cache that nobody may write behind in the same launch: before it or after it, in whatever order.
__attribute__((noinline)) void check_read_only(uint64_t address, uint32_t size, uint32_t place) {
  Region *r = find_region(address);
  if (address < r->start || address + size > r->end || r->kind == INPUT) return;  // told by the access itself
  Finding f = describe_access(READ_ONLY, place, (uint32_t)(r - regions), address, size, 0);
  if (r->kind == SHARED || r->kind == OWN_STACK) {
    f.detail = 1;  // not in the memory that the cache is for
    report(f);
  }
  uint32_t shift = r->shift;
  while (shift && ((address - r->start) | size) & ((1u << shift) - 1)) shift--;
  if (shift != r->shift) refine_region(r, shift);
  if (!r->read_only) {
    r->read_only = (uint32_t *)calloc(((r->end - r->start) >> r->shift) + 2, 4);
    if (!r->read_only) abort();
  }
  for (uint64_t i = (address - r->start) >> r->shift; i <= (address + size - 1 - r->start) >> r->shift; i++) {
    const Cell *c = &r->cells[i];
    bool is_changed = (c->flags & ATOMIC) && c->rphase >= r->since;
    if (c->wphase >= r->since || is_changed) {
      f.other_place = c->wphase >= r->since ? c->wplace : c->rplace;
      report(f);
    }
    r->read_only[i] = place;
  }
}

void forget_read_only() {
  for (uint32_t i = 0; i < region_count; i++) free(regions[i].read_only), regions[i].read_only = 0;
}

// -- scheduling

void push_ready(uint32_t thread) {
  states[thread] = READY;
  ready[ready_last] = (uint16_t)thread;
  ready_last = ready_last == THREADS ? 0 : ready_last + 1;
}

void start_thread(uint32_t number) {
  uint32_t t = is_reversed ? threads - 1 - number : number;
  Fiber &f = fibers[t];
  f.x = t % block[0];
  f.y = t / block[0] % block[1];
  f.z = t / (block[0] * block[1]);
  f.has_fenced = f.is_fenced = f.looks = 0;
  f.watched = 0;
  states[t] = READY;
  become(t);
}

[[noreturn]] void run_fiber();

void *prepare_stack(uint32_t stack) {
  char *base = stacks + stack * (STACK + GUARD) + GUARD;
  static uint8_t guarded[THREADS];
  if (!guarded[stack]) mprotect(base - GUARD, GUARD, PROT_NONE), guarded[stack] = 1;
  uint64_t top = (uint64_t)base + STACK - (stack % 61) * 64 - 64;  // tops of stacks do not share a set of the cache
  top &= ~63ull;
#if defined(__x86_64__)
  void **p = (void **)top;
  *--p = 0;
  *--p = (void *)run_fiber;
  for (int i = 0; i < SAVED; i++) *--p = 0;
  return p;
#else
  void **p = (void **)(top - 160);
  memset(p, 0, 160);
  p[11] = (void *)run_fiber;
  return p;
#endif
}

// Where accesses are not watched, all threads may have one stack, as those of a GPU have their locals at the same addresses:
// what is left of it is put aside while another thread runs (`run_block`).
struct Aside { char *bytes; uint64_t size, room; } asides[THREADS];
uint32_t leaving, coming;
bool is_moving, is_coming_new;

uint32_t take_stack() { return has_one_stack ? 0 : free_stacks[--free_count]; }

void switch_thread(void **save, uint32_t to, bool is_new) {
  if (!has_one_stack) return opsmith_switch(save, is_new ? prepare_stack(fibers[to].stack) : fibers[to].pointer);
  uint64_t own = (uint64_t)save - (uint64_t)fibers;
  leaving = own < sizeof fibers ? (uint32_t)(own / sizeof(Fiber)) : THREADS;
  coming = to, is_coming_new = is_new, is_moving = true;
  opsmith_switch(save, main_pointer);
}

void *move_stack() {
  if (leaving < THREADS) {
    Aside &a = asides[leaving];
    char *pointer = (char *)fibers[leaving].pointer;
    a.size = (uint64_t)(stacks + GUARD + STACK - pointer);
    if (a.size > a.room) {
      free(a.bytes);
      a.room = a.size * 2;
      a.bytes = (char *)malloc(a.room);
      if (!a.bytes) abort();
    }
    memcpy(a.bytes, pointer, a.size);
  }
  if (is_coming_new) return prepare_stack(0);
  memcpy(fibers[coming].pointer, asides[coming].bytes, asides[coming].size);
  return fibers[coming].pointer;
}

void find_deadlock();
bool release_active();

// Leaves this fiber for the next that can run. `save`: where its own stack is kept; a fiber that ended is not.
void run_next(void **save) {
  if (RARE(pending.size)) settle_pending();
  for (;;) {
    if (ready_first != ready_last) {
      uint32_t t = ready[ready_first];
      ready_first = ready_first == THREADS ? 0 : ready_first + 1;
      if (t == current && states[t] == READY && save == &fibers[t].pointer) return;
      become(t);
      switch_thread(save, t, false);
      return;
    }
    if (started < threads) {
      uint32_t stack = take_stack();
      start_thread(started++);
      fibers[current].stack = stack;
      switch_thread(save, current, true);
      return;
    }
    if (ended == threads) {
      void *nowhere;
      opsmith_switch(&nowhere, main_pointer);
      __builtin_unreachable();
    }
    if (!release_active()) find_deadlock();
  }
}

void complete_warp(uint32_t warp, uint32_t lanes);

// Completes the operations of a warp that wait for nobody any longer.
void check_groups(uint32_t number) {
  Warp &w = warps[number];
  for (uint32_t lanes = w.waiting; lanes; lanes &= lanes - 1) {
    Fiber &f = fibers[number * 32 + (uint32_t)__builtin_ctz(lanes)];
    if (f.operation == 3) continue;  // OPSMITH_ACTIVE waits for all to come to rest
    uint32_t needed = f.mask & w.size & ~w.ended;
    if (needed & ~w.waiting) continue;
    bool is_same = true;
    for (uint32_t rest = needed; rest; rest &= rest - 1) {
      Fiber &g = fibers[number * 32 + (uint32_t)__builtin_ctz(rest)];
      is_same &= g.line == f.line && g.operation == f.operation && g.mask == f.mask;
    }
    if (is_same) return complete_warp(number, needed);
  }
}

[[noreturn]] void run_fiber() {
  for (;;) {
    entry.kernel();
    if (RARE(pending.size)) settle_pending();
    uint32_t t = current, warp = t / 32;
    states[t] = ENDED;
    ended++;
    warps[warp].ended |= 1u << t % 32;
    if (warps[warp].waiting) check_groups(warp);
    uint32_t stack = fibers[t].stack;
    if (ready_first == ready_last && started < threads) {
      start_thread(started++);
      fibers[current].stack = stack;
      continue;
    }
    if (!has_one_stack) free_stacks[free_count++] = (uint16_t)stack;
    void *nowhere;
    run_next(&nowhere);
  }
}

void reset_clocks() {
  for (uint32_t i = 0; i < (threads + 31) / 32; i++)
    if (warps[i].is_synced) {
      memset(warps[i].known, 0, sizeof warps[i].known);
      for (int k = 0; k < 32; k++) warps[i].clock[k] = 1;
      warps[i].is_synced = 0;
    }
}

void next_phase() {
  if (++phase == 0xffffffffu) abort();
  shared_phase = device_phase = phase;
  reset_clocks();
}

// The value of a lane that takes no part in an operation: nobody says which, so that no output may hang on it.
uint64_t read_nowhere(uint32_t thread, uint32_t lane) {
  const Warp &w = warps[thread / 32];
  if (!suspicion.kind) {
    suspicion.kind = SUSPICION;
    suspicion.place = LINE | (uint32_t)fibers[thread].line;
    suspicion.thread = thread;
    suspicion.block = (uint32_t)block_number;
    suspicion.detail = lane;
    suspicion.other_detail = (w.size >> lane & 1) == 0 ? 0 : (w.ended >> lane & 1) ? 1 : 2;
  }
  uint64_t value;
  memset(&value, poison, sizeof value);
  return value;
}

void complete_warp(uint32_t number, uint32_t lanes) {
  Warp &w = warps[number];
  w.exchanged = phase;
  uint32_t first = number * 32, leader = first + (uint32_t)__builtin_ctz(lanes), operation = fibers[leader].operation;
  uint64_t sum = 0;
  switch (operation) {
    case 0: {  // OPSMITH_SYNC
      uint16_t top = 0;
      uint16_t joined[32];
      memset(joined, 0, sizeof joined);
      for (uint32_t l = lanes; l; l &= l - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(l);
        if (w.clock[i] > top) top = w.clock[i];
        for (int k = 0; k < 32; k++) joined[k] = joined[k] > w.known[i][k] ? joined[k] : w.known[i][k];
      }
      if (top >= 0xfff0) report_event(LIMIT, LINE | (uint32_t)fibers[leader].line, 1);
      for (uint32_t l = lanes; l; l &= l - 1) joined[__builtin_ctz(l)] = top;
      for (uint32_t l = lanes; l; l &= l - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(l);
        memcpy(w.known[i], joined, sizeof joined);
        w.clock[i] = (uint16_t)(top + 1);
      }
      w.is_synced = 1;
      break;
    }
    case 1:  // OPSMITH_SHUFFLE
      for (uint32_t l = lanes; l; l &= l - 1) {
        Fiber &f = fibers[first + (uint32_t)__builtin_ctz(l)];
        if (lanes >> (f.source & 31) & 1) {
          f.result = fibers[first + (uint32_t)(f.source & 31)].value;
          continue;
        }
        f.result = read_nowhere(first + (uint32_t)__builtin_ctz(l), (uint32_t)f.source & 31);
      }
      break;
    case 2:  // OPSMITH_BALLOT
      for (uint32_t l = lanes; l; l &= l - 1)
        sum |= (uint64_t)(fibers[first + (uint32_t)__builtin_ctz(l)].value != 0) << __builtin_ctz(l);
      sum |= (uint64_t)lanes << 32;
      break;
    case 14:  // OPSMITH_GATHER
      for (uint32_t l = lanes; l; l &= l - 1)
        w.gathered[__builtin_ctz(l)] = fibers[first + (uint32_t)__builtin_ctz(l)].value;
      // fall through
    case 3: sum = lanes; break;
    case 4:  // OPSMITH_MATCH_ANY
    case 5:
      for (uint32_t l = lanes; l; l &= l - 1) {
        Fiber &f = fibers[first + (uint32_t)__builtin_ctz(l)];
        f.result = 0;
        for (uint32_t m = lanes; m; m &= m - 1)
          f.result |= (uint64_t)(fibers[first + (uint32_t)__builtin_ctz(m)].value == f.value) << __builtin_ctz(m);
        if (operation == 5 && f.result != lanes) f.result = 0;
      }
      break;
    default: {
      sum = fibers[leader].value & 0xffffffffu;
      for (uint32_t l = lanes & (lanes - 1); l; l &= l - 1) {
        uint32_t v = (uint32_t)fibers[first + (uint32_t)__builtin_ctz(l)].value, s = (uint32_t)sum;
        sum = operation == 6 ? s + v : operation == 7 ? (v < s ? v : s) : operation == 8 ? (v > s ? v : s)
            : operation == 9 ? ((int32_t)v < (int32_t)s ? v : s) : operation == 10 ? ((int32_t)v > (int32_t)s ? v : s)
            : operation == 11 ? (s & v) : operation == 12 ? (s | v) : (s ^ v);
        sum &= 0xffffffffu;
      }
    }
  }
  bool has_own = operation == 1 || operation == 4 || operation == 5;
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t lane = is_reversed ? 31 - i : i;
    if (!(lanes >> lane & 1)) continue;
    if (!has_own) fibers[first + lane].result = sum;
    if (first + lane != current || states[current] == ENDED) push_ready(first + lane);
    else states[current] = READY;
  }
  w.waiting &= ~lanes;
}

// Lanes that ask which of them are active, or for what these give: all of a warp that ask on the same line, once nobody
// else can run.
bool release_active() {
  for (uint32_t number = 0; number * 32 < threads; number++) {
    Warp &w = warps[number];
    for (uint32_t lanes = w.waiting; lanes; lanes &= lanes - 1) {
      Fiber &f = fibers[number * 32 + (uint32_t)__builtin_ctz(lanes)];
      if (f.operation != 3 && f.operation != 14) continue;
      uint32_t together = 0;
      for (uint32_t rest = w.waiting; rest; rest &= rest - 1) {
        Fiber &g = fibers[number * 32 + (uint32_t)__builtin_ctz(rest)];
        if (g.operation == f.operation && g.line == f.line) together |= 1u << __builtin_ctz(rest);
      }
      uint32_t own = current;
      current = THREADS;  // nobody goes on by itself
      states[THREADS - 1] = states[THREADS - 1];
      uint32_t first = number * 32;
      for (uint32_t l = together; l; l &= l - 1) {
        w.gathered[__builtin_ctz(l)] = fibers[first + (uint32_t)__builtin_ctz(l)].value;
        fibers[first + (uint32_t)__builtin_ctz(l)].result = together;
        push_ready(first + (uint32_t)__builtin_ctz(l));
      }
      w.waiting &= ~together;
      current = own;
      return true;
    }
  }
  return false;
}

void find_deadlock() {
  int at_barrier = -1, other_barrier = -1, at_warp = -1, has_ended = -1;
  for (uint32_t t = 0; t < threads; t++) {
    if (states[t] == AT_BARRIER) {
      if (at_barrier < 0) at_barrier = (int)t;
      else if (other_barrier < 0 && fibers[t].line != fibers[at_barrier].line) other_barrier = (int)t;
    }
    if (states[t] == AT_WARP && at_warp < 0) at_warp = (int)t;
    if (states[t] == ENDED && has_ended < 0) has_ended = (int)t;
  }
  Finding f;
  memset(&f, 0, sizeof f);
  f.block = f.other_block = (uint32_t)block_number;
  if (at_warp >= 0) {  // an operation that names a lane which is elsewhere
    Fiber &w = fibers[at_warp];
    uint32_t first = (uint32_t)at_warp / 32 * 32, number = first / 32;
    uint32_t others = w.mask & warps[number].size & ~warps[number].ended;
    int other = -1;
    for (uint32_t l = others; l && other < 0; l &= l - 1) {
      uint32_t t = first + (uint32_t)__builtin_ctz(l);
      Fiber &g = fibers[t];
      bool is_same = states[t] == AT_WARP && g.line == w.line && g.operation == w.operation && g.mask == w.mask;
      if (!is_same) other = (int)t;
    }
    f.kind = WAITING;
    f.thread = (uint32_t)at_warp;
    f.place = LINE | (uint32_t)w.line;
    f.mask = w.mask;
    f.detail = w.operation;
    f.other_thread = (uint32_t)(other < 0 ? at_warp : other);
    f.other_place = LINE | (uint32_t)fibers[f.other_thread].line;
    f.other_detail = states[f.other_thread] == AT_BARRIER ? 1 : 2;
    report(f);
  }
  f.kind = DIVERGENT;
  f.thread = (uint32_t)at_barrier;
  f.place = LINE | (uint32_t)fibers[at_barrier].line;
  if (other_barrier >= 0) {
    f.other_thread = (uint32_t)other_barrier;
    f.other_place = LINE | (uint32_t)fibers[other_barrier].line;
    f.detail = 1;
  } else {
    f.other_thread = (uint32_t)has_ended;
  }
  report(f);
}

void grow_blocks(uint64_t count) {
  if (count <= block_room) return;
  free(block_phases), free(block_numbers), free(acquired);
  block_room = count;
  acquired_words = count / 64 + 1;
  block_phases = (uint32_t *)calloc(count, 4);
  block_numbers = (uint64_t *)calloc(count, 8);
  acquired = (uint64_t *)calloc(acquired_words, 8);
  if (!block_phases || !block_numbers || !acquired) abort();
}

void run_block(uint64_t number) {
  block_number = number;
  block_index[0] = (uint32_t)(number % grid[0]);
  block_index[1] = (uint32_t)(number / grid[0] % grid[1]);
  block_index[2] = (uint32_t)(number / grid[0] / grid[1]);
  next_phase();
  block_phase = phase;
  block_phases[blocks_run] = phase;
  block_numbers[blocks_run++] = number;
  for (uint32_t i = DYNAMIC_REGION; i < first_array; i++)
    if (i != DEVICE_REGION) regions[i].birth = regions[i].since = phase;
  memset(states, UNSTARTED, threads);
  for (uint32_t i = 0; i * 32 < threads; i++) warps[i].waiting = warps[i].ended = 0;
  started = ended = arrived = 0;
  ready_first = ready_last = 0;
  free_count = 0;
  for (uint32_t i = threads; i-- > 0;) free_stacks[free_count++] = (uint16_t)i;
  uint32_t stack = take_stack();
  start_thread(started++);
  fibers[current].stack = stack;
  void *following = prepare_stack(stack);
  do {
    is_moving = false;
    opsmith_switch(&main_pointer, following);
    if (is_moving) following = move_stack();
  } while (is_moving);
}

}  // namespace

// -- atomics without order
//
// Atomics on one place have one order, but which one is open where nothing else orders their threads. A thread's first
// one in a phase may come before those that other threads made in it, and a block's first one in a launch before those
// of other blocks, unless a fence says otherwise. Then it has another result: what the place held before. So a load and
// a store in place of one atomic operation lose what others added in between, also where blocks run one after another.

namespace {
struct Chain {  // of atomics on a place in this launch
  uint64_t place, origin, before;  // what it held before the first change in the launch, and in the phase
  uint32_t launch, phase, block_phase, warps;  // of the last change or touch; the warps that changed it in the phase
  uint32_t is_changed, size;  // in the phase
  uint32_t touched[THREADS / 32];
};
const uint32_t CHAINS = 1 << 12;
Chain chains[CHAINS];  // where two places share one, the older is forgotten: its last value is taken for the first
uint32_t launch_number;

Chain *find_chain(uint64_t place) {
  return &chains[(place >> 2) * 0x9E3779B97F4A7C15ull >> 52];
}

bool is_current(const Chain *c, uint64_t place, uint32_t size) {
  return c->place == place && c->launch == launch_number && c->size == size;
}

uint64_t load_bits(uint64_t place, uint32_t size) {
  uint64_t value = 0;
  memcpy(&value, (void *)place, size > 8 ? 8 : size);
  return value;
}

// Whether the current thread's next atomic may come before others that changed the place; `before`: what it held then.
bool find_earlier(uint64_t place, uint32_t size, uint64_t *before) {
  const Chain *c = find_chain(place);
  if (!is_current(c, place, size) || fibers[current].is_fenced) return false;
  if (c->block_phase == block_phase) {
    if (c->phase != phase || !c->is_changed || c->touched[current / 32] >> current % 32 & 1) return false;
    if (c->warps >> current / 32 & 1 && warps[current / 32].exchanged == phase) return false;
    *before = c->before;
    return true;
  }
  if (acquired_block_phase == block_phase || find_region(place)->kind == SHARED) return false;
  *before = c->origin;
  return true;
}

void note_chain(uint64_t place, uint32_t size, bool is_changing) {
  Chain *c = find_chain(place);
  if (!is_current(c, place, size)) {
    memset(c, 0, sizeof *c);
    c->place = place, c->size = size, c->launch = launch_number;
    c->origin = load_bits(place, size);
  }
  if (c->block_phase != block_phase || c->phase != phase) {
    if (c->block_phase != block_phase && find_region(place)->kind == SHARED) c->origin = load_bits(place, size);
    memset(c->touched, 0, sizeof c->touched);
    c->block_phase = block_phase, c->phase = phase, c->warps = c->is_changed = 0;
  }
  c->touched[current / 32] |= 1u << current % 32;
  if (!is_changing) return;
  if (!c->is_changed) c->before = load_bits(place, size);
  c->is_changed = 1;
  c->warps |= 1u << current / 32;
}

// Lets all others go on, those that have not begun first.
void give_way() {
  if (started == threads && ready_first == ready_last) return;
  push_ready(current);
  Fiber &f = fibers[current];
  if (started == threads) return run_next(&f.pointer);
  if (RARE(pending.size)) settle_pending();
  uint32_t stack = take_stack();
  start_thread(started++);
  fibers[current].stack = stack;
  switch_thread(&f.pointer, current, true);
}
}  // namespace

namespace {
const uint32_t MOST_LOOKS = 1 << 22, LOOKS_BETWEEN = 1 << 10;
uint32_t longest = 0;  // the most looks of a thread since one of them saw a change

// A place that does not change under atomics or volatile reads of one thread: others go on now and then. Who looks for
// long waits for a block that has not begun, or for nobody. Of many that do, one looks often: the others give way at
// each look, else a lock that nobody opens would be looked at so often by every thread.
__attribute__((noinline)) void watch_place(uint64_t place, uint32_t size, uint32_t line) {
  Fiber &f = fibers[current];
  uint64_t value = 0;
  memcpy(&value, (void *)place, size > 8 ? 8 : size);
  if (f.watched != place || f.seen != value) {
    f.watched = place, f.seen = value, f.looks = longest = 0;
    return;
  }
  if (++f.looks > MOST_LOOKS) report_event(SPINNING, line, 0);
  bool is_longest = f.looks >= longest;
  if (is_longest) longest = f.looks;
  if (f.looks < LOOKS_BETWEEN || (is_longest && f.looks % LOOKS_BETWEEN)) return;
  if (ready_first == ready_last && started == threads) return;
  push_ready(current);
  run_next(&f.pointer);
}

void look_at(const void *place, uint32_t size, uint32_t line) {
  check_access<READ>(place, size, line);
  watch_place((uint64_t)place, size, line);
}
}  // namespace

// -- what the compiler's instrumentation calls

#define HOOKS(n) \
  extern "C" void __tsan_read##n(void *p) { check_access<READ>(p, n, RETURN); } \
  extern "C" void __tsan_write##n(void *p) { check_access<WRITE>(p, n, RETURN); } \
  extern "C" void __tsan_unaligned_read##n(void *p) { check_access<READ>(p, n, RETURN); } \
  extern "C" void __tsan_unaligned_write##n(void *p) { check_access<WRITE>(p, n, RETURN); } \
  extern "C" void __tsan_volatile_read##n(void *p) { look_at(p, n, RETURN); } \
  extern "C" void __tsan_volatile_write##n(void *p) { check_access<WRITE>(p, n, RETURN); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_read_range(void *p, size_t n) { if (n) check_access<READ>(p, (uint32_t)n, RETURN); }
extern "C" void __tsan_write_range(void *p, size_t n) { if (n) check_access<WRITE>(p, (uint32_t)n, RETURN); }
extern "C" void *__tsan_memcpy(void *to, const void *from, size_t n) {  // clang's, which calls no ranges
  if (n) check_access<READ>(from, (uint32_t)n, RETURN), check_access<WRITE>(to, (uint32_t)n, RETURN);
  return memcpy(to, from, n);
}
extern "C" void *__tsan_memmove(void *to, const void *from, size_t n) {
  if (n) check_access<READ>(from, (uint32_t)n, RETURN), check_access<WRITE>(to, (uint32_t)n, RETURN);
  return memmove(to, from, n);
}
extern "C" void *__tsan_memset(void *to, int byte, size_t n) {
  if (n) check_access<WRITE>(to, (uint32_t)n, RETURN);
  return memset(to, byte, n);
}
extern "C" void __tsan_vptr_update(void *, void *) {}
extern "C" void __tsan_vptr_read(void *) {}

struct SourceLocation { const char *file; uint32_t line, column; };
struct TypeDescriptor { uint16_t kind, info; char name[1]; };
struct TypeMismatch { SourceLocation location; TypeDescriptor *type; uint8_t alignment, kind; };
struct OutOfBounds { SourceLocation location; TypeDescriptor *array, *index; };

extern "C" void __ubsan_handle_type_mismatch_v1(TypeMismatch *data, uint64_t address) {
  Region *r = find_region(address);
  if (is_unwatched || address < 65536 || address < r->start || address >= r->end) return;  // the access itself is refused
  Finding f = describe_access(MISALIGNED, LINE | data->location.line, (uint32_t)(r - regions), address, 0, 0);
  f.detail = 1u << data->alignment;
  report(f);
}
extern "C" void __ubsan_handle_out_of_bounds(OutOfBounds *data, uint64_t index) {
  if (is_unwatched) return;
  Finding f;
  memset(&f, 0, sizeof f);
  f.kind = BOUNDS;
  f.place = LINE | data->location.line;
  f.thread = current;
  f.block = (uint32_t)block_number;
  int width = 1 << (data->index->info >> 1);
  f.value = width >= 64 ? (int64_t)index
            : data->index->info & 1 ? (int64_t)(index << (64 - width)) >> (64 - width)
                                    : (int64_t)(index & ((1ull << width) - 1));
  f.offset = (int64_t)(data->array->name - __ehdr_start);  // its name lies in the file
  report(f);
}

// -- what the header calls

extern "C" {
unsigned opsmith_thread_x() { return fibers[current].x; }
unsigned opsmith_thread_y() { return fibers[current].y; }
unsigned opsmith_thread_z() { return fibers[current].z; }
unsigned opsmith_block_x() { return block_index[0]; }
unsigned opsmith_block_y() { return block_index[1]; }
unsigned opsmith_block_z() { return block_index[2]; }
unsigned opsmith_block_size_x() { return block[0]; }
unsigned opsmith_block_size_y() { return block[1]; }
unsigned opsmith_block_size_z() { return block[2]; }
unsigned opsmith_grid_x() { return grid[0]; }
unsigned opsmith_grid_y() { return grid[1]; }
unsigned opsmith_grid_z() { return grid[2]; }
unsigned opsmith_lane() { return current % 32; }
unsigned opsmith_rank() { return current; }
unsigned long opsmith_slot(unsigned number) { return entry.slots[number]; }
long opsmith_clock() { return (long)(ticks += 16); }

int opsmith_barrier(int line, int predicate, int operation) {
  Fiber &f = fibers[current];
  f.line = line;
  f.predicate = (uint32_t)predicate;
  f.operation = (uint32_t)operation;
  if (RARE(ended)) {
    states[current] = AT_BARRIER;
    for (uint32_t t = 0; t < threads; t++)
      if (states[t] == ENDED) {
        Finding g;
        memset(&g, 0, sizeof g);
        g.kind = DIVERGENT;
        g.thread = current;
        g.place = LINE | (uint32_t)line;
        g.block = g.other_block = (uint32_t)block_number;
        g.other_thread = t;
        report(g);
      }
  }
  if (++arrived < threads) {
    states[current] = AT_BARRIER;
    run_next(&f.pointer);
    return (int)f.result;
  }
  if (RARE(pending.size)) settle_pending();
  uint32_t sum = 0;
  for (uint32_t t = 0; t < threads; t++) {
    sum += fibers[t].predicate;
    if (RARE(fibers[t].line != line || fibers[t].operation != (uint32_t)operation)) {
      states[current] = AT_BARRIER;
      find_deadlock();
    }
  }
  uint32_t result = operation == 1 ? sum : operation == 2 ? sum == threads : sum != 0;
  arrived = 0;
  next_phase();
  for (uint32_t i = 0; i < threads; i++) {
    uint32_t t = is_reversed ? threads - 1 - i : i;
    fibers[t].result = result;
    if (t != current) push_ready(t);
  }
  return (int)result;
}

// A barrier that orders accesses to some memory only: 1 that of the block, 2 arrays and variables of the device.
int opsmith_barrier_over(int line, int memory) {
  uint32_t last_shared = shared_phase, last_device = device_phase, before = phase;
  int result = opsmith_barrier(line, 0, 4 + memory);
  if (phase == before + 1) {  // the last to arrive, before others go on
    if (!(memory & 1)) shared_phase = last_shared;
    if (!(memory & 2)) device_phase = last_device;
  }
  return result;
}

// What a lane gave in the operation that this one just made together with `lanes`.
unsigned long opsmith_gathered(unsigned lanes, unsigned lane, int line) {
  fibers[current].line = line;
  return lanes >> lane & 1 ? warps[current / 32].gathered[lane] : read_nowhere(current, lane);
}

unsigned long opsmith_warp(int operation, unsigned mask, unsigned long value, int source, int line) {
  Fiber &f = fibers[current];
  uint32_t number = current / 32, bit = 1u << current % 32;
  Warp &w = warps[number];
  f.line = line;
  if (RARE(!(mask & bit))) {
    Finding g;
    memset(&g, 0, sizeof g);
    g.kind = NOT_IN_MASK;
    g.place = LINE | (uint32_t)line;
    g.thread = current;
    g.block = (uint32_t)block_number;
    g.mask = mask;
    g.detail = (uint32_t)operation;
    report(g);
  }
  f.operation = (uint32_t)operation;
  f.mask = mask;
  f.value = value;
  f.source = source;
  w.waiting |= bit;
  states[current] = AT_WARP;
  uint32_t needed = mask & w.size & ~w.ended;
  if (operation != 3 && !(needed & ~w.waiting)) check_groups(number);
  if (states[current] == READY) return f.result;
  run_next(&f.pointer);
  return f.result;
}

void opsmith_fence(int) { fibers[current].has_fenced = fibers[current].is_fenced = 1; }
void opsmith_fence_block(int) { fibers[current].is_fenced = 1; }
void opsmith_read_only(const void *place, unsigned size, int line) {
  if (!is_unwatched) check_read_only((uint64_t)place, size, LINE | (uint32_t)line);
}

void opsmith_begin_atomic(const void *place, unsigned size, int line, int is_reading) {
  if (disorder) give_way();
  if (RARE((uint64_t)place & (size - 1)) && !is_unwatched) {
    Region *r = find_region((uint64_t)place);
    Finding f = describe_access(MISALIGNED, LINE | (uint32_t)line, (uint32_t)(r - regions), (uint64_t)place, size, 2);
    f.detail = size;
    report(f);
  }
  if (is_reading) check_access<UPDATE>(place, size, LINE | (uint32_t)line);
  else check_access<REPLACE>(place, size, LINE | (uint32_t)line);
  note_atomic((uint64_t)place);
  watch_place((uint64_t)place, size, LINE | (uint32_t)line);
}

unsigned long opsmith_load(const void *place, unsigned size) {
  unsigned long value = 0;
  memcpy(&value, place, size);
  return value;
}
void opsmith_store(void *place, unsigned long value, unsigned size) {
  if (disorder) note_chain((uint64_t)place, size, true);
  memcpy(place, &value, size);
}
// What an atomic may find that comes before those of others; whoever would change it finds what is there (`store`).
int opsmith_load_earlier(const void *place, unsigned size, unsigned long *value) {
  return disorder && find_earlier((uint64_t)place, size, value);
}
void opsmith_keep(const void *place, unsigned size) {
  if (disorder) note_chain((uint64_t)place, size, false);
}

void opsmith_touch(const void *place, unsigned long size, int line, int is_writing) {
  if (size == 0) return;
  if (is_writing) check_access<WRITE>(place, (uint32_t)size, LINE | (uint32_t)line);
  else check_access<READ>(place, (uint32_t)size, LINE | (uint32_t)line);
}

void opsmith_stop(int kind, int line) { report_event(STOPPED, LINE | (uint32_t)line, (uint32_t)kind); }
}

#ifdef __clang__  // which narrows to __bf16 by calls that gcc's library lacks
extern "C" __attribute__((visibility("hidden"))) __bf16 __truncsfbf2(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint16_t half = (uint16_t)(value != value ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  __bf16 result;
  memcpy(&result, &half, 2);
  return result;
}
extern "C" __attribute__((visibility("hidden"))) __bf16 __truncdfbf2(double value) { return __truncsfbf2((float)value); }
#endif

// -- what our side of the process calls

// Regions that stay: stacks, dynamic memory, variables of the device, and `count` shared arrays by offset and size.
EXPORT void opsmith_prepare(uint32_t count, const uint64_t *starts, const uint64_t *sizes) {
  arena = (char *)map_memory(ARENA);
  stacks = (char *)map_memory(STACKS, arena - (256ull << 30));  // far from what a wrong index reaches
  uint64_t dynamic = (uint64_t)opsmith_dynamic_memory;
  regions[STACK_REGION] = Region{(uint64_t)stacks, (uint64_t)stacks + STACKS, 0, OWN_STACK, 0, 0, 0, 0};
  regions[DYNAMIC_REGION] = Region{dynamic, dynamic, 0, SHARED, 2, 0, 0, 0};
  arena_used = 16 << 20;
  uint64_t device = (uint64_t)(opsmith_device_end - opsmith_device_begin);
  regions[DEVICE_REGION] =
      Region{(uint64_t)opsmith_device_begin, (uint64_t)opsmith_device_end, take_cells(device / 4), DEVICE, 2, 0, 0, 0};
  device_copy = (char *)malloc(device + 1);
  memcpy(device_copy, opsmith_device_begin, device);
  uint64_t shared = (uint64_t)(opsmith_shared_end - opsmith_shared_begin);
  shared_owners = (uint16_t *)calloc(shared / 16 + 2, 2);
  for (uint64_t k = 0; k < DYNAMIC / 16; k++)
    shared_owners[(dynamic - (uint64_t)opsmith_shared_begin) / 16 + k] = DYNAMIC_REGION;
  region_count = FIRST_SHARED;
  for (uint32_t i = 0; i < count && region_count < MOST_REGIONS / 2; i++) {
    uint64_t start = (uint64_t)__ehdr_start + starts[i], offset = start - (uint64_t)opsmith_shared_begin;
    regions[region_count] = Region{start, start + sizes[i], take_cells(sizes[i] / 4 + 1), SHARED, 2, 0, 0, 0};
    for (uint64_t k = offset / 16; k * 16 < offset + sizes[i]; k++) shared_owners[k] = (uint16_t)region_count;
    region_count++;
  }
  regions[DYNAMIC_REGION].cells = take_cells(DYNAMIC / 4 + 1);
  first_array = region_count;
  for (int i = 0; i < 32; i++) {
    for (int k = 0; k < 32; k++) warps[i].clock[k] = 1;
  }
}

struct Mark { uint32_t chunk; uint64_t used; };
static Mark mark_cells;
static uint64_t mark_arena;
static Cell *first_cells[MOST_REGIONS / 2];  // of regions that stay, before a draw splits entries

// A draw in fresh surroundings. Variables of the device keep what an earlier draw left only where `keeps_device`.
EXPORT void opsmith_begin(int poison_byte, int reversed, int keeps_device, uint64_t disorder_, int unwatched) {
  forget_read_only();
  disorder = disorder_;
  is_unwatched = unwatched != 0;
  has_one_stack = unwatched == 2;
  if (!mark_arena) {
    mark_arena = arena_used, mark_cells = Mark{chunk_now, chunk_used};
    for (uint32_t i = DYNAMIC_REGION; i < first_array; i++) first_cells[i] = regions[i].cells;
  }
  arena_used = mark_arena;
  chunk_now = mark_cells.chunk;
  chunk_used = mark_cells.used;
  region_count = first_array;
  memset(owners + mark_arena / PAGE, 0, sizeof owners - mark_arena / PAGE * 2);
  for (uint32_t i = DYNAMIC_REGION; i < first_array; i++) regions[i].shift = 2, regions[i].cells = first_cells[i];
  poison = poison_byte;
  is_reversed = reversed != 0;
  if (!keeps_device) memcpy(opsmith_device_begin, device_copy, (size_t)(opsmith_device_end - opsmith_device_begin));
  memset(&finding, 0, sizeof finding);
  memset(&suspicion, 0, sizeof suspicion);
  pending.size = 0;
  next_phase();
  run_phase = phase;
}

// An array of the draw; its address, or 0 where memory is spent. `kind`: 0 input, else one that a program may write.
EXPORT uint64_t opsmith_place(uint64_t size, uint32_t element, int kind) {
  if (is_unwatched) {  // as an allocator packs them
    uint64_t packed = (uint64_t)arena + arena_used;
    arena_used += (size + 255) / 256 * 256;
    return arena_used > ARENA ? 0 : packed;
  }
  uint64_t gap = size < (1 << 20) ? 1 << 20 : size > (16 << 20) ? 16 << 20 : size;
  uint64_t start = arena_used, used = (size + PAGE - 1) / PAGE * PAGE;
  if (region_count == MOST_REGIONS || start + used + gap > ARENA) return 0;
  uint32_t shift = element == 1 ? 0 : element == 2 ? 1 : 2;
  Region *r = &regions[region_count];
  *r = Region{(uint64_t)arena + start, (uint64_t)arena + start + size, 0, kind ? (uint32_t)WRITABLE : (uint32_t)INPUT, shift, run_phase, run_phase, 0};
  if (kind) r->cells = take_cells(size >> shift);
  for (uint64_t i = 0; i < used / PAGE; i++) owners[start / PAGE + i] = (uint16_t)region_count;
  region_count++;
  arena_used = start + (used + gap + PAGE - 1) / PAGE * PAGE;
  return r->start;
}

static uint64_t find_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

EXPORT int opsmith_launch(void (*kernel)(), const uint64_t *slots, const uint32_t *grid_size,
                          const uint32_t *block_size, uint32_t shared) {
  entry = Entry{kernel, slots};
  memcpy(grid, grid_size, sizeof opsmith_grid_size);
  memcpy(block, block_size, sizeof opsmith_block_size);
  threads = block[0] * block[1] * block[2];
  regions[DYNAMIC_REGION].end = regions[DYNAMIC_REGION].start + shared;
  for (uint32_t i = 0; i * 32 < threads; i++) {
    uint32_t lanes = threads - i * 32;
    warps[i].size = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
  }
  uint64_t count = (uint64_t)grid[0] * grid[1] * grid[2];
  forget_releases();
  forget_read_only();
  launch_number++;
  grow_blocks(count);
  next_phase();
  for (uint32_t i = DEVICE_REGION; i < region_count; i++) regions[i].since = phase;
  blocks_run = 0;
  const bool is_walk = disorder && count > 3;  // over all blocks, in steps that have no divisor in common with them
  uint64_t step = disorder % count, number = disorder / 7 % count;
  while (is_walk && (step < 2 || find_divisor(step, count) != 1)) step = (step + 1) % count;
  for (uint64_t i = 0; i < count && !finding.kind; i++, number = (number + step) % count)
    run_block(is_walk ? number : is_reversed ? count - 1 - i : i);
  if (!finding.kind && pending.size) {
    if (memcmp((void *)pending.place, pending.before, pending.size) != 0) finding = pending.finding;
    pending.size = 0;
  }
  return finding.kind != 0;
}

EXPORT const void *opsmith_finding() { return &finding; }
EXPORT const void *opsmith_suspicion() { return &suspicion; }
