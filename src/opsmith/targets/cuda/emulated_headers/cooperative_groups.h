// Groups of threads: the block, and tiles of 1 to 32 neighbours within a warp, with reductions over them. Those of a
// grid or of a cluster, groups that form at run time, and copies are not emulated.
#pragma once
#include "opsmith_emulator.h"

namespace cooperative_groups {
OPSMITH_PLAIN unsigned opsmith_rank() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

struct thread_block {
  static OPSMITH_INSIDE void sync(OPSMITH_LINE) { __syncthreads(opsmith_line); }
  static OPSMITH_INSIDE unsigned thread_rank() { return opsmith_rank(); }
  static OPSMITH_INSIDE unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static OPSMITH_INSIDE unsigned size() { return num_threads(); }
  static OPSMITH_INSIDE dim3 group_index() { return dim3(blockIdx); }
  static OPSMITH_INSIDE dim3 thread_index() { return dim3(threadIdx); }
  static OPSMITH_INSIDE dim3 group_dim() { return blockDim; }
  static OPSMITH_INSIDE dim3 dim_threads() { return blockDim; }
};
OPSMITH_PLAIN thread_block this_thread_block() { return thread_block(); }

template <unsigned Size, class Parent = void> class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "tiles of 1, 2, 4, 8, 16 or 32 threads");
  unsigned rank_, count_;  // of the tile among those of its parent

  static OPSMITH_INSIDE unsigned first() { return (unsigned)opsmith_lane() & ~(Size - 1); }
  static OPSMITH_INSIDE unsigned all() { return Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1; }
  static OPSMITH_INSIDE unsigned mask() { return all() << first(); }

 public:
  OPSMITH_INSIDE thread_block_tile(unsigned rank, unsigned count) : rank_(rank), count_(count) {}
  template <class P>
  OPSMITH_INSIDE thread_block_tile(const thread_block_tile<Size, P> &tile)
      : rank_(tile.meta_group_rank()), count_(tile.meta_group_size()) {}
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static OPSMITH_INSIDE unsigned thread_rank() { return opsmith_rank() % Size; }
  OPSMITH_INSIDE unsigned meta_group_rank() const { return rank_; }
  OPSMITH_INSIDE unsigned meta_group_size() const { return count_; }
  OPSMITH_INSIDE void sync(OPSMITH_LINE) const { __syncwarp(mask(), opsmith_line); }
  template <class T> OPSMITH_INSIDE T shfl(T v, int rank, OPSMITH_LINE) const {
    return __shfl_sync(mask(), v, rank, (int)Size, opsmith_line);
  }
  template <class T> OPSMITH_INSIDE T shfl_down(T v, unsigned delta, OPSMITH_LINE) const {
    return __shfl_down_sync(mask(), v, delta, (int)Size, opsmith_line);
  }
  template <class T> OPSMITH_INSIDE T shfl_up(T v, unsigned delta, OPSMITH_LINE) const {
    return __shfl_up_sync(mask(), v, delta, (int)Size, opsmith_line);
  }
  template <class T> OPSMITH_INSIDE T shfl_xor(T v, unsigned bits, OPSMITH_LINE) const {
    return __shfl_xor_sync(mask(), v, (int)bits, (int)Size, opsmith_line);
  }
  OPSMITH_INSIDE int any(int p, OPSMITH_LINE) const { return __any_sync(mask(), p, opsmith_line); }
  OPSMITH_INSIDE int all(int p, OPSMITH_LINE) const { return __all_sync(mask(), p, opsmith_line); }
  OPSMITH_INSIDE unsigned ballot(int p, OPSMITH_LINE) const {
    return (__ballot_sync(mask(), p, opsmith_line) & mask()) >> first();
  }
  template <class T> OPSMITH_INSIDE unsigned match_any(T v, OPSMITH_LINE) const {
    return __match_any_sync(mask(), v, opsmith_line) >> first();
  }
  template <class T> OPSMITH_INSIDE unsigned match_all(T v, int &is_same, OPSMITH_LINE) const {
    return __match_all_sync(mask(), v, &is_same, opsmith_line) >> first();
  }
};

template <unsigned Size> OPSMITH_PLAIN thread_block_tile<Size, thread_block> tiled_partition(const thread_block &) {
  return thread_block_tile<Size, thread_block>(opsmith_rank() / Size, (thread_block::size() + Size - 1) / Size);
}
template <unsigned Size, unsigned Outer, class P>
OPSMITH_PLAIN thread_block_tile<Size, thread_block_tile<Outer, P>> tiled_partition(const thread_block_tile<Outer, P> &) {
  static_assert(Size <= Outer, "a tile within a tile");
  return thread_block_tile<Size, thread_block_tile<Outer, P>>(opsmith_rank() % Outer / Size, Outer / Size);
}
template <class Group> OPSMITH_PLAIN void sync(const Group &group, OPSMITH_LINE) { group.sync(opsmith_line); }

// -- cooperative_groups/reduce.h

template <class T> struct plus {
  OPSMITH_INSIDE T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
  OPSMITH_INSIDE T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  OPSMITH_INSIDE T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
  OPSMITH_INSIDE T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
  OPSMITH_INSIDE T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
  OPSMITH_INSIDE T operator()(T a, T b) const { return a ^ b; }
};

template <unsigned Size, class P, class T, class Operation>
OPSMITH_PLAIN T reduce(const thread_block_tile<Size, P> &tile, T v, Operation operation, OPSMITH_LINE) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2) v = operation(v, tile.shfl_xor(v, bits, opsmith_line));
  return v;
}
}  // namespace cooperative_groups
