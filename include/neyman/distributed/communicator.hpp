#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace neyman {

/// The processes ("ranks") that work on one study together. Every rank runs the same program and
/// comes to the same values; what costs time is cut into tasks that each rank does a part of
/// (tasks.hpp). Only rank 0 writes and speaks.
///
/// Unless it says otherwise, a function is collective: every rank calls it, in the same order, from
/// one thread.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  /// How many of them share this machine.
  virtual std::size_t neighbours() const = 0;
  bool first() const { return rank() == 0; }

  /// The bytes of every rank, by rank, on every rank.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  /// Sends to[r] to each rank r and fills from[r], whose size must be that of what rank r sends.
  virtual void exchange(const std::vector<std::string>& to, std::vector<std::string>& from) = 0;
  /// The bytes of rank 0.
  virtual std::string broadcast(const std::string& bytes) = 0;

  /// Sets the counter that all share to zero.
  virtual void restart() = 0;
  /// Takes `count` numbers off the counter and gives the first of them: no two ranks or threads get
  /// the same. Not collective; called by any rank and thread.
  virtual std::size_t take(std::size_t count) = 0;

  /// Whether every rank calls this within so many seconds: then all have come to the same end. No
  /// other collective call may follow where not.
  virtual bool meet(double seconds) = 0;
  /// Ends all ranks, whatever they do, with an exit status. Not collective. Returns where there are
  /// no others.
  virtual void end_all(int status) = 0;
};

/// A communicator of this process alone.
std::unique_ptr<Communicator> alone();

/// That of the ranks with which this process was started (by mpirun or srun), or `alone`. MPI is
/// looked for only where there are others, so that a program on its own pays nothing for it. To be
/// called once; the last rank that destroys it ends the others' waiting for it.
/// @throw FileError where it was started with others, and neyman was built without MPI or MPI
/// fails.
std::unique_ptr<Communicator> connect();

/// Threads for each rank, such that those that share a machine do not use more than it has, and
/// none uses more than it is bound to.
std::size_t threads_for(const Communicator& ranks);

}  // namespace neyman
