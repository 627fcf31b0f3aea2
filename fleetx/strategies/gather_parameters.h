// Stage 3 of sharding: a parameter is with its owner only. The others have it while they need it: a
// segment of the program is sent by its owners while the segment before it computes, and is gone
// after its last use.
//
//   before                        after: worker 0, who owns w1 (a segment for each layer)
//     h = fc(x, w1)                 [w1@0@SENT], t1 = broadcast_start([w1])
//     y = fc(h, w2)                 w2@EMPTY = empty() {shape=[3,1]}
//                                   [w2@1@SENT], t2 = broadcast_start([w2@EMPTY]) {root=1}
//                                   [w1@0] = broadcast_wait([w1@0@SENT], t1)
//                                   h = fc(x, w1@0)
//                                   [w2@1] = broadcast_wait([w2@1@SENT], t2)
//                                   y = fc(h, w2@1)
//
// A parameter that the next segment uses again is kept for it: backward begins with what forward
// ends with. First values are those of worker 0, which come one by one.
#pragma once

#include "fleetx/strategies/owners.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

struct GatherOptions {
  double segment_bytes = 0;  // a segment that has so many is closed
  std::string everybody;     // the group that begins with the values of its rank 0
};

// Of all parameters that `owners` knows. Updates must be with their owners already.
void gather_parameters(Programs& programs, const Owners& owners, const GatherOptions& options);

}  // namespace fleetx::strategies
