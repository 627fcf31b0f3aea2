#include "fleetx/ops/lib/pointwise.h"

#include <algorithm>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"

namespace fleetx::ops {

bool Pointwise::wanted(const Convolution& c) {
  const ir::Ints one{1, 1}, none{0, 0};
  if (c.groups != 1 || c.weights[2] != 1 || c.weights[3] != 1 || c.stride != one ||
      c.pad_before != none || c.pad_after != none || c.src[1] % kBlock + c.dst[1] % kBlock != 0)
    return false;
  // A packed place must be used for many outputs, and packed weights for many places.
  const int64_t places = c.src[0] * c.src[2] * c.src[3];
  return std::min(c.src[1], c.dst[1]) >= 128 && places >= 512 &&
         amx::Product{places, c.src[1], c.dst[1]}.wanted();
}

Pointwise::Pointwise(kernel::Prepare& /*p*/, ConvPass pass, const Convolution& c,
                     const ConvOptions& options)
    : pass_(pass),
      relu_(options.relu),
      inputs_(c.src[1]),
      outputs_(c.dst[1]),
      places_(c.src[2] * c.src[3]) {
  const int64_t all = c.src[0] * places_;
  product_ = pass == ConvPass::kForward ? amx::Product{all, inputs_, outputs_}
             : pass == ConvPass::kData  ? amx::Product{all, outputs_, inputs_}
                                        : amx::Product{outputs_, all, inputs_};
  amx::prepare();
}

void Pointwise::run(const kernel::Run& r) const {
  const amx::Axis channels{1, kBlock, places_ * kBlock};
  const auto places = [this](int64_t of) { return amx::Axis{kBlock, places_, of * places_}; };
  switch (pass_) {
    case ConvPass::kForward: {
      float* out = r.out<float>(dst_);
      product_.run({r.in<float>(src_), places(inputs_), channels},
                   {r.in<float>(weights_), {inputs_}, {1}}, {out, places(outputs_), channels},
                   {r.in<float>(bias_)});
      if (!relu_) return;
      parallel_for(product_.rows * outputs_, 1 << 15, [=](int64_t begin, int64_t end) {
        vectorized([=] {
          for (int64_t i = begin; i < end; ++i) out[i] = out[i] < 0 ? 0.0f : out[i];
        });
      });
      return;
    }
    case ConvPass::kData:
      return product_.run({r.in<float>(dst_), places(outputs_), channels},
                          {r.in<float>(weights_), {1}, {inputs_}},
                          {r.out<float>(src_), places(inputs_), channels});
    case ConvPass::kWeights:
      return product_.run({r.in<float>(dst_), channels, places(outputs_)},
                          {r.in<float>(src_), channels, places(inputs_)},
                          {r.out<float>(weights_), {inputs_}, {1}});
  }
}

}  // namespace fleetx::ops
