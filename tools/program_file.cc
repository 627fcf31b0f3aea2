#include "tools/program_file.h"

#include <algorithm>
#include <filesystem>

#include "fleetx/base/file.h"
#include "fleetx/base/names.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"
#include "tools/table.h"

namespace fleetx::tools {

namespace fs = std::filesystem;

std::string model_file(const std::string& given) {
  const std::string file = given + ".pdmodel";
  return !fs::exists(given) && fs::exists(file) ? file : given;
}

ir::Program load_program(const std::string& given) {
  std::string path = model_file(given);
  for (const char* name : {"model.pb", "main.pb"})
    if (fs::is_directory(given) && fs::exists(fs::path(given) / name))
      path = fs::path(given) / name;
  const std::string bytes = read_file(path);
  check_file(!bytes.empty(), path, ": the file is empty");
  const bool text = std::ranges::all_of(
      bytes, [](unsigned char c) { return c >= ' ' || c == '\n' || c == '\t' || c == '\r'; });
  return text ? ir::parse_text(bytes, path) : ir::parse_proto(bytes, path);
}

std::string summary(const ir::Program& program) {
  double values = 0, bytes = 0;
  const auto parameters = program.parameters();
  for (const ir::VarInfo* p : parameters) {
    const auto n = static_cast<double>(p->type.shape.numel());
    values += n;
    bytes += n * static_cast<double>(size_of(p->type.dtype));
  }
  std::vector<std::string> data;
  for (const ir::VarInfo* v : program.vars())
    if (v->is_data) data.push_back(str(v->name, " ", v->type));
  return str(program.ops().size(), " ops, ", parameters.size(), " parameters (",
             short_number(values), " values, ", mib(bytes),
             " MiB), data: ", data.empty() ? "none" : join(data, ", "));
}

}  // namespace fleetx::tools
