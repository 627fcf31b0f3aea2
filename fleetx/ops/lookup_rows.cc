// lookup_rows: the rows of a table that has some ids only, of any size: out[i] = rows[k] where
// keys[k] == ids[i], zeros where there is none or ids[i] is padding_idx (-1: no padding).
//   out.shape = ids.shape + [D] for keys i64 [N] in ascending order and rows f32 [N,D].
// For models that were trained with parameter servers; it has no gradient.
#include <algorithm>

#include "fleetx/ops/lib/rows.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  check_ids(c, "ids");
  const ir::TensorType &keys = c.in("keys"), &rows = c.in("rows");
  c.check(keys.dtype == i64 && keys.shape.rank() == 1, c.show("keys"), "; must be i64 [rows]");
  c.check(rows.dtype == f32 && rows.shape.rank() == 2 && rows.shape[0] == keys.shape[0],
          c.show("rows"), "; must be f32 [rows, width], as many rows as ", c.show("keys"));
  Shape shape = c.in("ids").shape;
  shape.push_back(rows.shape[1]);
  c.out("out") = {f32, shape};
}

ir::Cost cost(const ir::Infer& c) {
  return {.bytes = ir::bytes_of(c.in("ids")) + 2 * ir::bytes_of(c.out("out"))};
}

class LookupRows final : public kernel::Kernel {
 public:
  explicit LookupRows(kernel::Prepare& p)
      : count_(p.in("ids").numel()),
        keys_(p.in("keys").numel()),
        bytes_(p.in("rows").shape[1] * static_cast<int64_t>(sizeof(float))),
        padding_(p.attr<int64_t>("padding_idx")),
        wide_(p.in("ids").dtype == i64),
        ids_(p.input("ids")),
        key_(p.input("keys")),
        rows_(p.input("rows")),
        out_(p.output("out")),
        places_(p.scratch(static_cast<size_t>(count_) * sizeof(int64_t))) {}

  void run(const kernel::Run& r) override {
    const Ids ids(r.raw(ids_), wide_);
    const auto* keys = r.in<int64_t>(key_);
    auto* places = r.out<int64_t>(places_);
    parallel_for(count_, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t* found = std::lower_bound(keys, keys + keys_, ids(i));
        const bool there = found != keys + keys_ && *found == ids(i) && ids(i) != padding_;
        places[i] = there ? found - keys : -1;
      }
    });
    copy_rows(Ids(places, true), count_, bytes_, r.in<char>(rows_), r.out<char>(out_));
  }

 private:
  int64_t count_, keys_, bytes_, padding_;
  bool wide_;
  kernel::Slot ids_, key_, rows_, out_, places_;
};

FLEETX_OP(lookup_rows)
    .input("ids")
    .input("keys")
    .input("rows")
    .output("out")
    .attr("padding_idx", -1)
    .infer(infer)
    .cost(cost)
    .kernel<LookupRows>();

}  // namespace
}  // namespace fleetx::ops
