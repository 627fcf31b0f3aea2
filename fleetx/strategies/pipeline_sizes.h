// How large the values of a network are in a micro-batch. A stage that receives a value does not
// compute it, so it must know its sizes from the batch that it is fed.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

// Dimension d is fixed[d] + per_row[d] * rows of a micro-batch of the data `like`.
struct RowSizes {
  DType dtype = DType::kF32;
  Shape fixed;
  ir::Ints per_row;
  std::string like;
};

// A batch for which the program is built must be so many micro-batches; `size`: of as many samples,
// 0 of any number. Else kInvalidArgument.
void check_parts(int64_t batch, int micro_batches, int64_t size);

// Of data: 1, or as many as their attribute `rows` says.
int64_t rows_of_a_sample(const ir::VarInfo& data);

class BatchSizes {
 public:
  using IsCut = std::function<bool(const ir::VarInfo&)>;
  // Of the forward part of `main`, whose data are cut into `micro_batches` parts. kInvalidArgument
  // where the program is built for one size of the batch, and not for a micro-batch.
  BatchSizes(const ir::Program& main, const IsCut& is_cut, int micro_batches);

  // kInvalidArgument where a size follows from something else than the batch.
  RowSizes of(const std::string& var) const;

 private:
  using Types = std::map<std::string, ir::TensorType>;
  Types infer(int64_t rows, int64_t other) const;

  const ir::Program& p_;
  IsCut is_cut_;
  int parts_;
  bool known_ = false;  // the size of the batch
  Types small_, large_, larger_, other_;
  std::map<std::string, std::string> data_;  // the first data that a value follows from
};

}  // namespace fleetx::strategies
