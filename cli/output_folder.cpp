#include "output_folder.hpp"

#include <filesystem>

#include "answer.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman::cli {

void prepare_output_folder(const std::string& folder) {
  advised("Choose another folder with --out.", [&] {
    make_folder(folder);
    const AtomicFile trial((std::filesystem::path(folder) / "results.json").string());
  });
}

}  // namespace neyman::cli
