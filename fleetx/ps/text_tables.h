// The rows of sparse tables as PaddlePaddle 2.0 writes them: FOLDER/t_txt/t.block0.txt of server 0
// has a line for each row,
//   id TAB values, by commas          (value, then states)
//   id TAB count TAB unseen days TAB admitted TAB values
// and t.block0.meta says what the values are:
//   param=t
//   shard_id=0
//   row_names=Param,Moment1,Moment2
//   row_dims=8,8,8
//   count=2                           (rows)
// Parameters that are no tables are not in this layout.
#pragma once

#include <string>
#include <string_view>

#include "fleetx/ps/table_service.h"

namespace fleetx::ps {

void save_text(TableService& tables, const std::string& folder, int server);

bool has_text(const std::string& folder);
// What this server holds of tables that any number of servers has written. Columns as wide as the
// table are its value and the optimizer's states, in their order; with the value alone states begin
// anew, and so do numbers that the original keeps with each row and this library does not (powers
// of beta). Damage and another model are errors that name file and line.
void load_text(TableService& tables, const std::string& folder, int server);

// PATH.txt and PATH.meta, which are not read. Untrusted.
void parse_text(TableService& tables, size_t table, int server, std::string_view meta,
                std::string_view rows, const std::string& path);

}  // namespace fleetx::ps
