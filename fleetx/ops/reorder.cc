// Not an op: the kernel by which the plan copies a tensor from one layout to another.
#include "fleetx/kernel/reorder.h"

#include "fleetx/ops/lib/onednn.h"

namespace fleetx::ops {
namespace {

class Reorder final : public kernel::Kernel {
 public:
  Reorder(const kernel::Desc& from, const kernel::Desc& to) {
    const auto src = onednn::desc(from), dst = onednn::desc(to);
    const dnnl::engine& engine = onednn::engine();
    reorder_ = onednn::Primitive(dnnl::reorder::primitive_desc(engine, src, engine, dst));
    reorder_.arg(DNNL_ARG_FROM, {0}, src).arg(DNNL_ARG_TO, {1}, dst);
  }
  void run(const kernel::Run& r) override { reorder_.run(r); }
  std::string_view implementation() const override { return reorder_.implementation(); }

 private:
  onednn::Primitive reorder_;
};

// For the types that oneDNN has not.
class PlainReorder final : public kernel::Kernel {
 public:
  PlainReorder(const kernel::Desc& from, const kernel::Desc& to) : from_(from), to_(to) {}
  void run(const kernel::Run& r) override {
    convert_layout(from_.dtype, from_.shape, r.raw({0}), from_.layout, r.raw({1}), to_.layout);
  }
  std::string_view implementation() const override { return "plain loop"; }

 private:
  kernel::Desc from_, to_;
};

std::unique_ptr<kernel::Kernel> make(const kernel::Desc& from, const kernel::Desc& to) {
  switch (from.dtype) {
    case DType::kF32:
    case DType::kI32:
    case DType::kBF16:
    case DType::kU8:
    case DType::kBool: return std::make_unique<Reorder>(from, to);
    default: return std::make_unique<PlainReorder>(from, to);
  }
}

const kernel::RegisterReorder registration(make);

}  // namespace
}  // namespace fleetx::ops
