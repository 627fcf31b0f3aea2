// Parallel regions of oneDNN, which is built for GNU OpenMP, run on our own threads: see gomp.cc.
#pragma once

#include <cstdint>

namespace fleetx::gomp {

// Regions of oneDNN that ran on our threads so far. 0 after oneDNN has computed with several
// threads: the program loaded an OpenMP library first, and oneDNN waits as that one does.
int64_t adopted_regions();
// Of oneDNN with several threads, that libgomp ran.
int64_t left_regions();

// While it lives, the regions that oneDNN starts in this thread wait in OpenMP's barriers only, so
// that one thread may run all their parts (team::Runs::kAnywhere). True of sgemm; some primitives
// have waits of their own.
class WaitsInBarriersOnly {
 public:
  WaitsInBarriersOnly();
  ~WaitsInBarriersOnly();
  WaitsInBarriersOnly(const WaitsInBarriersOnly&) = delete;
  WaitsInBarriersOnly& operator=(const WaitsInBarriersOnly&) = delete;
};

}  // namespace fleetx::gomp
