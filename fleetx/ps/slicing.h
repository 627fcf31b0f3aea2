// How parameters are cut into blocks and dealt out to servers: a pure function of names, shapes and
// settings, which all processes of a job compute for themselves.
//
// With n servers and a least block size m, a parameter has min(n, max(1, numel / m)) blocks of
// equal size, rounded up to whole rows (a row: all dimensions but the first) for parameters of two
// or more dimensions; the last block is the rest. So a parameter is cut from 2 * m elements on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/shape.h"

namespace fleetx::ps {

enum class Dispatch : uint8_t {
  kRoundRobin,  // one running counter over all blocks in the order of parameters
  kHashName,    // a stable hash of the block's name
};

struct Slicing {
  bool slice_var_up = true;  // false: one block per parameter
  int64_t min_block_size = 8192;
  Dispatch dispatch = Dispatch::kRoundRobin;
};

struct NamedShape {
  std::string name;
  Shape shape;
};

struct Block {
  std::string name;  // of the parameter; with several blocks followed by .block0, .block1, ...
  size_t param = 0;  // index of its parameter
  int64_t begin = 0, end = 0;  // elements of the parameter
  int server = 0;
  int64_t size() const { return end - begin; }
};

// In the order of parameters, and of elements within one.
std::vector<Block> slice(const std::vector<NamedShape>& params, int servers,
                         const Slicing& slicing);

// The server of a row of a sparse table.
constexpr int server_of(uint64_t id, int servers) {
  return static_cast<int>(id % static_cast<uint64_t>(servers));
}

}  // namespace fleetx::ps
