// What batch_norm and batch_norm_again share: out = act((x - mean) * factor + bias), channel by
// channel.
#pragma once

#include <cmath>

#include "fleetx/ops/lib/channels.h"

namespace fleetx::ops {

// The layout of x where channels can be found in it, else row-major.
inline Layout channel_layout(const Shape& shape, const Layout& layout) {
  return Channels::of(shape, layout) ? layout : Layout::plain();
}

inline float floor_of(const std::string& act) { return act == "relu" ? 0.0f : -INFINITY; }

template <class S>  // float, BFloat16 or Half
struct Normalize {
  const S* x;
  S* out;
  const float *mean, *factor, *bias;  // one value per channel, zero for the channels of the padding
  float floor;                        // 0 for relu, else -infinity

  // A large result is gone from the caches before anyone reads it. (In place it is there now.)
  bool past_caches(const Channels& c) const {
    constexpr int64_t kLarge = 1 << 18;
    return c.batch * c.padded() * c.spatial > kLarge && c.block % 8 == 0 && x != out;
  }

  template <bool kStream, class Lanes>
  void apply(const Strip& s, Lanes lanes) const {
    const Normalize n = *this;
    map_vectors(s, lanes, [n, c = s.channel]<class T>(T, int64_t i, int l) {
      const T away = load<T>(n.x + i) - load<T>(n.mean + c + l);
      const T y = away * load<T>(n.factor + c + l) + load<T>(n.bias + c + l);
      store<kStream>(n.out + i, T(y < n.floor ? T{} + n.floor : y));
    });
    if (kStream) finish_streams();
  }
};

}  // namespace fleetx::ops
