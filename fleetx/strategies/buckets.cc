#include "fleetx/strategies/buckets.h"

#include <map>

namespace fleetx::strategies {
namespace {

using Bucket = std::vector<Gradient>;

std::string layer_of(const std::string& param) { return param.substr(0, param.find('.')); }

// By layer, in the order in which the layers' first gradients are made.
std::vector<Bucket> by_layer(const std::vector<Gradient>& gradients) {
  std::vector<Bucket> layers;
  std::map<std::string, size_t> place;
  for (const Gradient& g : gradients) {
    const auto [it, is_new] = place.emplace(layer_of(g.param), layers.size());
    if (is_new) layers.emplace_back();
    layers[it->second].push_back(g);
  }
  return layers;
}

void append_by_dtype(const Bucket& bucket, std::vector<Bucket>& out) {
  std::map<DType, Bucket> parts;
  for (const Gradient& g : bucket) parts[g.dtype].push_back(g);
  for (auto& [dtype, part] : parts) out.push_back(std::move(part));
}

}  // namespace

std::vector<Bucket> make_buckets(const std::vector<Gradient>& gradients,
                                 const BucketLimits& limits) {
  std::vector<Bucket> out;
  Bucket open;
  size_t bytes = 0;
  for (const Bucket& layer : by_layer(gradients)) {
    for (const Gradient& g : layer) {
      open.push_back(g);
      bytes += g.bytes;
    }
    if (bytes < limits.bytes && open.size() <= limits.count) continue;
    append_by_dtype(open, out);
    open.clear();
    bytes = 0;
  }
  append_by_dtype(open, out);
  return out;
}

}  // namespace fleetx::strategies
