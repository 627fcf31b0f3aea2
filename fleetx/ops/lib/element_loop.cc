#include "fleetx/ops/lib/element_loop.h"

#include <array>
#include <map>

#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

std::map<std::string, MakeLoop, std::less<>>& registry() {
  static std::map<std::string, MakeLoop, std::less<>> loops;
  return loops;
}

// Block by block, so that the f32 values stay in the first-level cache.
class HalfLoop final : public ElementLoop {
 public:
  HalfLoop(std::unique_ptr<ElementLoop> loop, DType dtype)
      : loop_(std::move(loop)), dtype_(dtype) {}

  int inputs() const override { return loop_->inputs(); }
  void run(const void* const* in, void* out, int64_t n) const override {
    constexpr int64_t kBlock = 1024;
    alignas(64) float blocks[2][kBlock];
    const void* wide[] = {blocks[0], blocks[1]};
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t length = std::min(kBlock, n - at);
      for (int i = 0; i < loop_->inputs(); ++i)
        widen(dtype_, static_cast<const char*>(in[i]) + 2 * at, blocks[i], length);
      loop_->run(wide, blocks[0], length);
      narrow(blocks[0], dtype_, static_cast<char*>(out) + 2 * at, length);
    }
  }

 private:
  std::unique_ptr<ElementLoop> loop_;
  DType dtype_;
};

class ElementKernel final : public kernel::Kernel {
 public:
  ElementKernel(kernel::Prepare& p, std::unique_ptr<ElementLoop> loop) : loop_(std::move(loop)) {
    const ir::OpDef& def = *p.op().def;
    const Shape& shape = p.in(def.inputs[0].name).shape;
    Layout layout;
    for (const ir::SlotDef& slot : def.inputs)
      if (layout.is_plain()) layout = p.in(slot.name).layout;
    if (layout.has_padding(shape) && !loop_->keeps_zero()) layout = Layout::plain();
    for (const ir::SlotDef& slot : def.inputs) in_.push_back(p.input(slot.name, 0, layout));
    out_ = p.output(def.outputs[0].name, 0, layout);
    n_ = layout.stored(shape);
    unit_ = static_cast<int64_t>(size_of(p.in(def.inputs[0].name).dtype));
    FLEETX_CHECK(in_.size() <= kMostInputs, ir::describe(p.op()), in_.size(), " inputs");
  }

  void run(const kernel::Run& r) override {
    parallel_for(n_, 1 << 14, [&](int64_t begin, int64_t end) {
      std::array<const void*, kMostInputs> in{};
      for (size_t i = 0; i < in_.size(); ++i) in[i] = r.in<char>(in_[i]) + begin * unit_;
      loop_->run(in.data(), r.out<char>(out_) + begin * unit_, end - begin);
    });
  }

 private:
  static constexpr size_t kMostInputs = 2;
  std::unique_ptr<ElementLoop> loop_;
  std::vector<kernel::Slot> in_;
  kernel::Slot out_;
  int64_t n_, unit_;
};

}  // namespace

bool ElementLoop::keeps_zero() const {
  // Large enough for one element of any type; a zero is all zero bits in each of them.
  alignas(8) const std::array<char, 8> zero{};
  alignas(8) std::array<char, 8> out{};
  const std::array<const void*, 2> in{zero.data(), zero.data()};
  run(in.data(), out.data(), 1);
  return out == zero;
}

RegisterLoop::RegisterLoop(const std::string& type, MakeLoop make) {
  FLEETX_CHECK(registry().emplace(type, make).second, "two loops for op ", type);
}

std::unique_ptr<ElementLoop> make_element_loop(std::string_view type, const ir::Attrs& attrs,
                                               DType dtype) {
  const auto it = registry().find(type);
  if (it == registry().end()) return nullptr;
  if (!is_half(dtype)) return it->second(attrs, dtype);
  auto loop = it->second(attrs, f32);
  return loop ? std::make_unique<HalfLoop>(std::move(loop), dtype) : nullptr;
}

std::unique_ptr<kernel::Kernel> make_element_kernel(kernel::Prepare& p) {
  const DType dtype = p.in(p.op().def->inputs[0].name).dtype;
  auto loop = make_element_loop(p.op().type(), p.op().attrs, dtype);
  if (!loop) fail(Error::Kind::kUnsupported, str(ir::describe(p.op()), "no kernel for ", dtype));
  return std::make_unique<ElementKernel>(p, std::move(loop));
}

}  // namespace fleetx::ops
