#include "fleetx/fleet/distributed_strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "fleetx/base/file.h"
#include "fleetx/fleet/strategy_fields.h"
#include "tests/support/expect_error.h"

namespace fleetx::fleet {
namespace {

using fleetx::testing::contains;
using fleetx::testing::error_of;
using Names = std::vector<std::string>;

TEST(DistributedStrategy, DefaultsAreTheOriginals) {
  const DistributedStrategy s;
  for (const char* off : {"amp",
                          "recompute",
                          "localsgd",
                          "adaptive_localsgd",
                          "dgc",
                          "gradient_merge",
                          "lars",
                          "lamb",
                          "pipeline",
                          "sharding",
                          "fp16_allreduce",
                          "elastic",
                          "auto",
                          "sync_batch_norm",
                          "use_hierarchical_allreduce",
                          "find_unused_parameters",
                          "without_graph_optimization",
                          "tensor_parallel",
                          "asp",
                          "semi_auto"})
    EXPECT_EQ(s.get(off), ir::Attr(false)) << off;
  for (const char* on : {"a_sync", "sync_nccl_allreduce", "fuse_all_reduce_ops",
                         "cudnn_exhaustive_search", "cudnn_batchnorm_spatial_persistent"})
    EXPECT_EQ(s.get(on), ir::Attr(true)) << on;
  EXPECT_EQ(s.get("mode"), ir::Attr("COLLECTIVE"));
  EXPECT_EQ(s.get("fuse_grad_size_in_MB"), ir::Attr(32));
  EXPECT_EQ(s.get("_fuse_grad_size_in_TFLOPS"), ir::Attr(50.0));
  EXPECT_EQ(s.get("last_comm_group_size_MB"), ir::Attr(1.0));
  EXPECT_EQ(s.get("conv_workspace_size_limit"), ir::Attr(4000));
  EXPECT_EQ(s.get_configs("lars_configs"),
            (ir::Attrs{{"lars_coeff", 0.001},
                       {"lars_weight_decay", 0.0005},
                       {"epsilon", 0.0},
                       {"exclude_from_weight_decay", ir::Strings{}}}));
  EXPECT_EQ(s.get_configs("a_sync_configs").at("k_steps"), ir::Attr(-1));
  EXPECT_EQ(s.get_configs("a_sync_configs").at("heter_worker_device_guard"), ir::Attr("cpu"));
  EXPECT_EQ(s.get_configs("build_strategy").at("fuse_bn_add_act_ops"), ir::Attr(true));
  EXPECT_EQ(s.get_configs("execution_strategy").at("num_iteration_per_drop_scope"), ir::Attr(10));
  EXPECT_TRUE(s.changed().empty());
  EXPECT_TRUE(s.enabled_strategies().empty());
  EXPECT_EQ(s.to_text(), "");
}

// A member that is not in the description would be lost by get, text and table; it shows as a hole
// in memory between two that are.
TEST(DistributedStrategy, DescriptionLeavesNoMemberOut) {
  struct Place {
    const char* begin;
    size_t size, align;
  };
  const DistributedStrategy s;
  std::vector<Place> places;
  for (const Group& group : describe(s))
    for (const Field& field : group.fields)
      std::visit(
          [&]<class T>(const T* member) {
            const size_t align =
                &field == &group.fields.front() ? alignof(DistributedStrategy) : alignof(T);
            places.push_back({reinterpret_cast<const char*>(member), sizeof(T), align});
          },
          field.ref);
  // Those of strategies with a switch of their own are in `own`, elsewhere.
  std::erase_if(places, [&](const Place& place) {
    return std::less<>()(place.begin, reinterpret_cast<const char*>(&s)) ||
           !std::less<>()(place.begin, reinterpret_cast<const char*>(&s + 1));
  });
  std::ranges::sort(places, {}, &Place::begin);
  const char* end = reinterpret_cast<const char*>(&s);
  for (const Place& place : places) {
    EXPECT_GE(place.begin, end);
    EXPECT_LT(place.begin, end + place.align)
        << "after " << end - reinterpret_cast<const char*>(&s);
    end = place.begin + place.size;
  }
  // Behind them is what strategies bring themselves.
  EXPECT_LT(reinterpret_cast<const char*>(&s.own), end + alignof(DistributedStrategy));
  EXPECT_EQ(reinterpret_cast<const char*>(&s.own + 1), reinterpret_cast<const char*>(&s + 1));
}

TEST(DistributedStrategy, EveryFieldHasATextOfItsOwn) {
  std::set<std::string> texts;
  size_t count = 0;
  const auto other = [](const ir::Attr& value) -> ir::Attr {
    switch (value.type()) {
      case ir::AttrType::kBool: return !value.as<bool>();
      case ir::AttrType::kInt: return value.as<int64_t>() + 1;
      case ir::AttrType::kFloat: return value.as<double>() + 0.25;
      case ir::AttrType::kStrings: return ir::Strings{"a", "b"};
      case ir::AttrType::kInts: return ir::Ints{7, 8};
      case ir::AttrType::kFloats: return ir::Floats{0.5, 0.75};
      case ir::AttrType::kString: break;
    }
    const std::string text = value.as<std::string>();
    if (text == "COLLECTIVE") return "PS";
    if (text == "bfloat16") return "float16";
    if (text == "avg") return "sum";
    if (text == "1F1B") return "F-then-B";
    if (text == "float16") return "bfloat16";
    return text == "segment_broadcast_MB" ? "segment_anchors" : "other";
  };
  const auto check = [&](const DistributedStrategy& s, const std::string& name) {
    ++count;
    EXPECT_NE(s, DistributedStrategy()) << name;
    EXPECT_EQ(s.changed().at(0), name);
    EXPECT_TRUE(texts.insert(s.to_text()).second) << name;
    DistributedStrategy again;
    again.merge_text(s.to_text(), "text");
    EXPECT_EQ(again, s) << s.to_text();
  };
  for (const std::string& name : DistributedStrategy::field_names()) {
    DistributedStrategy s;
    s.set(name, other(s.get(name)));
    EXPECT_EQ(s.get(name), other(DistributedStrategy().get(name)));
    check(s, name);
  }
  for (const std::string& group : DistributedStrategy::configs_names())
    for (const auto& [key, value] : DistributedStrategy().get_configs(group)) {
      DistributedStrategy s;
      s.set_configs(group, {{key, other(value)}});
      EXPECT_EQ(s.get_configs(group).at(key), other(value));
      check(s, group + "." + key);
    }
  size_t own = 0;
  for (const auto& [name, strategy] : own_strategies()) own += 1 + strategy.options.size();
  EXPECT_EQ(count, 38u + 106u + own);  // fields of DistributedStrategy, and of all its configs
}

TEST(DistributedStrategy, MembersAndNamesAreTheSame) {
  DistributedStrategy s;
  s.recompute = true;
  s.auto_ = true;
  s.recompute_configs.checkpoints = {"a", "b"};
  s.mode = DistributedStrategy::Mode::kHeter;
  EXPECT_EQ(s.get("recompute"), ir::Attr(true));
  EXPECT_EQ(s.get("auto"), ir::Attr(true));
  EXPECT_EQ(s.get("mode"), ir::Attr("HETER"));
  EXPECT_EQ(s.get_configs("recompute_configs").at("checkpoints"), ir::Attr(ir::Strings{"a", "b"}));
  EXPECT_EQ(s.changed(), (Names{"mode", "recompute", "auto", "recompute_configs.checkpoints"}));
  EXPECT_EQ(s.enabled_strategies(), (Names{"recompute", "auto"}));
}

TEST(DistributedStrategy, ListsAreReplacedAndOtherKeysStay) {
  DistributedStrategy s;
  s.set_configs("lars_configs",
                {{"exclude_from_weight_decay", ir::Strings{"bias"}}, {"epsilon", 1}});
  s.set_configs("lars_configs", {{"exclude_from_weight_decay", ir::Strings{"norm"}}});
  EXPECT_EQ(s.lars_configs.exclude_from_weight_decay, ir::Strings{"norm"});
  EXPECT_EQ(s.lars_configs.epsilon, 1.0);
  s.set_configs("lars_configs", {{"exclude_from_weight_decay", ir::Ints{}}});  // [] has no type
  EXPECT_TRUE(s.lars_configs.exclude_from_weight_decay.empty());
}

TEST(DistributedStrategy, ErrorsNameWhatIsWrong) {
  DistributedStrategy s;
  EXPECT_TRUE(contains(error_of([&] { s.set("recomput", true); }), "did you mean 'recompute'"));
  EXPECT_TRUE(contains(error_of([&] { s.get("nothing"); }), "no field 'nothing'"));
  EXPECT_TRUE(contains(error_of([&] { s.get(""); }), "no field ''"));
  EXPECT_TRUE(contains(error_of([&] { s.get_configs(""); }), "no settings ''"));
  EXPECT_TRUE(contains(error_of([&] { s.set("amp_configs", true); }), "group of settings"));
  EXPECT_TRUE(contains(error_of([&] { s.set_configs("amp_config", {}); }), "'amp_configs'"));
  EXPECT_TRUE(contains(
      error_of([&] {
        s.set_configs("amp_configs", {{"inc_ratio", 2.0}});
      }),
      "DistributedStrategy.amp_configs has no key 'inc_ratio'; did you mean 'incr_ratio'"));
  EXPECT_TRUE(contains(error_of([&] { s.set("amp", 1); }),
                       "DistributedStrategy.amp: expected bool, got int 1"));
  EXPECT_TRUE(contains(error_of([&] { s.set("nccl_comm_num", 1.5); }), "expected int, got float"));
  EXPECT_TRUE(contains(error_of([&] { s.set("nccl_comm_num", int64_t{1} << 40); }), "32-bit"));
  EXPECT_TRUE(contains(error_of([&] { s.set("last_comm_group_size_MB", 0.0); }), "must be > 0"));
  EXPECT_TRUE(contains(error_of([&] { s.set("mode", "ps"); }), "COLLECTIVE, PS"));
  EXPECT_TRUE(contains(error_of([&] {
                         s.set_configs("gradient_scale_configs", {{"scale_strategy", "mean"}});
                       }),
                       "avg, sum, customized"));
  // Nothing of a call with an error is kept.
  error_of([&] { s.set_configs("lars_configs", {{"epsilon", 1.0}, {"lars_coeff", "x"}}); });
  EXPECT_EQ(s, DistributedStrategy());
}

TEST(DistributedStrategy, ASyncCountsOnlyWhereAskedFor) {
  DistributedStrategy s;
  s.set("a_sync", true);
  EXPECT_EQ(s.a_sync_configs.k_steps, 0);
  EXPECT_EQ(s.enabled_strategies(), Names{"a_sync"});
  s.set_configs("a_sync_configs", {{"k_steps", 100}});
  EXPECT_EQ(s.a_sync_configs.k_steps, 100);
  s.set("a_sync", false);
  EXPECT_EQ(s.a_sync_configs.k_steps, 0);
  EXPECT_TRUE(s.enabled_strategies().empty());
}

TEST(DistributedStrategy, SettingsOfAStrategyThatIsOffAreAnError) {
  DistributedStrategy s;
  check_unused_configs(s);
  s.lars_configs.lars_coeff = 0.002;
  const std::string message = error_of([&] { check_unused_configs(s); });
  EXPECT_TRUE(contains(message, "lars_configs.lars_coeff is set, but lars is off"));
  s.lars = true;
  check_unused_configs(s);
  s.build_strategy.fuse_bn_act_ops = true;
  s.hybrid_configs.dp_degree = 2;
  s.a_sync_configs.k_steps = 0;
  check_unused_configs(s);
}

TEST(DistributedStrategy, WhatIsNotBuiltIsRefused) {
  using testing::expect_error;
  DistributedStrategy s;
  check_built(s, {});  // a_sync is true by default
  s.recompute = true;
  check_built(s, {"recompute"});
  expect_error(Error::Kind::kUnsupported, {"recompute is on", "built: amp, dgc"}, [&] {
    check_built(s, {"amp", "dgc"});
  });
  s.recompute = false;
  s.hybrid_configs.dp_degree = 2;
  check_built(s, {});
  s.hybrid_configs.mp_degree = 2;
  expect_error(Error::Kind::kUnsupported, {"hybrid_configs.mp_degree = 2"},
               [&] { check_built(s, {}); });
  s = {};
  s.gradient_scale_configs.scale_strategy = "sum";
  expect_error(Error::Kind::kUnsupported, {"scale_strategy"}, [&] { check_built(s, {}); });
}

TEST(DistributedStrategy, MembersAreCheckedLater) {
  DistributedStrategy s;
  check_values(s);
  s.gradient_merge_configs.k_steps = 0;
  EXPECT_TRUE(contains(error_of([&] { check_values(s); }),
                       "DistributedStrategy.gradient_merge_configs.k_steps: must be > 0, got 0"));
  s = {};
  s.mode = static_cast<DistributedStrategy::Mode>(9);
  EXPECT_TRUE(contains(error_of([&] { check_values(s); }), "mode"));
}

TEST(DistributedStrategy, TableShowsWhatIsOnAndAllFlags) {
  DistributedStrategy s;
  s.a_sync = false;
  s.lars = true;
  s.lars_configs.exclude_from_weight_decay = {"batch_norm", ".b_0"};
  const std::string table = s.to_table();
  EXPECT_TRUE(table.starts_with(
      R"(    +==============================================================================+
    |                                                                              |
    |                         DistributedStrategy Overview                         |
    |                                                                              |
    +==============================================================================+
    |                          lars=True <-> lars_configs                          |
    +------------------------------------------------------------------------------+
    |                            lars_coeff                  0.001                 |
    |                     lars_weight_decay                  0.0005                |
    |                               epsilon                   0.0                  |
    |             exclude_from_weight_decay                batch_norm              |
    |                                                         .b_0                 |
    +==============================================================================+
    |                    Environment Flags, Communication Flags                    |
    +------------------------------------------------------------------------------+
)")) << table;
  EXPECT_TRUE(contains(
      table,
      "    |                   fuse_all_reduce_ops                   True                 |\n"));
  EXPECT_TRUE(contains(table, "Build Strategy"));
  EXPECT_TRUE(contains(
      table,
      "    |          num_iteration_per_drop_scope                    10                  |\n"));
  EXPECT_FALSE(contains(table, "amp"));
  EXPECT_FALSE(contains(table, "hybrid_configs"));
  s.hybrid_configs.mp_degree = 2;
  EXPECT_TRUE(contains(s.to_table(), "|                                hybrid_configs  "));
  std::istringstream lines(s.to_table());
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(line.size(), 84u) << line;
}

// docs/strategy.md has a row `name` | `default` for every field.
TEST(DistributedStrategy, DocumentNamesEveryFieldWithItsDefault) {
  const std::string doc = read_file(FLEETX_SOURCE_DIR "/docs/strategy.md");
  const DistributedStrategy s;
  const auto row = [](const std::string& name, const ir::Attr& value) {
    const bool number = value.type() == ir::AttrType::kFloat;
    return str("| `", name, "` | `", number ? number_text(value.as<double>()) : str(value), "` |");
  };
  for (const std::string& name : DistributedStrategy::field_names())
    EXPECT_NE(doc.find(row(name, s.get(name))), std::string::npos) << row(name, s.get(name));
  for (const std::string& group : DistributedStrategy::configs_names()) {
    const size_t begin = doc.find("`" + group + "`\n");
    ASSERT_NE(begin, std::string::npos) << group;
    const std::string part = doc.substr(begin, doc.find("\n#", begin) - begin);
    for (const auto& [key, value] : s.get_configs(group))
      EXPECT_NE(part.find(row(key, value)), std::string::npos) << group << ": " << row(key, value);
  }
}

}  // namespace
}  // namespace fleetx::fleet
