#include "pipeline/parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "neyman/core/error.hpp"
#include "neyman/data/archive_file.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman::pipeline {

namespace {

constexpr const char* part_schema = "neyman.part";
constexpr int part_version = 1;

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string to_text(const Archive& archive, const std::string& key) {
  const auto& bytes = archive.get<std::vector<std::uint8_t>>(key);
  return {bytes.begin(), bytes.end()};
}

std::string loop_name(std::size_t loop) { return fmt::format("loop{}", loop); }

std::size_t size_of(const Archive& archive, const char* key) {
  return static_cast<std::size_t>(archive.integer(key));
}

}  // namespace

void PartTasks::begin(const std::string& step, const std::string& fingerprint) {
  step_ = &steps_.child(step);
  step_->set("fingerprint", fingerprint);
  loops_ = 0;
}

std::vector<std::string> PartTasks::run(std::size_t count, std::size_t at_once,
                                        const std::function<std::string(std::size_t)>& work) {
  std::vector<std::string> out(count);
  const std::size_t skipped = part_.number - 1;
  const std::size_t mine = count > skipped ? (count - skipped + part_.of - 1) / part_.of : 0;
  const auto one = [&](Block block) {
    const std::size_t task = skipped + block.index * part_.of;
    out[task] = work(task);
  };
  at_once > 0 ? waiting_blocks(mine, 1, at_once, one) : parallel_blocks(mine, 1, one);
  empty_ = false;
  Packer bytes;
  for (std::size_t task = skipped; task < count; task += part_.of) bytes(out[task]);
  auto& loop = step_->child(loop_name(loops_++));
  loop.set("tasks", count);
  loop.set("results", to_bytes(bytes.take()));
  return out;
}

void PartTasks::keep(const std::string& bytes) { step_->set("kept", to_bytes(bytes)); }

std::string PartTasks::write(const std::string& folder) const {
  Archive tree;
  tree.set("number", part_.number);
  tree.set("of", part_.of);
  tree.child("steps") = steps_;
  make_folder(folder);
  const auto digits = fmt::format("{}", part_.of).size();
  const auto path = (std::filesystem::path(folder) /
                     fmt::format("part-{:0{}}-of-{}.h5", part_.number, digits, part_.of))
                        .string();
  write_archive(path, tree, part_schema, part_version);
  return path;
}

MergedTasks::MergedTasks(const std::vector<std::string>& files) {
  if (files.empty()) throw FileError("merge: no parts were given");
  std::size_t of = 0;
  for (const auto& path : files) {
    auto tree = read_archive(path, part_schema, part_version).tree;
    const std::size_t number = size_of(tree, "number"), count = size_of(tree, "of");
    if (of == 0) {
      of = count;
      files_.resize(of);
    }
    if (count != of)
      throw FileError(fmt::format("{}: is part {} of {}, but {} is one of {}", path, number, count,
                                  files.front(), of));
    auto& place = files_.at(number - 1);
    if (!place.path.empty())
      throw FileError(fmt::format("{}: is part {}, and so is {}", path, number, place.path));
    place = {path, std::move(tree)};
  }
  std::vector<std::size_t> missing;
  for (std::size_t k = 0; k < of; ++k)
    if (files_[k].path.empty()) missing.push_back(k + 1);
  if (!missing.empty())
    throw FileError(
        fmt::format("merge: of {} parts {} missing: {}", of,
                    missing.size() == 1 ? "one is" : fmt::format("{} are", missing.size()),
                    fmt::join(missing, ", ")));
}

void MergedTasks::begin(const std::string& step, const std::string& fingerprint, bool parted) {
  step_ = step;
  loops_ = 0;
  for (const auto& [path, tree] : files_) {
    const auto& steps = tree.child("steps");
    if (!parted && !steps.has_child(step)) continue;
    if (!steps.has_child(step))
      throw FileError(fmt::format("{}: has not done '{}', which the study asks for", path, step));
    if (steps.child(step).text("fingerprint") != fingerprint)
      throw FileError(fmt::format(
          "{}: its '{}' was made with another study, seed, data or neyman than this one", path,
          step));
  }
}

std::vector<std::string> MergedTasks::run(std::size_t count, std::size_t,
                                          const std::function<std::string(std::size_t)>&) {
  std::vector<std::string> out(count);
  const auto name = loop_name(loops_++);
  for (std::size_t k = 0; k < files_.size(); ++k) {
    const auto& loop = files_[k].tree.child("steps").child(step_).child(name);
    if (size_of(loop, "tasks") != count)
      throw FileError(fmt::format("{}: has {} tasks in '{}', but must have {}", files_[k].path,
                                  size_of(loop, "tasks"), step_, count));
    const auto bytes = to_text(loop, "results");
    Unpacker results(bytes);
    for (std::size_t task = k; task < count; task += files_.size()) results(out[task]);
  }
  return out;
}

std::vector<std::string> MergedTasks::kept() const {
  std::vector<std::string> out;
  for (const auto& file : files_)
    out.push_back(to_text(file.tree.child("steps").child(step_), "kept"));
  return out;
}

}  // namespace neyman::pipeline
