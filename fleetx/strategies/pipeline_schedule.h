// In which order a stage of a pipeline computes its micro-batches.
//
//   slots_of(Schedule::kOneForwardOneBackward, {.stage = 0, .stages = 2, .micro_batches = 3})
//     == F0 F1 B0 F2 B1 B2
//
// F-then-B: all forwards, then all backwards. 1F1B (Narayanan et al., 2019): as many forwards as
// there are stages behind, then one forward and one backward in turn, so that a stage holds the
// activations of at most that many micro-batches and one more. Both take the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fleetx::strategies {

enum class Schedule : uint8_t { kForwardThenBackward, kOneForwardOneBackward };
std::optional<Schedule> schedule_from_name(std::string_view name);  // "F-then-B", "1F1B"

struct Slot {
  bool forward = true;
  int micro_batch = 0;
  bool operator==(const Slot&) const = default;
};

struct StageOf {
  int stage = 0, stages = 1, micro_batches = 1;
};
std::vector<Slot> slots_of(Schedule schedule, const StageOf& of);

}  // namespace fleetx::strategies
