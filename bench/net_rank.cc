// One rank of ours or of Gloo's; bench/run net starts it in a network namespace (see net_rank.h).
// usage: bench_net_rank ours|ring|bcube FOLDER COLLECTIVE:BYTES:CALLS...
// Rank, number of ranks and addresses come from the variables that fleetrun sets (PADDLE_*).
#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "bench/net_rank.h"
#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/comm/join.h"

namespace fleetx::bench {
namespace {

// As buckets of gradients are: in memory that the communicator has given.
Rank rank_of_ours(const JobEnv& job) {
  using namespace comm;
  const auto joined = std::make_shared<Membership>(join_workers(job));
  Communicator* const c = &joined->workers();
  const auto kept = std::make_shared<std::vector<std::shared_ptr<void>>>();
  Rank r{.rank = job.rank, .ranks = job.world, .take = {}, .call = {}};
  r.take = [=](size_t bytes) {
    kept->push_back(c->allocate(bytes));
    return static_cast<float*>(kept->back().get());
  };
  r.call = [=, keep = joined](const std::string& collective, float* in, float* out, size_t bytes) {
    const auto count = static_cast<int64_t>(bytes / sizeof(float)), part = count / c->size();
    if (collective == "all_reduce") return c->all_reduce(in, count, DType::kF32);
    if (collective == "reduce_scatter") return c->reduce_scatter(in, out, part, DType::kF32);
    if (collective == "all_gather") return c->all_gather(in, out, part, DType::kF32);
    if (collective == "broadcast") return c->broadcast(in, count, DType::kF32);
    if (collective == "all_to_all") return c->all_to_all(in, out, part, DType::kF32);
    fail(Error::Kind::kInvalidArgument, str("no collective '", collective, "'"));
  };
  return r;
}

Rank rank_of_gloo(const JobEnv& job, const std::string& algorithm, const std::string& folder) {
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  const std::string address = job.endpoint.substr(0, job.endpoint.rfind(':'));
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
  const auto context = std::make_shared<gloo::rendezvous::Context>(job.rank, job.world);
  gloo::rendezvous::FileStore store(folder);
  context->connectFullMesh(store, device);
  Rank r{.rank = job.rank, .ranks = job.world, .take = {}, .call = {}};
  r.take = [](size_t bytes) { return static_cast<float*>(std::aligned_alloc(4096, bytes)); };
  r.call = [=](const std::string& collective, float* data, float*, size_t bytes) {
    check_arg(collective == "all_reduce", "Gloo's ", collective, " is not measured here");
    gloo::AllreduceOptions options(context);
    options.setOutput(data, bytes / sizeof(float));
    options.setReduceFunction([](void* c, const void* a, const void* b, size_t n) {
      for (size_t i = 0; i < n; ++i)
        static_cast<float*>(c)[i] =
            static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
    });
    options.setAlgorithm(algorithm == "ring" ? Algorithm::RING : Algorithm::BCUBE);
    gloo::allreduce(options);
  };
  return r;
}

}  // namespace
}  // namespace fleetx::bench

int main(int argc, char** argv) {
  using namespace fleetx;
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 3) {
    std::cerr << "usage: bench_net_rank ours|ring|bcube FOLDER COLLECTIVE:BYTES:CALLS...\n";
    return 2;
  }
  try {
    const JobEnv job = JobEnv::from_environment();
    bench::play(
        args[0] == "ours" ? bench::rank_of_ours(job) : bench::rank_of_gloo(job, args[0], args[1]),
        args[1], {args.begin() + 2, args.end()});
  } catch (const std::exception& e) {
    std::cerr << "bench_net_rank: " << e.what() << '\n';
    return 1;
  }
}
