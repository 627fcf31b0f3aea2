// Who writes and who reads each variable of a program, kept up to date while a pass rewrites it.
// Passes change the program only through this class, so that every question costs a look-up and a
// pass stays linear.
//
// A temporary normally has one writer, but an op may update it in place; patterns ask producer() or
// only_read_by(), which answer only for variables with a single value.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleetx/ir/rewriter.h"

namespace fleetx::passes {

class Graph {
 public:
  using Node = ir::Rewriter::Position;

  Graph(ir::Program& program, const ir::Names& keep);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const ir::Program& program() const { return rw_.program(); }
  Node begin() { return rw_.begin(); }
  Node end() { return rw_.end(); }
  // In program order. Ops with a guard are left out: what a pattern puts together runs always.
  std::vector<Node> ops(std::string_view type);

  // Ops in program order; an op that reads a variable twice stands there once. An op reads its
  // guard.
  const std::vector<Node>& readers(const std::string& var) const { return uses(var).readers; }
  const std::vector<Node>& writers(const std::string& var) const { return uses(var).writers; }
  // The op that gives `var` its only value; end() for data, state and what is updated in place.
  Node producer(const std::string& var);
  bool fetched(const std::string& var) const { return keep_.contains(var); }
  // A temporary with one value that nobody but `op` needs, and that is made under the same guard.
  bool only_read_by(const std::string& var, Node op) const;
  // The same, giving the one reader, or end().
  Node only_reader(const std::string& var);

  int64_t position(Node op) const { return positions_.at(&*op); }
  // Would `to` read in `var` what `from` reads there? (`from` stands before `to`.)
  bool unchanged(const std::string& var, Node from, Node to) const;

  // Could the op stand where `to` stands, before or after it, and everybody read the same? `to`
  // itself is expected to stay there.
  bool can_move(Node op, Node to) const;

  // The new op stands where `old` stood, and has its guard.
  Node replace(Node old, const ir::Rewriter::NewOp& op);
  void erase(Node op);
  void set_attr(Node op, const std::string& name, ir::Attr value) {
    rw_.set_attr(op, name, std::move(value));
  }
  void set_inputs(Node op, std::string_view slot, ir::Names names);
  void set_outputs(Node op, std::string_view slot, ir::Names names);
  // Drops the temporaries that lost their last op. Called once, at the end of a pass.
  void drop_orphans();

 private:
  struct Uses {
    std::vector<Node> readers, writers;
  };
  const Uses& uses(const std::string& var) const;
  void link(Node op);
  void unlink(Node op);

  ir::Rewriter rw_;
  std::set<std::string, std::less<>> keep_;
  std::unordered_map<std::string, Uses> uses_;
  std::unordered_map<const ir::Op*, int64_t> positions_;
  std::set<std::string> touched_;
};

}  // namespace fleetx::passes
