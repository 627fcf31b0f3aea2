#include "fleetx/ps/server_state.h"

#include <gtest/gtest.h>

#include "fleetx/base/file.h"
#include "tests/ps/job.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

class Nobody final : public Peer {
 public:
  void send(wire::Header header, Payload) override { EXPECT_NE(header.kind, wire::Kind::kRefused); }
};

JobSpec job() {
  JobSpec job = small_job(3, 2, Mode::kSync, counting());
  job.sparse[0].min_count = 3;
  return job;
}

void push(TableService& tables, int worker) {
  for (const wire::Kind kind : {wire::Kind::kPushDense, wire::Kind::kPushSparse}) {
    const uint64_t ids = kind == wire::Kind::kPushSparse ? 1 : 0, id = 4;
    const wire::Header header{.kind = kind, .lr = 0.1f, .count = ids};
    Payload payload(tables.payload_bytes(header));
    std::fill_n(payload.floats(), payload.size() / sizeof(float), 1.0f);
    if (ids == 1) std::memcpy(payload.data(), &id, sizeof id);
    tables.push({std::make_shared<Nobody>(), header, worker}, std::move(payload));
  }
}

// A step that has been applied, and one for which worker 2 is missing.
class Server0 {
 public:
  Server0() : tables(spec, 0, 1, pool) {
    Payload values(static_cast<size_t>(tables.dense()[0]->values.size()) * sizeof(float));
    std::fill_n(values.floats(), values.size() / sizeof(float), 0.5f);
    tables.set_dense({std::make_shared<Nobody>(), {.kind = wire::Kind::kSetDense}, 0}, values);
    for (int step = 0; step < 2; ++step)
      for (int worker = 0; worker < 3 - step; ++worker) push(tables, worker);
    tables.leave(1);
    tables.meet(0, 7);
  }
  const JobSpec spec = job();
  PayloadPool pool;
  TableService tables;
};

std::string text_of(TableService& tables, const ServerState& state) {
  const testing::TempDir folder;
  write_state(folder / "state", tables, state);
  return read_file(folder / "state");
}

const ServerState kState{
    .workers = {{11, 4}, {12, 4}, {13, 2}}, .gone = {false, true, false}, .last_shrink = {99, 3}};

TEST(ServerState, WhatIsLoadedIsWhatWasWritten) {
  Server0 server;
  const std::string written = text_of(server.tables, kState);
  for (const bool on_disk : {false, true}) {
    const testing::TempDir folder;
    StateFile file(on_disk ? folder / "given" : "");
    file.append(std::string_view(written).substr(0, 100));
    file.append(std::string_view(written).substr(100));
    PayloadPool pool;
    TableService copy(server.spec, 0, 1, pool);
    const ServerState state = load_state(copy, file.path(), 0);
    EXPECT_EQ(text_of(copy, state), written);
    int waiting = 0;
    copy.for_each_pending([&](auto, auto, const auto&, auto) { ++waiting; });
    EXPECT_EQ(waiting, 4);  // of workers 0 and 1, both tables
    EXPECT_TRUE(copy.members()[1].left);
    EXPECT_EQ(copy.members()[0].meeting, 7u);
    EXPECT_EQ(state.last_shrink, kState.last_shrink);
  }
}

// The last push of the step comes: both apply the same.
TEST(ServerState, TheCopyGoesOnAsTheServerDoes) {
  Server0 server;
  StateFile file("");
  file.append(text_of(server.tables, kState));
  PayloadPool pool;
  TableService copy(server.spec, 0, 1, pool);
  load_state(copy, file.path(), 0);
  push(server.tables, 2);
  EXPECT_NE(text_of(copy, kState), text_of(server.tables, kState));
  push(copy, 2);
  EXPECT_EQ(text_of(copy, kState), text_of(server.tables, kState));
}

TEST(ServerState, DamageAndOtherJobsAreRefused) {
  Server0 server;
  const std::string written = text_of(server.tables, kState);
  const auto load = [&](const JobSpec& spec, const std::string& bytes) {
    StateFile file("");
    file.append(bytes);
    PayloadPool pool;
    TableService tables(spec, 0, 1, pool);
    load_state(tables, file.path(), 0);
  };
  load(server.spec, written);
  testing::expect_error(Error::Kind::kCorrupt, {"ends before"},
                        [&] { load(server.spec, written.substr(0, written.size() - 1)); });
  std::string changed = written;
  changed[60] = static_cast<char>(changed[60] ^ 1);
  testing::expect_error(Error::Kind::kCorrupt, {"damaged"}, [&] { load(server.spec, changed); });
  JobSpec more = server.spec;
  more.workers = 4;
  testing::expect_error(Error::Kind::kCorrupt, {"another job"}, [&] { load(more, written); });
}

}  // namespace
}  // namespace fleetx::ps
