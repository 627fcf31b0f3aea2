// Parallel regions of oneDNN, which is built for GNU OpenMP, run on our own threads: see gomp.cc.
#pragma once

#include <cstdint>

namespace fleetx::gomp {

// Regions of oneDNN that ran on our threads so far. 0 after oneDNN has computed with several
// threads: the program loaded an OpenMP library first, and oneDNN waits as that one does.
int64_t adopted_regions();
// Of oneDNN with several threads, that libgomp ran.
int64_t left_regions();

}  // namespace fleetx::gomp
