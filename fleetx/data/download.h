// Downloads public data sets. The layout on the server:
//
//   set.yaml        bos_path: http://server/folder     (or a folder beside the yaml)
//                   or, for Store::kHadoop, hadoop_home, data_path, ... (data/hadoop.h)
//   filelist.txt    lines `part-0.tar md5`: the archives with the pictures
//   meta.txt        lines `train.txt`: what every machine needs; without it train.txt and val.txt
//
// The workers of a machine may call it at the same time: one downloads, the others wait. Files with
// the right checksum are not fetched again; interrupted downloads are resumed (from HDFS: begin
// anew).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleetx/data/http.h"

namespace fleetx::data {

// Of a yaml that describes both, its half.
enum class Store { kServer, kHadoop };

struct DownloadOptions {
  std::string yaml = {};  // address or file
  Store store = Store::kServer;
  std::string folder = {};
  // Of the lines of filelist.txt only numbers shard_id, shard_id + shard_num, ...; -1: all.
  int shard_num = -1;
  int shard_id = -1;
  int threads = 10;  // to fetch and extract
  HttpOptions http = {};
  // Called from time to time on the calling thread; may throw to cancel.
  std::function<void()> poll = {};
};

struct Downloaded {
  int fetched = 0;  // files and archives
  int kept = 0;     // that existed already
  uint64_t unpacked = 0;
};

Downloaded download(const DownloadOptions& options);
// Whether the last download into this folder was a shard of the set, although its lists name all.
bool has_part_only(const std::string& folder);

// One line of a list.
struct Listed {
  std::string name;
  std::string sum;  // empty: the list gives none
};
// `source` names the list in errors.
std::vector<Listed> parse_file_list(const std::string& text, const std::string& source);
// The address of the files according to the `bos_path` of a yaml that came from `source`.
std::string parse_location(const std::string& yaml, const std::string& source);

}  // namespace fleetx::data
