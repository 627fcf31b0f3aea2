#include "fleetx/ops/lib/in_f32.h"

#include <algorithm>
#include <span>

#include "fleetx/base/error.h"
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

// fn(slot, i, desc) for every argument, in the order of their places.
template <class Fn>
void for_each_input(const kernel::Prepare& p, const Fn& fn) {
  for (const ir::SlotDef& slot : p.op().def->inputs)
    for (size_t i = 0; i < p.count(slot.name); ++i) fn(slot.name, i, p.in(slot.name, i));
}
template <class Fn>
void for_each_output(const kernel::Prepare& p, const Fn& fn) {
  for (const ir::SlotDef& slot : p.op().def->outputs)
    for (size_t i = 0; i < p.out_count(slot.name); ++i) fn(slot.name, i, p.out(slot.name, i));
}
template <class Fn>
void for_each_argument(const kernel::Prepare& p, const Fn& fn) {
  for_each_input(p, fn);
  for_each_output(p, fn);
}

bool in_list(std::span<const std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// How the samples are cut.
struct Cut {
  int64_t samples = 0, pieces = 1;  // no samples: nothing is cut

  int64_t piece() const { return samples / pieces; }
};

// As many pieces as divide the samples and are no larger than a share of the last-level cache.
Cut cut_of(const kernel::Prepare& p, const BySample& by) {
  constexpr int64_t kPiece = 16 << 20;  // bytes of f32
  constexpr int64_t kSums = 4;          // elements of the arguments for one of a sum that is added
  Cut cut;
  int64_t elements = 0, sums = 0;
  for_each_argument(p, [&](const std::string& slot, size_t, const kernel::Desc& d) {
    if (in_list(by.arguments, slot) && d.shape.rank() > 0 && cut.samples == 0)
      cut.samples = d.shape[0];
    if (in_list(by.arguments, slot)) elements += d.numel();
    if (in_list(by.sums, slot)) sums += d.numel();
  });
  const int64_t wanted = (4 * elements + kPiece - 1) / kPiece;
  const int64_t most = sums > 0 ? std::max<int64_t>(1, elements / (kSums * sums)) : wanted;
  for (int64_t n = 1; n <= std::min({2 * wanted, most, cut.samples}); ++n)
    if (cut.samples % n == 0 && cut.pieces < wanted) cut.pieces = n;
  return cut;
}

bool outermost(const Layout& layout) {
  return (layout.order.empty() || layout.order[0] == 0) &&
         std::none_of(layout.blocks.begin(), layout.blocks.end(),
                      [](const auto& block) { return block.dim == 0; });
}

class InF32 final : public kernel::Kernel {
 public:
  InF32(kernel::Prepare& p, MakeKernel make, const BySample& by) : cut_(cut_of(p, by)) {
    if (!prepare(p, make, by)) {
      cut_.pieces = 1;
      FLEETX_CHECK(prepare(p, make, by), ir::describe(p.op()), "cannot be prepared as a whole");
    }
    implementation_ = str(kernel_->implementation(), kernel_->implementation().empty() ? "" : ", ",
                          "converted to f32");
  }

  void run(const kernel::Run& r) override {
    for (size_t i = 0; i < scratch_.size(); ++i)
      pointers_[arguments_.size() + i] = r.raw(scratch_[i]);
    for (int64_t piece = 0; piece < cut_.pieces; ++piece) {
      for (size_t i = 0; i < arguments_.size(); ++i) pointers_[i] = before(r, arguments_[i], piece);
      kernel_->run(kernel::Run(pointers_.data()));
      for (size_t i = 0; i < arguments_.size(); ++i)
        if (arguments_[i].is_output) after(r, arguments_[i], piece, pointers_[i]);
    }
  }
  std::string_view implementation() const override { return implementation_; }

 private:
  struct Argument {
    kernel::Slot slot, copy;  // no copy: handed through
    kernel::Slot part;        // a sum's next part
    DType dtype;
    int64_t stored;  // elements; of a piece where it is cut
    bool is_output, is_cut, is_sum;
  };

  // False where the kernel wants a layout in which samples do not follow each other.
  bool prepare(kernel::Prepare& p, MakeKernel make, const BySample& by) {
    std::vector<kernel::Desc> in, out;
    const auto is_cut = [&](const std::string& slot, const kernel::Desc& d) {
      return cut_.pieces > 1 && in_list(by.arguments, slot) && d.shape.rank() > 0 &&
             d.shape[0] == cut_.samples;
    };
    const auto inner_desc = [&](const std::string& slot, kernel::Desc d) {
      if (is_cut(slot, d)) d.shape[0] = cut_.piece();
      if (is_half(d.dtype)) d.dtype = f32;
      return d;
    };
    for_each_input(p, [&](auto& slot, size_t, auto& d) { in.push_back(inner_desc(slot, d)); });
    for_each_output(p, [&](auto& slot, size_t, auto& d) { out.push_back(inner_desc(slot, d)); });
    const kernel::Setting setting{.skips = p.skips()};
    kernel::Prepare inner(p.op(), in, out, setting);
    kernel_ = make(inner);

    std::vector<Layout> layouts = inner.wanted_layouts();
    layouts.insert(layouts.end(), inner.made_layouts().begin(), inner.made_layouts().end());
    size_t place = 0;
    bool fits = true;
    for_each_argument(p, [&](const std::string& slot, size_t, const kernel::Desc& d) {
      fits &= !is_cut(slot, d) || outermost(layouts[place]);
      ++place;
    });
    if (!fits) return false;

    const auto& unread = p.op().def->shape_only;
    place = 0;
    const auto add = [&](kernel::Slot slot, const std::string& name, const kernel::Desc& d,
                         bool is_output) {
      const kernel::Desc& own = is_output ? out[place - in.size()] : in[place];
      const int64_t stored = layouts[place].stored(own.shape);
      Argument a{slot,
                 {},
                 {},
                 d.dtype,
                 stored,
                 is_output,
                 is_cut(name, d),
                 is_output && cut_.pieces > 1 && in_list(by.sums, name)};
      const auto room = [&] { return p.scratch(static_cast<size_t>(stored) * sizeof(float)); };
      if (is_half(d.dtype) && std::find(unread.begin(), unread.end(), name) == unread.end())
        a.copy = room();
      if (a.is_sum) a.part = room();
      arguments_.push_back(a);
      ++place;
    };
    for_each_input(p, [&](const std::string& slot, size_t i, const kernel::Desc& d) {
      add(p.input(slot, i, layouts[place]), slot, d, false);
    });
    for_each_output(p, [&](const std::string& slot, size_t i, const kernel::Desc& d) {
      add(p.output(slot, i, layouts[place]), slot, d, true);
    });
    for (const size_t bytes : inner.scratch_bytes()) scratch_.push_back(p.scratch(bytes));
    pointers_.resize(arguments_.size() + scratch_.size());
    return true;
  }

  static char* place_of(const kernel::Run& r, const Argument& a, int64_t piece) {
    const int64_t first = a.is_cut ? piece * a.stored : 0;
    return r.out<char>(a.slot) + first * static_cast<int64_t>(size_of(a.dtype));
  }

  // Where the kernel finds the argument.
  static void* before(const kernel::Run& r, const Argument& a, int64_t piece) {
    if (a.is_sum && piece > 0) return r.raw(a.part);
    if (!a.copy) return place_of(r, a, piece);
    if (!a.is_output && (a.is_cut || piece == 0))
      widen_all(a.dtype, place_of(r, a, piece), r.out<float>(a.copy), a.stored);
    return r.raw(a.copy);
  }

  void after(const kernel::Run& r, const Argument& a, int64_t piece, const void* made) const {
    if (a.is_sum && piece > 0) {
      float* sum = r.out<float>(a.copy ? a.copy : a.slot);
      const auto* part = static_cast<const float*>(made);
      parallel_for(a.stored, 1 << 15, [=](int64_t begin, int64_t end) {
        vectorized([=] {
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i) sum[i] += part[i];
        });
      });
    }
    if (a.copy && (a.is_cut || piece == cut_.pieces - 1))
      narrow_all(r.in<float>(a.copy), a.dtype, place_of(r, a, piece), a.stored);
  }

  Cut cut_;
  std::unique_ptr<kernel::Kernel> kernel_;
  std::string implementation_;
  std::vector<Argument> arguments_;  // inputs, outputs
  std::vector<kernel::Slot> scratch_;
  std::vector<void*> pointers_;  // of a step, here because steps allocate nothing
};

}  // namespace

bool has_half(const kernel::Prepare& p) {
  bool found = false;
  for_each_argument(p, [&](auto&, size_t, const kernel::Desc& d) { found |= is_half(d.dtype); });
  return found;
}

std::unique_ptr<kernel::Kernel> make_in_f32(kernel::Prepare& p, MakeKernel make,
                                            const BySample& by) {
  return std::make_unique<InF32>(p, make, by);
}

}  // namespace fleetx::ops
