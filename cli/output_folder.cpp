#include "output_folder.hpp"

#include <filesystem>

#include "answer.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman::cli {

std::string default_output_folder(const std::string& study, bool quick) {
  const std::filesystem::path path(study);
  std::string name = path.stem() == "study" ? "out" : "out-" + path.stem().string();
  if (quick) name += "-quick";
  return (path.parent_path() / name).lexically_normal().string();
}

void prepare_output_folder(const std::string& folder) {
  advised("Choose another folder with --out.", [&] {
    make_folder(folder);
    const AtomicFile trial((std::filesystem::path(folder) / "results.json").string());
  });
}

}  // namespace neyman::cli
