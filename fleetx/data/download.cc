#include "fleetx/data/download.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/data/archive.h"
#include "fleetx/data/checksum.h"
#include "fleetx/data/folder_lock.h"
#include "fleetx/data/hadoop.h"

namespace fleetx::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxYaml = uint64_t{1} << 20, kMaxList = uint64_t{256} << 20;
constexpr int kMaxThreads = 64;

std::string join(const std::string& base, const std::string& name) {
  return base.ends_with('/') ? base + name : base + "/" + name;
}

std::string parent_of(const std::string& location) {
  const size_t slash = location.rfind('/');
  return slash == std::string::npos ? "." : location.substr(0, slash);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  check_arg(!error, "cannot make the folder ", path.string(), ": ", error.message());
}

// Where the files of a set are.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::string where(const std::string& name) const = 0;  // for errors
  virtual std::optional<std::string> find(const std::string& name) const = 0;
  virtual void fetch(const std::string& name, const std::string& path) const = 0;
  // Whether fetch() appends to what `path` already has.
  virtual bool resumes() const { return false; }
};

class Server final : public Source {
 public:
  Server(std::string base, HttpOptions http) : base_(std::move(base)), http_(std::move(http)) {}

  std::string where(const std::string& name) const override { return join(base_, name); }
  std::optional<std::string> find(const std::string& name) const override {
    return http_find(where(name), kMaxList, http_);
  }
  void fetch(const std::string& name, const std::string& path) const override {
    http_download(where(name), path, http_);
  }
  bool resumes() const override { return true; }

 private:
  const std::string base_;
  const HttpOptions http_;
};

class LocalFolder final : public Source {
 public:
  explicit LocalFolder(std::string base) : base_(std::move(base)) {}

  std::string where(const std::string& name) const override { return join(base_, name); }
  std::optional<std::string> find(const std::string& name) const override {
    if (!fs::exists(where(name))) return std::nullopt;
    return read_file(where(name), kMaxList);
  }
  void fetch(const std::string& name, const std::string& path) const override {
    std::error_code error;
    fs::copy_file(where(name), path, fs::copy_options::overwrite_existing, error);
    check_arg(!error, "cannot copy ", where(name), " to ", path, ": ", error.message());
  }

 private:
  const std::string base_;
};

class HadoopFolder final : public Source {
 public:
  explicit HadoopFolder(HadoopOptions options) : files_(std::move(options)) {}

  std::string where(const std::string& name) const override { return files_.where(name); }
  std::optional<std::string> find(const std::string& name) const override {
    return files_.find(name, kMaxList);
  }
  void fetch(const std::string& name, const std::string& path) const override {
    files_.fetch(name, path);
  }

 private:
  const Hadoop files_;
};

// Marks a folder whose lists name pictures that only other machines have.
std::string part_note(const std::string& folder) {
  return (fs::path(folder) / ".fleetx" / "part").string();
}

class Job {
 public:
  explicit Job(const DownloadOptions& options)
      : options_(options),
        state_(fs::path(options.folder) / ".fleetx"),
        lock_((make_folder(state_), (state_ / "lock").string()), options.poll) {
    options_.http.stop = &stop_;
    options_.http.poll = options_.poll;
  }

  Downloaded run() {
    const std::string yaml = mirrored(options_.yaml);
    const std::string text =
        is_url(yaml) ? http_get(yaml, kMaxYaml, options_.http) : read_file(yaml, kMaxYaml);
    const auto found = open_source(text, yaml, options_.http);
    const Source& source = *found;
    const auto list = source.find("filelist.txt");
    check_arg(list.has_value(), source.where("filelist.txt"), ": there is no such file");
    std::vector<Listed> files = parse_file_list(*list, source.where("filelist.txt"));
    if (options_.shard_num > 0) files = share_of(files);
    // Lists last: a list exists only after its pictures.
    HttpOptions quiet = options_.http;
    quiet.poll = {};  // only for the calling thread
    const auto shared = open_source(text, yaml, quiet);
    in_threads(files, [&](const Listed& file) { get(*shared, file); });
    if (options_.shard_num > 0)
      write_file(part_note(options_.folder), str(options_.shard_id, " ", options_.shard_num, "\n"));
    else
      fs::remove(part_note(options_.folder));
    get_lists(source);
    return result_;
  }

 private:
  // `yaml` is where the text comes from.
  std::unique_ptr<Source> open_source(const std::string& text, const std::string& yaml,
                                      const HttpOptions& http) const {
    if (options_.store == Store::kHadoop) {
      HadoopOptions hadoop = parse_hadoop(text, yaml);
      hadoop.stop = http.stop;
      hadoop.poll = http.poll;
      return std::make_unique<HadoopFolder>(std::move(hadoop));
    }
    const std::string base = mirrored(parse_location(text, yaml));
    if (is_url(base)) return std::make_unique<Server>(base, http);
    return std::make_unique<LocalFolder>(base);
  }

  std::vector<Listed> share_of(const std::vector<Listed>& files) const {
    std::vector<Listed> share;
    for (size_t i = static_cast<size_t>(options_.shard_id); i < files.size();
         i += static_cast<size_t>(options_.shard_num))
      share.push_back(files[i]);
    return share;
  }

  void in_threads(const std::vector<Listed>& files,
                  const std::function<void(const Listed&)>& work) {
    std::atomic<size_t> next = 0, running = 0;
    std::mutex mutex;
    std::exception_ptr first;
    const auto note = [&](std::exception_ptr error) {
      const std::scoped_lock lock(mutex);
      if (!first) first = std::move(error);
      stop_ = true;
    };
    std::vector<std::thread> threads;
    const auto count = std::min(static_cast<size_t>(options_.threads), files.size());
    running = count;
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back([&] {
        try {
          for (size_t at; !stop_ && (at = next++) < files.size();) work(files[at]);
        } catch (...) {
          note(std::current_exception());
        }
        --running;
      });
    try {
      while (running > 0) {
        if (options_.poll && !stop_) options_.poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    } catch (...) {
      note(std::current_exception());
    }
    for (std::thread& t : threads) t.join();
    if (first) std::rethrow_exception(first);
  }

  void get_lists(const Source& source) {
    if (const auto meta = source.find("meta.txt")) {
      for (const Listed& file : parse_file_list(*meta, source.where("meta.txt"))) get(source, file);
      return;
    }
    for (const char* name : {"train.txt", "val.txt"})
      if (const auto text = source.find(name)) put(name, *text);
  }

  // Writes a short file atomically.
  void put(const std::string& name, const std::string& text) {
    const std::string path = (fs::path(options_.folder) / name).string();
    write_file(path + ".part", text);
    rename(path + ".part", path);
    count(true);
  }

  void get(const Source& source, const Listed& file) {
    const fs::path path = fs::path(options_.folder) / file.name;
    const fs::path done = state_ / (file.name + ".done");
    const bool archive = is_archive(file.name);
    if (archive && fs::exists(done) && read_file(done.string()) == file.sum) return count(false);
    const bool there = !file.sum.empty() && fs::exists(path) && matches(path.string(), file.sum);
    if (!there) {
      make_folder(path.parent_path());
      fetch_verified(source, file, path.string());
    } else if (!archive) {
      return count(false);
    }
    if (archive) {
      const uint64_t files = unpack(path.string(), options_.folder);
      make_folder(done.parent_path());
      write_file(done.string(), file.sum);
      fs::remove(path);  // it has been extracted, as the marker above records
      const std::scoped_lock lock(mutex_);
      result_.unpacked += files;
    }
    count(true);
  }

  void fetch_verified(const Source& source, const Listed& file, const std::string& path) {
    const std::string part = path + ".part";
    if (file.sum.empty() || !source.resumes()) {
      std::error_code ignored;
      fs::remove(part, ignored);  // without a checksum it cannot be resumed safely
    }
    const bool resumed = fs::exists(part);
    source.fetch(file.name, part);
    if (!file.sum.empty() && resumed && !matches(part, file.sum)) {
      fs::remove(part);  // its content is that of another file
      source.fetch(file.name, part);
    }
    if (!file.sum.empty() && !matches(part, file.sum)) {
      const std::string got = checksum(part, file.sum);
      fs::remove(part);
      fail(Error::Kind::kCorrupt,
           str(source.where(file.name), ": its sum is ", got, ", the list says ", file.sum));
    }
    rename(part, path);
  }

  static void rename(const std::string& from, const std::string& to) {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) fail(Error::Kind::kUnsupported, str("cannot write ", to, ": ", error.message()));
  }

  void count(bool fetched) {
    const std::scoped_lock lock(mutex_);
    ++(fetched ? result_.fetched : result_.kept);
  }

  DownloadOptions options_;
  const fs::path state_;
  const FolderLock lock_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  Downloaded result_;
};

}  // namespace

std::vector<Listed> parse_file_list(const std::string& text, const std::string& source) {
  std::vector<Listed> files;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    Listed file;
    std::string more;
    if (!(words >> file.name)) continue;
    words >> file.sum >> more;
    check_file(more.empty() && (file.sum.empty() || is_checksum(file.sum)), source, ":", number,
               ": expected `name md5`, got `", line.substr(0, 200), "`");
    check_file(is_inside(file.name), source, ":", number, ": '", file.name,
               "' would be written outside the folder");
    files.push_back(std::move(file));
  }
  return files;
}

std::string parse_location(const std::string& yaml, const std::string& source) {
  try {
    const YAML::Node root = YAML::Load(yaml);
    check_file(root.IsMap(), source, ": expected `bos_path: address`");
    for (const char* key : {"data_path", "hadoop_home", "fs.default.name"})
      check_arg(root["bos_path"] || !root[key], source, ": its `", key,
                "` describes files in HDFS, and there is no `bos_path`; call download_from_hdfs");
    check_file(root["bos_path"] && root["bos_path"].IsScalar(), source,
               ": has no `bos_path`, the address of the folder with filelist.txt");
    const auto path = root["bos_path"].as<std::string>();
    if (is_url(path) || path.starts_with('/')) return path;
    return join(parent_of(source), path);
  } catch (const YAML::Exception& e) {
    fail(Error::Kind::kCorrupt, str(source, ": ", e.what()));
  }
}

bool has_part_only(const std::string& folder) { return fs::exists(part_note(folder)); }

Downloaded download(const DownloadOptions& options) {
  check_arg(!options.yaml.empty(), "download: no yaml (fs_yaml) that says where the data are");
  check_arg(!options.folder.empty(), "download: no folder (local_path) to put the data into");
  check_arg(options.threads >= 1 && options.threads <= kMaxThreads, "download: ", options.threads,
            " threads (process_num); must be between 1 and ", kMaxThreads);
  const bool whole = options.shard_num <= 0;
  check_arg(
      whole ? options.shard_id <= 0 : options.shard_id >= 0 && options.shard_id < options.shard_num,
      "download: shard_id ", options.shard_id, " of shard_num ", options.shard_num,
      " is not possible");
  return Job(options).run();
}

}  // namespace fleetx::data
