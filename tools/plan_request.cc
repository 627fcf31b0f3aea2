#include "tools/plan_request.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "fleetx/base/job_env.h"
#include "fleetx/base/names.h"
#include "fleetx/base/process_memory.h"
#include "fleetx/base/threads.h"
#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/predict/report.h"
#include "tools/program_file.h"

namespace fleetx::tools {
namespace {

constexpr int64_t kMostRanks = 1 << 20;

// "dp=8,mp=2": how many ranks share each kind of work; a job has exactly as many as that makes.
Mesh parse_mesh(const std::string& text, int rank) {
  Degrees degrees{.dp = 1};
  const std::vector<std::pair<std::string, int*>> axes{{"dp", &degrees.dp},
                                                       {"sharding", &degrees.sharding},
                                                       {"pp", &degrees.pp},
                                                       {"mp", &degrees.mp}};
  std::vector<std::string> known, given;
  for (const auto& [name, degree] : axes) known.push_back(name);
  int64_t workers = 1;
  for (const std::string& part : split_list(text)) {
    const size_t equals = part.find('=');
    check_arg(equals != std::string::npos && equals > 0, "--mesh '", part,
              "': write AXIS=SIZE, dp=64 for example");
    const std::string name = part.substr(0, equals);
    const auto axis = std::ranges::find(axes, name, [](const auto& a) { return a.first; });
    check_arg(axis != axes.end(), "--mesh '", part, "': there is no axis '", name, "'",
              did_you_mean(name, known), "; the axes are: ", join(known, ", "));
    check_arg(std::ranges::count(given, name) == 0, "--mesh: the axis '", name, "' is there twice");
    given.push_back(name);
    const char* const end = part.data() + part.size();
    const auto [next, error] = std::from_chars(part.data() + equals + 1, end, *axis->second);
    check_arg(error == std::errc{} && next == end && *axis->second >= 1, "--mesh '", part,
              "': the size of an axis is a whole number from 1 on");
    workers *= *axis->second;
    check_arg(workers <= kMostRanks, "--mesh ", text, ": a job has at most ", kMostRanks, " ranks");
  }
  check_arg(!given.empty(), "--mesh: write AXIS=SIZE, dp=64 for example");
  check_arg(rank < workers, "--rank ", rank, ": the mesh ", text, " has the ranks 0 to ",
            workers - 1);
  return mesh_of(degrees, static_cast<int>(workers), rank);
}

// The strategy may have degrees of its own; they must make the same mesh.
void check_degrees(const PlanRequest& c, const Mesh& mesh) {
  const fleet::DistributedStrategy strategy = strategy_of(c.with);
  if (strategy.hybrid_configs == fleet::HybridConfigs{}) return;
  const Mesh wanted = fleet::mesh_of(strategy, mesh.world(), c.rank);
  for (const Mesh::Axis& axis : wanted.axes())
    check_arg(mesh.size(axis.name) == axis.size, "--mesh ", c.mesh, " has ", axis.name, " ",
              mesh.size(axis.name), ", but the degrees of the strategy's hybrid_configs make it ",
              axis.size, "; write --mesh pp=", wanted.size("pp"), ",dp=", wanted.size("dp"),
              ",mp=", wanted.size("mp"), ", or leave the degrees out");
}

Mesh job_of(const PlanRequest& c) {
  if (c.workers > 0) {
    const Mesh mesh = c.mesh.empty() ? fleet::mesh_of(strategy_of(c.with), c.workers, c.rank)
                                     : parse_mesh(c.mesh, c.rank);
    check_arg(mesh.world() == c.workers, "--mesh ", c.mesh, " has ", mesh.world(),
              " workers, but --workers says ", c.workers, "; leave one of them out");
    check_degrees(c, mesh);
    return mesh;
  }
  check_arg(!c.mesh.empty() || c.rank == 0, "--rank ", c.rank, " needs a --mesh");
  if (c.mesh.empty()) return {};
  Mesh mesh = parse_mesh(c.mesh, c.rank);
  check_degrees(c, mesh);
  return mesh;
}

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

runtime::FeedTypes feeds_of(const ir::Program& program, const PlanRequest& c) {
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

struct Subject {
  ir::Program program;
  runtime::FeedTypes feeds;
  ir::Names fetch;
  double items = 0;
  std::string unit = "";
  fleet::DistributedStrategy strategy = {};
};

Subject from_file(const PlanRequest& c) {
  Subject s;
  s.program = load_program(c.file);
  s.feeds = feeds_of(s.program, c);
  s.fetch = final_outputs(s.program);
  return s;
}

// Where `auto` chooses stages or divided layers, the job has another mesh than was asked for.
Subject from_workload(const PlanRequest& c, Mesh& mesh) {
  check_arg(c.shapes.empty(), "--shape ", c.shapes.empty() ? "" : c.shapes.front(), ": '", c.file,
            "' is a built-in network, whose shapes are fixed; --batch N sets its batch");
  const bool alone = mesh.axes().empty();
  Workload w = describe_workload(c.file, c.batch, alone ? mesh_of({}, 1, 0) : mesh, c.with);
  if (!alone) mesh = w.mesh;
  return {std::move(w.main),    std::move(w.feed_types), {w.loss}, w.items, w.unit,
          std::move(w.strategy)};
}

bool is_built_in(const PlanRequest& r) {
  return !std::filesystem::exists(r.file) && is_workload(r.file);
}

PlannedRequest plan_for(const PlanRequest& r, Mesh mesh) {
  PlannedRequest made;
  Subject s = is_built_in(r) ? from_workload(r, mesh) : from_file(r);
  made.mesh = std::move(mesh);
  made.fetch = r.fetch.empty() ? s.fetch : r.fetch;
  runtime::PlanOptions options;
  options.skip = {r.skip.begin(), r.skip.end()};
  options.mesh = made.mesh;
  made.process_bytes = resident_bytes();
  made.plan = runtime::plan_program(s.program, s.feeds, made.fetch, options);
  made.program = std::move(s.program);
  made.items = s.items;
  made.unit = s.unit;
  made.strategy = std::move(s.strategy);
  return made;
}

}  // namespace

void add_options(CLI::App& command, PlanRequest& r) {
  command
      .add_option(
          "FILE", r.file,
          "program (text or protobuf), folder of a saved model, or a model of `fleetx bench`")
      ->required();
  command.add_option("--batch", r.batch, "what stands for an unknown first dimension")
      ->check(CLI::Range(1, 1 << 24));
  command.add_option("--shape", r.shapes, "sizes of one data variable: NAME=8,3,224,224")
      ->allow_extra_args(false);
  command.add_option("--fetch", r.fetch, "results that are asked for (default: all final ones)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--skip", r.skip, "passes and phases to leave out")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--mesh", r.mesh,
                     "the job: dp=64 are 64 workers that share a batch, pp=4 stages of a pipeline "
                     "(with a --strategy that has it)");
  command.add_option("--amp", r.with.amp, "a built-in network with values in 16 bits")
      ->check(CLI::IsMember({"bf16", "f16"}));
  command.add_flag("--recompute", r.with.recompute,
                   "a built-in network whose backward computes again what it needs");
  command.add_option("--rank", r.rank, "whose plan (default: that of rank 0)")
      ->check(CLI::Range(0, static_cast<int>(kMostRanks)));
  command.add_option("--threads", r.threads, "compute threads")->check(CLI::Range(1, 1024));
  command
      .add_option("--strategy", r.with.file,
                  "a built-in network with the DistributedStrategy of this file, as text")
      ->check(CLI::ExistingFile);
}

PlannedRequest make_plan(const PlanRequest& r) {
  if (r.threads > 0) set_num_threads(r.threads);
  return plan_for(r, job_of(r));
}

const predict::Prediction& PredictedRequest::largest() const {
  return *std::ranges::max_element(kinds, {},
                                   [](const predict::Prediction& p) { return p.peak_bytes(); });
}

std::string PredictedRequest::report(const PlannedRequest& made,
                                     const predict::Machine& machine) const {
  std::vector<predict::RankKind> rows;
  const int each = made.mesh.world() / static_cast<int>(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i)
    rows.push_back({kinds.size() > 1 ? str("stage ", i) : "worker", each, kinds[i]});
  std::string text = predict::report(rows, made.mesh, machine, ranks_per_host);
  if (made.mesh.world() > 1 && made.plan.groups.empty())
    text += "\nthe program makes no calls to other workers: each of them trains by itself\n";
  return text;
}

PredictedRequest predict_request(const PlanRequest& request, const PlannedRequest& made,
                                 const predict::Machine& machine, int ranks_per_host) {
  const predict::Setting setting{.machine = machine,
                                 .ranks_per_host = ranks_per_host,
                                 .guarded_share = fleet::guarded_share(made.strategy),
                                 .process_bytes = made.process_bytes};
  // Ranks of other stages of a pipeline have plans of their own, with the same strategies.
  PlanRequest as_chosen = request;
  as_chosen.with.chosen = made.strategy;
  std::vector<PlannedRequest> others;
  std::vector<const runtime::PlannedProgram*> stages;
  if (made.mesh.has("pp") && made.mesh.size("pp") > 1)
    for (const int rank : made.mesh.group("pp"))
      others.push_back(plan_for(as_chosen, Mesh(made.mesh.axes(), rank)));
  for (const PlannedRequest& other : others) stages.push_back(&other.plan);
  if (others.empty()) stages.push_back(&made.plan);
  return {predict::predict_stages(stages, setting), predict::ranks_per_host(setting, made.mesh)};
}

}  // namespace fleetx::tools
