#include "fleetx/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/base/log.h"
#include "fleetx/base/names.h"
#include "fleetx/ir/owned.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/stand_in.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/transform.h"
#include "fleetx/tensor/safetensors.h"
#include "fleetx/train/placed_state.h"
#include "fleetx/train/sealed_folder.h"

namespace fleetx::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCheckpoint = "fleetx-checkpoint", kModel = "fleetx-model";
constexpr std::string_view kPrefix = "step-";

std::string step_name(int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, 8 - std::min<size_t>(8, digits.size()), '0');
  return std::string(kPrefix) + digits;
}

// Complete checkpoints in a folder, oldest first.
std::vector<std::pair<int64_t, fs::path>> checkpoints_in(const std::string& dir) {
  std::vector<std::pair<int64_t, fs::path>> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t step = 0;
    const char* last = name.data() + name.size();
    const auto [end, bad] = std::from_chars(name.data() + kPrefix.size(), last, step);
    if (bad != std::errc{} || end != last || !fs::exists(entry.path() / kManifest)) continue;
    out.emplace_back(step, entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Persistable variables that are saved, each once, in the order of the programs.
std::vector<const ir::VarInfo*> kept_by(const Programs& programs) {
  std::vector<const ir::VarInfo*> out;
  std::set<std::string_view> seen;
  for (const auto& [name, program] : programs)
    for (const ir::VarInfo* v : program->vars())
      if (v->persistable && !v->placement.is_transient() && seen.insert(v->name).second)
        out.push_back(v);
  return out;
}

const Tensor& find(const runtime::Scope& scope, const std::string& name) {
  const Tensor* tensor = scope.find(name);
  check_arg(
      tensor != nullptr, "cannot save '", name,
      "': the scope has no such variable; was the startup program run? (What another worker owns, "
      "as with sharding, is in checkpoints, which all workers save.)");
  return *tensor;
}

Tensor whole_value(const runtime::Scope& scope, const ir::VarInfo& var,
                   const comm::Groups& groups) {
  if (ir::owner_of(var) && !scope.has(var.name)) return to_whole(var, {}, groups);
  const Tensor& own = find(scope, var.name);
  return var.placement.is_replicated() ? own : to_whole(var, scope.get(var.name), groups);
}

// In the metadata of a file: the variables that are stacked, with how they reach another number of
// ranks.
constexpr std::string_view kPerRank = "per_rank:";

void add(Safetensors& file, const ir::VarInfo& var, Tensor whole) {
  if (var.placement.is_per_rank())
    file.metadata[str(kPerRank, var.name)] = ir::name_of(var.placement.resize);
  file.tensors[var.name] = std::move(whole);
}

std::optional<ir::Placement::Resize> saved_per_rank(const Safetensors& file,
                                                    const std::string& name) {
  const auto it = file.metadata.find(str(kPerRank, name));
  return it == file.metadata.end() ? std::nullopt : ir::resize_from_name(it->second);
}

// The variable of the file that gives `var` its value; nothing: it stays as startup makes it.
std::optional<std::string> source_of(const ir::VarInfo& var, const Safetensors& file,
                                     const std::string& path) {
  const auto has = [&](const std::string& name) { return file.tensors.contains(name); };
  if (has(var.name)) return var.name;
  if (var.placement.is_per_rank() && var.placement.resize == ir::Placement::Resize::kReset)
    return std::nullopt;
  const auto other = ir::stand_in_of(var);
  if (other && other->empty()) return std::nullopt;
  check_arg(other && has(*other), path, ": has no variable '", var.name, "' (", var.type,
            "), which the program needs");
  return other;
}

// Tensors of a file into the scope; see load_checkpoint.
void put(const std::string& source, Safetensors file, const std::vector<const ir::VarInfo*>& vars,
         runtime::Scope& scope, const comm::Groups& groups) {
  auto& tensors = file.tensors;
  std::vector<std::pair<std::string, Tensor>> values;
  for (const ir::VarInfo* v : vars)
    if (const auto name = source_of(*v, file, source))
      values.emplace_back(
          v->name, from_whole(*v, tensors.at(*name), saved_per_rank(file, *name), groups, source));
  for (const ir::VarInfo* v : vars) tensors.erase(v->name);
  for (const auto& [name, value] : values)
    if (value.defined()) scope.set(name, value);
  std::vector<std::string> rest;
  for (const auto& [name, tensor] : tensors) rest.push_back(name);
  if (!rest.empty())
    log::info("checkpoint", source, ": ", rest.size(), " variables are not in the program: ",
              join({rest.begin(), rest.begin() + std::min<ptrdiff_t>(3, std::ssize(rest))}, ", "),
              rest.size() > 3 ? ", ..." : "");
}

ir::Program read_program(const SealedFolder& folder, const std::string& name) {
  const std::string path = folder.file(name + ".pb");
  return ir::parse_proto(read_file(path), path);
}

void write_program(const FolderWriter& out, const std::string& name, const ir::Program& program) {
  write_file(out.file(name + ".pb"), ir::to_proto(program));
  write_file(out.file(name + ".txt"), ir::to_text(program));
}

ir::Names split(const std::string& text) {
  ir::Names out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// What worker 0 does.
void write_checkpoint(const std::string& dir, const std::string& path,
                      const Safetensors& parameters, const Safetensors& rest,
                      const Programs& programs, const State& state, int keep) {
  FolderWriter out(path, std::string(kCheckpoint));
  save_safetensors(out.file("parameters.safetensors"), parameters);
  save_safetensors(out.file("state.safetensors"), rest);
  std::vector<std::string> names;
  for (const auto& [name, program] : programs) {
    write_program(out, name, *program);
    names.push_back(name);
  }
  for (const auto& [name, text] : state.texts) write_file(out.file(name), text);
  out.fact("step", std::to_string(state.step));
  out.fact("epoch", std::to_string(state.position.epoch));
  out.fact("offset", std::to_string(state.position.offset));
  out.fact("seed", std::to_string(static_cast<int64_t>(state.seed)));
  out.fact("programs", join(names, "\n"));
  out.commit();

  auto all = checkpoints_in(dir);
  // A later step than this one belongs to a run that was given up when this one went back.
  std::erase_if(all, [&](const auto& c) { return c.first > state.step; });
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    std::error_code error;
    fs::remove_all(all[i].second, error);
    if (error)
      log::warning("checkpoint", "cannot remove ", all[i].second.string(), ": ", error.message());
  }
}

}  // namespace

std::string save_checkpoint(const std::string& dir, const runtime::Scope& scope,
                            const Programs& programs, const State& state,
                            const SaveOptions& options) {
  check_arg(options.keep >= 1, "checkpoints: keep is ", options.keep, "; must be at least 1");
  const auto groups = options.groups ? options.groups : comm::process_groups();
  const std::string path = dir + "/" + step_name(state.step);
  Safetensors parameters, rest;
  for (const ir::VarInfo* v : kept_by(programs)) {
    add(v->is_parameter ? parameters : rest, *v, whole_value(scope, *v, *groups));
  }
  if (options.writes) write_checkpoint(dir, path, parameters, rest, programs, state, options.keep);
  return path;
}

std::string latest_checkpoint(const std::string& dir) {
  const auto all = checkpoints_in(dir);
  return all.empty() ? "" : all.back().second.string();
}

void remove_checkpoints(const std::string& dir) {
  for (const auto& [step, path] : checkpoints_in(dir)) fs::remove_all(path);
}

State load_checkpoint(const std::string& path, runtime::Scope& scope, const Programs& programs,
                      std::shared_ptr<const comm::Groups> groups) {
  const SealedFolder folder(path, kCheckpoint);
  Safetensors all = load_safetensors(folder.file("parameters.safetensors"));
  Safetensors rest = load_safetensors(folder.file("state.safetensors"));
  all.tensors.merge(rest.tensors);
  all.metadata.merge(rest.metadata);
  if (programs.empty()) {
    for (const auto& [name, tensor] : all.tensors) scope.set(name, tensor);
  } else {
    if (groups == nullptr) groups = comm::process_groups();
    put(path, std::move(all), kept_by(programs), scope, *groups);
  }
  State state;
  state.step = folder.number("step");
  state.position = {folder.number("epoch"), folder.number("offset")};
  state.seed = static_cast<uint64_t>(folder.number("seed"));
  std::set<std::string> own{"parameters.safetensors", "state.safetensors"};
  for (const std::string& name : split(folder.fact("programs")))
    own.merge(std::set{name + ".pb", name + ".txt"});
  for (const auto& [name, bytes] : folder.files())
    if (!own.contains(name)) state.texts[name] = read_file(folder.file(name));
  return state;
}

ir::Program load_program(const std::string& path, const std::string& name) {
  return read_program(SealedFolder(path, kCheckpoint), name);
}

void save_model(const std::string& dir, const ir::Program& program, const ir::Names& targets,
                const runtime::Scope& scope) {
  check_arg(!targets.empty(), "save_model: no targets");
  const ir::Program pruned = ir::prune(ir::clone_for_test(program), targets);
  FolderWriter out(dir, std::string(kModel));
  Safetensors parameters;
  ir::Names feeds;
  for (const ir::VarInfo* v : pruned.vars()) {
    if (v->persistable) parameters.tensors[v->name] = find(scope, v->name);
    if (v->is_data) feeds.push_back(v->name);
  }
  save_safetensors(out.file("parameters.safetensors"), parameters);
  write_program(out, "model", pruned);
  out.fact("feeds", join(feeds, "\n"));
  out.fact("targets", join(targets, "\n"));
  out.commit();
}

Model load_model(const std::string& dir, runtime::Scope& scope) {
  const SealedFolder folder(dir, kModel);
  Model model{read_program(folder, "model"), split(folder.fact("feeds")),
              split(folder.fact("targets"))};
  put(dir, load_safetensors(folder.file("parameters.safetensors")),
      kept_by({{"model", &model.program}}), scope, {});
  return model;
}

void save_parameters(const std::string& path, const ir::Program& program,
                     const runtime::Scope& scope) {
  Safetensors content;
  for (const ir::VarInfo* v : program.parameters()) content.tensors[v->name] = find(scope, v->name);
  save_safetensors(path, content);
}

void load_parameters(const std::string& path, const ir::Program& program, runtime::Scope& scope) {
  put(path, load_safetensors(path), program.parameters(), scope, {});
}

}  // namespace fleetx::train
