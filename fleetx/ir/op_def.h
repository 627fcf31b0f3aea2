// What the framework knows about an op type: its slots, attributes and functions. One OpDef per
// type, registered by FLEETX_OP in fleetx/ops/<name>.cc (see kernel/op.h); never changed after
// start-up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetx/ir/attr.h"

namespace fleetx::kernel {
class Kernel;
class Prepare;
}  // namespace fleetx::kernel

namespace fleetx::ir {

class Infer;
class Grad;

enum class Arity : uint8_t { kOne, kOptional, kMany };

struct SlotDef {
  std::string name;
  Arity arity = Arity::kOne;
};

struct AttrDef {
  std::string name;
  AttrType type;
  std::optional<Attr> fallback;  // none: the attribute must be given
};

enum class CommKind : uint8_t {
  kNone,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSend,
  kReceive
};
std::string_view name_of(CommKind kind);

// What an op moves between the ranks of a group.
struct Communication {
  CommKind kind = CommKind::kNone;
  std::string group = {};
  // Of this rank's argument: the vector that is reduced or sent, the own part of what is gathered,
  // all parts that are exchanged.
  double bytes = 0;
};

// Bytes that one of `ranks` ranks sends, by algorithms that spread the work evenly (rings).
double wire_bytes(const Communication& communication, int ranks);

struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written in memory
  Communication communication = {};
};

struct OpDef {
  std::string type;
  std::vector<SlotDef> inputs, outputs;
  std::vector<AttrDef> attrs;

  void (*infer)(Infer&) = nullptr;  // shapes and dtypes of outputs; checks every precondition
  void (*grad)(Grad&) =
      nullptr;  // emits ops that compute input gradients; null: not differentiable
  Cost (*cost)(const Infer&) = nullptr;  // null: no flops, bytes of all arguments
  std::unique_ptr<kernel::Kernel> (*make_kernel)(kernel::Prepare&) = nullptr;

  // An optimizer's op: the parameters of its input list `param` move by the gradients of `grad`.
  bool updates_parameters = false;
  bool side_effect = false;  // never removed as dead code (print, check_finite)
  // Computes together with the ranks that the attribute `group` names; see is_collective().
  bool collective = false;
  // Of a collective: outputs that are the same on all ranks of the group.
  std::vector<std::string> uniform_outputs;
  bool random = false;  // reads the random stream
  // Draws numbers for each sample: its attribute `axes` names the mesh axes along which the batch
  // is split, outermost first, so that ranks together draw what one draws for the whole batch.
  bool draws_per_sample = false;
  // out[i] depends on element i of the inputs only, all inputs and outputs have one shape and
  // dtype, and ops/lib/element_loop.h has its inner loop: a chain of such ops can be one
  // fused_elementwise. (Of the binary family this holds for calls whose inputs have equal shapes.)
  bool element_wise = false;
  // Inputs of which the kernel reads only shape and dtype: they need not be kept in memory for it.
  std::vector<std::string> shape_only;
  // (output, input): the output may be written over the input's memory, element by element.
  std::vector<std::pair<std::string, std::string>> in_place;

  // The output has the bytes of the input (reshape): memory is shared even while the input lives
  // on.
  bool view = false;

  int input_index(std::string_view slot) const;  // kInternal where there is none
  int output_index(std::string_view slot) const;
  const AttrDef* find_attr(std::string_view name) const;
};

// Registered ops by name.
const OpDef* find_op(std::string_view type);
// The same, but an unknown name is an error that lists the nearest known ones.
const OpDef& op_def(std::string_view type);
std::vector<const OpDef*> all_ops();

// Fills in defaults, converts types, rejects unknown and missing attributes. `where` starts the
// error message.
void normalize_attrs(const OpDef& def, Attrs& attrs, std::string_view where);

// Collects an OpDef; the destructor of the full expression registers it.
class OpRegistrar {
 public:
  explicit OpRegistrar(std::string type) { def_.type = std::move(type); }

  OpRegistrar& input(std::string name, Arity arity = Arity::kOne) {
    def_.inputs.push_back({std::move(name), arity});
    return *this;
  }
  OpRegistrar& output(std::string name, Arity arity = Arity::kOne) {
    def_.outputs.push_back({std::move(name), arity});
    return *this;
  }
  OpRegistrar& attr(std::string name, Attr fallback) {
    const AttrType type = fallback.type();
    def_.attrs.push_back({std::move(name), type, std::move(fallback)});
    return *this;
  }
  OpRegistrar& required_attr(std::string name, AttrType type) {
    def_.attrs.push_back({std::move(name), type, std::nullopt});
    return *this;
  }
  OpRegistrar& infer(void (*fn)(Infer&)) { return set(def_.infer, fn); }
  OpRegistrar& grad(void (*fn)(Grad&)) { return set(def_.grad, fn); }
  OpRegistrar& cost(Cost (*fn)(const Infer&)) { return set(def_.cost, fn); }
  OpRegistrar& in_place(std::string output, std::string input) {
    def_.in_place.emplace_back(std::move(output), std::move(input));
    return *this;
  }
  // Like in_place, and the kernel changes nothing: it copies only where the pointers differ.
  OpRegistrar& view(std::string output, std::string input) {
    def_.view = true;
    return in_place(std::move(output), std::move(input));
  }
  OpRegistrar& updates_parameters() { return set(def_.updates_parameters, true); }
  OpRegistrar& side_effect() { return set(def_.side_effect, true); }
  // Needs an attribute `group`. Where that must be given, all ops of this type have a side effect.
  OpRegistrar& collective() { return set(def_.collective, true); }
  OpRegistrar& uniform(std::string output) {
    def_.uniform_outputs.push_back(std::move(output));
    return *this;
  }
  OpRegistrar& random() { return set(def_.random, true); }
  // Random, and with the attribute `axes`.
  OpRegistrar& draws_per_sample() {
    def_.random = true;
    return attr("axes", Strings{}).set(def_.draws_per_sample, true);
  }
  OpRegistrar& element_wise() { return set(def_.element_wise, true); }
  OpRegistrar& shape_only(std::string input) {
    def_.shape_only.push_back(std::move(input));
    return *this;
  }
  template <class K>
  OpRegistrar& kernel() {
    return set(
        def_.make_kernel, +[](kernel::Prepare& p) -> std::unique_ptr<kernel::Kernel> {
          return std::make_unique<K>(p);
        });
  }
  // For families whose kernel type depends on attributes or dtypes.
  OpRegistrar& kernel(std::unique_ptr<kernel::Kernel> (*make)(kernel::Prepare&)) {
    return set(def_.make_kernel, make);
  }

  OpDef take() { return std::move(def_); }

 private:
  template <class Field, class Value>
  OpRegistrar& set(Field& field, Value value) {
    field = value;
    return *this;
  }
  OpDef def_;
};

// Registers at static initialisation; two ops of one name are a bug (kInternal).
struct RegisterOp {
  RegisterOp(
      OpRegistrar& registrar);  // NOLINT: used as `static RegisterOp r = OpRegistrar(...)...;`
  RegisterOp(OpRegistrar&& registrar);  // NOLINT
};

}  // namespace fleetx::ir
