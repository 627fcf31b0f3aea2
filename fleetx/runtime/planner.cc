#include "fleetx/runtime/planner.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>

#include "fleetx/base/names.h"
#include "fleetx/comm/groups.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/transform.h"
#include "fleetx/kernel/reorder.h"

namespace fleetx::runtime {

using ir::Names;
using ir::Op;
using kernel::Desc;

namespace {

constexpr const char* kPhases[] = {"layout", "winograd", "strassen", "inplace", "memory"};

bool dims_fit(const Shape& declared, const Shape& got) {
  if (declared.rank() != got.rank()) return false;
  for (int d = 0; d < got.rank(); ++d)
    if (declared[d] >= 0 && declared[d] != got[d]) return false;
  return true;
}

Names data_names(const ir::Program& program) {
  Names names;
  for (const ir::VarInfo* v : program.vars())
    if (v->is_data) names.push_back(v->name);
  return names;
}

}  // namespace

class Planner {
 public:
  Planner(const ir::Program& program, Scope& scope, const FeedTypes& feeds, const Names& fetch,
          const PlanOptions& options)
      : scope_(scope), feeds_(feeds), fetch_(fetch), options_(options) {
    plan_->program_ = program;
    plan_->groups_ = options.groups ? options.groups : comm::process_groups();
    setting_ = {.seed = program.seed(),
                .without = {.layout = skipped("layout"),
                            .winograd = skipped("winograd"),
                            .strassen = skipped("strassen")},
                .groups = plan_->groups_};
  }

  std::unique_ptr<Plan> make() {
    check_request();
    run_passes();
    timed("layout", [&] { prepare_kernels(); });
    timed("inplace", [&] { share_storages(); });
    timed("memory", [&] { assign_memory(); });
    timed("bind", [&] { bind(); });
    if (!options_.dump_dir.empty()) {
      std::ofstream out(options_.dump_dir + "/plan.txt");
      out << plan_->table();
    }
    return std::move(plan_);
  }

 private:
  // Where a variable is now: its main value, and copies in other layouts.
  struct Place {
    int home = -1;
    std::vector<int> copies;
  };

  bool skipped(const char* phase) const { return options_.skip.contains(phase); }

  template <class Fn>
  void timed(const char* phase, const Fn& fn) {
    const auto start = std::chrono::steady_clock::now();
    fn();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    plan_->phases_.push_back({phase, spent.count()});
  }

  // ---- what was asked for ----
  void check_request() {
    const ir::Program& program = plan_->program_;
    for (const auto& [name, type] : feeds_) {
      const ir::VarInfo* v = program.find(name);
      check_arg(v != nullptr && v->is_data, "feed '", name,
                "': the program has no data variable of that name",
                did_you_mean(name, data_names(program)),
                " (it has: ", join(data_names(program), ", "), ")");
      check_arg(type.dtype == v->type.dtype && dims_fit(v->type.shape, type.shape), "feed '", name,
                "': the program declares ", v->type, ", got ", type);
      check_arg(types_.emplace(name, type).second, "feed '", name, "' is given twice");
      for (const int64_t d : type.shape)
        check_arg(d > 0, "feed '", name, "': the batch is empty (", type, ")");
    }
    for (const std::string& name : fetch_) (void)fetch_var(name);
  }

  const ir::VarInfo& fetch_var(const std::string& name) const {
    const ir::VarInfo* v = plan_->program_.find(name);
    if (v == nullptr) {
      Names known;
      for (const ir::VarInfo* info : plan_->program_.vars()) known.push_back(info->name);
      check_arg(false, "fetch '", name, "': the program has no such variable",
                did_you_mean(name, known));
    }
    return *v;
  }

  void run_passes() {
    passes::Options options;
    options.keep = fetch_;
    options.feeds = feeds_;
    Names known = passes::local_pass_names();
    known.insert(known.end(), std::begin(kPhases), std::end(kPhases));
    for (const std::string& name : options_.skip)
      check_arg(std::find(known.begin(), known.end(), name) != known.end(), "there is no pass '",
                name, "' to skip", did_you_mean(name, known), " (known: ", join(known, ", "), ")");
    options.skip = options_.skip;
    for (const char* phase : kPhases) options.skip.erase(phase);
    options.dump_dir = options_.dump_dir;
    plan_->passes_ = passes::run_local_passes(plan_->program_, options);
  }

  // ---- layout ----
  void prepare_kernels() {
    for (const Op& op : plan_->program_.ops()) prepare(op);
    const int last = static_cast<int>(plan_->steps_.size());
    for (const std::string& name : fetch_) {
      const ir::VarInfo& info = fetch_var(name);
      const bool available =
          places_.contains(name) || types_.contains(name) || (info.persistable && scope_.has(name));
      check_arg(available, "fetch '", name, "': no op of this program computes it",
                info.persistable ? " and it is not in the scope" : "");
      const int value = home_of(name, nullptr);
      plan_->fetches_.push_back({name, value});
      use(value, last);
    }
  }

  const ir::TensorType& type_of(const std::string& name) {
    const auto it = types_.find(name);
    if (it != types_.end()) return it->second;
    const ir::VarInfo& v = plan_->program_.var(name);
    FLEETX_CHECK(v.persistable || v.is_data, "no type for '", name, "'");
    check_arg(!v.is_data, "feed '", name, "' is missing: the program needs ", v.type);
    check_arg(v.type.shape.known(), "the persistable variable '", name,
              "' has an unknown dimension: ", v.type);
    return types_.emplace(name, v.type).first->second;
  }

  // The main value of a variable; made at its first use if it is fed or lives in the scope.
  int home_of(const std::string& name, const Op* reader) {
    const auto it = places_.find(name);
    if (it != places_.end()) return it->second.home;
    const ir::VarInfo& v = plan_->program_.var(name);
    const ir::TensorType& type = type_of(name);
    Desc desc{type.dtype, type.shape, Layout::plain(), type.kind, type.rows};
    Storage storage;
    storage.var = name;
    if (v.persistable) {
      storage.region = Region::kScope;
      const Tensor* tensor = scope_.find(name);
      check_arg(tensor != nullptr || reader == nullptr, reader ? ir::describe(*reader) : "", "'",
                name,
                "' is not in the scope yet: run the startup program first, or load a checkpoint");
      if (tensor != nullptr) {
        check_arg(tensor->dtype() == type.dtype && tensor->shape() == type.shape, "'", name,
                  "' in the scope is ", tensor->dtype(), tensor->shape(), ", the program declares ",
                  type);
        desc.layout = tensor->layout();
      }
    } else {
      FLEETX_CHECK(v.is_data, "'", name, "' is read before it is written");
      storage.region = Region::kFeed;
    }
    const int value = add_value(name, desc, storage);
    places_[name] = {value, {}};
    return value;
  }

  int add_value(const std::string& name, const Desc& desc, Storage storage) {
    storage.block.bytes = desc.bytes();
    storage.block.first = static_cast<int>(plan_->steps_.size());
    storage.block.last = storage.block.first;
    plan_->storages_.push_back(storage);
    plan_->values_.push_back({name, desc, static_cast<int>(plan_->storages_.size()) - 1});
    used_.push_back(false);
    return static_cast<int>(plan_->values_.size()) - 1;
  }

  Storage& storage_of(int value) {
    return plan_
        ->storages_[static_cast<size_t>(plan_->values_[static_cast<size_t>(value)].storage)];
  }
  Desc& desc_of(int value) { return plan_->values_[static_cast<size_t>(value)].desc; }
  void use(int value, int step) {
    used_[static_cast<size_t>(value)] = true;
    Block& block = storage_of(value).block;
    block.last = std::max(block.last, step);
  }

  // A variable of the scope may still choose its layout if it is row-major and nothing in this plan
  // touched it.
  bool can_move(int value) {
    return storage_of(value).region == Region::kScope && desc_of(value).layout.is_plain() &&
           !used_[static_cast<size_t>(value)] && !skipped("layout");
  }

  int value_in_layout(const std::string& name, const Layout& wanted) {
    Place& place = places_.at(name);
    if (desc_of(place.home).layout == wanted) return place.home;
    for (const int copy : place.copies)
      if (desc_of(copy).layout == wanted) return copy;
    if (can_move(place.home)) {
      move_home(place.home, wanted);
      return place.home;
    }
    Desc desc = desc_of(place.home);
    desc.layout = wanted;
    const int copy = add_value(name, desc, {});
    add_reorder(place.home, copy);
    place.copies.push_back(copy);
    return copy;
  }

  void move_home(int value, const Layout& layout) {
    desc_of(value).layout = layout;
    storage_of(value).block.bytes = desc_of(value).bytes();
  }

  void add_reorder(int from, int to) {
    Step step;
    step.label = "reorder";
    step.description = str("reorder '", plan_->values_[static_cast<size_t>(from)].var, "': ");
    step.kernel = kernel::make_reorder(desc_of(from), desc_of(to));
    step.inputs = {from};
    step.outputs = {to};
    step.role = role_;
    step.cost.bytes = static_cast<double>(desc_of(from).bytes() + desc_of(to).bytes());
    const int at = static_cast<int>(plan_->steps_.size());
    storage_of(to).block.first = std::min(storage_of(to).block.first, at);
    use(from, at);
    use(to, at);
    plan_->steps_.push_back(std::move(step));
  }

  void prepare(const Op& op) {
    role_ = op.role;
    const auto types = [&](const std::string& name) -> const ir::TensorType& {
      return type_of(name);
    };
    std::vector<Desc> ins, outs;
    for (const Names& names : op.inputs)
      for (const std::string& name : names) ins.push_back(desc_of(home_of(name, &op)));
    const auto out_types = ir::infer_types(op, types);
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      for (size_t i = 0; i < op.outputs[s].size(); ++i) {
        const std::string& name = op.outputs[s][i];
        const ir::TensorType& type = out_types[s][i];
        Desc desc{type.dtype, type.shape, Layout::plain(), type.kind, type.rows};
        if (plan_->program_.var(name).persistable) {
          check_arg(type_of(name) == type, ir::describe(op), "writes ", type, " into '", name,
                    "', which is ", type_of(name));
          desc.layout = desc_of(home_of(name, nullptr)).layout;
        }
        types_.insert_or_assign(name, type);
        outs.push_back(desc);
      }
    }
    check_arg(op.def->make_kernel != nullptr, ir::describe(op), "has no kernel");
    kernel::Prepare prepare(op, ins, outs, setting_);
    Step step;
    step.label = op.type();
    step.description = ir::describe(op);
    step.role = op.role;
    step.kernel = op.def->make_kernel(prepare);
    step.cost = ir::cost_of(op, types);
    add_step(op, prepare, std::move(step), outs);
  }

  void add_step(const Op& op, const kernel::Prepare& prepare, Step step,
                const std::vector<Desc>& outs) {
    size_t position = 0;
    std::vector<int> read;
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      const auto& unread = op.def->shape_only;
      const bool shape_only =
          std::find(unread.begin(), unread.end(), op.def->inputs[s].name) != unread.end();
      for (const std::string& name : op.inputs[s]) {
        const Layout& wanted = prepare.wanted_layouts()[position++];
        step.inputs.push_back(shape_only ? places_.at(name).home : value_in_layout(name, wanted));
        if (!shape_only) read.push_back(step.inputs.back());
      }
    }
    const int at = static_cast<int>(plan_->steps_.size());  // after the reorders of its inputs
    for (const int value : read) use(value, at);

    std::vector<std::pair<int, int>> write_back;  // (value made, home in the scope)
    position = 0;
    for (const Names& names : op.outputs) {
      for (const std::string& name : names) {
        Desc desc = outs[position];
        desc.layout = prepare.made_layouts()[position++];
        step.outputs.push_back(output_value(op, name, desc, write_back));
        use(step.outputs.back(), at);
      }
    }
    for (const size_t bytes : prepare.scratch_bytes()) {
      Storage storage;
      storage.block = {bytes, at, at, 0};
      plan_->storages_.push_back(storage);
      step.scratch.push_back(static_cast<int>(plan_->storages_.size()) - 1);
    }
    for (const kernel::Bucket& bucket : prepare.buckets()) add_bucket(bucket, step);
    plan_->steps_.push_back(std::move(step));
    ops_.push_back({at, &op});
    for (const auto& [made, home] : write_back) add_reorder(made, home);
  }

  // Gradients are born in their bucket: their only memory, from the op that computes them on. What
  // has its place already (state, what is fed) stays there, and then the others do so too. A later
  // op that asks for the same variables finds them where the first has put them.
  void add_bucket(const kernel::Bucket& bucket, Step& step) {
    std::vector<Storage*> members;
    for (const int input : bucket.inputs)
      members.push_back(&storage_of(step.inputs[static_cast<size_t>(input)]));
    const bool there = members.front()->region == Region::kBucket;
    const int number = there ? members.front()->bucket : static_cast<int>(plan_->buckets_.size());
    size_t end = 0;
    for (Storage* m : members) {
      const bool fits =
          there ? m->region == Region::kBucket && m->bucket == number && m->block.offset == end
                : m->region == Region::kArena && std::count(members.begin(), members.end(), m) == 1;
      if (!fits) {
        step.scratch[bucket.place] = kNoStorage;
        return;
      }
      end += align_up(m->block.bytes);
    }
    Storage& begin = plan_->storages_[static_cast<size_t>(step.scratch[bucket.place])];
    begin.region = Region::kBucket;
    begin.bucket = number;
    if (there) return;
    end = 0;
    for (Storage* m : members) {
      m->region = Region::kBucket;
      m->bucket = number;
      m->block.offset = end;
      end += align_up(m->block.bytes);
    }
    plan_->buckets_.push_back({bucket.group, end + bucket.tail, nullptr});
  }

  int output_value(const Op& op, const std::string& name, const Desc& desc,
                   std::vector<std::pair<int, int>>& write_back) {
    const bool persistable = plan_->program_.var(name).persistable;
    const auto old = places_.find(name);
    if (persistable || (old != places_.end() && op.reads(name))) {
      const int home = home_of(name, nullptr);
      places_.at(name).copies.clear();  // they hold the old content
      if (desc_of(home).layout == desc.layout) return home;
      if (can_move(home)) {
        move_home(home, desc.layout);
        return home;
      }
      const int made = add_value(name, desc, {});
      write_back.emplace_back(made, home);
      return made;
    }
    FLEETX_CHECK(old == places_.end(), ir::describe(op), "'", name, "' is written twice");
    const int value = add_value(name, desc, {});
    places_[name] = {value, {}};
    return value;
  }

  // ---- inplace ----
  void share_storages() {
    if (skipped("inplace")) return;
    for (const Op& op : plan_->program_.ops())
      for (const Names& names : op.outputs)
        for (const std::string& name : names) ++written_[name];
    for (const auto& [at, op] : ops_) {
      Step& step = plan_->steps_[static_cast<size_t>(at)];
      // An output takes over one input: a second one would pull the first along.
      std::set<int> shared;
      for (const auto& [out_slot, in_slot] : op->def->in_place)
        share(step, at, *op, out_slot, in_slot, shared);
    }
  }

  static size_t first_position(const std::vector<Names>& slots, int slot) {
    size_t before = 0;
    for (int s = 0; s < slot; ++s) before += slots[static_cast<size_t>(s)].size();
    return before;
  }

  void share(Step& step, int at, const Op& op, const std::string& out_slot,
             const std::string& in_slot, std::set<int>& shared) {
    const int out_index = op.def->output_index(out_slot), in_index = op.def->input_index(in_slot);
    const size_t pairs = std::min(op.outputs[static_cast<size_t>(out_index)].size(),
                                  op.inputs[static_cast<size_t>(in_index)].size());
    for (size_t i = 0; i < pairs; ++i) {
      const int out = step.outputs[first_position(op.outputs, out_index) + i];
      const int in = step.inputs[first_position(op.inputs, in_index) + i];
      if (shared.contains(out)) continue;
      const int from = plan_->values_[static_cast<size_t>(in)].storage;
      const int to = plan_->values_[static_cast<size_t>(out)].storage;
      Storage& source = plan_->storages_[static_cast<size_t>(from)];
      Storage& target = plan_->storages_[static_cast<size_t>(to)];
      if (written_[plan_->values_[static_cast<size_t>(in)].var] > 1 ||
          written_[plan_->values_[static_cast<size_t>(out)].var] > 1)
        continue;  // it changes during the step: nobody else may see that
      if (from == to || target.region != Region::kArena ||
          source.block.bytes != target.block.bytes || desc_of(in).kind != desc_of(out).kind)
        continue;
      if (op.def->view) {
        // The bytes are the same and nobody changes them: sharing is right even if the input lives
        // on.
        if (source.region == Region::kScope) continue;
      } else {
        const bool dies_here = source.block.last == at && source.region == Region::kArena;
        const bool read_once = std::count_if(step.inputs.begin(), step.inputs.end(), [&](int v) {
                                 return plan_->values_[static_cast<size_t>(v)].storage == from;
                               }) == 1;
        if (!dies_here || !read_once) continue;
      }
      source.block.last = std::max(source.block.last, target.block.last);
      for (Value& value : plan_->values_)
        if (value.storage == to) value.storage = from;
      target.block = {0, at, at, 0};
      shared.insert(out);
    }
  }

  // ---- memory ----
  void assign_memory() {
    std::vector<bool> in_use(plan_->storages_.size(), false);
    for (const Step& step : plan_->steps_) {
      for (const int v : step.inputs)
        in_use[static_cast<size_t>(plan_->values_[static_cast<size_t>(v)].storage)] = true;
      for (const int v : step.outputs)
        in_use[static_cast<size_t>(plan_->values_[static_cast<size_t>(v)].storage)] = true;
      for (const int s : step.scratch)
        if (s != kNoStorage) in_use[static_cast<size_t>(s)] = true;
    }
    std::vector<Block*> arena;
    for (size_t s = 0; s < plan_->storages_.size(); ++s) {
      Storage& storage = plan_->storages_[s];
      if (!in_use[s]) continue;
      if (storage.region == Region::kArena) arena.push_back(&storage.block);
      if (storage.region == Region::kScope) plan_->scope_bytes_ += storage.block.bytes;
    }
    plan_->arena_bytes_ = pack(arena, skipped("memory") ? Packing::kNoReuse : Packing::kReuse);
    plan_->live_bytes_ = live_peak(arena);
  }

  // ---- bind ----
  void bind() {
    for (Storage& storage : plan_->storages_)
      if (storage.region == Region::kScope) provide(storage.var);
    plan_->arena_ = Buffer::allocate(plan_->arena_bytes_);
    for (BucketMemory& bucket : plan_->buckets_)
      bucket.memory = bucket.group->allocate(bucket.bytes);
    for (const auto& [name, type] : feeds_) plan_->feeds_.push_back(name);
    plan_->feed_uses_.resize(plan_->feeds_.size());
    plan_->feed_data_.resize(plan_->feeds_.size(), nullptr);

    for (size_t s = 0; s < plan_->steps_.size(); ++s) {
      Step& step = plan_->steps_[s];
      const auto bind_value = [&](int v) {
        const Value& value = plan_->values_[static_cast<size_t>(v)];
        const Storage& storage = plan_->storages_[static_cast<size_t>(value.storage)];
        if (storage.region == Region::kFeed)
          plan_->feed_uses_[static_cast<size_t>(plan_->feed_index(storage.var))].emplace_back(
              static_cast<int>(s), static_cast<int>(step.pointers.size()));
        step.pointers.push_back(pointer(storage));
      };
      for (const int v : step.inputs) bind_value(v);
      for (const int v : step.outputs) bind_value(v);
      for (const int v : step.scratch)
        step.pointers.push_back(
            v == kNoStorage ? nullptr : pointer(plan_->storages_[static_cast<size_t>(v)]));
    }
    plan_->fetched_.resize(plan_->fetches_.size());
    for (size_t i = 0; i < plan_->fetches_.size(); ++i) {
      const Desc& desc = desc_of(plan_->fetches_[i].value);
      plan_->fetched_[i] = Tensor(desc.dtype, desc.shape);
    }
  }

  // The variable in the scope, in the layout of the plan: made, or moved there once.
  void provide(const std::string& name) {
    const Desc& desc = desc_of(places_.at(name).home);
    const Tensor* tensor = scope_.find(name);
    if (tensor == nullptr) {
      scope_.replace(name, Tensor(desc.dtype, desc.shape, desc.layout));
    } else if (tensor->layout() != desc.layout) {
      scope_.replace(name, tensor->to(desc.layout));
    }
    plan_->held_.emplace(name, *scope_.find(name));
  }

  void* pointer(const Storage& storage) {
    switch (storage.region) {
      case Region::kArena: return static_cast<char*>(plan_->arena_.data()) + storage.block.offset;
      case Region::kBucket:
        return static_cast<char*>(
                   plan_->buckets_[static_cast<size_t>(storage.bucket)].memory.get()) +
               storage.block.offset;
      case Region::kScope: return scope_.find(storage.var)->raw();
      case Region::kFeed: return nullptr;
    }
    return nullptr;
  }

  Scope& scope_;
  const FeedTypes& feeds_;
  const Names& fetch_;
  const PlanOptions& options_;
  std::unique_ptr<Plan> plan_ = std::make_unique<Plan>();
  kernel::Setting setting_;
  std::map<std::string, ir::TensorType> types_;
  std::map<std::string, Place> places_;
  ir::Role role_ = ir::Role::kForward;          // of the op that is being prepared
  std::map<std::string, int> written_;          // how many ops write a variable
  std::vector<bool> used_;                      // per value
  std::vector<std::pair<int, const Op*>> ops_;  // step of each op
};

std::unique_ptr<Plan> make_plan(const ir::Program& program, Scope& scope, const FeedTypes& feeds,
                                const Names& fetch, const PlanOptions& options) {
  return Planner(program, scope, feeds, fetch, options).make();
}

}  // namespace fleetx::runtime
