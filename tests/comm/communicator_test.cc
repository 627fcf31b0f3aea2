// What every backend promises. Results are compared bit for bit with a reference that sums in the
// order of a tree of the ranks, so that backends agree with each other too.
#include "fleetx/comm/communicator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/comm/ranks.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using namespace comm;

constexpr DType kTypes[] = {f32, f64, i32, i64, f16, bf16, u8};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kAverage};
constexpr int64_t kSizes[] = {0, 1, 7, 1000, 140'001};

// Element i of what rank `rank` brings to test `salt`.
template <class T>
T element(int rank, int64_t i, uint64_t salt) {
  // A few multiplications: there are hundreds of millions of them.
  uint64_t bits = ((salt << 8 | static_cast<uint64_t>(rank)) << 24) + static_cast<uint64_t>(i);
  bits *= 0x9E3779B97F4A7C15u;
  bits = (bits ^ bits >> 32) * 0xD6E8FEB86659FD93u;
  const float u = static_cast<float>(bits >> 40) * 0x1p-23f - 1;  // from -1 to 1
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int>(u * 50));
  else
    return static_cast<T>(u * 3);
}

template <class T>
std::vector<T> vector_of(int rank, int64_t count, uint64_t salt) {
  std::vector<T> v(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) v[static_cast<size_t>(i)] = element<T>(rank, i, salt);
  return v;
}

// Of whole numbers it wraps around.
template <class A>
A product(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <class A>
A combine(A a, A b, ReduceOp op) {
  if (op == ReduceOp::kProd) return product(a, b);
  if (op == ReduceOp::kMin) return std::min(a, b);
  if (op == ReduceOp::kMax) return std::max(a, b);
  return static_cast<A>(a + b);
}

// The definition: a tree over the ranks, split at the largest power of two below their number;
// halves in f32, bytes in i32.
template <class T, class A>
std::vector<A> tree_sum(const int* ranks, size_t n, int64_t count, ReduceOp op, uint64_t salt) {
  if (n == 1) {
    const std::vector<T> v = vector_of<T>(*ranks, count, salt);
    return std::vector<A>(v.begin(), v.end());
  }
  size_t half = 1;
  while (2 * half < n) half *= 2;
  std::vector<A> sum = tree_sum<T, A>(ranks, half, count, op, salt);
  const std::vector<A> right = tree_sum<T, A>(ranks + half, n - half, count, op, salt);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = combine(sum[i], right[i], op);
  return sum;
}

template <class T>
std::vector<T> reference(const std::vector<int>& ranks, int64_t count, ReduceOp op, uint64_t salt) {
  using A = std::conditional_t<sizeof(T) == 2, float, std::conditional_t<sizeof(T) == 1, int, T>>;
  const std::vector<A> sum = tree_sum<T, A>(ranks.data(), ranks.size(), count, op, salt);
  std::vector<T> out(sum.size());
  for (size_t i = 0; i < sum.size(); ++i)
    out[i] = static_cast<T>(
        op == ReduceOp::kAverage ? static_cast<A>(sum[i] / static_cast<A>(ranks.size())) : sum[i]);
  return out;
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  EXPECT_TRUE(got.empty() || std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0)
      << what;
}

std::vector<int> all_ranks(const Communicator& c) {
  std::vector<int> ranks;
  for (int r = 0; r < c.size(); ++r) ranks.push_back(r);
  return ranks;
}

template <class Fn>
void for_types(const Fn& fn) {
  for (const DType t : kTypes)
    with_type(t, [&](auto zero) {
      if constexpr (!std::is_same_v<decltype(zero), bool>) fn(zero);
    });
}

template <class T>
void check_reductions(Communicator& c, int64_t count, ReduceOp op) {
  const DType t = DTypeOf<T>::value;
  const uint64_t salt = static_cast<uint64_t>(count) + 100 * static_cast<uint64_t>(op);
  const auto n = static_cast<size_t>(c.size()), own = static_cast<size_t>(c.rank());
  const std::string what =
      str(c.backend(), " ", name_of(t), " ", name_of(op), " ", count, " on rank ", c.rank());
  const std::vector<T> want = reference<T>(all_ranks(c), count, op, salt);

  std::vector<T> data = vector_of<T>(c.rank(), count, salt);
  c.all_reduce(data.data(), count, t, op);
  expect_same(data, want, "all_reduce " + what);

  const int root = static_cast<int>(count % c.size());
  const std::vector<T> in = vector_of<T>(c.rank(), count, salt);
  data.assign(in.size(), T{});
  c.reduce(in.data(), c.rank() == root ? data.data() : nullptr, count, t, op, root);
  expect_same(data, c.rank() == root ? want : std::vector<T>(in.size()), "reduce " + what);

  const int64_t part = count / c.size();
  data.assign(static_cast<size_t>(part), T{});
  c.reduce_scatter(in.data(), data.data(), part, t, op);
  const auto begin = want.begin() + static_cast<long>(own * static_cast<size_t>(part));
  expect_same(data, std::vector<T>(begin, begin + part), "reduce_scatter " + what);
  ASSERT_GE(n, 1u);
}

const RegisterRankFn reductions("reductions", [](Communicator& c) {
  for_types([&](auto zero) {
    for (const ReduceOp op : kOps)
      for (const int64_t count : kSizes)
        // How vectors are cut into pieces does not depend on the op: two will do.
        if (count <= 1000 || op == ReduceOp::kSum || op == ReduceOp::kAverage)
          check_reductions<decltype(zero)>(c, count, op);
  });
});

template <class T>
void check_moves(Communicator& c, int64_t count) {
  const DType t = DTypeOf<T>::value;
  const std::string what = str(c.backend(), " ", name_of(t), " ", count, " on rank ", c.rank());
  const std::vector<T> mine = vector_of<T>(c.rank(), count, 1);
  std::vector<T> all(mine.size() * static_cast<size_t>(c.size())), want;
  for (int r = 0; r < c.size(); ++r) {
    const std::vector<T> theirs = vector_of<T>(r, count, 1);
    want.insert(want.end(), theirs.begin(), theirs.end());
  }
  c.all_gather(mine.data(), all.data(), count, t);
  expect_same(all, want, "all_gather " + what);
  // Its own part of the result is already there.
  std::fill(all.begin(), all.end(), T{});
  T* const own = all.data() + c.rank() * count;
  std::copy(mine.begin(), mine.end(), own);
  c.all_gather(own, all.data(), count, t);
  expect_same(all, want, "all_gather in place " + what);

  for (int root = 0; root < c.size(); ++root) {
    std::vector<T> data = vector_of<T>(c.rank(), count, 2);
    c.broadcast(data.data(), count, t, root);
    expect_same(data, vector_of<T>(root, count, 2), str("broadcast from ", root, " ", what));
  }

  const std::vector<T> in = vector_of<T>(c.rank(), count * c.size(), 3);
  c.all_to_all(in.data(), all.data(), count, t);
  want.clear();
  for (int r = 0; r < c.size(); ++r) {
    const std::vector<T> theirs = vector_of<T>(r, count * c.size(), 3);
    want.insert(want.end(), theirs.begin() + c.rank() * count,
                theirs.begin() + (c.rank() + 1) * count);
  }
  expect_same(all, want, "all_to_all " + what);
}

const RegisterRankFn moves("moves", [](Communicator& c) {
  for_types([&](auto zero) {
    for (const int64_t count : {0, 1, 7, 1000, 70'001}) check_moves<decltype(zero)>(c, count);
  });
});

// The order of arrival does not matter, for any number of pieces.
const RegisterRankFn random_timing("random_timing", [](Communicator& c) {
  std::mt19937 random(static_cast<unsigned>(c.rank()));
  constexpr int64_t count = 3'000'001;
  const std::vector<float> want = reference<float>(all_ranks(c), count, ReduceOp::kAverage, 5);
  for (int i = 0; i < 5; ++i) {
    std::vector<float> data = vector_of<float>(c.rank(), count, 5);
    std::this_thread::sleep_for(Milliseconds(random() % 20));
    c.all_reduce(data.data(), count, f32, ReduceOp::kAverage);
    expect_same(data, want, str("round ", i));
  }
});

const RegisterRankFn allocated("allocated", [](Communicator& c) {
  for (const int64_t count : {5, 5000, 1'000'003}) {
    const auto want = reference<float>(all_ranks(c), count, ReduceOp::kSum, 6);
    const auto bytes = static_cast<size_t>(count + 16) * sizeof(float);
    const std::shared_ptr<void> memory = c.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
    for (const bool own : {true, false}) {  // the last rank brings memory that others cannot see
      for (int64_t offset : {0, 3}) {
        auto data = vector_of<float>(c.rank(), count, 6);
        float* p = static_cast<float*>(memory.get()) + offset;
        if (!own && c.rank() == c.size() - 1) p = data.data();
        std::memmove(p, data.data(), data.size() * sizeof(float));
        c.all_reduce(p, count, f32);
        expect_same(std::vector<float>(p, p + count), want, str(count, " at ", offset));
      }
    }
  }
  // Memory that was given back is zero when it is taken again.
  for (int i = 0; i < 3; ++i) {
    const auto memory = c.allocate(100'000);
    auto* bytes = static_cast<unsigned char*>(memory.get());
    for (int j = 0; j < 100'000; ++j) ASSERT_EQ(bytes[j], 0) << j;
    std::memset(bytes, 1, 100'000);
  }
});

const RegisterRankFn groups("groups", [](Communicator& c) {
  const int rank = c.rank(), half = rank % 2;
  const auto sum_in = [&](Communicator& g, const std::vector<int>& ranks) {
    ASSERT_EQ(g.size(), static_cast<int>(ranks.size()));
    EXPECT_EQ(ranks[static_cast<size_t>(g.rank())], rank);
    for (const int64_t count : {3, 50'000}) {
      auto data = vector_of<float>(rank, count, 7);
      g.all_reduce(data.data(), count, f32);
      expect_same(data, reference<float>(ranks, count, ReduceOp::kSum, 7), "group");
    }
  };
  const std::vector<int> mine = half == 0 ? std::vector<int>{0, 2} : std::vector<int>{1, 3};
  const auto a = c.group(mine);
  sum_in(*a, mine);
  const auto b = c.split(rank / 2);
  sum_in(*b, rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
  const auto backwards = c.group({3, 2, 1, 0});
  sum_in(*backwards, {3, 2, 1, 0});
  const auto again = c.group(mine);  // the same ranks, another group
  // Groups do not disturb each other, whatever the order.
  Work first = a->start(Call::barrier()), second = b->start(Call::barrier());
  sum_in(*again, mine);
  second.wait();
  first.wait();
  const auto nobody = c.split(rank == 0 ? -1 : 1);
  EXPECT_EQ(nobody == nullptr, rank == 0);
  if (nobody) sum_in(*nobody, {1, 2, 3});
  if (rank == 1) {
    const auto alone = c.group({1});
    sum_in(*alone, {1});
  }
  expect_error(Error::Kind::kInvalidArgument, {"rank 7"}, [&] { c.group({rank, 7}); });
  expect_error(Error::Kind::kInvalidArgument, {"twice"}, [&] { c.group({rank, rank}); });
  expect_error(Error::Kind::kInvalidArgument, {"not in"}, [&] { c.group({(rank + 1) % 4}); });
  c.barrier();
});

const RegisterRankFn handles("handles", [](Communicator& c) {
  constexpr int64_t count = 20'000;
  std::vector<std::vector<float>> data;
  std::vector<Work> works;
  for (uint64_t i = 0; i < 20; ++i) data.push_back(vector_of<float>(c.rank(), count, i));
  for (auto& d : data)
    works.push_back(c.start(Call::all_reduce(d.data(), count, f32, ReduceOp::kSum)));
  float last = 1;
  c.all_reduce(&last, 1, f32);  // after all that were started
  EXPECT_EQ(last, static_cast<float>(c.size()));
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(works[i].test());
    works[i].wait();
    expect_same(data[i], reference<float>(all_ranks(c), count, ReduceOp::kSum, i), "handle");
  }
  const auto beside = c.group(all_ranks(c));
  Work slow;
  if (c.rank() != 0) {
    slow = c.start(Call::barrier());
    EXPECT_FALSE(slow.wait_for(Milliseconds(5)));  // rank 0 is not there yet
  }
  beside->barrier();
  if (c.rank() == 0) slow = c.start(Call::barrier());
  slow.wait();
  Work().wait();
});

const RegisterRankFn messages("messages", [](Communicator& c) {
  const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
  // Everybody sends first; the large ones are longer than any buffer.
  const std::vector<int64_t> counts{1, 0, 1000, 400'000};
  for (size_t tag = 0; tag < counts.size(); ++tag) {
    const auto data = vector_of<float>(c.rank(), counts[tag], tag);
    c.send(data.data(), counts[tag], f32, next, static_cast<int>(tag));
  }
  for (const size_t tag : {2u, 0u, 3u, 1u}) {
    std::vector<float> got(static_cast<size_t>(counts[tag]));
    c.recv(got.data(), counts[tag], f32, before, static_cast<int>(tag));
    expect_same(got, vector_of<float>(before, counts[tag], tag), str("tag ", tag));
  }
  // Those of one tag come in order, between other calls.
  for (int i = 0; i < 10; ++i) {
    c.send(&i, 1, i32, next, 5);
    if (i % 3 == 0) c.barrier();
  }
  for (int i = 0; i < 10; ++i) {
    int got = -1;
    c.recv(&got, 1, i32, before, 5);
    EXPECT_EQ(got, i);
  }
});

const RegisterRankFn mistakes("mistakes", [](Communicator& c) {
  float x = 0;
  const auto bad = Error::Kind::kInvalidArgument;
  expect_error(bad, {"negative"}, [&] { c.all_reduce(&x, -1, f32); });
  expect_error(bad, {"bool"}, [&] { c.all_reduce(&x, 1, boolean); });
  expect_error(bad, {"rank 9"}, [&] { c.broadcast(&x, 1, f32, 9); });
  expect_error(bad, {"itself"}, [&] { c.send(&x, 1, f32, c.rank()); });
  expect_error(bad, {"null"}, [&] { c.all_reduce(nullptr, 1, f32); });
  expect_error(bad, {"tag"}, [&] { c.send(&x, 1, f32, (c.rank() + 1) % c.size(), -1); });
  c.barrier();
});

const RegisterRankFn different_calls("different_calls", [](Communicator& c) {
  std::vector<float> data(10);
  expect_error(Error::Kind::kInvalidArgument,
               {"same calls", "all_reduce of 10 f32", "all_reduce of 9"},
               [&] { c.all_reduce(data.data(), c.rank() == 2 ? 9 : 10, f32); });
});

// Ranks that only exchange messages see that the sizes differ.
const RegisterRankFn different_counts("different_counts", [](Communicator& c) {
  std::vector<float> data(10);
  if (c.rank() == 2)
    expect_error(Error::Kind::kInvalidArgument,
                 {"same calls: rank ", "sent 40 bytes where 36 are expected"},
                 [&] { c.all_reduce(data.data(), 9, f32); });
  else
    EXPECT_THROW(c.all_reduce(data.data(), 10, f32), Error);
});

// Collectives other than all_reduce in several chunks, some of them not full.
const RegisterRankFn several_chunks("several_chunks", [](Communicator& c) {
  check_moves<float>(c, 301'003);
  check_moves<uint8_t>(c, 1'500'007);
  check_reductions<float>(c, 1'500'007, ReduceOp::kAverage);
  check_reductions<BFloat16>(c, 1'500'007, ReduceOp::kSum);
});

// Collectives other than all_reduce on memory that the ranks of a host share.
const RegisterRankFn shared_memory("shared_memory", [](Communicator& c) {
  constexpr int64_t count = 100'003;
  const auto n = static_cast<int64_t>(c.size()), own = static_cast<int64_t>(c.rank());
  const auto bytes = static_cast<size_t>(n * count) * sizeof(float);
  const std::shared_ptr<void> in_memory = c.allocate(bytes), out_memory = c.allocate(bytes);
  auto* const in = static_cast<float*>(in_memory.get());
  auto* const out = static_cast<float*>(out_memory.get());
  const auto fill = [&](uint64_t salt) {
    const auto v = vector_of<float>(c.rank(), n * count, salt);
    std::copy(v.begin(), v.end(), in);
    std::fill(out, out + n * count, 0.0f);
  };
  const auto got = [&](int64_t elements) { return std::vector<float>(out, out + elements); };
  const auto part = [&](const std::vector<float>& v, int64_t i) {
    return std::vector<float>(v.begin() + i * count, v.begin() + (i + 1) * count);
  };
  const std::vector<float> sum = reference<float>(all_ranks(c), n * count, ReduceOp::kSum, 11);
  fill(11);
  c.reduce_scatter(in, out, count, f32);
  expect_same(got(count), part(sum, own), "reduce_scatter");
  fill(11);
  const int root = c.size() - 1;
  c.reduce(in, c.rank() == root ? out : nullptr, count, f32, ReduceOp::kSum, root);
  if (c.rank() == root) expect_same(got(count), part(sum, 0), "reduce");
  std::vector<float> all, exchanged;
  for (int r = 0; r < c.size(); ++r) {
    const auto theirs = vector_of<float>(r, n * count, 12);
    all.insert(all.end(), theirs.begin(), theirs.begin() + count);
    const auto mine = part(theirs, own);
    exchanged.insert(exchanged.end(), mine.begin(), mine.end());
  }
  fill(12);
  c.all_gather(in, out, count, f32);
  expect_same(got(n * count), all, "all_gather");
  c.all_to_all(in, out, count, f32);
  expect_same(got(n * count), exchanged, "all_to_all");
  for (int r = 0; r < c.size(); ++r) {
    const auto v = vector_of<float>(c.rank(), n * count, 13);
    std::copy(v.begin(), v.end(), out);
    c.broadcast(out, n * count, f32, r);
    expect_same(got(n * count), vector_of<float>(r, n * count, 13), str("broadcast from ", r));
  }
});

// A sender is at most 256 MB ahead of its receiver; all messages arrive.
const RegisterRankFn many_messages("many_messages", [](Communicator& c) {
  constexpr int kMessages = 40;
  std::vector<char> data(10 << 20);
  const auto count = static_cast<int64_t>(data.size());
  if (c.rank() == 0) {
    const auto begin = Clock::now();
    for (int i = 0; i < kMessages; ++i) {
      data[data.size() / 2] = static_cast<char>(i);
      c.send(data.data(), count, u8, 1);
    }
    EXPECT_GT(seconds_since(begin), 0.4);  // it had to wait for the receiver
  } else {
    std::this_thread::sleep_for(Milliseconds(500));
    for (int i = 0; i < kMessages; ++i) {
      c.recv(data.data(), count, u8, 0);
      EXPECT_EQ(data[data.size() / 2], static_cast<char>(i));
    }
  }
  c.barrier();
});

const RegisterRankFn traffic("traffic", [](Communicator& c) {
  constexpr int64_t count = 1 << 20;
  std::vector<float> data(count);
  CallRecord record;
  c.run(Call::all_reduce(data.data(), count, f32, ReduceOp::kSum).recorded(&record));
  const Traffic& traffic = record.traffic;
  // Four hosts of one rank send and receive 2 * 3/4 of the vector; of two hosts with two ranks,
  // each rank has half of the host's 2 * 1/2.
  const int64_t bytes = count * 4, want = c.backend() == "tcp" ? bytes / 2 * 3 : bytes / 2;
  EXPECT_EQ(traffic.bytes_sent, want);
  EXPECT_EQ(traffic.bytes_received, want);
  EXPECT_GT(traffic.seconds, 0);
  EXPECT_GE(static_cast<double>(record.end_ns - record.begin_ns) * 1e-9, traffic.seconds);
  EXPECT_GE(c.traffic().bytes_sent, want);
});

// A call whose length an earlier call finds out: the largest number of all ranks.
const RegisterRankFn repeated("repeated", [](Communicator& c) {
  const auto n = static_cast<size_t>(c.size());
  int64_t times = 100 + c.rank();
  std::vector<int32_t> mine(size_t{200}, c.rank()), all(n * 200, -1);
  CallRecord record;
  const int64_t first = c.post(Call::all_reduce(&times, 1, i64, ReduceOp::kMax).recorded(&record));
  const int64_t second = c.post(Call::all_gather(mine.data(), all.data(), 1, i32)
                                    .repeated([](const int64_t* number) { return *number; }, &times)
                                    .recorded(&record));
  c.await(second);
  const int64_t end = record.end_ns;
  c.await(first);
  const size_t count = 99 + n;
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], i < n * count ? static_cast<int32_t>(i / count) : -1) << i;
  EXPECT_GT(record.begin_ns, 0);
  EXPECT_GT(end, record.begin_ns);
});

// --- on every backend ---------------------------------------------------------------------------

class EveryBackend : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "mpi" && !have_mpi()) GTEST_SKIP() << "mpirun is not installed";
  }
  void TearDown() override { EXPECT_FALSE(HasFailure()) << "backend " << GetParam(); }
};

TEST_P(EveryBackend, Reductions) { EXPECT_TRUE(run_ranks(GetParam(), "reductions")); }
TEST_P(EveryBackend, Moves) { EXPECT_TRUE(run_ranks(GetParam(), "moves")); }
TEST_P(EveryBackend, RandomTiming) { EXPECT_TRUE(run_ranks(GetParam(), "random_timing")); }
TEST_P(EveryBackend, Allocated) { EXPECT_TRUE(run_ranks(GetParam(), "allocated")); }
TEST_P(EveryBackend, Groups) { EXPECT_TRUE(run_ranks(GetParam(), "groups")); }
TEST_P(EveryBackend, Handles) { EXPECT_TRUE(run_ranks(GetParam(), "handles")); }
TEST_P(EveryBackend, Messages) { EXPECT_TRUE(run_ranks(GetParam(), "messages")); }
TEST_P(EveryBackend, SharedMemory) { EXPECT_TRUE(run_ranks(GetParam(), "shared_memory")); }
TEST_P(EveryBackend, Repeated) { EXPECT_TRUE(run_ranks(GetParam(), "repeated")); }
TEST_P(EveryBackend, Mistakes) { EXPECT_TRUE(run_ranks(GetParam(), "mistakes")); }

INSTANTIATE_TEST_SUITE_P(All, EveryBackend,
                         ::testing::Values("local", "shm", "tcp", "hierarchical", "hierarchical*",
                                           "mpi"),
                         [](const auto& info) {
                           return info.param.back() == '*' ? "interleaved" : info.param;
                         });

// MPI's order of reduction is not ours: what is checked here has one result in any order. What MPI
// cannot do goes our way.
const RegisterRankFn collectives_of_mpi("collectives_of_mpi", [](Communicator& c) {
  for (const ReduceOp op : kOps)
    for (const int64_t count : kSizes) {
      check_reductions<int32_t>(c, count, op);
      check_reductions<int64_t>(c, count, op);
    }
  std::vector<float> data(size_t{100'000}, static_cast<float>(c.rank() + 1));
  c.all_reduce(data.data(), std::ssize(data), f32, ReduceOp::kAverage);
  const auto n = static_cast<float>(c.size());
  for (const float x : data) ASSERT_EQ(x, (n + 1) / 2);
  c.barrier();
  check_moves<float>(c, 70'001);
  EXPECT_EQ(c.traffic().bytes_sent, 0) << "by our own messages";
  const auto odd_or_even = c.split(c.rank() % 2);
  check_reductions<int32_t>(*odd_or_even, 1000, ReduceOp::kSum);
  EXPECT_EQ(odd_or_even->traffic().bytes_sent, 0);
  check_reductions<Half>(c, 1000, ReduceOp::kSum);
  EXPECT_GT(c.traffic().bytes_sent, 0);
});
TEST(MpiCollectives, AreUsedOnRequest) {
  if (!have_mpi()) GTEST_SKIP() << "mpirun is not installed";
  setenv("FLEETX_MPI_COLLECTIVES", "1", 1);
  for (const char* name : {"collectives_of_mpi", "messages", "handles"})
    EXPECT_TRUE(run_ranks("mpi", name)) << name;
  unsetenv("FLEETX_MPI_COLLECTIVES");
}

// The ranks of hosts form all kinds of nodes of the tree: the bits are those of the definition, and
// with that of threads of one process.
class HostShapes : public ::testing::TestWithParam<std::vector<int>> {};

TEST_P(HostShapes, SameBits) {
  for (const char* name : {"reductions", "moves", "several_chunks", "shared_memory"})
    EXPECT_TRUE(run_ranks("hierarchical", name, {.hosts = GetParam()})) << name;
}
TEST_P(HostShapes, SameBitsInThreads) {
  EXPECT_TRUE(run_ranks("local", "reductions", {.hosts = GetParam()}));
}

INSTANTIATE_TEST_SUITE_P(All, HostShapes,
                         ::testing::Values(std::vector{0, 1}, std::vector{0, 1, 2},
                                           std::vector{0, 0, 0, 1}, std::vector{0, 1, 1, 1, 0},
                                           std::vector{0, 0, 0, 0, 1, 1},
                                           std::vector{0, 0, 1, 1, 2, 2},
                                           std::vector{0, 1, 2, 1, 0, 2, 1}),
                         [](const auto& info) {
                           std::string name = "hosts";
                           for (const int h : info.param) name += str("_", h);
                           return name;
                         });

TEST(Communicator, MismatchedCallsAreAnError) {
  for (const char* backend : {"local", "shm"}) EXPECT_TRUE(run_ranks(backend, "different_calls"));
  EXPECT_TRUE(run_ranks("tcp", "different_counts"));
}
TEST(Communicator, BufferedMessagesAreBounded) {
  EXPECT_TRUE(run_ranks("tcp", "many_messages", {.hosts = {0, 1}}));
}
TEST(Communicator, TrafficIsCounted) {
  EXPECT_TRUE(run_ranks("tcp", "traffic"));
  EXPECT_TRUE(run_ranks("hierarchical", "traffic"));
}

TEST(Communicator, SingleRankNeedsNoStore) {
  const auto c = make_communicator({.rank = 0, .size = 1});
  float x = 3;
  c->all_reduce(&x, 1, f32, ReduceOp::kAverage);
  EXPECT_EQ(x, 3);
  c->barrier();
}

TEST(Communicator, BadOptions) {
  const auto bad = Error::Kind::kInvalidArgument;
  expect_error(bad, {"rank 2 of 2"}, [] { make_communicator({.rank = 2, .size = 2}); });
  expect_error(bad, {"store"}, [] { make_communicator({.rank = 0, .size = 2}); });
  expect_error(bad, {"unknown backend 'nccl'"},
               [] { make_communicator({.rank = 0, .size = 2, .backend = "nccl"}); });
}

}  // namespace
}  // namespace fleetx::testing
