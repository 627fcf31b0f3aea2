// How nn/ emits ops: every function takes the user's source line as its last argument, so that an
// error of an op names the line that asked for it, not one in here.
#pragma once

#include <source_location>
#include <string_view>
#include <vector>

#include "fleetx/ir/builder.h"

namespace fleetx::nn {

using ir::Var;
using Where = std::source_location;

// The line the user wrote: an outer layer's, where there is one.
inline ir::Loc user_line(const ir::Builder& builder, const Where& where) {
  return builder.loc().known() ? builder.loc() : ir::Loc::of(where);
}

// One op, in the program of `first`.
inline ir::Results call(const Var& first, std::string_view type, const std::vector<ir::Arg>& args,
                        ir::Attrs attrs, const Where& where,
                        const std::vector<ir::Dest>& dests = {}) {
  const auto at = first.builder().at(ir::Loc::of(where));
  return first.builder().op(type, args, std::move(attrs), dests);
}

// An op of one input.
inline Var unary(std::string_view type, const Var& x, const Where& where, ir::Attrs attrs = {}) {
  return call(x, type, {{"x", x}}, std::move(attrs), where);
}

}  // namespace fleetx::nn
