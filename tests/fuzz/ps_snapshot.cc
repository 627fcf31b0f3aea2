// Any content of a section of a parameter server's snapshot is loaded, or refused as damaged or as
// one of another model. The first byte says which kind of section it is.
#include "fleetx/ps/snapshot.h"

#include "fleetx/ps/own_snapshot.h"
#include "fleetx/ps/server_state.h"
#include "tests/fuzz/refusal.h"

namespace fleetx::ps {
namespace {

void check(std::string_view bytes) {
  if (bytes.empty()) return;
  JobSpec job{.workers = 1, .servers = 2};
  job.dense = {{.name = "dense", .params = {{"w", {3, 2}, add_rule()}, {"b", {2}, add_rule()}}}};
  job.sparse = {{.name = "t", .dim = 2, .rule = add_rule(), .life = RowLife{}}};
  PayloadPool pool;
  TableService tables(job, 0, 1, pool);
  try {
    constexpr Section kSections[] = {Section::kDense, Section::kSparse, Section::kSparseWithUses,
                                     Section::kGone};
    if (bytes[0] == 2)
      decode_progress(bytes.substr(1), job, "fuzz");
    else if (bytes[0] == 6)
      decode_members(bytes.substr(1), job, "fuzz");
    else if (bytes[0] == 10)
      parse_pending(tables, bytes.substr(1), "fuzz");
    else if (bytes[0] == 14)
      parse_seen(tables, bytes.substr(1), "fuzz");
    else
      parse_section(tables, 0, kSections[static_cast<unsigned char>(bytes[0]) % 4], bytes.substr(1),
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
