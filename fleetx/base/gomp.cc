// oneDNN's parallel regions on our teams.
//
// Debian's libdnnl is built for GNU OpenMP, whose threads spin for milliseconds where they wait,
// and which reads its settings before any code of ours runs. libdnnl uses five of its functions
// that concern regions. They are defined here, too; the dynamic linker finds these first, since
// libfleetx comes before libgomp, and so oneDNN waits as our own kernels do (base/team.h). Whatever
// else calls them (the user's own OpenMP code) gets libgomp's.
//
// Where a program has loaded libdnnl, or libgomp for everybody, before libfleetx (`import torch`
// first), libdnnl stays with libgomp: all works, but its waits are libgomp's (GOMP_SPINCOUNT).
#include "fleetx/base/gomp.h"

#include <dlfcn.h>
#include <link.h>
#include <omp.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/team.h"
#include "fleetx/base/team_regions.h"

namespace fleetx::gomp {
namespace {

std::atomic<int64_t> adopted{0}, left{0};

// libgomp's function of this name, or that of another OpenMP library that stands in for it.
template <class Function>
Function* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr)
    if (void* library = dlopen("libgomp.so.1", RTLD_LAZY)) found = dlsym(library, name);
  FLEETX_CHECK(found != nullptr, "no OpenMP library has ", name);
  return reinterpret_cast<Function*>(found);
}

struct Range {
  uintptr_t begin = 0, end = 0;
};

// Where the code of libdnnl is.
Range code_of_onednn() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* out) {
        const char* slash = std::strrchr(object->dlpi_name, '/');
        const char* name = slash != nullptr ? slash + 1 : object->dlpi_name;
        if (std::strncmp(name, "libdnnl", 7) != 0) return 0;  // wheels add to the name
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
            *static_cast<Range*>(out) = {begin, begin + segment.p_memsz};
        }
        return 1;
      },
      &range);
  return range;
}

bool is_onednn(const void* caller) {
  static const Range code = code_of_onednn();
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return code.begin <= address && address < code.end;
}

team::Place place() {
  return team::regions.load(std::memory_order_relaxed) == 0 ? team::Place() : team::place();
}

struct Task {
  void (*function)(void*);
  void* data;
};

}  // namespace

int64_t adopted_regions() { return adopted.load(std::memory_order_relaxed); }
int64_t left_regions() { return left.load(std::memory_order_relaxed); }

}  // namespace fleetx::gomp

// The names and types are those of GNU OpenMP's binary interface.
extern "C" {

int omp_in_parallel() {
  using namespace fleetx::gomp;
  if (place().parallel) return 1;
  static const auto other = next<int()>("omp_in_parallel");
  return other();
}

int omp_get_thread_num() {
  using namespace fleetx::gomp;
  if (const auto here = place(); here.parallel) return here.part;
  static const auto other = next<int()>("omp_get_thread_num");
  return other();
}

int omp_get_num_threads() {
  using namespace fleetx::gomp;
  if (const auto here = place(); here.parallel) return here.parts;
  static const auto other = next<int()>("omp_get_num_threads");
  return other();
}

void GOMP_barrier() {
  using namespace fleetx::gomp;
  if (place().parallel) return fleetx::team::barrier();
  static const auto other = next<void()>("GOMP_barrier");
  other();
}

void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags) {
  using namespace fleetx;
  using namespace fleetx::gomp;
  const bool inside = gomp::place().parallel;
  const bool adopts = is_onednn(__builtin_return_address(0));
  // 0: as many as there are; some convolutions of oneDNN ask so.
  if (adopts && threads == 0) threads = static_cast<unsigned>(omp_get_max_threads());
  if (!inside && (threads < 2 || threads > team::kMost || !adopts || omp_in_parallel() != 0)) {
    static const auto other =
        next<void(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
    if (adopts && threads != 1) left.fetch_add(1, std::memory_order_relaxed);
    return other(function, data, threads, flags);
  }
  // A region inside another has one thread, as in OpenMP.
  Task task{function, data};
  const auto body = [](void* context, int) {
    const Task& t = *static_cast<Task*>(context);
    t.function(t.data);
  };
  adopted.fetch_add(1, std::memory_order_relaxed);
  team::run(inside ? 1 : static_cast<int>(threads), body, &task);
}

}  // extern "C"
