// uniform_like: numbers in [0, 1), one for each element of `like`, of which only the shape counts;
// f32. Element i is number place * numel + i of the random stream (seed, name of out, step), place
// being that of this rank among those that share the batch along `axes` of the mesh: ranks with
// equal shares of a batch draw what one draws for the whole of it. No gradient.
#include <array>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  if (c.has("step"))
    c.check(c.in("step").dtype == i64 && c.in("step").shape.numel() == 1, c.show("step"),
            "; expected i64[1]");
  c.out("out") = {f32, c.in("like").shape};
}

class UniformLike final : public kernel::Kernel {
 public:
  explicit UniformLike(kernel::Prepare& p)
      : stream_(p.random_stream()),
        n_(p.out("out").numel()),
        first_(static_cast<uint64_t>(p.place_along(p.attr<ir::Strings>("axes")) * n_)),
        step_(p.input("step")),
        out_(p.output("out")) {}

  void run(const kernel::Run& r) override {
    const int64_t* step = r.in<int64_t>(step_);
    const Philox random = stream_.at(step ? static_cast<uint64_t>(*step) : 0);
    auto* out = r.out<float>(out_);
    const uint64_t first = first_;
    parallel_for(n_, 1 << 14, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        std::array<uint32_t, kChunk + 4> words;
        for (int64_t at = begin; at < end; at += kChunk) {
          const int64_t n = std::min(kChunk, end - at);
          const uint64_t index = first + static_cast<uint64_t>(at);
          random.blocks(index / 4, kChunk / 4 + 1, words.data());
          const uint32_t* word = words.data() + index % 4;
          for (int64_t i = 0; i < n; ++i)
            out[at + i] = static_cast<float>(static_cast<int32_t>(word[i] >> 8)) * 0x1p-24f;
        }
      });
    });
  }

 private:
  static constexpr int64_t kChunk = 256;
  kernel::RandomStream stream_;
  int64_t n_;
  uint64_t first_;
  kernel::Slot step_, out_;
};

FLEETX_OP(uniform_like)
    .input("like")
    .input("step", ir::Arity::kOptional)
    .output("out")
    .attr("seed", 0)
    .infer(infer)
    .kernel<UniformLike>()
    .draws_per_sample()
    .shape_only("like");

}  // namespace
}  // namespace fleetx::ops
