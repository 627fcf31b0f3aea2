// Builds a small program with the installed library and reads it back from its text.
#include <iostream>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/text.h"

int main() {
  using namespace fleetx;
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 4});
  b.op("scale", {{"x", x}}, {{"scale", 2.0}});
  const bool same = ir::parse_text(ir::to_text(main)) == main;
  std::cout << ir::to_text(main) << (same ? "ok\n" : "the text does not read back\n");
  return same ? 0 : 1;
}
