#include "fleetx/strategies/buckets.h"

#include <algorithm>
#include <map>

namespace fleetx::strategies {
namespace {

using Bucket = std::vector<Gradient>;
using Layers = std::vector<Bucket>;

std::string layer_of(const std::string& param) { return param.substr(0, param.find('.')); }

// By layer, in the order in which the layers' first gradients are made.
Layers by_layer(const std::vector<Gradient>& gradients) {
  Layers layers;
  std::map<std::string, size_t> place;
  for (const Gradient& g : gradients) {
    const auto [it, is_new] = place.emplace(layer_of(g.param), layers.size());
    if (is_new) layers.emplace_back();
    layers[it->second].push_back(g);
  }
  return layers;
}

void append_by_dtype(const Layers& layers, std::vector<Bucket>& out) {
  std::map<DType, Bucket> parts;
  for (const Bucket& layer : layers)
    for (const Gradient& g : layer) parts[g.dtype].push_back(g);
  for (auto& [dtype, part] : parts) out.push_back(std::move(part));
}

size_t bytes_of(const Bucket& gradients) {
  size_t bytes = 0;
  for (const Gradient& g : gradients) bytes += g.bytes;
  return bytes;
}

size_t bytes_of(const Layers& layers) {
  size_t bytes = 0;
  for (const Bucket& layer : layers) bytes += bytes_of(layer);
  return bytes;
}

// In halves until the last one is small. Less than `least` is not worth a call.
void cut_last(std::vector<Layers>& buckets, size_t small, size_t least) {
  while (!buckets.empty() && buckets.back().size() > 1 && bytes_of(buckets.back()) > small) {
    Layers& last = buckets.back();
    const size_t all = bytes_of(last);
    auto middle = last.begin();
    for (size_t before = 0; before < all / 2 && std::next(middle) != last.end(); ++middle)
      before += bytes_of(*middle);
    Layers rest(middle, last.end());
    if (bytes_of(rest) < least) return;
    last.erase(middle, last.end());
    buckets.push_back(std::move(rest));
  }
}

}  // namespace

std::vector<Bucket> make_buckets(const std::vector<Gradient>& gradients,
                                 const BucketLimits& limits) {
  std::vector<Layers> buckets;
  bool open = false;
  size_t bytes = 0, count = 0;
  for (const Bucket& layer : by_layer(gradients)) {
    if (!open) buckets.emplace_back();
    buckets.back().push_back(layer);
    bytes += bytes_of(layer);
    count += layer.size();
    const size_t enough = buckets.size() == 1 ? limits.first_bytes : limits.bytes;
    open = bytes < std::min(enough, limits.bytes) && count <= limits.count;
    if (!open) bytes = count = 0;
  }
  // What is left is not worth a call of its own.
  if (open && buckets.size() > 1 && bytes_of(buckets.back()) < limits.first_bytes) {
    const Layers left = std::move(buckets.back());
    buckets.pop_back();
    buckets.back().insert(buckets.back().end(), left.begin(), left.end());
  }
  cut_last(buckets, limits.bytes / 4, limits.first_bytes);
  std::vector<Bucket> out;
  for (const Layers& layers : buckets) append_by_dtype(layers, out);
  return out;
}

}  // namespace fleetx::strategies
