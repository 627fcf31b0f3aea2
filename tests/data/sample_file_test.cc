#include "fleetx/data/sample_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "fleetx/data/multi_slot.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_source.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {
namespace {

using data::BadLines;
using data::SampleFile;
using data::SampleFileOptions;
using data::Samples;

const std::vector<data::Slot> kValues{{"x", DType::kI64, -1}};

SampleFileOptions options(BadLines bad_lines = BadLines::kFail, const std::string& command = "") {
  return {.format = data::multi_slot_format(kValues), .command = command, .bad_lines = bad_lines};
}

std::vector<int64_t> all_of(SampleFile& file, int64_t at_once = 3) {
  Samples samples(kValues);
  while (file.read(at_once, samples) > 0) {
  }
  const auto* x = samples.columns[0].values.data<int64_t>();
  EXPECT_EQ(samples.columns[0].ends.size(), static_cast<size_t>(samples.count));
  return {x, x + samples.columns[0].values.size()};
}
std::vector<int64_t> all_in(const std::string& path, const std::string& command = "") {
  SampleFile file(path, options(BadLines::kFail, command));
  return all_of(file);
}
std::vector<int64_t> read_text(const std::string& text, size_t piece = 100) {
  SampleFile file(std::make_unique<MemorySource>(text, piece), "text", options());
  return all_of(file);
}

// The text in one file, packed as the ending of the path says.
void write_packed(const std::string& path, const std::string& text) {
  archive* a = archive_write_new();
  archive_write_set_format_raw(a);
  if (path.ends_with(".gz")) archive_write_add_filter_gzip(a);
  if (path.ends_with(".zst")) archive_write_add_filter_zstd(a);
  FLEETX_CHECK(archive_write_open_filename(a, path.c_str()) == ARCHIVE_OK, path);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(a, entry);
  archive_write_data(a, text.data(), text.size());
  archive_entry_free(entry);
  FLEETX_CHECK(archive_write_free(a) == ARCHIVE_OK, path);
}

using Ids = std::vector<int64_t>;

TEST(SampleFile, EndsOfLinesAndFiles) {
  EXPECT_EQ(read_text(""), Ids{});
  EXPECT_EQ(read_text("\n \t\n\r\n\n"), Ids{});
  EXPECT_EQ(read_text("   "), Ids{});
  EXPECT_EQ(read_text("1 5"), Ids{5});
  EXPECT_EQ(read_text("1 5\n"), Ids{5});
  EXPECT_EQ(read_text("1 5\r\n2 6 7\r\n\r\n1 8"), (Ids{5, 6, 7, 8}));
  EXPECT_EQ(read_text("1 5 "), Ids{5});
}

TEST(SampleFile, AnyPiecesGiveTheSame) {
  std::string text;
  Ids expected;
  for (int64_t i = 0; i < 300; ++i) {
    text += i % 7 == 0 ? "1 " + std::to_string(i * i * i) + "\n"
                       : "2 " + std::to_string(i) + " -" + std::to_string(i) + "\n";
    if (i % 7 == 0)
      expected.push_back(i * i * i);
    else
      expected.insert(expected.end(), {i, -i});
  }
  for (const size_t piece : {1u, 2u, 7u, 64u, 100000u}) EXPECT_EQ(read_text(text, piece), expected);
}

// Longer than what is read at once.
TEST(SampleFile, LongLines) {
  std::string text = "200000";
  for (int i = 0; i < 200000; ++i) text += " " + std::to_string(i % 1000);
  text = "1 4\n" + text + "\n1 5";
  const Ids ids = read_text(text, 1 << 20);
  ASSERT_EQ(ids.size(), 200002u);
  EXPECT_EQ(ids[0], 4);
  EXPECT_EQ(ids[123457], 456);
  EXPECT_EQ(ids.back(), 5);
}

TEST(SampleFile, ReadersShareAFile) {
  const TempDir folder;
  std::string text;
  Samples samples(kValues);
  for (int64_t i = 0; i < 10; ++i) {
    text += i == 1 ? "1 x\n" : "1 " + std::to_string(i) + "\n";
    *samples.columns[0].values.room<int64_t>(1) = i;
    samples.columns[0].values.added(1);
    samples.columns[0].ends.push_back(++samples.count);
  }
  data::BinaryWriter writer(folder / "b.bin", kValues);
  writer.add(samples);
  writer.finish();
  const auto read_share = [](const std::string& path, int64_t index) {
    SampleFileOptions some = options();
    some.share = {.index = index, .count = 3};
    SampleFile file(path, some);
    return all_of(file, 2);
  };
  const std::string path = folder.write("a.txt", text);
  for (const std::string& file : {path, folder / "b.bin"}) {
    EXPECT_EQ(read_share(file, 0), (Ids{0, 3, 6, 9})) << file;
    EXPECT_EQ(read_share(file, 2), (Ids{2, 5, 8})) << file;
  }
  EXPECT_EQ(read_share(folder / "b.bin", 1), (Ids{1, 4, 7}));
  // A damaged line is that of one reader only.
  expect_error(Error::Kind::kCorrupt, {"a.txt:2"}, [&] { read_share(path, 1); });
  expect_error(Error::Kind::kInvalidArgument, {"share 3 of 3"}, [&] { read_share(path, 3); });
}

TEST(SampleFile, DamagedLinesAreNamed) {
  const TempDir folder;
  const std::string path = folder.write("part-0", "1 5\n\n2 6\n1 7\n");
  expect_error(Error::Kind::kCorrupt,
               {"part-0:3: sample '2 6': slot 'x': the line ends where a whole number"},
               [&] { all_in(path); });
  expect_error(Error::Kind::kCorrupt, {"part-0 (through 'tail -n 2'):1: sample '2 6'"},
               [&] { all_in(path, "tail -n 2"); });
}

TEST(SampleFile, DamagedLinesCanBeLeftOut) {
  SampleFile file(std::make_unique<MemorySource>("x\n1 5\n3 6 7\n1 8 9\n2 10 11\n1 \n1 12\nlast"),
                  "text", options(BadLines::kSkip));
  EXPECT_EQ(all_of(file), (Ids{5, 10, 11, 12}));
  EXPECT_EQ(file.skipped(), 5);
  EXPECT_TRUE(contains(file.first_skipped(), "text:1: sample 'x': slot 'x'"));
}

TEST(SampleFile, PackedFiles) {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text += "1 " + std::to_string(i) + "\n";
  const std::string plain = folder.write("a", text);
  for (const char* name : {"a.gz", "a.zst"}) {
    write_packed(folder / name, text);
    EXPECT_EQ(all_in(folder / name), all_in(plain)) << name;
    write_packed(folder / "empty.gz", "");
    EXPECT_EQ(all_in(folder / "empty.gz"), Ids{});
    // Cut off in the middle.
    std::filesystem::resize_file(folder / name, std::filesystem::file_size(folder / name) / 2);
    expect_error(Error::Kind::kCorrupt, {name, ": damaged"}, [&] { all_in(folder / name); });
  }
  expect_error(Error::Kind::kCorrupt, {"not packed as its name says"},
               [&] { all_in(folder.write("b.gz", "1 5\n")); });
}

TEST(SampleFile, Commands) {
  const TempDir folder;
  const std::string path = folder.write("a", "1 5\n1 6\n1 7\n");
  EXPECT_EQ(all_in(path, "head -n 2"), (Ids{5, 6}));
  EXPECT_EQ(all_in(path, " cat "), (Ids{5, 6, 7}));
  EXPECT_EQ(all_in(path, "sed 's/ / 1/'"), (Ids{15, 16, 17}));
  expect_error(Error::Kind::kInvalidArgument, {"pipe_command 'exit 3' ended with 3 on", "/a"},
               [&] { all_in(path, "exit 3"); });
  expect_error(Error::Kind::kInvalidArgument, {"ended with signal 15"},
               [&] { all_in(path, "kill -15 $$"); });
  expect_error(Error::Kind::kInvalidArgument, {"nowhere", "cannot be read"},
               [&] { all_in(folder / "nowhere"); });
  expect_error(Error::Kind::kInvalidArgument, {"cannot be read"}, [&] { all_in(folder.path()); });
}

TEST(SampleFile, StopsWhileACommandSaysNothing) {
  const TempDir folder;
  std::atomic<bool> stop = false;
  SampleFileOptions o = options(BadLines::kFail, "echo 1 5; exec sleep 60");
  o.stop = &stop;
  const auto begin = std::chrono::steady_clock::now();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  {
    SampleFile file(folder.write("a", ""), o);
    Samples samples(kValues);
    file.read(10, samples);
    EXPECT_EQ(samples.count, 1);
  }
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace fleetx::testing
