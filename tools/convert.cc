// fleetx convert: text files of samples into their binary form.
#include <filesystem>
#include <iostream>

#include "fleetx/data/batches.h"
#include "fleetx/data/formats.h"
#include "tools/commands.h"

namespace fleetx::tools {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::vector<std::string> files;
  std::string slots, out, format = "multi_slot", command = "cat";
  int64_t ids = 1'000'001;
  bool skip_bad_lines = false;
};

// Has another name until it is whole; what is left of a failed run is removed.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), partial_(path + ".partial") {}
  ~NewFile() {
    std::error_code ignored;
    fs::remove(partial_, ignored);
  }
  const std::string& partial() const { return partial_; }
  void keep() const { fs::rename(partial_, path_); }

 private:
  std::string path_, partial_;
};

uint64_t bytes_of(const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  for (const std::string& file : files) bytes += fs::file_size(file);
  return bytes;
}

void convert(const ConvertOptions& o) {
  const std::vector<data::Slot> slots = data::parse_slots(o.slots);
  const auto batches = data::read_files(
      {.files = o.files,
       .format = data::make_format(o.format, slots, o.ids),
       .command = o.command,
       .batch = 4096,
       .bad_lines = o.skip_bad_lines ? data::BadLines::kSkip : data::BadLines::kFail});
  const NewFile file(o.out);
  data::BinaryWriter writer(file.partial(), slots);
  while (const auto samples = batches->next()) writer.add(*samples);
  const int64_t samples = writer.finish();
  file.keep();
  std::cout << o.out << ": " << samples << " samples, " << slots.size() << " slots, "
            << fs::file_size(o.out) << " bytes from " << bytes_of(o.files);
  if (o.skip_bad_lines) std::cout << ", " << batches->skipped() << " damaged lines left out";
  std::cout << "\n";
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "convert", "Write sample files in the binary form, which is faster to read");
  auto o = std::make_shared<ConvertOptions>();
  command->add_option("IN", o->files, "files of samples: text, *.gz, *.zst, or binary ones")
      ->required();
  command->add_option("-o,--output", o->out, "file to write")->required();
  command
      ->add_option("--slots", o->slots,
                   "name:dtype:width of each slot, by commas; without width: any number of "
                   "values; dtype: int64 or float32")
      ->required();
  command->add_option("--format", o->format, "of the lines: multi_slot, criteo, libsvm")
      ->capture_default_str();
  command->add_option("--ids", o->ids, "criteo: words become numbers below it")
      ->capture_default_str();
  command->add_option("--pipe-command", o->command, "shell command that each file goes through")
      ->capture_default_str();
  command->add_flag("--skip-bad-lines", o->skip_bad_lines,
                    "leave damaged lines out instead of stopping at the first");
  command->footer(
      "A data set (QueueDataset, InMemoryDataset) takes the file in place of the text. Its slots\n"
      "are found by name, so that use_var may have fewer, in another order.\n\n"
      "Examples:\n"
      "  fleetx convert part-0 part-1 --slots dense:float32:13,ids:int64,label:int64:1 -o "
      "train.bin\n"
      "  fleetx convert a.svm --format libsvm --slots y:float32:1,index:int64,value:float32 -o "
      "a.bin\n");
  command->callback([o] { convert(*o); });
}

}  // namespace fleetx::tools
