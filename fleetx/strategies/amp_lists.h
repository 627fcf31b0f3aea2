// Which ops compute in 16 bits under the strategy amp: the lists of the original, in names of our
// ops, and the user's own.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fleetx/ir/attr.h"

namespace fleetx::strategies {

enum class AmpList : uint8_t {
  kWhite,  // in 16 bits
  kGray,   // as those that compute its inputs
  kBlack,  // in f32: all that is in no list
};

class AmpLists {
 public:
  // The user's lists hold names of the original or ours. A name that neither knows, and an op in
  // both lists, is kInvalidArgument.
  AmpLists(const ir::Strings& custom_white, const ir::Strings& custom_black);

  AmpList of(std::string_view op) const;
  // Computes in f32, but what reads its result is free: unless the user calls it black or white.
  bool is_table(std::string_view op) const { return tables_.contains(op); }
  // Whether the user or the original says that it computes in f32, not merely no list.
  bool is_named_black(std::string_view op) const {
    return black_.contains(op) || tables_.contains(op);
  }

 private:
  std::set<std::string, std::less<>> white_, gray_, black_, tables_;
};

}  // namespace fleetx::strategies
