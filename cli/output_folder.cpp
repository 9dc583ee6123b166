#include "output_folder.hpp"

#include <filesystem>
#include <system_error>

#include "answer.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman::cli {

void prepare_output_folder(const std::string& folder) {
  advised("Choose another folder with --out.", [&] {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw FileError(folder + ": the folder cannot be made: " + error.message());
    const AtomicFile trial((std::filesystem::path(folder) / "results.json").string());
  });
}

}  // namespace neyman::cli
