// fleetx show: programs, tensor files and folders of both as text.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>

#include "fleetx/ir/text.h"
#include "fleetx/tensor/safetensors.h"
#include "fleetx/train/checkpoint.h"
#include "fleetx/train/sealed_folder.h"
#include "tools/commands.h"
#include "tools/program_file.h"
#include "tools/table.h"

namespace fleetx::tools {
namespace {

namespace fs = std::filesystem;

std::string shortened(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return out.str();
}

// min, mean, max; and how many elements are not finite.
std::vector<std::string> statistics(const Tensor& t) {
  if (t.numel() == 0) return {"", "", "", ""};
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  int64_t bad = 0;
  with_type(t.dtype(), [&](auto zero) {
    for (const auto value : t.data<decltype(zero)>()) {
      const double v = static_cast<double>(value);
      if (!std::isfinite(v)) {
        ++bad;
        continue;
      }
      low = std::min(low, v);
      high = std::max(high, v);
      sum += v;
    }
  });
  const int64_t good = t.numel() - bad;
  if (good == 0) return {"", "", "", std::to_string(bad)};
  return {shortened(low), shortened(sum / static_cast<double>(good)), shortened(high),
          std::to_string(bad)};
}

void show_tensors(const std::string& path) {
  const Safetensors file = load_safetensors(path);
  using enum Table::Align;
  Table table({{"name"},
               {"dtype"},
               {"shape"},
               {"bytes", kRight},
               {"min", kRight},
               {"mean", kRight},
               {"max", kRight},
               {"not finite", kRight}});
  double bytes = 0, elements = 0;
  for (const auto& [name, t] : file.tensors) {
    std::vector<std::string> row = {name, str(t.dtype()), str(t.shape()),
                                    std::to_string(t.bytes())};
    for (std::string& cell : statistics(t)) row.push_back(std::move(cell));
    table.add(std::move(row));
    bytes += static_cast<double>(t.bytes());
    elements += static_cast<double>(t.numel());
  }
  std::cout << "# " << path << ": " << file.tensors.size() << " tensors, " << short_number(elements)
            << " elements, " << mib(bytes) << " MiB\n";
  for (const auto& [key, value] : file.metadata) std::cout << "# " << key << ": " << value << "\n";
  table.print(std::cout);
}

void show_program(const std::string& path) {
  const ir::Program program = load_program(path);
  std::cout << "# " << path << ": " << summary(program) << "\n" << ir::to_text(program);
}

void show_file(const fs::path& path) {
  path.extension() == ".safetensors" ? show_tensors(path) : show_program(path);
}

// Everything is verified before the first line is printed.
void show_sealed(const std::string& path) {
  const train::SealedFolder folder(path, "");
  std::cout << "# " << path << ": " << folder.format() << ", complete and undamaged\n";
  for (const auto& [key, value] : folder.facts()) {
    std::string line = value;
    std::ranges::replace(line, '\n', ' ');
    std::cout << "#   " << key << ": " << line << "\n";
  }
  for (const auto& [name, bytes] : folder.files())
    std::cout << "#   file " << name << ", " << bytes << " bytes\n";
  for (const auto& [name, bytes] : folder.files()) {
    if (!name.ends_with(".pb") && !name.ends_with(".safetensors")) continue;
    std::cout << "\n";
    show_file(folder.file(name));
  }
}

void show_folder(const std::string& path) {
  const bool sealed = fs::exists(fs::path(path) / train::kManifest);
  const std::string latest = sealed ? path : train::latest_checkpoint(path);
  check_arg(!latest.empty(), "folder '", path,
            "' is no saved model or checkpoint (it has no manifest.json), and none is in it");
  show_sealed(latest);
}

void show(const std::string& given) {
  const std::string path = model_file(given);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check_arg(fs::exists(status), "there is no file '", path, "'");
  fs::is_directory(status) ? show_folder(path) : show_file(path);
}

}  // namespace

void add_show(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("show", "A program, saved model or checkpoint as readable text");
  auto file = std::make_shared<std::string>();
  command
      ->add_option(
          "FILE", *file,
          "program (text or protobuf), NAME of a NAME.pdmodel, .safetensors file, "
          "folder of a saved model or checkpoint, or folder of checkpoints (the newest is shown)")
      ->required();
  command->footer(
      "A program is printed in the text form, which can be edited and used in place of the file.\n"
      "Tensors are listed with their range; 'not finite' counts NaN and Inf. Folders are verified\n"
      "first: a damaged file is an error.\n\n"
      "Examples:\n"
      "  fleetx show model\n"
      "  fleetx show model/model.pb > edited.txt && fleetx plan edited.txt --batch 32\n"
      "  fleetx show checkpoints\n"
      "  fleetx show checkpoints/step-00001000/parameters.safetensors\n");
  command->callback([file] { show(*file); });
}

}  // namespace fleetx::tools
