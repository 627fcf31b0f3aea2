#include "fleetx/ops/lib/onednn.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "fleetx/base/cpu.h"
#include "fleetx/base/log.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/op_def.h"
#include "fleetx/kernel/implementation.h"

namespace fleetx::ops::onednn {
namespace {

dnnl::cpu_isa cap() {
  switch (cpu::best_isa()) {
    case cpu::Isa::kSse: return dnnl::cpu_isa::sse41;
    case cpu::Isa::kAvx2: return dnnl::cpu_isa::avx2;
    case cpu::Isa::kAvx512: return dnnl::cpu_isa::avx512_core;
    case cpu::Isa::kAvx512Bf16: return dnnl::cpu_isa::avx512_core_bf16;
    case cpu::Isa::kAmx: return dnnl::cpu_isa::avx512_core_amx;
  }
  return dnnl::cpu_isa::sse41;
}

dnnl::engine make_engine() {
  // Too late if somebody else in this process used oneDNN already; then their cap holds.
  dnnl::set_max_cpu_isa(cap());
  num_threads();  // primitives are built for the number of threads in force
  return {dnnl::engine::kind::cpu, 0};
}

memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return memory::data_type::f32;
    case DType::kBF16: return memory::data_type::bf16;
    case DType::kF16: return memory::data_type::f16;
    case DType::kI32: return memory::data_type::s32;
    case DType::kU8:
    case DType::kBool: return memory::data_type::u8;
    default: fail(Error::Kind::kUnsupported, str("oneDNN has no ", dtype));
  }
}

memory::dims dims_of(const Shape& shape) {
  return shape.rank() == 0 ? memory::dims{1} : memory::dims(shape.begin(), shape.end());
}

// Where a dimension has one (block of) element, its place in the order does not matter: each goes
// before the first larger one, so that equal memory has equal layouts.
std::vector<int> with_unit_dims(std::vector<int> order, const std::vector<int>& unit) {
  for (const int d : unit)
    order.insert(std::find_if(order.begin(), order.end(), [d](int other) { return other > d; }), d);
  return order;
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine one = make_engine();
  return one;
}

const dnnl::stream& stream() {
  static const dnnl::stream one(engine());
  return one;
}

memory::desc any_desc(DType dtype, const Shape& shape) {
  return {dims_of(shape), type_of(dtype), memory::format_tag::any};
}

memory::desc desc(DType dtype, const Shape& shape, const Layout& layout) {
  const Shape full = shape.rank() == 0 ? Shape{1} : shape;
  const Shape padded = layout.padded(full);
  dnnl_memory_desc_t md{};
  md.ndims = full.rank();
  md.data_type = memory::convert_to_c(type_of(dtype));
  md.format_kind = dnnl_blocked;
  std::copy(full.begin(), full.end(), md.dims);
  std::copy(padded.begin(), padded.end(), md.padded_dims);
  dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
  int64_t stride = 1;
  for (const Layout::Block& block : layout.blocks) {
    blocking.inner_blks[blocking.inner_nblks] = block.size;
    blocking.inner_idxs[blocking.inner_nblks++] = block.dim;
    stride *= block.size;
  }
  for (int position = full.rank() - 1; position >= 0; --position) {
    const int d = layout.order.empty() ? position : layout.order[static_cast<size_t>(position)];
    blocking.strides[d] = stride;
    stride *= std::max<int64_t>(padded[d] / layout.block_of(d), 1);
  }
  return md;
}

std::optional<Layout> layout_of(const memory::desc& described) {
  const dnnl_memory_desc_t& md = described.data;
  if (md.format_kind != dnnl_blocked || md.extra.flags != dnnl_memory_extra_flag_none ||
      md.offset0 != 0)
    return std::nullopt;
  const dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
  Layout layout;
  int64_t stride = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    layout.blocks.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
    stride *= blocking.inner_blks[i];
  }
  const Shape shape(std::vector<int64_t>(md.dims, md.dims + md.ndims));
  const Shape padded = layout.padded(shape);
  std::vector<int> unit;
  const auto count = [&](int d) { return padded[d] / layout.block_of(d); };
  for (int d = 0; d < md.ndims; ++d) {
    if (padded[d] != md.padded_dims[d] || md.padded_offsets[d] != 0) return std::nullopt;
    (count(d) > 1 ? layout.order : unit).push_back(d);
  }
  std::stable_sort(layout.order.begin(), layout.order.end(),
                   [&](int a, int b) { return blocking.strides[a] > blocking.strides[b]; });
  for (auto d = layout.order.rbegin(); d != layout.order.rend(); ++d) {
    if (blocking.strides[*d] != stride) return std::nullopt;
    stride *= count(*d);
  }
  layout.order = with_unit_dims(std::move(layout.order), unit);
  if (layout.blocks.empty() && std::is_sorted(layout.order.begin(), layout.order.end()))
    return Layout::plain();
  return layout;
}

std::optional<memory::desc> grouped_desc(DType dtype, const Shape& shape, int64_t groups,
                                         const Layout& layout) {
  const int64_t per_group = shape[0] / groups;
  Shape split{groups, per_group};
  for (int d = 1; d < shape.rank(); ++d) split.push_back(shape[d]);
  // Depthwise weights are blocked over the groups, others inside each group.
  const int blocked = per_group == 1 ? 0 : 1;
  if (blocked == 1 && per_group % layout.block_of(0) != 0) return std::nullopt;
  Layout out;
  for (const int d : layout.order) {
    if (d == 0) out.order.push_back(0);
    out.order.push_back(d + 1);
  }
  for (const Layout::Block& block : layout.blocks)
    out.blocks.push_back({block.dim == 0 ? blocked : block.dim + 1, block.size});
  return desc(dtype, split, out);
}

std::optional<Layout> grouped_layout_of(const memory::desc& md) {
  const std::optional<Layout> split = layout_of(md);
  if (!split || split->is_plain()) return split;
  const int64_t per_group = md.data.dims[1];
  const int blocked = per_group == 1 ? 0 : 1;
  if (split->block_of(1 - blocked) != 1 || (blocked == 1 && per_group % split->block_of(1) != 0))
    return std::nullopt;
  Layout out;
  for (size_t i = 0; i < split->order.size(); ++i) {
    const int d = split->order[i];
    if (d == 0 && per_group != 1 && (i + 1 == split->order.size() || split->order[i + 1] != 1))
      return std::nullopt;
    if (d != 1) out.order.push_back(d == 0 ? 0 : d - 1);
  }
  for (const Layout::Block& block : split->blocks)
    out.blocks.push_back({block.dim <= 1 ? 0 : block.dim - 1, block.size});
  if (out.blocks.empty() && std::is_sorted(out.order.begin(), out.order.end()))
    return Layout::plain();
  return out;
}

dnnl::primitive_attr attributes() {
  engine();  // the cap must come before anything else of oneDNN
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

kernel::Slot scratch_for(kernel::Prepare& p, std::initializer_list<size_t> bytes) {
  const size_t most = std::max(bytes);
  return most > 0 ? p.scratch(most) : kernel::Slot();
}

void warn_of_reference(const kernel::Prepare& p, std::string_view implementation) {
  if (!kernel::is_reference(implementation)) return;
  constexpr int64_t kWorthAWarning = 1 << 16;  // elements; the plan's table marks all
  int64_t elements = 0;
  std::string shapes;
  for (const ir::SlotDef& slot : ir::op_def(p.op().type()).inputs)
    for (size_t i = 0; i < p.count(slot.name); ++i) {
      elements += p.in(slot.name, i).numel();
      shapes += str(shapes.empty() ? "" : ", ", slot.name, " ", p.in(slot.name, i).dtype,
                    p.in(slot.name, i).shape);
    }
  if (elements < kWorthAWarning) return;
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  if (!said.insert(str(p.op().type(), shapes)).second) return;
  log::warning("onednn", ir::describe(p.op()), "oneDNN has only reference code (", implementation,
               ") for ", shapes, "; it may take much longer than generated code. ",
               p.op().type().starts_with("conv")
                   ? "Numbers of channels that are multiples of 8 have generated code. "
                   : "",
               "`fleetx plan` marks such steps with '<- slow'");
}

Primitive::Primitive(kernel::Prepare& p, const dnnl::primitive_desc_base& pd)
    : Primitive(p, pd, scratch_for(p, {pd.scratchpad_desc().get_size()})) {}

Primitive::Primitive(const kernel::Prepare& p, const dnnl::primitive_desc_base& pd,
                     kernel::Slot scratch)
    : Primitive(pd) {
  warn_of_reference(p, implementation_);
  const memory::desc needed = pd.scratchpad_desc();
  if (needed.get_size() > 0) arg(DNNL_ARG_SCRATCHPAD, scratch, needed);
}

Primitive& Primitive::arg(int id, kernel::Slot slot, const memory::desc& md) {
  if (!slot) return *this;  // an optional argument that was left out
  bound_.push_back({slot, memory(md, engine(), DNNL_MEMORY_NONE)});
  args_.push_back({id, bound_.back().mem.get()});
  return *this;
}

void Primitive::run(const kernel::Run& r) {
  for (size_t i = 0; i < bound_.size(); ++i) {
    // Setting a pointer makes oneDNN clear the padding behind it: only where it has changed.
    void* now = r.raw(bound_[i].slot);
    void* before = nullptr;
    dnnl_memory_get_data_handle(args_[i].memory, &before);
    if (now != before) dnnl_memory_set_data_handle(args_[i].memory, now);
  }
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream().get(),
                                                      static_cast<int>(args_.size()), args_.data());
  FLEETX_CHECK(status == dnnl_success, implementation_, " failed with status ", status);
}

Primitive reorder(kernel::Prepare& p, kernel::Slot from, const memory::desc& from_md,
                  kernel::Slot to, const memory::desc& to_md) {
  Primitive copy(p,
                 dnnl::reorder::primitive_desc(engine(), from_md, engine(), to_md, attributes()));
  copy.arg(DNNL_ARG_FROM, from, from_md).arg(DNNL_ARG_TO, to, to_md);
  return copy;
}

std::string names_of(const Primitive& first, std::string_view what, const Primitive& second) {
  const std::string_view a = first.implementation(), b = second.implementation();
  if (!first || !second || a == b) return std::string(first ? a : b);
  return str(a, ", ", what, " ", b);
}

}  // namespace fleetx::ops::onednn
