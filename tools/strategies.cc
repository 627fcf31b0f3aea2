// fleetx strategies: which strategies can be used together.
#include "fleetx/strategies/matrix.h"

#include <iostream>

#include "tools/commands.h"

namespace fleetx::tools {

void add_strategies(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("strategies", "Which strategies can be used together, and why not");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "as a table of Markdown, as in docs/strategy.md");
  command->footer(
      "A set of strategies works where all of its pairs do. [n] is the reason why a pair does "
      "not,\n"
      "with which a job that asks for it is refused before its first step.\n\n"
      "Examples:\n"
      "  fleetx strategies\n"
      "  fleetx strategies --markdown\n");
  command->callback([markdown] {
    using enum strategies::MatrixForm;
    strategies::print_matrix(std::cout, *markdown ? kMarkdown : kText);
  });
}

}  // namespace fleetx::tools
