#include "fleetx/fleet/auto_strategy.h"

#include <algorithm>
#include <charconv>
#include <iomanip>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "fleetx/base/env.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/names.h"
#include "fleetx/fleet/describe_job.h"
#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/predict/predict.h"
#include "fleetx/runtime/planner.h"
#include "fleetx/strategies/choices.h"

namespace fleetx::fleet {
namespace {

using strategies::Choice;
using strategies::Choices;
using strategies::Effect;
using strategies::Matters;

constexpr size_t kShown = 5, kBeam = 2;
// Predictions are not as exact as this: what is as fast but for this part, and sets less, is
// better.
constexpr double kAsFast = 0.001;
// Of the memory that there is: the system, readers of data and what no plan foresees have the rest.
constexpr double kUsable = 0.9;

// For each dimension of the search, which of its choices; 0: none.
using Point = std::vector<size_t>;

struct Dimension {
  std::string strategy;
  std::vector<Choice> choices;
  Matters matters;
};

struct Tried {
  Point point;
  std::optional<Candidate> candidate;  // none: refused
  std::string refusal = {};

  bool fits() const { return candidate && candidate->bytes <= candidate->limit; }
};

// What fits comes first, then what is faster. Of what does not fit, what needs less. Of equals, the
// one that sets less.
bool better(const Tried& a, const Tried& b) {
  if (a.candidate.has_value() != b.candidate.has_value()) return a.candidate.has_value();
  if (!a.candidate) return a.point < b.point;
  if (a.fits() != b.fits()) return a.fits();
  const double x = a.fits() ? a.candidate->seconds : a.candidate->bytes;
  const double y = b.fits() ? b.candidate->seconds : b.candidate->bytes;
  if (x != y) return x < y;
  const auto settings = [](const Tried& t) { return std::ranges::count(t.point, 0U); };
  return settings(a) != settings(b) ? settings(a) > settings(b) : a.point < b.point;
}

std::vector<Dimension> dimensions_of(const AutoConfigs& configs, const Mesh& mesh, bool is_split,
                                     std::vector<std::string>& not_allowed) {
  std::vector<std::string> known;
  std::vector<Dimension> out;
  for (const Choices& c : strategies::all_choices()) {
    if (c.effect != Effect::kSame) known.push_back(c.strategy);
    const bool allowed =
        c.effect == Effect::kSame || std::ranges::count(configs.allow, c.strategy) > 0;
    std::vector<Choice> choices = c.list(mesh);
    if (choices.empty() || (is_split && c.strategy == "tensor_parallel")) continue;
    if (allowed)
      out.push_back({c.strategy, std::move(choices), c.matters});
    else
      not_allowed.push_back(str(c.strategy, c.effect == Effect::kRounding
                                                ? " (rounds more)"
                                                : " (changes what is learned)"));
  }
  for (const std::string& name : configs.allow)
    check_arg(std::ranges::count(known, name) > 0, "DistributedStrategy.auto_configs.allow: auto ",
              "does not choose '", name, "'", did_you_mean(name, known),
              "; it can be allowed: ", join(known, ", "));
  return out;
}

class Search {
 public:
  Search(const DistributedStrategy& asked, const Mesh& mesh, const Evaluate& evaluate, int split)
      : mesh_(mesh),
        evaluate_(evaluate),
        dimensions_(dimensions_of(asked.auto_configs, mesh, split > 1, not_allowed_)),
        base_(asked) {
    base_.hybrid_configs.mp_degree = split;
    base_.auto_ = false;
    base_.auto_configs = {};
  }

  AutoChoice run() {
    evaluate(Point(dimensions_.size(), 0));
    climb(Matters::kMuch);
    climb(Matters::kLittle);
    const Tried& best = simplest_of_best();
    check_fits(best);
    return {strategy_of(best.point), *best.candidate, static_cast<int>(tried_.size()),
            report(best)};
  }

 private:
  // From the best so far, as long as it gets better.
  void climb(Matters matters) {
    for (bool progress = true; progress;) {
      const Point best_before = ranked().front()->point;
      std::vector<Point> beam;
      for (const Tried* t : ranked())
        if (beam.size() < kBeam) beam.push_back(t->point);
      for (const Point& point : beam)
        for (const Point& next : neighbours(point, matters)) evaluate(next);
      progress = ranked().front()->point != best_before;
    }
  }

  const Tried& simplest_of_best() const {
    const std::vector<const Tried*> all = ranked();
    const Tried* best = all.front();
    for (const Tried* t : all)
      if (t->fits() && t->candidate->seconds <= all.front()->candidate->seconds * (1 + kAsFast) &&
          settings_of(*t) < settings_of(*best))
        best = t;
    return *best;
  }
  static int64_t settings_of(const Tried& t) {
    return std::ssize(t.point) - std::ranges::count(t.point, 0U);
  }

  std::vector<Point> neighbours(const Point& point, Matters matters) const {
    std::vector<Point> out;
    for (size_t d = 0; d < point.size(); ++d)
      for (size_t c = 0; c <= dimensions_[d].choices.size(); ++c) {
        if (c == point[d] || dimensions_[d].matters != matters) continue;
        out.push_back(point);
        out.back()[d] = c;
      }
    return out;
  }

  DistributedStrategy strategy_of(const Point& point) const {
    DistributedStrategy s = base_;
    for (size_t d = 0; d < point.size(); ++d) {
      if (point[d] == 0) continue;
      for (const auto& [field, value] : dimensions_[d].choices[point[d] - 1].settings) {
        const size_t dot = field.find('.');
        if (dot == std::string::npos)
          s.set(field, value);
        else
          s.set_configs(field.substr(0, dot), {{field.substr(dot + 1), value}});
      }
    }
    return s;
  }

  std::string name_of(const Point& point) const {
    std::vector<std::string> names;
    for (size_t d = 0; d < point.size(); ++d)
      if (point[d] > 0) names.push_back(dimensions_[d].choices[point[d] - 1].name);
    return names.empty() ? "plain" : join(names, " + ");
  }

  void evaluate(const Point& point) {
    if (tried_.contains(point)) return;
    Tried t{point, {}};
    try {
      const DistributedStrategy s = strategy_of(point);
      t.candidate = evaluate_(s, mesh_of(s, mesh_.world(), mesh_.rank()));
    } catch (const Error& e) {
      // The network itself, without any strategy, is the user's to mend.
      if (std::ranges::count(point, 0U) == std::ssize(point) || e.kind() == Error::Kind::kInternal)
        throw;
      t.refusal = e.what();
    }
    tried_.emplace(point, std::move(t));
  }

  std::vector<const Tried*> ranked() const {
    std::vector<const Tried*> all;
    for (const auto& [point, t] : tried_) all.push_back(&t);
    std::ranges::sort(all, [](const Tried* a, const Tried* b) { return better(*a, *b); });
    return all;
  }

  static std::string mib(double bytes) {
    return str(static_cast<int64_t>(bytes / (1 << 20) + 0.5), " MiB");
  }
  static std::string ms(double seconds) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(1) << seconds * 1e3 << " ms";
    return out.str();
  }

  void check_fits(const Tried& best) const {
    if (best.fits()) return;
    const Candidate& c = *best.candidate;
    fail(
        Error::Kind::kInvalidArgument,
        str("DistributedStrategy.auto: the model fits in no way. The least that a worker needs is ",
            mib(c.bytes), " (", name_of(best.point), "), ", mib(c.bytes - c.limit),
            " more than the ", mib(c.limit),
            " that it has. What would help: a smaller batch (auto_configs.batch_size), more memory "
            "(auto_configs.memory_limit_MB)",
            not_allowed_.empty()
                ? ""
                : str(", or to allow more in auto_configs.allow: ", join(not_allowed_, ", "))));
  }

  std::string why_lost(const Tried& t, const Tried& best) const {
    if (!t.candidate) return str("refused: ", t.refusal.substr(0, t.refusal.find('\n')));
    if (!t.fits())
      return str("needs ", mib(t.candidate->bytes - t.candidate->limit), " more than there are");
    const double slower = t.candidate->seconds / best.candidate->seconds - 1;
    if (slower <= 0) return "as fast, with more to set";
    std::ostringstream out;
    out << std::fixed << std::setprecision(1) << 100 * slower << " % slower";
    return out.str();
  }

  std::string report(const Tried& best) const {
    std::vector<const Tried*> all = ranked();
    std::ranges::rotate(all.begin(), std::ranges::find(all, &best),
                        std::next(std::ranges::find(all, &best)));
    std::string text =
        str("chose ", name_of(best.point), ": ", ms(best.candidate->seconds), " a step, ",
            mib(best.candidate->bytes), " of ", mib(best.candidate->limit), " (predicted); of ",
            all.size(), " that were tried, the best:");
    for (size_t i = 0; i < all.size(); ++i) {
      const Tried& t = *all[i];
      if (i == kShown) text += "\nthe others lost:";
      text += str("\n  ", name_of(t.point), ": ");
      if (i < kShown && t.candidate)
        text += str(ms(t.candidate->seconds), ", ", mib(t.candidate->bytes));
      if (i > 0) text += str(i < kShown && t.candidate ? "; " : "", why_lost(t, best));
    }
    if (!not_allowed_.empty())
      text +=
          str("\nnot tried, as auto_configs.allow does not name them: ", join(not_allowed_, ", "));
    return text;
  }

  const Mesh& mesh_;
  const Evaluate& evaluate_;
  std::vector<std::string> not_allowed_;
  std::vector<Dimension> dimensions_;
  DistributedStrategy base_;
  std::map<Point, Tried> tried_;
};

// "words=8,128"
std::map<std::string, Shape> given_shapes(const ir::Strings& texts) {
  std::map<std::string, Shape> out;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    Shape shape;
    bool good = equals != std::string::npos && equals > 0;
    for (const std::string& part : good ? split_list(text.substr(equals + 1)) : ir::Strings{}) {
      int64_t size = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
      good &= error == std::errc{} && end == part.data() + part.size() && size > 0;
      shape.push_back(size);
    }
    check_arg(good && shape.rank() > 0, "DistributedStrategy.auto_configs.shapes: '", text,
              "'; write NAME=8,128, for example");
    out.emplace(text.substr(0, equals), std::move(shape));
  }
  return out;
}

runtime::FeedTypes feeds_of(const ir::Program& main, const AutoConfigs& configs) {
  const std::map<std::string, Shape> shapes = given_shapes(configs.shapes);
  for (const auto& [name, shape] : shapes) {
    const ir::VarInfo* v = main.find(name);
    check_arg(v != nullptr && v->is_data, "DistributedStrategy.auto_configs.shapes has '", name,
              "', but the program has no data of that name");
  }
  std::set<std::string> read;
  for (const ir::Op& op : main.ops())
    for (const ir::Names& names : op.inputs) read.insert(names.begin(), names.end());
  runtime::FeedTypes feeds;
  for (const ir::VarInfo* v : main.vars()) {
    if (!v->is_data || !read.contains(v->name)) continue;
    ir::TensorType type = v->type;
    if (const auto given = shapes.find(v->name); given != shapes.end())
      type.shape = given->second;
    else if (type.shape.rank() > 0 && type.shape[0] < 0)
      type.shape[0] = configs.batch_size;
    check_arg(type.shape.known(), "DistributedStrategy.auto: the data '", v->name, "' are ",
              v->type,
              ", and memory depends on all sizes: give them as auto_configs = {'shapes': ['",
              v->name, "=8,128']}");
    feeds.emplace_back(v->name, std::move(type));
  }
  return feeds;
}

predict::Machine machine_of(const AutoConfigs& configs) {
  const std::string path =
      configs.machine.empty() ? env::get("FLEETX_MACHINE").value_or("") : configs.machine;
  return path.empty() ? predict::Machine::guess() : predict::Machine::load(path);
}

}  // namespace

void check_alone(const DistributedStrategy& strategy) {
  std::vector<std::string> others;
  for (const std::string& name : strategy.changed()) {
    const bool harmless = name == "auto" || name.starts_with("auto_configs.") || name == "mode" ||
                          name.starts_with("build_strategy.") ||
                          name.starts_with("execution_strategy.") || name.starts_with("cudnn_") ||
                          name == "nccl_comm_num" || name == "sync_nccl_allreduce" ||
                          name == "conv_workspace_size_limit";
    if (!harmless) others.push_back(name);
  }
  check_arg(others.empty(), "DistributedStrategy.auto chooses the strategies by itself, but ",
            join(others, ", "), others.size() == 1 ? " is" : " are",
            " set beside it; leave that alone, or auto off. What auto may use is said in "
            "auto_configs");
}

AutoChoice choose_strategy(const DistributedStrategy& asked, const Mesh& mesh,
                           const Evaluate& evaluate, int split) {
  check_alone(asked);
  return Search(asked, mesh, evaluate, split).run();
}

Predictor::Predictor(AutoConfigs configs)
    : configs_(std::move(configs)), machine_(machine_of(configs_)) {}

double Predictor::limit(int ranks_per_host, bool here) const {
  if (configs_.memory_limit_MB > 0)
    return static_cast<double>(configs_.memory_limit_MB) * (1 << 20);
  double bytes = machine_.memory_bytes / ranks_per_host;
  if (here) bytes = std::min(bytes, memory_limit(ranks_per_host).bytes);
  return kUsable * bytes;
}

Candidate Predictor::operator()(const std::vector<ir::Program>& stages, const std::string& loss,
                                const DistributedStrategy& strategy, const Mesh& mesh) const {
  const std::vector<int> ranks = stages.size() > 1 ? mesh.group("pp") : std::vector{mesh.rank()};
  std::vector<runtime::PlannedProgram> plans;
  for (size_t i = 0; i < stages.size(); ++i) {
    runtime::PlanOptions options;
    options.mesh = Mesh(mesh.axes(), ranks[i]);
    plans.push_back(
        runtime::plan_program(stages[i], feeds_of(stages[i], configs_), {loss}, options));
  }
  std::vector<const runtime::PlannedProgram*> all;
  for (const runtime::PlannedProgram& plan : plans) all.push_back(&plan);
  const JobEnv job = JobEnv::from_environment();
  const predict::Setting setting{
      .machine = machine_,
      .ranks_per_host = job.local_world > 1 ? job.local_world : machine_.ranks,
      .guarded_share = guarded_share(strategy),
      .process_bytes = process_bytes_};
  const std::vector<predict::Prediction> predicted = predict::predict_stages(all, setting);
  double bytes = 0;
  for (const predict::Prediction& p : predicted)
    bytes = std::max(bytes, static_cast<double>(p.peak_bytes()));
  const bool here = job.world == mesh.world() && !is_describing();
  // Where workers divide layers, or have stages of them, fewer have a part of the batch.
  const double slower = static_cast<double>(mesh.world()) / mesh.size("dp");
  return {predicted.front().seconds * slower, bytes,
          limit(predict::ranks_per_host(setting, mesh), here)};
}

}  // namespace fleetx::fleet
