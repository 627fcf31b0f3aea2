// A Kernel is prepared once, bound once and run many times. Its constructor takes a Prepare: it
// chooses layouts, builds primitives, books scratch memory, and may throw. It sees neither memory
// nor other ranks, so a kernel of any rank of any mesh can be prepared anywhere. `bind` gives those
// that compute together their communicators. `run` only computes: no allocation, no lookups, no
// choices.
//
//   class ScaleKernel final : public Kernel {
//    public:
//     explicit ScaleKernel(Prepare& p)
//         : x_(p.input("x")), y_(p.output("y")), n_(p.in("x").numel()) {}
//     void run(const Run& r) override {
//       ... r.in<float>(x_) ... r.out<float>(y_) ...
//     }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/base/rng.h"
#include "fleetx/ir/program.h"
#include "fleetx/tensor/buffer.h"
#include "fleetx/tensor/layout.h"

// Only the kernels that compute together need to see them (kernel/group.h).
namespace fleetx::comm {
class Groups;
}  // namespace fleetx::comm

namespace fleetx::kernel {

class Group;

// An argument with everything known.
struct Desc {
  DType dtype = DType::kF32;
  Shape shape;
  Layout layout;
  ir::VarKind kind = ir::VarKind::kDense;
  int64_t rows = 0;  // kSparseRows: capacity

  int64_t numel() const { return shape.numel(); }
  int64_t stored() const { return layout.stored(shape); }  // elements in memory, padding included
  size_t bytes() const;
};

// Sparse rows in memory: a count, then ids, then one row of values per id. An id may stand there
// several times; their values add up. Rows beyond the count are undefined.
struct SparseRows {
  int64_t* count;
  int64_t* ids;
  float* values;

  static SparseRows at(void* base, int64_t capacity) {
    auto* bytes = static_cast<char*>(base);
    return {reinterpret_cast<int64_t*>(bytes), reinterpret_cast<int64_t*>(bytes + kAlignment),
            reinterpret_cast<float*>(bytes + values_offset(capacity))};
  }
  static size_t values_offset(int64_t capacity) {
    return kAlignment + align_up(static_cast<size_t>(capacity) * 8);
  }
};

// Handle on an argument: its place in the pointer table of a step. Default: left out.
struct Slot {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
};

// The random numbers of one op. A kernel that draws anew in every step keeps this and asks for the
// step's numbers in run.
struct RandomStream {
  uint64_t seed, op;
  Philox at(uint64_t step) const { return {seed, mix(op, step)}; }
};

// What the user asked to skip (FLEETX_SKIP).
struct SkipFlags {
  bool layout = false;    // row-major layouts only
  bool winograd = false;  // convolutions by their definition only
  bool strassen = false;  // products by their definition only
};

// What a plan is made with, the same for all its kernels.
struct Setting {
  uint64_t seed = 0;  // of the program
  SkipFlags skips = {};
  // Where this rank stands. A group that is no axis of it is looked up in `groups`, which may be
  // null.
  Mesh mesh = {};
  std::shared_ptr<const comm::Groups> groups = nullptr;
};

// Inputs that lie next to each other, in this order, in memory of a group of ranks, and nothing
// else ever does: the op that computes one of them writes it there. Each begins on a 64-byte
// boundary; room between them is zero. `tail` bytes follow.
struct Bucket {
  std::string group = {};
  std::vector<int> inputs = {};  // places among all inputs of the op
  size_t bytes = 0;              // without the tail
  size_t tail = 0;
  size_t place = 0;  // among the op's scratch memory: where the kernel finds its beginning
};

class Prepare {
 public:
  Prepare(const ir::Op& op, std::vector<Desc> inputs, std::vector<Desc> outputs,
          const Setting& setting);

  const ir::Op& op() const { return op_; }
  template <class T>
  T attr(std::string_view name) const {
    return op_.attr<T>(name);
  }
  bool has(std::string_view slot) const { return op_.has_in(slot); }
  bool has_out(std::string_view slot) const { return op_.has_out(slot); }
  size_t count(std::string_view slot) const { return op_.in(slot).size(); }
  size_t out_count(std::string_view slot) const { return op_.out(slot).size(); }
  // With the layout in which it stands in memory now.
  const Desc& in(std::string_view slot, size_t i = 0) const;
  const Desc& out(std::string_view slot, size_t i = 0) const;

  // Bind arguments. An input in another layout than asked for is reordered by the plan before this
  // kernel.
  Slot input(std::string_view slot, size_t i = 0) { return input(slot, i, Layout::plain()); }
  Slot input(std::string_view slot, size_t i, const Layout& wanted);
  Slot input_as_is(std::string_view slot, size_t i = 0) {
    return input(slot, i, in(slot, i).layout);
  }
  std::vector<Slot> inputs(std::string_view slot);
  Slot output(std::string_view slot, size_t i = 0) { return output(slot, i, Layout::plain()); }
  Slot output(std::string_view slot, size_t i, const Layout& made);
  std::vector<Slot> outputs(std::string_view slot);
  // All inputs of a list, as they are, in one bucket; the slot is where it begins, or null: they
  // could not be put there (state, what is fed). The op must also write them, and does so in place.
  Slot bucket(std::string_view slot, const Group& group, size_t tail);
  // Memory that this kernel may use during run; it keeps nothing from one run to the next.
  Slot scratch(size_t bytes);

  const SkipFlags& skips() const { return setting_.skips; }
  // The group of ranks of this name, still without its communicator; unknown: kInvalidArgument.
  Group group(std::string_view name) const;
  // The place of this rank among those that share a batch along these axes, outermost first: the
  // coordinate on the first one * the size of the second + ...; 0 where there are none.
  int64_t place_along(const ir::Strings& axes) const;
  // Seed and stream of this op's random numbers: op attribute `seed`, else the program's; name of
  // its first output.
  RandomStream random_stream() const;
  Philox random(uint64_t step = 0) const { return random_stream().at(step); }

  // For the planner.
  const std::vector<Layout>& wanted_layouts() const { return wanted_; }
  const std::vector<Layout>& made_layouts() const { return made_; }
  const std::vector<size_t>& scratch_bytes() const { return scratch_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  int input_position(std::string_view slot, size_t i) const;
  int output_position(std::string_view slot, size_t i) const;

  const ir::Op& op_;
  std::vector<Desc> in_, out_;
  std::vector<Layout> wanted_, made_;
  std::vector<size_t> scratch_;
  std::vector<Bucket> buckets_;
  const Setting& setting_;
};

// The pointers of one step: inputs, outputs, scratch.
class Run {
 public:
  explicit Run(void* const* pointers) : p_(pointers) {}
  template <class T>
  const T* in(Slot slot) const {
    return slot ? static_cast<const T*>(p_[slot.index]) : nullptr;
  }
  template <class T>
  T* out(Slot slot) const {
    return slot ? static_cast<T*>(p_[slot.index]) : nullptr;
  }
  void* raw(Slot slot) const { return slot ? p_[slot.index] : nullptr; }
  SparseRows rows(Slot slot, int64_t capacity) const {
    return SparseRows::at(p_[slot.index], capacity);
  }

 private:
  void* const* p_;
};

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  // Called once, after all kernels of a plan are prepared and before the first run.
  virtual void bind(const comm::Groups& /*groups*/) {}
  virtual void run(const Run& r) = 0;
  // What was chosen, for the plan's table: "jit:avx512_core", "plain loop".
  virtual std::string_view implementation() const { return ""; }
};

}  // namespace fleetx::kernel
