// fleetx export: an inference model as a file for other engines.
#include <iostream>
#include <nlohmann/json.hpp>

#include "fleetx/base/file.h"
#include "fleetx/onnx/export.h"
#include "fleetx/tensor/safetensors.h"
#include "tools/commands.h"
#include "tools/program_file.h"

namespace fleetx::tools {
namespace {

struct ExportOptions {
  std::string model, parameters, out;
  int64_t opset = 13;
};

ir::Names list_in(const Safetensors& file, const std::string& key, const std::string& path) {
  const auto text = file.metadata.find(key);
  check_file(text != file.metadata.end(), path,
             ": does not say what is fed and fetched; expected the .pdiparams of "
             "save_inference_model");
  const auto list = nlohmann::json::parse(text->second, nullptr, false);
  check_file(list.is_array(), path, ": '", key, "' is not a list");
  ir::Names names;
  for (const auto& name : list) {
    check_file(name.is_string(), path, ": '", key, "' has an entry that is no name");
    names.push_back(name.get<std::string>());
  }
  return names;
}

void run(const ExportOptions& o) {
  const std::string parameters = o.parameters.empty() ? o.model + ".pdiparams" : o.parameters;
  const std::string model = o.parameters.empty() ? o.model + ".pdmodel" : o.model;
  const ir::Program program = load_program(model);
  const Safetensors values = load_safetensors(parameters);
  const std::string bytes = onnx::export_model(
      program, list_in(values, "feed", parameters), list_in(values, "fetch", parameters),
      [&](const std::string& name) {
        const auto value = values.tensors.find(name);
        check_file(value != values.tensors.end(), parameters, ": has no '", name, "'");
        return value->second;
      },
      {.opset = o.opset});
  write_file(o.out, bytes);
  std::cout << o.out << ": " << summary(program) << ", operator set " << o.opset << ", "
            << bytes.size() << " bytes\n";
}

}  // namespace

void add_export(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "Write an inference model in the format of ONNX");
  auto o = std::make_shared<ExportOptions>();
  command->add_option("MODEL", o->model, "prefix of NAME.pdmodel and NAME.pdiparams")->required();
  command->add_option("--params", o->parameters,
                      "file of the parameters; then MODEL is that of the program");
  command->add_option("-o,--output", o->out, "file to write")->required();
  command->add_option("--opset", o->opset, "operator set, 13 to 17")->capture_default_str();
  command->footer("Example:\n  fleetx export saved/resnet50 -o resnet50.onnx\n");
  command->callback([o] { run(*o); });
}

}  // namespace fleetx::tools
