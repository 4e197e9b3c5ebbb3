// The processes that train one run together, started by mpirun or srun. Rank 0 leads: it alone decides, updates and
// writes; the others hold its model and do their share of every batch (lib/training/follow.h). Without MPI in the
// build, or started without a launcher, there is one rank and none of the calls does anything.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace lra {

class Ranks {
 public:
  // Joins the ranks of the launcher. UsageError where there are several and the build has no MPI.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Ranks on this machine, as far as the launcher says; at least 1.
  static int on_this_machine();
  // This one's number among them, as far as the launcher says; else 0.
  static int number_on_this_machine();

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool leads() const { return rank_ == 0; }

  // Each returns when the data may be used again; a rank that died ends all of them.
  template <class T>
  void broadcast(std::span<T> data) const {  // from rank 0 to all
    broadcast_bytes(std::as_writable_bytes(data));
  }
  template <class T>
  void send(std::span<const T> data, int to) const {
    send_bytes(std::as_bytes(data), to);
  }
  template <class T>
  void receive(std::span<T> data, int from) const {
    receive_bytes(std::as_writable_bytes(data), from);
  }
  // Equal shares of all ranks, in their order; `all` is written at rank 0.
  template <class T>
  void gather(std::span<const T> share, std::span<T> all) const {
    gather_bytes(std::as_bytes(share), std::as_writable_bytes(all));
  }

  // Ends all ranks at once.
  [[noreturn]] void abort(int exit_code) const;

 private:
  void broadcast_bytes(std::span<std::byte> data) const;
  void send_bytes(std::span<const std::byte> data, int to) const;
  void receive_bytes(std::span<std::byte> data, int from) const;
  void gather_bytes(std::span<const std::byte> share, std::span<std::byte> all) const;

  int rank_ = 0, count_ = 1;
};

}  // namespace lra
