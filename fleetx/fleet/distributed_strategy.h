// What a user asks of the distributed run: which strategies, with which settings. All names and
// defaults are those that scripts for the original use; docs/strategy.md says what each does here.
//
//   DistributedStrategy strategy;
//   strategy.recompute = true;
//   strategy.recompute_configs.checkpoints = {"res2a", "res3a"};
//   strategy.fuse_grad_size_in_MB = 16;
//   std::cout << strategy.to_table();
//
// A plain value. Fields can also be reached by name, with their type checked (the Python binding
// does so); `auto` is a C++ word, so that member is called auto_.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleetx/ir/attr.h"

namespace fleetx::fleet {

struct AmpConfigs {
  double init_loss_scaling = 32768.0;
  int incr_every_n_steps = 1000;
  int decr_every_n_nan_or_inf = 2;
  double incr_ratio = 2.0;
  double decr_ratio = 0.8;
  bool use_dynamic_loss_scaling = true;
  ir::Strings custom_white_list{}, custom_black_list{}, custom_black_varnames{};
  bool use_pure_fp16 = false;
  bool use_fp16_guard = true;
  bool use_optimizer_fp16 = false;
  std::string dtype = "bfloat16";  // of later versions, where it is "float16"
  // What ops inside paddle.static.amp.fp16_guard() write; filled in by it.
  ir::Strings fp16_guard_varnames{};
  bool multi_precision = false;  // pure, but parameters are f32; as the optimizers' argument says
  bool operator==(const AmpConfigs&) const = default;
};

struct RecomputeConfigs {
  ir::Strings checkpoints{};
  bool enable_offload = false;
  ir::Ints checkpoint_shape{};
  int budget_MB = 0;  // of FleetX
  bool operator==(const RecomputeConfigs&) const = default;
};

struct Fp16AllreduceConfigs {
  std::string dtype = "float16";  // of FleetX
  bool operator==(const Fp16AllreduceConfigs&) const = default;
};

struct GradientMergeConfigs {
  int k_steps = 1;
  bool avg = true;
  bool operator==(const GradientMergeConfigs&) const = default;
};

struct LocalSgdConfigs {
  int k_steps = 1;
  int begin_step = 1;
  bool operator==(const LocalSgdConfigs&) const = default;
};

struct AdaptiveLocalSgdConfigs {
  int init_k_steps = 1;
  int begin_step = 1;
  bool operator==(const AdaptiveLocalSgdConfigs&) const = default;
};

struct DgcConfigs {
  int rampup_begin_step = 0;
  int rampup_step = 1;
  ir::Floats sparsity{};  // empty means 0.999
  bool operator==(const DgcConfigs&) const = default;
};

struct LarsConfigs {
  double lars_coeff = 0.001;
  double lars_weight_decay = 0.0005;
  double epsilon = 0.0;
  ir::Strings exclude_from_weight_decay{};
  bool operator==(const LarsConfigs&) const = default;
};

struct LambConfigs {
  double lamb_weight_decay = 0.01;
  ir::Strings exclude_from_weight_decay{};
  bool operator==(const LambConfigs&) const = default;
};

struct PipelineConfigs {
  int micro_batch = 1;  // 2.0; later versions have the four below
  int micro_batch_size = 1;
  int accumulate_steps = 1;
  std::string schedule_mode = "1F1B";
  bool p2p_cache_shape = true;
  bool operator==(const PipelineConfigs&) const = default;
};

struct ShardingConfigs {
  double fuse_broadcast_MB = 32.0;  // 2.0; later called segment_broadcast_MB
  bool hybrid_dp = false;
  int sharding_group_size = 8;  // 2.0; later called sharding_degree
  std::string sharding_segment_strategy = "segment_broadcast_MB";
  double segment_broadcast_MB = 32.0;
  ir::Strings segment_anchors{};
  int sharding_degree = 8;
  int mp_degree = 1, dp_degree = 1, pp_degree = 1;
  int gradient_merge_acc_step = 1;
  bool optimize_offload = false;
  bool pp_allreduce_in_optimize = false;
  bool optimize_cast = false;
  bool dp_as_optimizer_sharding = false;  // by name: _dp_as_optimizer_sharding
  int stage = 1;
  bool operator==(const ShardingConfigs&) const = default;
};

struct TensorParallelConfigs {
  int tensor_parallel_degree = 1;
  int tensor_init_seed = -1;
  bool operator==(const TensorParallelConfigs&) const = default;
};

struct ASyncConfigs {
  int k_steps = -1;
  int max_merge_var_num = 1;
  int send_queue_size = 16;
  bool independent_recv_thread = false;
  int min_send_grad_num_before_recv = 1;
  int thread_pool_size = 1;
  int send_wait_times = 1;
  bool runtime_split_send_recv = false;
  bool launch_barrier = true;
  std::string heter_worker_device_guard = "cpu";
  int lr_decay_steps = 10;
  int use_ps_gpu = 0;
  int staleness = -1;  // of FleetX: see ServerConfig
  bool operator==(const ASyncConfigs&) const = default;
};

struct HybridConfigs {
  int dp_degree = -1;
  int mp_degree = 1, pp_degree = 1, sharding_degree = 1;
  bool operator==(const HybridConfigs&) const = default;
};

struct GradientScaleConfigs {
  std::string scale_strategy = "avg";  // avg, sum, customized
  bool scale_gradient = false;
  bool operator==(const GradientScaleConfigs&) const = default;
};

struct TrainerDescConfigs {
  std::string dump_fields_path{};
  ir::Strings dump_fields{}, dump_param{}, stat_var_names{};
  bool operator==(const TrainerDescConfigs&) const = default;
};

// Of FleetX: what `auto` goes by.
struct AutoConfigs {
  ir::Strings allow{};      // strategies that it may choose although they change numbers
  int memory_limit_MB = 0;  // of a worker; 0: its part of the machine's
  std::string machine{};    // description (docs/plan.md); "": FLEETX_MACHINE, or else a guess
  int batch_size = 32;      // stands for an unknown first dimension of the data
  ir::Strings shapes{};     // NAME=8,128: all sizes of one data variable
  std::string save_to{};    // file for the choice, a strategy text
  bool operator==(const AutoConfigs&) const = default;
};

struct BuildStrategy {
  bool enable_sequential_execution = false;
  bool fuse_elewise_add_act_ops = false;
  bool fuse_bn_act_ops = false;
  bool fuse_relu_depthwise_conv = false;
  bool fuse_broadcast_ops = false;
  bool fuse_all_optimizer_ops = false;
  bool enable_inplace = false;
  bool enable_backward_optimizer_op_deps = true;
  bool cache_runtime_context = false;
  bool fuse_bn_add_act_ops = true;
  bool enable_auto_fusion = false;
  bool enable_addto = false;
  bool fix_op_run_order = false;
  bool allow_cuda_graph_capture = false;
  int reduce_strategy = 0;
  bool operator==(const BuildStrategy&) const = default;
};

struct ExecutionStrategy {
  int num_threads = 1;
  int num_iteration_per_drop_scope = 10;
  int num_iteration_per_run = 1;
  bool use_thread_barrier = false;
  bool operator==(const ExecutionStrategy&) const = default;
};

// A strategy with a switch of its own (see strategies::Traits): strategy.NAME and
// strategy.NAME_configs.
struct OwnStrategy {
  using Value = std::variant<bool, int, double, std::string, ir::Strings, ir::Ints, ir::Floats>;
  bool on = false;
  std::string configs = {};  // NAME_configs
  std::map<std::string, Value> options = {};
  bool operator==(const OwnStrategy&) const = default;
};
std::map<std::string, OwnStrategy> own_strategies();  // all there are: off, with their defaults

struct DistributedStrategy {
  enum class Mode { kCollective = 1, kPs = 2, kPipeline = 3, kHeter = 4 };

  Mode mode = Mode::kCollective;  // COLLECTIVE, PS, PIPELINE, HETER

  // Strategies.
  bool amp = false, recompute = false, localsgd = false, adaptive_localsgd = false, dgc = false,
       gradient_merge = false, lars = false, lamb = false, pipeline = false, sharding = false,
       tensor_parallel = false, fp16_allreduce = false, sync_batch_norm = false, elastic = false,
       auto_ = false, semi_auto = false, auto_search = false, asp = false, heter_ccl_mode = false;
  bool a_sync = true;  // see enabled_strategies()

  // Communication of gradients.
  bool fuse_all_reduce_ops = true;
  int fuse_grad_size_in_MB = 32;
  double fuse_grad_size_in_TFLOPS = 50;  // Python: _fuse_grad_size_in_TFLOPS
  int fuse_grad_size_in_num = 8;
  double last_comm_group_size_MB = 1;
  bool find_unused_parameters = false;
  bool without_graph_optimization = false;
  bool fuse_grad_merge = false;
  bool calc_comm_same_stream = false;
  bool sync_nccl_allreduce = true;
  int nccl_comm_num = 1;
  bool use_hierarchical_allreduce = false;
  int hierarchical_allreduce_inter_nranks = 1;

  // Other settings.
  bool cudnn_exhaustive_search = true;
  int conv_workspace_size_limit = 4000;
  bool cudnn_batchnorm_spatial_persistent = true;
  bool adam_d2sum = true;

  AmpConfigs amp_configs{};
  RecomputeConfigs recompute_configs{};
  LocalSgdConfigs localsgd_configs{};
  AdaptiveLocalSgdConfigs adaptive_localsgd_configs{};
  DgcConfigs dgc_configs{};
  GradientMergeConfigs gradient_merge_configs{};
  Fp16AllreduceConfigs fp16_allreduce_configs{};
  LarsConfigs lars_configs{};
  LambConfigs lamb_configs{};
  PipelineConfigs pipeline_configs{};
  ShardingConfigs sharding_configs{};
  TensorParallelConfigs tensor_parallel_configs{};
  ASyncConfigs a_sync_configs{};
  HybridConfigs hybrid_configs{};
  GradientScaleConfigs gradient_scale_configs{};
  TrainerDescConfigs trainer_desc_configs{};
  AutoConfigs auto_configs{};
  BuildStrategy build_strategy{};
  ExecutionStrategy execution_strategy{};

  // What the original does not have; reached by name.
  std::map<std::string, OwnStrategy> own = own_strategies();

  bool operator==(const DistributedStrategy&) const = default;

  // --- by name ---
  // An unknown name, a value of another type or out of range is kInvalidArgument, and nothing has
  // changed then. An int is taken for a float; nothing else is converted. Lists are replaced.
  ir::Attr get(std::string_view name) const;
  // Setting a_sync also sets a_sync_configs.k_steps to 0, as scripts expect.
  void set(std::string_view name, const ir::Attr& value);
  // Settings that belong together: amp_configs, ..., build_strategy, execution_strategy.
  ir::Attrs get_configs(std::string_view name) const;
  void set_configs(std::string_view name, const ir::Attrs& values);  // those not given stay
  static std::vector<std::string> field_names();                     // what get and set know
  static std::vector<std::string> configs_names();  // what get_configs and set_configs know

  // Names of what differs from the defaults: "amp", "recompute_configs.checkpoints".
  std::vector<std::string> changed() const;
  // Strategies that are switched on. a_sync is on by default although most jobs are collective: it
  // counts only where the user asked for it, which shows in a_sync_configs.k_steps >= 0.
  std::vector<std::string> enabled_strategies() const;

  // --- for people ---
  std::string to_table() const;

  // --- as text (protobuf text format of what differs from the defaults) ---
  std::string to_text() const;
  // What the text says is set, all else stays; a list is replaced. Errors are kInvalidArgument
  // "source:line: ...", and nothing has changed then.
  void merge_text(std::string_view text, std::string_view source);
  void save_text(const std::string& path) const;
  void load_text(const std::string& path);
};

std::string_view to_string(DistributedStrategy::Mode mode);

// Settings that make no sense (a negative size, an unknown scale_strategy).
void check_values(const DistributedStrategy& strategy);
// Settings of a strategy that is off: they would have no effect, so they are a mistake.
void check_unused_configs(const DistributedStrategy& strategy);
// What is asked for but not built (kUnsupported): a strategy that is on and not in `built`, and
// settings without a switch that would change the result.
void check_built(const DistributedStrategy& strategy, const std::vector<std::string>& built);

}  // namespace fleetx::fleet
