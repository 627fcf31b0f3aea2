// fleetx plan: what the planner makes of a program, without running it.
#include <charconv>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"
#include "fleetx/runtime/planner.h"
#include "tools/commands.h"
#include "tools/program_file.h"
#include "tools/workload.h"

namespace fleetx::tools {
namespace {

struct PlanCommand {
  std::string file;
  int64_t batch = 0;
  int threads = 0;
  std::vector<std::string> shapes;  // NAME=8,128
  std::vector<std::string> fetch;
  std::vector<std::string> skip;
};

std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> out;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    check_arg(equals != std::string::npos && equals > 0, "--shape '", text,
              "': write NAME=8,128, for example");
    Shape shape;
    const char* at = text.data() + equals + 1;
    const char* end = text.data() + text.size();
    for (bool more = true; more;) {
      int64_t dim = 0;
      const auto [next, error] = std::from_chars(at, end, dim);
      check_arg(error == std::errc{} && dim > 0 && (next == end || *next == ','), "--shape '", text,
                "': dimensions are positive whole numbers with commas between");
      shape.push_back(dim);
      more = next != end;
      at = next + 1;
    }
    out.emplace(text.substr(0, equals), std::move(shape));
  }
  return out;
}

runtime::FeedTypes feeds_of(const ir::Program& program, const PlanCommand& c) {
  std::map<std::string, Shape> shapes = parse_shapes(c.shapes);
  runtime::FeedTypes feeds;
  for (const ir::VarInfo* v : program.vars()) {
    if (!v->is_data) continue;
    ir::TensorType type = v->type;
    if (const auto given = shapes.extract(v->name)) {
      type.shape = given.mapped();
    } else if (type.shape.rank() > 0 && type.shape[0] < 0) {
      check_arg(c.batch > 0, "data '", v->name, "' is ", v->type,
                ": give the unknown size with --batch N");
      type.shape[0] = c.batch;
    }
    check_arg(type.shape.known(), "data '", v->name, "' is ", v->type,
              ": give all its sizes with --shape ", v->name, "=...");
    feeds.emplace_back(v->name, std::move(type));
  }
  check_arg(shapes.empty(), "--shape: the program has no data '",
            shapes.empty() ? "" : shapes.begin()->first, "'");
  return feeds;
}

// Results that nobody reads: without one, a program for inference would have nothing to do.
ir::Names final_outputs(const ir::Program& program) {
  std::set<std::string> read;
  for (const ir::Op& op : program.ops())
    for (const ir::Names& names : op.inputs) read.insert(names.begin(), names.end());
  ir::Names out;
  for (const ir::Op& op : program.ops()) {
    bool used = false;
    for (const ir::Names& names : op.outputs)
      for (const std::string& name : names) used |= read.contains(name);
    if (used || op.role != ir::Role::kForward || op.outputs.empty() || op.outputs[0].empty())
      continue;
    out.push_back(op.outputs[0][0]);
  }
  return out;
}

// Planning needs the memory of parameters and state, not their values.
void fill_scope(const ir::Program& program, runtime::Scope& scope) {
  for (const ir::VarInfo* v : program.vars())
    if (v->persistable) scope.replace(v->name, Tensor(v->type.dtype, v->type.shape));
}

struct Subject {
  ir::Program program;
  runtime::FeedTypes feeds;
  ir::Names fetch;
};

Subject from_file(const PlanCommand& c) {
  Subject s;
  s.program = load_program(c.file);
  s.feeds = feeds_of(s.program, c);
  s.fetch = final_outputs(s.program);
  return s;
}

Subject from_workload(const PlanCommand& c) {
  Workload w = make_workload(c.file, c.batch);
  Subject s;
  for (const auto& [name, tensor] : w.feeds)
    s.feeds.emplace_back(name, ir::TensorType{tensor.dtype(), tensor.shape()});
  s.program = std::move(w.main);
  s.fetch = {w.loss};
  return s;
}

void plan(const PlanCommand& c) {
  if (c.threads > 0) set_num_threads(c.threads);
  const bool built_in = !std::filesystem::exists(c.file) && is_workload(c.file);
  Subject s = built_in ? from_workload(c) : from_file(c);
  if (!c.fetch.empty()) s.fetch = c.fetch;
  runtime::Scope scope;
  fill_scope(s.program, scope);
  runtime::PlanOptions options;
  options.skip = {c.skip.begin(), c.skip.end()};
  const auto made = runtime::make_plan(s.program, scope, s.feeds, s.fetch, options);
  std::cout << "# " << c.file << ": " << summary(s.program) << "\n# feeds:";
  for (const auto& [name, type] : s.feeds) std::cout << " " << name << " " << type;
  std::cout << "; fetches: " << (s.fetch.empty() ? "none" : join(s.fetch, ", ")) << "; "
            << num_threads() << " threads\n\n"
            << made->table();
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "How a program would run: kernels, layouts, memory");
  auto c = std::make_shared<PlanCommand>();
  command
      ->add_option(
          "FILE", c->file,
          "program (text or protobuf), folder of a saved model, or a model of `fleetx bench`")
      ->required();
  command->add_option("--batch", c->batch, "what stands for an unknown first dimension")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--shape", c->shapes, "sizes of one data variable: NAME=8,3,224,224")
      ->allow_extra_args(false);
  command->add_option("--fetch", c->fetch, "results that are asked for (default: all final ones)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--skip", c->skip, "passes and phases to leave out")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--threads", c->threads, "compute threads")->check(CLI::Range(1, 1024));
  command->footer(
      "Each line is one step: the op, the layout of its first output (plain is row-major,\n"
      "0123:1x16 is blocked by 16 channels), where that lies in memory, its arithmetic and\n"
      "traffic, and the kernel that was chosen. Below stand the peak memory and the time each\n"
      "pass took. Nothing is run.\n\n"
      "Examples:\n"
      "  fleetx plan model --batch 32\n"
      "  fleetx plan train.txt --batch 8 --fetch loss --skip layout\n"
      "  fleetx plan resnet50 --batch 16\n"
      "  fleetx plan bert.txt --shape words=8,128 --shape sentences=8,128\n");
  command->callback([c] { plan(*c); });
}

}  // namespace fleetx::tools
