#include "fleetx/strategies/pipeline_cut.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "fleetx/ir/infer.h"
#include "fleetx/strategies/pipeline_sizes.h"

namespace fleetx::strategies {
namespace {

// What moving a byte costs in flops, on machines of today.
constexpr double kFlopsPerByte = 8;
constexpr double kSlack = 1.02;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Ops and what is known of them, with prefix sums: those of ops [a, b) are x[b] - x[a].
class Line {
 public:
  Line(const ir::Program& main, const std::vector<const ir::Op*>& ops, int64_t batch)
      : p_(main), batch_(batch) {
    for (const ir::VarInfo* v : main.vars())
      if (v->is_data || v->persistable) types_.emplace(v->name, known(*v));
    size_t next = 0;
    for (const ir::Op& op : main.ops()) {
      if (op.role != ir::Role::kForward) continue;
      const double cost = infer(op);
      if (next < ops.size() && ops[next] == &op) {
        add(op, cost);
        ++next;
      }
    }
    crossing_.assign(work_.size(), 0.0);
    for (const auto& [name, life] : lives_)
      for (int at = life.made + 1; at <= life.last; ++at)
        crossing_[static_cast<size_t>(at)] += life.bytes;
  }

  int ops() const { return static_cast<int>(work_.size()) - 1; }
  double work(int from, int to) const { return at(work_, to) - at(work_, from); }
  bool has_parameter(int from, int to) const { return at(firsts_, to) > at(firsts_, from); }
  // Ops that are the first to read a parameter: where a stage can begin.
  int beginnings() const {
    int count = 0;
    for (int op = 0; op < ops(); ++op) count += has_parameter(op, op + 1);
    return count;
  }
  // Bytes of values that are made before the op and read from it on.
  double crossing(int op) const { return at(crossing_, op); }

 private:
  struct Life {
    int made = 0, last = 0;
    double bytes = 0;
  };

  template <class T>
  static T at(const std::vector<T>& of, int i) {
    return of[static_cast<size_t>(i)];
  }

  ir::TensorType known(const ir::VarInfo& var) const {
    ir::TensorType type = var.type;
    for (int d = 0; d < type.shape.rank(); ++d)
      if (type.shape[d] < 0) type.shape[d] = batch_ * (d > 0 ? 1 : rows_of_a_sample(var));
    return type;
  }

  double infer(const ir::Op& op) {
    const auto type_of = [&](const std::string& name) -> const ir::TensorType& {
      return types_.at(name);
    };
    try {
      const auto made = ir::infer_types(op, type_of);
      for (size_t s = 0; s < made.size(); ++s)
        for (size_t i = 0; i < made[s].size(); ++i) types_.emplace(op.outputs[s][i], made[s][i]);
      const ir::Cost cost = ir::cost_of(op, type_of);
      return cost.flops + kFlopsPerByte * cost.bytes;
    } catch (const Error& e) {
      fail(Error::Kind::kInvalidArgument,
           str("pipeline: no device_guard says where stages begin, and none can be chosen, because "
               "shapes are not known: ",
               e.what(), ". Write the layers under paddle.static.device_guard(\"gpu:N\")"));
    }
  }

  void add(const ir::Op& op, double cost) {
    const int index = ops();
    int firsts = firsts_.back();
    for (const ir::Names& names : op.inputs)
      for (const std::string& name : names) {
        const ir::VarInfo& v = p_.var(name);
        if (v.is_parameter && seen_.insert(name).second) {
          // Backward takes twice as long as forward; beside it gradients are added up.
          cost += kFlopsPerByte * ir::bytes_of(v.type);
          if (!v.stop_gradient) ++firsts;
        }
        if (const auto it = lives_.find(name); it != lives_.end()) it->second.last = index;
      }
    for (const ir::Names& names : op.outputs)
      for (const std::string& name : names)
        if (!p_.var(name).persistable)
          lives_.try_emplace(name, Life{index, index, ir::bytes_of(types_.at(name))});
    work_.push_back(work_.back() + cost);
    firsts_.push_back(firsts);
  }

  const ir::Program& p_;
  int64_t batch_;
  std::map<std::string, ir::TensorType> types_;
  std::map<std::string, Life> lives_;
  std::set<std::string> seen_;
  std::vector<double> work_{0.0};
  std::vector<int> firsts_{0};  // parameters that are read for the first time
  std::vector<double> crossing_;
};

// The best ends of stages: best[k][n], of the first n ops in k stages, and where the last begins.
class Best {
 public:
  // `join` gives the cost of n ops from that of the ops before a stage and the stage itself.
  template <class Join>
  Best(const Line& line, int stages, const Join& join) : n_(line.ops()) {
    const auto size = static_cast<size_t>(stages + 1);
    cost_.assign(size, std::vector<double>(static_cast<size_t>(n_ + 1), kNever));
    begin_.assign(size, std::vector<int>(static_cast<size_t>(n_ + 1), 0));
    cost_[0][0] = 0;
    for (size_t k = 1; k < size; ++k)
      for (int end = 1; end <= n_; ++end)
        for (int begin = 0; begin < end; ++begin) {
          const double before = cost_[k - 1][static_cast<size_t>(begin)];
          if (before == kNever || !line.has_parameter(begin, end)) continue;
          const double all = join(before, begin, end);
          if (all >= cost_[k][static_cast<size_t>(end)]) continue;
          cost_[k][static_cast<size_t>(end)] = all;
          begin_[k][static_cast<size_t>(end)] = begin;
        }
  }

  double cost() const { return cost_.back().back(); }
  std::vector<int> stages() const {
    std::vector<int> out(static_cast<size_t>(n_));
    int end = n_;
    for (size_t k = begin_.size() - 1; k > 0; --k) {
      const int begin = begin_[k][static_cast<size_t>(end)];
      for (int op = begin; op < end; ++op) out[static_cast<size_t>(op)] = static_cast<int>(k) - 1;
      end = begin;
    }
    return out;
  }

 private:
  int n_;
  std::vector<std::vector<double>> cost_;
  std::vector<std::vector<int>> begin_;
};

}  // namespace

std::vector<int> cut_into_stages(const ir::Program& main, const std::vector<const ir::Op*>& ops,
                                 const CutOptions& options) {
  const Line line(main, ops, options.micro_batch);
  const Best balanced(line, options.stages, [&](double before, int begin, int end) {
    return std::max(before, line.work(begin, end));
  });
  check_arg(balanced.cost() < kNever, "pipeline: ", options.stages,
            " stages were asked for, and each needs a layer with a parameter of its own, but the "
            "network has only ",
            line.beginnings(), " such; set hybrid_configs.pp_degree to ", line.beginnings(),
            " at most");
  const double most = balanced.cost() * kSlack;
  const Best small(line, options.stages, [&](double before, int begin, int end) {
    return line.work(begin, end) > most ? kNever : before + line.crossing(begin);
  });
  return small.stages();
}

}  // namespace fleetx::strategies
