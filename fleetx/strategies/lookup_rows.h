// The gradient of a table that is looked up has few rows that are not zero, and is ready last.
#pragma once

#include <string>

#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {

// Where the rows that `ranks` workers look up in a step are fewer than those of the table, the
// dense gradients of lookups that `gradient` is made of become sparse rows:
//
//   dt = embedding_grad(ids, dout)          rows = embedding_grad(ids, dout) {sparse=true}
//                                           zeros = fill()
//                                           dt = sum([zeros, rows])
//
//   lookup = embedding_grad(ids, dout)      rows = embedding_grad(ids, dout) {sparse=true}
//   dt = sum([dense, lookup])               dt = sum([dense, rows])
//
// The value is the same. A program that leaves the batch open is left alone: rows travel only where
// all workers have room for equally many (all_gather_rows).
void lookups_to_rows(ir::Rewriter& rw, const std::string& gradient, int ranks);

}  // namespace fleetx::strategies
