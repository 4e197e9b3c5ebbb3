#include "lib/training/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "lib/util/check.h"

#ifdef LRA_MPI
// The C interface alone: the C++ one is long withdrawn, and another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace lra {
namespace {

int number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::atoi(value);
}

// Processes that the launcher has started, by what it tells them: Open MPI, MPICH and others, Slurm's PMI. 0: nothing
// is known.
int launched_ranks() {
  return std::max({number_in("OMPI_COMM_WORLD_SIZE"), number_in("PMI_SIZE"), number_in("MPI_LOCALNRANKS")});
}

#ifdef LRA_MPI
int count_of(std::span<const std::byte> data) {
  check(data.size() <= (size_t{1} << 30), "a message of {} bytes", data.size());
  return static_cast<int>(data.size());
}
#endif

}  // namespace

int Ranks::on_this_machine() {
  return std::max({1, number_in("OMPI_COMM_WORLD_LOCAL_SIZE"), number_in("MPI_LOCALNRANKS")});
}

int Ranks::number_on_this_machine() {
  return std::max({number_in("OMPI_COMM_WORLD_LOCAL_RANK"), number_in("MPI_LOCALRANKID"), number_in("SLURM_LOCALID")});
}

#ifdef LRA_MPI

Ranks::Ranks() {
  const int launched = launched_ranks();
  // PMIx, as srun has it, does not say how many there are.
  if (launched <= 1 && std::getenv("PMIX_RANK") == nullptr) return;
  // Calls come from one thread at a time, which need not be the main one.
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) throw InputError("MPI: this library can't be used by a program with threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
  if (launched > 1 && count_ != launched) {
    throw UsageError(
        "started as one of {} processes, of which this program's MPI sees {}: want the launcher of the MPI "
        "that it was built with",
        launched, count_);
  }
}

Ranks::~Ranks() {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) MPI_Finalize();
}

void Ranks::abort(int exit_code) const {
  if (count_ > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

// Errors end all ranks: that is MPI's default.
void Ranks::broadcast_bytes(std::span<std::byte> data) const {
  if (count_ > 1) MPI_Bcast(data.data(), count_of(data), MPI_BYTE, 0, MPI_COMM_WORLD);
}

void Ranks::send_bytes(std::span<const std::byte> data, int to) const {
  MPI_Send(data.data(), count_of(data), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

void Ranks::receive_bytes(std::span<std::byte> data, int from) const {
  MPI_Recv(data.data(), count_of(data), MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void Ranks::gather_bytes(std::span<const std::byte> share, std::span<std::byte> all) const {
  if (count_ == 1) {
    std::copy(share.begin(), share.end(), all.begin());
    return;
  }
  MPI_Gather(share.data(), count_of(share), MPI_BYTE, all.data(), count_of(share), MPI_BYTE, 0, MPI_COMM_WORLD);
}

#else

Ranks::Ranks() {
  const int count = launched_ranks();
  if (count > 1) {
    throw UsageError("started as one of {} ranks, but built without MPI; install libopenmpi-dev and configure anew",
                     count);
  }
}
Ranks::~Ranks() = default;
void Ranks::abort(int exit_code) const { std::_Exit(exit_code); }
void Ranks::broadcast_bytes(std::span<std::byte>) const {}
void Ranks::send_bytes(std::span<const std::byte>, int) const { check(false, "a message without ranks"); }
void Ranks::receive_bytes(std::span<std::byte>, int) const { check(false, "a message without ranks"); }
void Ranks::gather_bytes(std::span<const std::byte> share, std::span<std::byte> all) const {
  std::copy(share.begin(), share.end(), all.begin());
}

#endif

}  // namespace lra
