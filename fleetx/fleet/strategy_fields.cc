#include "fleetx/fleet/strategy_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::fleet {
namespace {

using Mode = DistributedStrategy::Mode;
constexpr std::array<std::string_view, 4> kModes{"COLLECTIVE", "PS", "PIPELINE", "HETER"};

template <class T>
bool holds(const Field& field) {
  return std::holds_alternative<T*>(field.ref);
}

ir::AttrType attr_type(const Field& field) {
  if (holds<bool>(field)) return ir::AttrType::kBool;
  if (holds<int>(field)) return ir::AttrType::kInt;
  if (holds<double>(field)) return ir::AttrType::kFloat;
  if (holds<ir::Strings>(field)) return ir::AttrType::kStrings;
  if (holds<ir::Ints>(field)) return ir::AttrType::kInts;
  if (holds<ir::Floats>(field)) return ir::AttrType::kFloats;
  return ir::AttrType::kString;
}

void check_rule(const Field& field, double value, std::string_view who) {
  if (field.rule == Rule::kPositive) check_arg(value > 0, who, ": must be > 0, got ", value);
  if (field.rule == Rule::kNotNegative) check_arg(value >= 0, who, ": must be >= 0, got ", value);
}

template <class Choices>
size_t index_in(const Choices& choices, const std::string& name, std::string_view who) {
  const auto found = std::ranges::find(choices, name);
  check_arg(found != choices.end(), who, ": expected one of ",
            join({choices.begin(), choices.end()}, ", "), ", got '", name, "'");
  return static_cast<size_t>(found - choices.begin());
}

std::vector<Field> own_fields(DistributedStrategy& s) {
  using enum Rule;
  return {
      {"mode", &s.mode},
      {"amp", &s.amp, kStrategy},
      {"recompute", &s.recompute, kStrategy},
      {"localsgd", &s.localsgd, kStrategy},
      {"adaptive_localsgd", &s.adaptive_localsgd, kStrategy},
      {"dgc", &s.dgc, kStrategy},
      {"gradient_merge", &s.gradient_merge, kStrategy},
      {"lars", &s.lars, kStrategy},
      {"lamb", &s.lamb, kStrategy},
      {"pipeline", &s.pipeline, kStrategy},
      {"sharding", &s.sharding, kStrategy},
      {"tensor_parallel", &s.tensor_parallel, kStrategy},
      {"fp16_allreduce", &s.fp16_allreduce, kStrategy},
      {"sync_batch_norm", &s.sync_batch_norm, kStrategy},
      {"elastic", &s.elastic, kStrategy},
      {"auto", &s.auto_, kStrategy},
      {"semi_auto", &s.semi_auto, kStrategy},
      {"auto_search", &s.auto_search, kStrategy},
      {"asp", &s.asp, kStrategy},
      {"heter_ccl_mode", &s.heter_ccl_mode, kStrategy},
      {"a_sync", &s.a_sync, kStrategy},
      {"fuse_all_reduce_ops", &s.fuse_all_reduce_ops},
      {"fuse_grad_size_in_MB", &s.fuse_grad_size_in_MB, kPositive},
      {"fuse_grad_size_in_TFLOPS", &s.fuse_grad_size_in_TFLOPS, kPositive},
      {"fuse_grad_size_in_num", &s.fuse_grad_size_in_num, kPositive},
      {"last_comm_group_size_MB", &s.last_comm_group_size_MB, kPositive},
      {"find_unused_parameters", &s.find_unused_parameters},
      {"without_graph_optimization", &s.without_graph_optimization},
      {"fuse_grad_merge", &s.fuse_grad_merge},
      {"calc_comm_same_stream", &s.calc_comm_same_stream},
      {"sync_nccl_allreduce", &s.sync_nccl_allreduce},
      {"nccl_comm_num", &s.nccl_comm_num, kPositive},
      {"use_hierarchical_allreduce", &s.use_hierarchical_allreduce},
      {"hierarchical_allreduce_inter_nranks", &s.hierarchical_allreduce_inter_nranks, kPositive},
      {"cudnn_exhaustive_search", &s.cudnn_exhaustive_search},
      {"conv_workspace_size_limit", &s.conv_workspace_size_limit, kNotNegative},
      {"cudnn_batchnorm_spatial_persistent", &s.cudnn_batchnorm_spatial_persistent},
      {"adam_d2sum", &s.adam_d2sum},
  };
}

std::vector<Field> fields_of(AutoConfigs& c) {
  using enum Rule;
  return {
      {"allow", &c.allow},     {"memory_limit_MB", &c.memory_limit_MB, kNotNegative},
      {"machine", &c.machine}, {"batch_size", &c.batch_size, kPositive},
      {"shapes", &c.shapes},   {"save_to", &c.save_to},
  };
}

std::vector<Field> fields_of(AmpConfigs& c) {
  using enum Rule;
  return {
      {"init_loss_scaling", &c.init_loss_scaling, kPositive},
      {"incr_every_n_steps", &c.incr_every_n_steps, kPositive},
      {"decr_every_n_nan_or_inf", &c.decr_every_n_nan_or_inf, kPositive},
      {"incr_ratio", &c.incr_ratio, kPositive},
      {"decr_ratio", &c.decr_ratio, kPositive},
      {"use_dynamic_loss_scaling", &c.use_dynamic_loss_scaling},
      {"custom_white_list", &c.custom_white_list},
      {"custom_black_list", &c.custom_black_list},
      {"custom_black_varnames", &c.custom_black_varnames},
      {"use_pure_fp16", &c.use_pure_fp16},
      {"use_fp16_guard", &c.use_fp16_guard},
      {"use_optimizer_fp16", &c.use_optimizer_fp16},
      {"dtype", &c.dtype, kAny, {"bfloat16", "float16"}},
      {"fp16_guard_varnames", &c.fp16_guard_varnames},
      {"multi_precision", &c.multi_precision},
  };
}

std::vector<Field> fields_of(RecomputeConfigs& c) {
  return {
      {"checkpoints", &c.checkpoints},
      {"enable_offload", &c.enable_offload},
      {"checkpoint_shape", &c.checkpoint_shape},
      {"budget_MB", &c.budget_MB, Rule::kNotNegative},
  };
}

std::vector<Field> fields_of(LocalSgdConfigs& c) {
  return {
      {"k_steps", &c.k_steps, Rule::kPositive},
      {"begin_step", &c.begin_step, Rule::kNotNegative},
  };
}

std::vector<Field> fields_of(AdaptiveLocalSgdConfigs& c) {
  return {
      {"init_k_steps", &c.init_k_steps, Rule::kPositive},
      {"begin_step", &c.begin_step, Rule::kNotNegative},
  };
}

std::vector<Field> fields_of(DgcConfigs& c) {
  return {
      {"rampup_begin_step", &c.rampup_begin_step, Rule::kNotNegative},
      {"rampup_step", &c.rampup_step, Rule::kPositive},
      {"sparsity", &c.sparsity},
  };
}

std::vector<Field> fields_of(GradientMergeConfigs& c) {
  return {{"k_steps", &c.k_steps, Rule::kPositive}, {"avg", &c.avg}};
}

std::vector<Field> fields_of(Fp16AllreduceConfigs& c) {
  return {{"dtype", &c.dtype, Rule::kAny, {"float16", "bfloat16"}}};
}

std::vector<Field> fields_of(LarsConfigs& c) {
  return {
      {"lars_coeff", &c.lars_coeff, Rule::kPositive},
      {"lars_weight_decay", &c.lars_weight_decay, Rule::kNotNegative},
      {"epsilon", &c.epsilon, Rule::kNotNegative},
      {"exclude_from_weight_decay", &c.exclude_from_weight_decay},
  };
}

std::vector<Field> fields_of(LambConfigs& c) {
  return {
      {"lamb_weight_decay", &c.lamb_weight_decay, Rule::kNotNegative},
      {"exclude_from_weight_decay", &c.exclude_from_weight_decay},
  };
}

std::vector<Field> fields_of(PipelineConfigs& c) {
  return {
      {"micro_batch", &c.micro_batch, Rule::kPositive},
      {"micro_batch_size", &c.micro_batch_size, Rule::kPositive},
      {"accumulate_steps", &c.accumulate_steps, Rule::kPositive},
      {"schedule_mode", &c.schedule_mode, Rule::kAny, {"1F1B", "F-then-B"}},
      {"p2p_cache_shape", &c.p2p_cache_shape},
  };
}

std::vector<Field> fields_of(ShardingConfigs& c) {
  using enum Rule;
  return {
      {"fuse_broadcast_MB", &c.fuse_broadcast_MB, kPositive},
      {"hybrid_dp", &c.hybrid_dp},
      {"sharding_group_size", &c.sharding_group_size, kPositive},
      {"sharding_segment_strategy",
       &c.sharding_segment_strategy,
       kAny,
       {"segment_broadcast_MB", "segment_anchors"}},
      {"segment_broadcast_MB", &c.segment_broadcast_MB, kPositive},
      {"segment_anchors", &c.segment_anchors},
      {"sharding_degree", &c.sharding_degree, kPositive},
      {"mp_degree", &c.mp_degree, kPositive},
      {"dp_degree", &c.dp_degree, kPositive},
      {"pp_degree", &c.pp_degree, kPositive},
      {"gradient_merge_acc_step", &c.gradient_merge_acc_step, kPositive},
      {"optimize_offload", &c.optimize_offload},
      {"pp_allreduce_in_optimize", &c.pp_allreduce_in_optimize},
      {"optimize_cast", &c.optimize_cast},
      {"_dp_as_optimizer_sharding", &c.dp_as_optimizer_sharding},
      {"stage", &c.stage, kPositive},
  };
}

std::vector<Field> fields_of(TensorParallelConfigs& c) {
  return {
      {"tensor_parallel_degree", &c.tensor_parallel_degree, Rule::kPositive},
      {"tensor_init_seed", &c.tensor_init_seed},
  };
}

std::vector<Field> fields_of(ASyncConfigs& c) {
  using enum Rule;
  return {
      {"k_steps", &c.k_steps},
      {"max_merge_var_num", &c.max_merge_var_num, kPositive},
      {"send_queue_size", &c.send_queue_size, kPositive},
      {"independent_recv_thread", &c.independent_recv_thread},
      {"min_send_grad_num_before_recv", &c.min_send_grad_num_before_recv, kNotNegative},
      {"thread_pool_size", &c.thread_pool_size, kPositive},
      {"send_wait_times", &c.send_wait_times, kNotNegative},
      {"runtime_split_send_recv", &c.runtime_split_send_recv},
      {"launch_barrier", &c.launch_barrier},
      {"heter_worker_device_guard", &c.heter_worker_device_guard},
      {"lr_decay_steps", &c.lr_decay_steps, kPositive},
      {"use_ps_gpu", &c.use_ps_gpu, kNotNegative},
      {"staleness", &c.staleness},
  };
}

std::vector<Field> fields_of(HybridConfigs& c) {
  return {
      {"dp_degree", &c.dp_degree},
      {"mp_degree", &c.mp_degree, Rule::kPositive},
      {"pp_degree", &c.pp_degree, Rule::kPositive},
      {"sharding_degree", &c.sharding_degree, Rule::kPositive},
  };
}

std::vector<Field> fields_of(GradientScaleConfigs& c) {
  return {
      {"scale_strategy", &c.scale_strategy, Rule::kAny, {"avg", "sum", "customized"}},
      {"scale_gradient", &c.scale_gradient},
  };
}

std::vector<Field> fields_of(TrainerDescConfigs& c) {
  return {
      {"dump_fields_path", &c.dump_fields_path},
      {"dump_fields", &c.dump_fields},
      {"dump_param", &c.dump_param},
      {"stat_var_names", &c.stat_var_names},
  };
}

std::vector<Field> fields_of(BuildStrategy& c) {
  return {
      {"enable_sequential_execution", &c.enable_sequential_execution},
      {"fuse_elewise_add_act_ops", &c.fuse_elewise_add_act_ops},
      {"fuse_bn_act_ops", &c.fuse_bn_act_ops},
      {"fuse_relu_depthwise_conv", &c.fuse_relu_depthwise_conv},
      {"fuse_broadcast_ops", &c.fuse_broadcast_ops},
      {"fuse_all_optimizer_ops", &c.fuse_all_optimizer_ops},
      {"enable_inplace", &c.enable_inplace},
      {"enable_backward_optimizer_op_deps", &c.enable_backward_optimizer_op_deps},
      {"cache_runtime_context", &c.cache_runtime_context},
      {"fuse_bn_add_act_ops", &c.fuse_bn_add_act_ops},
      {"enable_auto_fusion", &c.enable_auto_fusion},
      {"enable_addto", &c.enable_addto},
      {"fix_op_run_order", &c.fix_op_run_order},
      {"allow_cuda_graph_capture", &c.allow_cuda_graph_capture},
      {"reduce_strategy", &c.reduce_strategy, Rule::kNotNegative},
  };
}

std::vector<Field> fields_of(ExecutionStrategy& c) {
  return {
      {"num_threads", &c.num_threads, Rule::kPositive},
      {"num_iteration_per_drop_scope", &c.num_iteration_per_drop_scope, Rule::kPositive},
      {"num_iteration_per_run", &c.num_iteration_per_run, Rule::kPositive},
      {"use_thread_barrier", &c.use_thread_barrier},
  };
}

struct ToValue {
  OwnStrategy::Value operator()(int64_t v) const { return static_cast<int>(v); }
  template <class T>
  OwnStrategy::Value operator()(const T& v) const {
    return v;
  }
};
OwnStrategy::Value value_of(const ir::Attr& attr) { return std::visit(ToValue{}, attr.value()); }

}  // namespace

std::map<std::string, OwnStrategy> own_strategies() {
  std::map<std::string, OwnStrategy> all;
  for (const auto& [name, options] : strategies::strategies_with_switches()) {
    OwnStrategy& own = all[name];
    own.configs = name + "_configs";
    for (const auto& [option, fallback] : options) own.options[option] = value_of(fallback);
  }
  return all;
}

std::vector<Group> describe(DistributedStrategy& s) {
  std::vector<Group> groups = {
      {"", "", own_fields(s)},
      {"amp_configs", "amp", fields_of(s.amp_configs)},
      {"recompute_configs", "recompute", fields_of(s.recompute_configs)},
      {"localsgd_configs", "localsgd", fields_of(s.localsgd_configs)},
      {"adaptive_localsgd_configs", "adaptive_localsgd", fields_of(s.adaptive_localsgd_configs)},
      {"dgc_configs", "dgc", fields_of(s.dgc_configs)},
      {"gradient_merge_configs", "gradient_merge", fields_of(s.gradient_merge_configs)},
      {"fp16_allreduce_configs", "fp16_allreduce", fields_of(s.fp16_allreduce_configs)},
      {"lars_configs", "lars", fields_of(s.lars_configs)},
      {"lamb_configs", "lamb", fields_of(s.lamb_configs)},
      {"pipeline_configs", "pipeline", fields_of(s.pipeline_configs)},
      {"sharding_configs", "sharding", fields_of(s.sharding_configs)},
      {"tensor_parallel_configs", "tensor_parallel", fields_of(s.tensor_parallel_configs)},
      {"a_sync_configs", "a_sync", fields_of(s.a_sync_configs)},
      {"auto_configs", "auto", fields_of(s.auto_configs)},
      {"hybrid_configs", "", fields_of(s.hybrid_configs)},
      {"gradient_scale_configs", "", fields_of(s.gradient_scale_configs)},
      {"trainer_desc_configs", "", fields_of(s.trainer_desc_configs)},
      {"build_strategy", "", fields_of(s.build_strategy)},
      {"execution_strategy", "", fields_of(s.execution_strategy)},
  };
  for (auto& [name, own] : s.own) {
    groups.front().fields.push_back({name, &own.on, Rule::kStrategy});
    Group& group = groups.emplace_back(Group{own.configs, name, {}});
    for (auto& [option, value] : own.options)
      group.fields.push_back({option, std::visit([](auto& v) { return Field::Ref(&v); }, value)});
  }
  return groups;
}

std::vector<Group> describe(const DistributedStrategy& strategy) {
  // One list serves readers and writers; a reader does not write through it.
  return describe(const_cast<DistributedStrategy&>(strategy));
}

const Field* Group::find(std::string_view field) const {
  // Scripts write the one field with an underscore that the saved text does not have.
  if (name.empty() && field == "_fuse_grad_size_in_TFLOPS") field.remove_prefix(1);
  const auto found = std::ranges::find(fields, field, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

std::vector<std::string> Group::names() const {
  std::vector<std::string> result;
  for (const Field& field : fields) result.emplace_back(field.name);
  return result;
}

const Group* find_group(const std::vector<Group>& groups, std::string_view name) {
  const auto found = std::ranges::find(groups, name, &Group::name);
  return found == groups.end() ? nullptr : &*found;
}

std::vector<std::string> all_names(const std::vector<Group>& groups) {
  std::vector<std::string> names = groups.front().names();
  for (size_t i = 1; i < groups.size(); ++i) names.emplace_back(groups[i].name);
  return names;
}

std::string full_name(const Group& group, const Field& field) {
  return str(group.name, group.name.empty() ? "" : ".", field.name);
}

std::string_view type_of(const Field& field) { return name_of(attr_type(field)); }

ir::Attr read(const Field& field) {
  return std::visit(
      []<class T>(const T* value) -> ir::Attr {
        if constexpr (std::is_same_v<T, Mode>)
          return to_string(*value);
        else
          return *value;
      },
      field.ref);
}

std::string number_text(double value) {
  std::array<char, 40> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general).ptr;
  std::string digits(text.data(), end);
  if (std::isfinite(value) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

void write(const Field& field, const ir::Attr& value, std::string_view who) {
  ir::Attr wanted = value;
  check_arg(ir::coerce(wanted, attr_type(field)), who, ": expected ", type_of(field), ", got ",
            name_of(value.type()), " ", value);
  std::visit(
      [&]<class T>(T* to) {
        if constexpr (std::is_same_v<T, Mode>) {
          *to = static_cast<Mode>(index_in(kModes, wanted.as<std::string>(), who) + 1);
        } else if constexpr (std::is_same_v<T, int>) {
          const int64_t number = wanted.as<int64_t>();
          using Limits = std::numeric_limits<int>;
          check_arg(number >= Limits::min() && number <= Limits::max(), who, ": ", number,
                    " is no 32-bit number");
          check_rule(field, static_cast<double>(number), who);
          *to = static_cast<int>(number);
        } else {
          if constexpr (std::is_same_v<T, double>) check_rule(field, wanted.as<double>(), who);
          if constexpr (std::is_same_v<T, std::string>)
            if (!field.choices.empty()) index_in(field.choices, wanted.as<std::string>(), who);
          *to = wanted.as<T>();
        }
      },
      field.ref);
}

void each_changed(const DistributedStrategy& strategy,
                  const std::function<void(const Group& group, const Field& field)>& fn) {
  const DistributedStrategy fresh;
  const std::vector<Group> groups = describe(strategy), defaults = describe(fresh);
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t f = 0; f < groups[g].fields.size(); ++f)
      if (!(read(groups[g].fields[f]) == read(defaults[g].fields[f])))
        fn(groups[g], groups[g].fields[f]);
}

std::string_view to_string(DistributedStrategy::Mode mode) {
  const size_t index = static_cast<size_t>(mode) - 1;
  check_arg(index < kModes.size(), "DistributedStrategy.mode: ", static_cast<int>(mode),
            " is not from 1 to 4");
  return kModes[index];
}

}  // namespace fleetx::fleet
