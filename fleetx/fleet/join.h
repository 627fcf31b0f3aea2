// For workers whose data are of different length. A worker that has run out goes on taking part
// with weight 0, until all have; in each step the average is over those that still have data.
//
//   fleet::Join join(scope);
//   for (Batch batch;;) {
//     const bool have = reader.next(batch);       // leaves the last batch in place at the end
//     if (!join.step(have)) break;                // nobody has one
//     exe.run(main, scope, batch.feeds, {loss});  // without data of its own: the last batch again
//   }
//
// Every worker needs one batch at least. Costs one exchange of a number per step. (Where the number
// of samples is known before, data::Loader gives all workers equally many, and none of this is
// needed.)
#pragma once

#include "fleetx/comm/communicator.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::fleet {

class Join {
 public:
  // The scope after its startup program has run.
  explicit Join(runtime::Scope& scope);
  Join(runtime::Scope& scope, comm::Communicator& workers);
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  ~Join();  // all weights are 1 again

  // Called by all workers before every step. False: no worker has a batch.
  bool step(bool have_batch);

 private:
  void set_weight(float weight);

  runtime::Scope& scope_;
  comm::Communicator& workers_;
  float weight_ = 1;
  bool began_ = false;
};

}  // namespace fleetx::fleet
