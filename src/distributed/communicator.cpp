#include "neyman/distributed/communicator.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "distributed/mpi_functions.hpp"
#include "neyman/core/error.hpp"
#include "neyman/core/parallel.hpp"

namespace neyman {

namespace {

namespace fs = std::filesystem;

class Alone final : public Communicator {
 public:
  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  std::size_t neighbours() const override { return 1; }
  std::vector<std::string> gather(const std::string& mine) override { return {mine}; }
  void exchange(const std::vector<std::string>& to, std::vector<std::string>& from) override {
    from = to;
  }
  std::string broadcast(const std::string& bytes) override { return bytes; }
  void restart() override { counter_ = 0; }
  std::size_t take(std::size_t count) override { return counter_.fetch_add(count); }
  bool meet(double) override { return true; }
  void end_all(int) override {}

 private:
  std::atomic<std::size_t> counter_{0};
};

class Mpi final : public Communicator {
 public:
  explicit Mpi(const NeymanMpi& functions) : mpi_(functions) {}
  ~Mpi() override {
    if (together_) mpi_.finish();
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  std::size_t rank() const override { return static_cast<std::size_t>(mpi_.rank); }
  std::size_t size() const override { return static_cast<std::size_t>(mpi_.size); }
  std::size_t neighbours() const override { return static_cast<std::size_t>(mpi_.neighbours); }

  std::vector<std::string> gather(const std::string& mine) override {
    std::vector<long long> sizes(size());
    mpi_.sizes(static_cast<long long>(mine.size()), sizes.data());
    std::vector<std::string> out(size());
    for (std::size_t r = 0; r < size(); ++r) out[r].reserve(static_cast<std::size_t>(sizes[r]));
    // MPI counts bytes with int: in rounds of what fits.
    const long long piece = most_at_once / mpi_.size;
    const long long longest = *std::max_element(sizes.begin(), sizes.end());
    std::vector<int> counts(size()), places(size());
    std::string all;
    for (long long at = 0; at < longest; at += piece) {
      int sum = 0;
      for (std::size_t r = 0; r < size(); ++r) {
        counts[r] = static_cast<int>(std::clamp(sizes[r] - at, 0LL, piece));
        places[r] = sum;
        sum += counts[r];
      }
      all.resize(static_cast<std::size_t>(sum));
      const auto from = std::min(mine.size(), static_cast<std::size_t>(at));
      mpi_.gather(mine.data() + from, counts[rank()], all.data(), counts.data(), places.data());
      for (std::size_t r = 0; r < size(); ++r)
        out[r].append(all, static_cast<std::size_t>(places[r]),
                      static_cast<std::size_t>(counts[r]));
    }
    return out;
  }

  void exchange(const std::vector<std::string>& to, std::vector<std::string>& from) override {
    std::vector<const char*> out;
    std::vector<char*> in;
    std::vector<int> sizes_out, sizes_in;
    for (const auto& bytes : to) {
      out.push_back(bytes.data());
      sizes_out.push_back(static_cast<int>(bytes.size()));
    }
    for (auto& bytes : from) {
      in.push_back(bytes.data());
      sizes_in.push_back(static_cast<int>(bytes.size()));
    }
    mpi_.exchange(out.data(), sizes_out.data(), in.data(), sizes_in.data());
  }

  std::string broadcast(const std::string& bytes) override {
    std::vector<long long> sizes(size());
    mpi_.sizes(static_cast<long long>(bytes.size()), sizes.data());
    std::string out(static_cast<std::size_t>(sizes[0]), '\0');
    if (first()) out = bytes;
    mpi_.broadcast(out.data(), sizes[0]);
    return out;
  }

  void restart() override { mpi_.restart(); }
  std::size_t take(std::size_t count) override {
    const std::lock_guard lock(mutex_);  // MPI is called by one thread at a time
    return static_cast<std::size_t>(mpi_.take(static_cast<long long>(count)));
  }
  bool meet(double seconds) override {
    together_ = mpi_.meet(seconds) != 0;
    return together_;
  }
  void end_all(int status) override { mpi_.end_all(status); }

 private:
  static constexpr long long most_at_once = 1LL << 30;
  const NeymanMpi& mpi_;
  std::mutex mutex_;
  bool together_ = true;  // else others wait for what never comes, and so would the end
};

/// Whether a launcher says that this process is one of several.
bool started_with_others() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* size = std::getenv(name)) return std::atoi(size) > 1;
  // Without the number, as under srun with PMIx, MPI must tell.
  return std::getenv("PMIX_RANK") != nullptr;
}

/// The module, from beside the file that this code is in, or from where the system looks.
const NeymanMpi& load_mpi() {
  constexpr const char* name = "libneyman_mpi.so";
  Dl_info info{};
  void* module = nullptr;
  if (::dladdr(reinterpret_cast<const void*>(&load_mpi), &info) != 0 && info.dli_fname != nullptr) {
    const auto beside = fs::path(info.dli_fname).parent_path() / name;
    std::error_code error;
    if (fs::exists(beside, error)) module = ::dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
  if (module == nullptr) module = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    throw FileError(fmt::format(
        "connect: started as one of several MPI processes, but this neyman has no MPI: {}",
        ::dlerror()));
  const auto start = reinterpret_cast<NeymanMpiStart>(::dlsym(module, "neyman_mpi_start"));
  const NeymanMpi* functions = start != nullptr ? start() : nullptr;
  if (functions == nullptr)
    throw FileError(
        "connect: MPI could not be started: it is in use already, or without support for threads");
  return *functions;
}

}  // namespace

std::unique_ptr<Communicator> alone() { return std::make_unique<Alone>(); }

std::unique_ptr<Communicator> connect() {
  if (!started_with_others()) return alone();
  return std::make_unique<Mpi>(load_mpi());
}

std::size_t threads_for(const Communicator& ranks) {
  const std::size_t machine = std::max(1U, std::thread::hardware_concurrency());
  return std::clamp<std::size_t>(machine / ranks.neighbours(), 1, threads());
}

}  // namespace neyman
