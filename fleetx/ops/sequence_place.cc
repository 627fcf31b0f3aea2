// sequence_place: where each row of a ragged batch stands. The first lengths[0] rows of `like` [N,
// ..] are sequence 0, the next lengths[1] rows sequence 1, and so on. For every row, i64 [N]:
//   sequence  the number of its sequence
//   place     how many rows of it come before
//   rest      how many rows of it are left, this one included
// Rows after the last sequence belong to nobody: 0, 0, 0. No gradient.
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& lengths = c.in("lengths");
  c.check(c.in("like").shape.rank() >= 1, c.show("like"), "; must have rows");
  c.check(lengths.dtype == i64 && lengths.shape.rank() == 1, c.show("lengths"),
          "; must be i64 [sequences]");
  for (const char* slot : {"sequence", "place", "rest"})
    c.out(slot) = {i64, {c.in("like").shape[0]}};
}

class SequencePlace final : public kernel::Kernel {
 public:
  explicit SequencePlace(kernel::Prepare& p)
      : rows_(p.in("like").shape[0]),
        sequences_(p.in("lengths").numel()),
        lengths_(p.input("lengths")),
        sequence_(p.output("sequence")),
        place_(p.output("place")),
        rest_(p.output("rest")),
        where_(str(ir::describe(p.op()), "lengths '", p.op().in("lengths").front(), "': ")) {}

  void run(const kernel::Run& r) override {
    const int64_t* lengths = r.in<int64_t>(lengths_);
    auto *sequence = r.out<int64_t>(sequence_), *place = r.out<int64_t>(place_),
         *rest = r.out<int64_t>(rest_);
    int64_t row = 0;
    for (int64_t b = 0; b < sequences_; ++b) {
      check_arg(lengths[b] >= 0 && lengths[b] <= rows_ - row, where_, "sequence ", b, " has ",
                lengths[b], " rows, but ", rows_ - row, " of ", rows_, " are left");
      for (int64_t i = 0; i < lengths[b]; ++i, ++row) {
        sequence[row] = b;
        place[row] = i;
        rest[row] = lengths[b] - i;
      }
    }
    for (; row < rows_; ++row) sequence[row] = place[row] = rest[row] = 0;
  }

 private:
  int64_t rows_, sequences_;
  kernel::Slot lengths_, sequence_, place_, rest_;
  std::string where_;
};

FLEETX_OP(sequence_place)
    .input("like")
    .input("lengths")
    .output("sequence")
    .output("place")
    .output("rest")
    .infer(infer)
    .kernel<SequencePlace>()
    .shape_only("like");

}  // namespace
}  // namespace fleetx::ops
