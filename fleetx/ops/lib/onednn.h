// The glue between FleetX and oneDNN: one engine, exact conversion of layouts, and primitives whose
// memory arguments are bound to the slots of a kernel. Included by files in ops/ only.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <dnnl.hpp>

#include "fleetx/base/error.h"
#include "fleetx/ir/program.h"
#include "fleetx/kernel/kernel.h"

namespace fleetx::ops::onednn {

using dnnl::memory;

// The first call caps oneDNN's instruction set at what this CPU was found to survive.
const dnnl::engine& engine();
const dnnl::stream& stream();

// Descriptions of memory. A shape [] is described as [1].
memory::desc desc(DType dtype, const Shape& shape, const Layout& layout = Layout::plain());
memory::desc any_desc(DType dtype, const Shape& shape);
inline memory::desc desc(const kernel::Desc& d) { return desc(d.dtype, d.shape, d.layout); }
// Nothing where our Layout cannot say it: opaque Winograd weights, compensation, gaps in memory.
std::optional<Layout> layout_of(const memory::desc& md);

// Weights of a grouped convolution: [O, I, h, w] for us, [g, O/g, I, h, w] for oneDNN. Nothing
// where a block crosses the border of a group.
std::optional<memory::desc> grouped_desc(DType dtype, const Shape& shape, int64_t groups,
                                         const Layout& layout);
std::optional<Layout> grouped_layout_of(const memory::desc& md);

// Scratch memory comes from the plan, so every primitive is made with this.
dnnl::primitive_attr attributes();

// Runs fn; what oneDNN refuses becomes an error that names the op.
template <class Fn>
auto guarded(const ir::Op& op, Fn&& fn) {
  try {
    return fn();
  } catch (const dnnl::error& e) {
    fail(Error::Kind::kUnsupported, str(ir::describe(op), "oneDNN: ", e.what()));
  }
}

// Memory for the largest of several primitives that run one after another.
kernel::Slot scratch_for(kernel::Prepare& p, std::initializer_list<size_t> bytes);

// Says once for each op and its shapes that only reference code was found for it.
void warn_of_reference(const kernel::Prepare& p, std::string_view implementation);

// A primitive and its arguments.
//
//   mul_ = Primitive(p, matmul::primitive_desc(...));
//   mul_.arg(DNNL_ARG_SRC, x_, src).arg(DNNL_ARG_WEIGHTS, y_, weights)
//       .arg(DNNL_ARG_DST, out_, dst);
//   ... mul_.run(r);
class Primitive {
 public:
  Primitive() = default;
  explicit Primitive(const dnnl::primitive_desc_base& pd)
      : primitive_(pd.get()), implementation_(pd.impl_info_str()) {}
  // Books the scratch memory of a primitive that was made with attributes(); or uses what was
  // booked.
  Primitive(kernel::Prepare& p, const dnnl::primitive_desc_base& pd);
  Primitive(const kernel::Prepare& p, const dnnl::primitive_desc_base& pd, kernel::Slot scratch);
  Primitive(Primitive&&) = default;
  Primitive& operator=(Primitive&&) = default;

  explicit operator bool() const { return static_cast<bool>(primitive_); }
  Primitive& arg(int id, kernel::Slot slot, const memory::desc& md);
  void run(const kernel::Run& r);
  std::string_view implementation() const { return implementation_; }

 private:
  struct Bound {
    kernel::Slot slot;
    memory mem;
  };
  dnnl::primitive primitive_;
  std::string implementation_;
  std::vector<Bound> bound_;
  std::vector<dnnl_exec_arg_t> args_;
};

// A copy from one layout to another.
Primitive reorder(kernel::Prepare& p, kernel::Slot from, const memory::desc& from_md,
                  kernel::Slot to, const memory::desc& to_md);

// The names of a kernel's implementations: "jit:avx2, dx x64:gemm:jit"; one name where they are the
// same, or one of them is absent.
std::string names_of(const Primitive& first, std::string_view what, const Primitive& second);

}  // namespace fleetx::ops::onednn
