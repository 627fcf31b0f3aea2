// What Python holds as a Builder: the two programs it builds, kept alive, and the user's line that
// the next ops carry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "fleetx/ir/builder.h"

namespace fleetx::python {

class PyBuilder {
 public:
  PyBuilder(std::shared_ptr<ir::Program> main, std::shared_ptr<ir::Program> startup)
      : main_(std::move(main)), startup_(std::move(startup)), builder_(*main_, *startup_) {}

  bool is_update = false;  // are the ops that are added now part of the update?
  int stage = -1;          // of a pipeline, that they belong to; -1: nobody has said

  ir::Builder& get() { return builder_; }
  ir::Var var(const std::string& name) { return builder_.var(name); }
  std::vector<ir::Var> vars(const ir::Names& names) {
    std::vector<ir::Var> out;
    for (const std::string& name : names) out.push_back(var(name));
    return out;
  }

  // While it lives, ops carry the layer's name, the line of the user's script and the stage.
  class At {
   public:
    At(PyBuilder& b, const std::string& file, int line, const std::string& layer = "")
        : at_(b.builder_.at({file, line})),
          in_(b.builder_.in_layer(layer)),
          on_(b.builder_.in_stage(b.stage)) {}

   private:
    ir::Builder::Inherited at_, in_, on_;
  };

 private:
  std::shared_ptr<ir::Program> main_, startup_;
  ir::Builder builder_;
};

}  // namespace fleetx::python
