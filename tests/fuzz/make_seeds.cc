// Writes the seeds of the program targets: each text of a folder as a protobuf message, and a
// dictionary of all op, slot and attribute names for libFuzzer.
// usage: fuzz_make_seeds TEXT_FOLDER PROTO_FOLDER DICTIONARY
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: " << argv[0] << " TEXT_FOLDER PROTO_FOLDER DICTIONARY\n";
    return 2;
  }
  std::filesystem::create_directories(argv[2]);
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const auto program = fleetx::ir::parse_text(text.str(), entry.path().string());
    write(std::filesystem::path(argv[2]) / entry.path().stem(), fleetx::ir::to_proto(program));
  }
  write(argv[3], dictionary());
}
