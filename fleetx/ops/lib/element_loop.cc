#include "fleetx/ops/lib/element_loop.h"

#include <array>
#include <map>

#include "fleetx/base/threads.h"

namespace fleetx::ops {
namespace {

std::map<std::string, MakeLoop, std::less<>>& registry() {
  static std::map<std::string, MakeLoop, std::less<>> loops;
  return loops;
}

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
  return it == registry().end() ? nullptr : it->second(attrs, dtype);
}

std::unique_ptr<kernel::Kernel> make_element_kernel(kernel::Prepare& p) {
  const DType dtype = p.in(p.op().def->inputs[0].name).dtype;
  auto loop = make_element_loop(p.op().type(), p.op().attrs, dtype);
  if (!loop) fail(Error::Kind::kUnsupported, str(ir::describe(p.op()), "no kernel for ", dtype));
  return std::make_unique<ElementKernel>(p, std::move(loop));
}

}  // namespace fleetx::ops
