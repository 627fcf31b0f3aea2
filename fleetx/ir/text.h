// The text form of a Program, for people: print, edit, read again.
//
//   program {seed=0}
//   data x : f32[-1,784] stop_gradient
//   param fc_0.w_0 : f32[784,10] {lr=1.0}
//   var fc_0.tmp_0 : f32[-1,10]
//
//   forward:
//   fc_0.tmp_0 = fc(x, fc_0.w_0, _) {name="fc_0"} @ "lenet.cc":12
//
// Arguments stand in the order of the op's slots; _ is an optional one left out, [a, b] a list.
// Attributes that have their default are not printed. A # starts a comment.
#pragma once

#include <string>
#include <string_view>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

std::string to_text(const Program& program);
std::string to_text(const Op& op);

// `source` names the text in errors: "model.txt:12: ...". The result is verified.
Program parse_text(std::string_view text, std::string_view source = "program text");

}  // namespace fleetx::ir
