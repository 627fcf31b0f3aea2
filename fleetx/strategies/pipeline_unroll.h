// The program of one stage of a pipeline: its ops once for each micro-batch, in the order of the
// schedule, with what it sends to and receives from other stages. See pipeline.cc for the text.
//
// Two groups of the same ranks carry the messages, each in a lane of its own: values go down along
// "pp/S", gradients come up along "pp". A lane makes its calls one after the other, so a call for a
// message that is not there yet holds up those behind it. In each lane the receives of a slot come
// right behind the sends of the slot before: whatever waits behind a receive needs it, too, so that
// nobody waits in a circle, and messages travel while the stage computes.
#pragma once

#include <string>

#include "fleetx/strategies/pipeline_schedule.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

// The axis of the mesh along which stages are, and the group of gradients.
inline constexpr const char* kStageAxis = "pp";
// The group of values: the same ranks.
std::string group_of_values(int stages);

struct UnrollOptions {
  StageOf of;
  Schedule schedule = Schedule::kOneForwardOneBackward;
  int64_t micro_batch_size = 0;  // 0: whatever is fed, in equal parts
};

// `main` has backward, and stages of its forward ops.
void unroll(Programs& programs, const UnrollOptions& options);

// A state belongs to one stage, in both programs: startup of the others does not make it.
void place_on_stage(Programs& programs, const std::string& state, int owner, int stage);

}  // namespace fleetx::strategies
