#include "fleetx/passes/dump.h"

#include <filesystem>
#include <fstream>
#include <iomanip>

#include "fleetx/ir/text.h"

namespace fleetx::passes {

void dump(const ir::Program& program, const std::string& dir, size_t number,
          std::string_view name) {
  if (dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  check_arg(!error, "cannot make the folder '", dir, "' for dumps: ", error.message());
  std::ostringstream file;
  file << std::setw(2) << std::setfill('0') << number << '.' << name << ".txt";
  const auto path = std::filesystem::path(dir) / file.str();
  std::ofstream out(path);
  out << ir::to_text(program);
  out.flush();
  check_arg(out.good(), "cannot write the dump ", path);
}

}  // namespace fleetx::passes
