// A runtime of CUDA that launches nothing and prints what it was asked for: kernel, grid, block, shared memory.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <map>
#include <string>

inline std::map<const void *, std::string> &kernel_names() {
  static std::map<const void *, std::string> names;
  return names;
}

extern "C" {
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **, size_t shared, cudaStream_t) {
  std::printf("[\"%s\", [%u, %u, %u], [%u, %u, %u], %zu]\n", kernel_names()[kernel].c_str(), grid.x, grid.y, grid.z,
              block.x, block.y, block.z, shared);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "an error"; }
}
