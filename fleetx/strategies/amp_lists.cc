#include "fleetx/strategies/amp_lists.h"

#include <map>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/ir/op_def.h"

namespace fleetx::strategies {
namespace {

using Set = std::set<std::string, std::less<>>;

// Products: what 16 bits are made for.
const Set kWhite = {"conv2d", "fc", "matmul", "attention"};

// They read what others have made, and round a result once at most. The original's list has the
// first two groups; the third is ours: what moves numbers without computing, and activations that
// a product can do on its way.
const Set kGray = {"elementwise_add",
                   "elementwise_sub",
                   "elementwise_mul",
                   "elementwise_div",
                   "elementwise_max",
                   "elementwise_min",
                   "elementwise_pow",
                   "elementwise_mod",
                   "elementwise_floordiv",
                   "batch_norm",
                   "layer_norm",
                   "tanh",
                   "sigmoid",
                   "top_k",
                   "pool2d",
                   "dropout",
                   "relu",
                   "relu6",
                   "leaky_relu",
                   "softplus",
                   "sign",
                   "scale",

                   "flatten",
                   "stack",
                   "unstack",
                   "uniform",
                   "gaussian",
                   "slice",
                   "transpose",
                   "reshape",
                   "gather",
                   "fill",
                   "cast",
                   "concat",
                   "split",

                   "gelu",
                   "swish",
                   "hard_swish",
                   "hard_sigmoid",
                   "elu",
                   "clip",
                   "abs",
                   "assign",
                   "group_identity",
                   "group_sum",
                   "group_part",
                   "group_concat",
                   "squeeze",
                   "unsqueeze",
                   "flatten_range",
                   "reshape_by",
                   "reshape_like",
                   "expand",
                   "tile",
                   "flip",
                   "pad",
                   "where",
                   "masked_fill"};

// Sums of many numbers, and exponentials.
const Set kBlack = {"exp",
                    "square",
                    "log",
                    "mean",
                    "sum",
                    "softmax",
                    "log_softmax",
                    "cross_entropy",
                    "softmax_cross_entropy",
                    "sigmoid_cross_entropy"};

// Their rows are read once and updated in f32. In the original they are black, and so is all that
// follows them up to the next product, because its kernels for their gradients are slow in 16 bits;
// that says nothing about the numbers. It would keep what passes by the products of a transformer,
// from its embeddings to its loss, in f32.
const Set kTables = {"embedding"};

// Names of the original, and the ops that do the same here.
const std::map<std::string, std::vector<std::string>, std::less<>> kOriginal = {
    {"mul", {"fc"}},
    {"matmul", {"matmul", "attention"}},
    {"matmul_v2", {"matmul", "fc", "attention"}},
    {"fused_attention", {"attention"}},
    {"fused_feedforward", {"fc"}},
    {"depthwise_conv2d", {"conv2d"}},
    {"fused_bn_add_activation", {"batch_norm"}},
    {"fused_batch_norm_act", {"batch_norm"}},
    {"sync_batch_norm", {"batch_norm"}},
    {"soft_relu", {"softplus"}},
    {"lookup_table", {"embedding"}},
    {"lookup_table_v2", {"embedding"}},
    {"c_embedding", {"embedding"}},
    {"softmax_with_cross_entropy", {"softmax_cross_entropy"}},
    {"c_softmax_with_cross_entropy", {"softmax_cross_entropy"}},
    {"cross_entropy2", {"cross_entropy"}},
    {"sigmoid_cross_entropy_with_logits", {"sigmoid_cross_entropy"}},
    {"huber_loss", {"smooth_l1_loss"}},
    {"reshape2", {"reshape", "reshape_by", "reshape_like"}},
    {"transpose2", {"transpose"}},
    {"flatten2", {"flatten"}},
    {"flatten_contiguous_range", {"flatten_range"}},
    {"squeeze2", {"squeeze"}},
    {"unsqueeze2", {"unsqueeze"}},
    {"expand_v2", {"expand"}},
    {"expand_as_v2", {"expand"}},
    {"top_k_v2", {"top_k"}},
    {"arg_max", {"argmax"}},
    {"strided_slice", {"slice"}},
    {"one_hot_v2", {"one_hot"}},
    {"fill_constant", {"fill"}},
    {"fill_any_like", {"fill_like"}},
    {"fill_constant_batch_size_like", {"fill_batch_like"}},
    {"uniform_random", {"uniform"}},
    {"gaussian_random", {"gaussian"}},
    {"truncated_gaussian_random", {"truncated_gaussian"}},
    {"bmm", {"matmul", "attention"}},
    {"fused_gemm_epilogue", {"fc"}},
    {"conv3d", {"conv2d"}},
    {"cudnn_lstm", {"lstm"}},
    {"pad2d", {"pad"}},
    {"pad3d", {"pad"}},
    {"index_select", {"gather"}},
};

// Ops of the original that several make here, or none: a list says nothing about those, which have
// their own names.
const Set kMadeOfOthers = {"addmm",
                           "affine_channel",
                           "bce_loss",
                           "bicubic_interp_v2",
                           "bilinear_interp",
                           "bilinear_interp_v2",
                           "c_allreduce_max",
                           "c_allreduce_sum",
                           "c_concat",
                           "c_identity",
                           "c_split",
                           "check_finite_and_unscale",
                           "cos_sim",
                           "crop_tensor",
                           "data_norm",
                           "dot",
                           "einsum",
                           "fill_zeros_like",
                           "fused_elemwise_activation",
                           "gaussian_random_batch_size_like",
                           "get_tensor_from_selected_rows",
                           "group_norm",
                           "hierarchical_sigmoid",
                           "index_sample",
                           "instance_norm",
                           "isfinite",
                           "isfinite_v2",
                           "kron",
                           "label_smooth",
                           "linear_interp",
                           "linear_interp_v2",
                           "linspace",
                           "logsigmoid",
                           "lrn",
                           "maxout",
                           "meshgrid",
                           "mish",
                           "nce",
                           "nearest_interp",
                           "nearest_interp_v2",
                           "norm",
                           "p_norm",
                           "pixel_shuffle",
                           "prelu",
                           "range",
                           "rank",
                           "rnn",
                           "roll",
                           "scatter_nd_add",
                           "sequence_conv",
                           "sequence_softmax",
                           "shuffle_channel",
                           "size",
                           "softsign",
                           "space_to_depth",
                           "temporal_shift",
                           "tril_triu",
                           "trilinear_interp_v2",
                           "unfold",
                           "uniform_random_batch_size_like",
                           "where_index"};

Set ops_of(const ir::Strings& names, std::string_view option) {
  Set ops;
  for (const std::string& name : names) {
    if (const auto it = kOriginal.find(name); it != kOriginal.end()) {
      ops.insert(it->second.begin(), it->second.end());
      continue;
    }
    if (kMadeOfOthers.contains(name)) continue;
    if (ir::find_op(name) == nullptr) {
      std::vector<std::string> known;
      for (const ir::OpDef* def : ir::all_ops()) known.push_back(def->type);
      for (const auto& [original, ours] : kOriginal) known.push_back(original);
      fail(Error::Kind::kInvalidArgument,
           str("amp: ", option, " has '", name, "', which is no op", did_you_mean(name, known),
               "; write names of ops, as in the log of what computes in 16 bits"));
    }
    ops.insert(name);
  }
  return ops;
}

}  // namespace

AmpLists::AmpLists(const ir::Strings& custom_white, const ir::Strings& custom_black)
    : white_(kWhite), gray_(kGray), black_(kBlack), tables_(kTables) {
  const Set white = ops_of(custom_white, "custom_white_list");
  const Set black = ops_of(custom_black, "custom_black_list");
  for (const std::string& op : white)
    check_arg(!black.contains(op), "amp: custom_white_list [", join(custom_white, ", "),
              "] and custom_black_list [", join(custom_black, ", "), "] both have the op '", op,
              "'; an op computes in 16 bits or in f32: take it out of one of them");
  const auto put = [&](const Set& ops, Set& into) {
    for (const std::string& op : ops) {
      for (Set* other : {&white_, &gray_, &black_, &tables_}) other->erase(op);
      into.insert(op);
    }
  };
  put(white, white_);
  put(black, black_);
}

AmpList AmpLists::of(std::string_view op) const {
  if (white_.contains(op)) return AmpList::kWhite;
  return gray_.contains(op) ? AmpList::kGray : AmpList::kBlack;
}

}  // namespace fleetx::strategies
