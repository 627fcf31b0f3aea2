#include "fleetx/passes/graph.h"

#include <algorithm>

namespace fleetx::passes {

Graph::Graph(ir::Program& program, const ir::Names& keep)
    : rw_(program), keep_(keep.begin(), keep.end()) {
  uses_.reserve(program.ops().size() * 2);
  positions_.reserve(program.ops().size());
  int64_t position = 0;
  for (Node op = begin(); op != end(); ++op) {
    positions_.emplace(&*op, position++);
    link(op);
  }
}

std::vector<Graph::Node> Graph::ops(std::string_view type) {
  std::vector<Node> found;
  for (Node op = begin(); op != end(); ++op)
    if (op->type() == type && op->guard.empty()) found.push_back(op);
  return found;
}

const Graph::Uses& Graph::uses(const std::string& var) const {
  static const Uses kNone;
  const auto it = uses_.find(var);
  return it == uses_.end() ? kNone : it->second;
}

// Lists stay in program order. Almost always the op belongs at the end; a replacement goes where
// its predecessor was.
void Graph::link(Node op) {
  const int64_t position = positions_.at(&*op);
  const auto insert = [&](std::vector<Node>& list) {
    auto at = list.end();
    while (at != list.begin() && positions_.at(&**(at - 1)) > position) --at;
    if (at == list.begin() || *(at - 1) != op) list.insert(at, op);
  };
  for (const ir::Names& names : op->inputs)
    for (const std::string& name : names) insert(uses_[name].readers);
  if (!op->guard.empty()) insert(uses_[op->guard].readers);
  for (const ir::Names& names : op->outputs)
    for (const std::string& name : names) insert(uses_[name].writers);
}

void Graph::unlink(Node op) {
  if (!op->guard.empty()) {
    std::erase(uses_[op->guard].readers, op);
    touched_.insert(op->guard);
  }
  for (const ir::Names& names : op->inputs)
    for (const std::string& name : names) {
      std::erase(uses_[name].readers, op);
      touched_.insert(name);
    }
  for (const ir::Names& names : op->outputs)
    for (const std::string& name : names) {
      std::erase(uses_[name].writers, op);
      touched_.insert(name);
    }
}

Graph::Node Graph::producer(const std::string& var) {
  const auto& list = writers(var);
  if (list.size() != 1) return end();
  const ir::VarInfo& info = program().var(var);
  return info.persistable || info.is_data ? end() : list.front();
}

Graph::Node Graph::only_reader(const std::string& var) {
  const Uses& u = uses(var);
  return u.readers.size() == 1 && only_read_by(var, u.readers.front()) ? u.readers.front() : end();
}

bool Graph::only_read_by(const std::string& var, Node op) const {
  const Uses& u = uses(var);
  return u.readers.size() == 1 && u.readers.front() == op && u.writers.size() == 1 &&
         u.writers.front()->guard == op->guard && op->guard != var && !fetched(var) &&
         !program().var(var).persistable;
}

bool Graph::unchanged(const std::string& var, Node from, Node to) const {
  const auto& list = writers(var);
  return std::none_of(list.begin(), list.end(), [&](Node w) {
    return position(w) >= position(from) && position(w) < position(to);
  });
}

bool Graph::can_move(Node op, Node to) const {
  const int64_t first = std::min(position(op), position(to));
  const int64_t last = std::max(position(op), position(to));
  const auto between = [&](const std::vector<Node>& ops) {
    return std::any_of(ops.begin(), ops.end(), [&](Node other) {
      return other != op && position(other) >= first && position(other) <= last;
    });
  };
  for (const ir::Names& names : op->outputs)
    for (const std::string& name : names)
      if (between(readers(name)) || between(writers(name))) return false;
  for (const ir::Names& names : op->inputs)
    for (const std::string& name : names)
      if (between(writers(name))) return false;
  return op->guard.empty() || !between(writers(op->guard));
}

Graph::Node Graph::replace(Node old, const ir::Rewriter::NewOp& op) {
  const Node node = rw_.insert(old, op);
  rw_.set_guard(node, old->guard);
  positions_.emplace(&*node, position(old));
  erase(old);
  link(node);
  return node;
}

void Graph::erase(Node op) {
  unlink(op);
  positions_.erase(&*op);
  rw_.erase(op);
}

void Graph::set_inputs(Node op, std::string_view slot, ir::Names names) {
  unlink(op);
  rw_.set_inputs(op, slot, std::move(names));
  link(op);
}

void Graph::set_outputs(Node op, std::string_view slot, ir::Names names) {
  unlink(op);
  rw_.set_outputs(op, slot, std::move(names));
  link(op);
}

void Graph::drop_orphans() {
  for (const std::string& name : touched_) {
    const Uses& u = uses(name);
    const ir::VarInfo& info = program().var(name);
    if (u.readers.empty() && u.writers.empty() && !info.persistable && !info.is_data &&
        !fetched(name))
      rw_.erase_var(name);
  }
  touched_.clear();
}

}  // namespace fleetx::passes
