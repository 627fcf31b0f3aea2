// Tells the parameter servers of a job which rows the next batch will look up, while this one
// computes (kernel::Servers::expect_rows). Only lookups whose ids are fed are known that early; a
// program with others tells nothing.
//
//   const ExpectedRows expected(program);
//   expected.tell(feeds_of_the_next_batch);
#pragma once

#include <memory>

#include "fleetx/ir/program.h"
#include "fleetx/kernel/servers.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::train {

class ExpectedRows {
 public:
  explicit ExpectedRows(const ir::Program& program);
  ~ExpectedRows();  // no more batches come
  ExpectedRows(const ExpectedRows&) = delete;
  ExpectedRows& operator=(const ExpectedRows&) = delete;

  bool any() const { return lookup_ != nullptr; }
  void tell(const runtime::Feeds& next);

 private:
  std::shared_ptr<kernel::Servers> servers_;
  const ir::Op* lookup_ = nullptr;  // null: there is nothing to tell
  std::vector<int> tables_;
  std::vector<std::vector<int64_t>> asked_;  // ids without padding
};

}  // namespace fleetx::train
