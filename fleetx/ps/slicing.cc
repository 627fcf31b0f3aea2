#include "fleetx/ps/slicing.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"

namespace fleetx::ps {
namespace {

// Elements of a block; the last one may have fewer.
int64_t block_size(const Shape& shape, int servers, const Slicing& slicing) {
  const int64_t numel = shape.numel();
  if (!slicing.slice_var_up || numel == 0) return numel;
  const int64_t blocks =
      std::min<int64_t>(servers, std::max<int64_t>(1, numel / slicing.min_block_size));
  const int64_t size = (numel + blocks - 1) / blocks;
  if (shape.rank() < 2) return size;
  const int64_t row = shape.numel(1, shape.rank());
  return (size + row - 1) / row * row;
}

}  // namespace

std::vector<Block> slice(const std::vector<NamedShape>& params, int servers,
                         const Slicing& slicing) {
  check_arg(servers > 0, "parameters cannot be dealt out to ", servers, " servers");
  check_arg(slicing.min_block_size > 0, "min_block_size is ", slicing.min_block_size,
            "; expected a number above 0");
  std::vector<Block> blocks;
  for (size_t p = 0; p < params.size(); ++p) {
    const auto& [name, shape] = params[p];
    check_arg(shape.known(), "parameter '", name, "' has the shape ", shape,
              "; a server needs a known one");
    const int64_t numel = shape.numel(), size = block_size(shape, servers, slicing);
    const bool one = size >= numel;
    int64_t begin = 0;
    do {
      Block block{.name = one ? name : str(name, ".block", begin / size),
                  .param = p,
                  .begin = begin,
                  .end = one ? numel : std::min(begin + size, numel)};
      begin = block.end;
      const uint64_t place =
          slicing.dispatch == Dispatch::kRoundRobin ? blocks.size() : stable_hash(block.name);
      block.server = static_cast<int>(place % static_cast<uint64_t>(servers));
      blocks.push_back(std::move(block));
    } while (begin < numel);
  }
  return blocks;
}

}  // namespace fleetx::ps
