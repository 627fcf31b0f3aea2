// Which strategies can be used together in a collective job, and why others cannot: what the
// resolver says of every pair. It decides by pairs, so a set works where all of its pairs do.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::strategies {

// All but those that follow from the job: data_parallel, parameter_server.
std::vector<std::string> combinable_strategies();

// Why two of them cannot be used together; "" where they can.
std::string why_not_together(std::string_view a, std::string_view b);

enum class MatrixForm { kText, kMarkdown };
// A row and a column for each; where a pair cannot be, a number, and the reasons below.
void print_matrix(std::ostream& out, MatrixForm form);

}  // namespace fleetx::strategies
