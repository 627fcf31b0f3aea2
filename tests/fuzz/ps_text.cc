// Any text of a sparse table in the original's layout is loaded, or refused as damaged or as one of
// another model. Its description ends with an empty line.
#include "fleetx/ps/text_tables.h"

#include "tests/fuzz/refusal.h"

namespace fleetx::ps {
namespace {

void check(std::string_view bytes) {
  JobSpec job{.workers = 1, .servers = 2};
  job.sparse = {{.name = "t", .dim = 2, .rule = add_rule(), .life = RowLife{}}};
  job.sparse[0].min_count = 3;
  PayloadPool pool;
  TableService tables(job, 0, 1, pool);
  const size_t end = std::min(bytes.find("\n\n"), bytes.size());
  try {
    parse_text(tables, 0, 0, bytes.substr(0, end), bytes.substr(std::min(end + 2, bytes.size())),
               "fuzz");
  } catch (const Error& e) {
    testing::expect_refusal(e, {Error::Kind::kCorrupt, Error::Kind::kInvalidArgument});
  }
}

}  // namespace
}  // namespace fleetx::ps

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::ps::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
