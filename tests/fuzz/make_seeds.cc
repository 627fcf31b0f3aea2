// Writes what the fuzz targets start from: each program text of a folder as a protobuf message, two
// safetensors files, and a dictionary of all op and attribute names.
// usage: fuzz_make_seeds TEXT_FOLDER CORPUS_FOLDER
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"
#include "fleetx/tensor/safetensors.h"

namespace {

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  fleetx::check_arg(out.good(), "cannot write ", path.string());
}

std::string dictionary() {
  std::set<std::string> words{"program", "data",         "param",  "state", "var",
                              "forward", "backward",     "update", "f32",   "i64",
                              "sparse",  "seed=",        "[-1,",   "name=", "stop_gradient",
                              "_",       "@ \\\"a\\\":1"};
  for (const fleetx::ir::OpDef* op : fleetx::ir::all_ops()) {
    words.insert(op->type + "(");
    for (const auto& attr : op->attrs) words.insert(attr.name + "=");
  }
  std::ostringstream out;
  for (const std::string& word : words) out << '"' << word << "\"\n";
  return out.str();
}

void write_tensors(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  fleetx::Safetensors content;
  write(folder / "empty", fleetx::to_safetensors(content));
  content.metadata = {{"step", "12"}};
  content.tensors = {{"scalar", fleetx::Tensor(fleetx::f64, {})},
                     {"none", fleetx::Tensor(fleetx::i64, {0, 3})},
                     {"w", fleetx::Tensor(fleetx::f32, {2, 3})},
                     {"flags", fleetx::Tensor(fleetx::boolean, {3})}};
  write(folder / "several", fleetx::to_safetensors(content));
}

void write_programs(const std::filesystem::path& texts, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(texts)) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const auto program = fleetx::ir::parse_text(text.str(), entry.path().string());
    write(folder / entry.path().stem(), fleetx::ir::to_proto(program));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " TEXT_FOLDER CORPUS_FOLDER\n";
    return 2;
  }
  try {
    const std::filesystem::path corpus = argv[2];
    write_programs(argv[1], corpus / "program_proto");
    write_tensors(corpus / "safetensors");
    write(corpus / "program.dict", dictionary());
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
    return 1;
  }
}
