// The parallel algorithms that training and evaluation are built of; TBB's headers stay inside parallel.cpp. How work
// is cut is the caller's business: nothing here depends on the number of threads but who runs what. To be called inside
// Threads::run.
#pragma once

#include <cstdint>
#include <functional>

namespace lra {

// While it waits for tasks started inside `work`, the calling thread takes none from outside it: scratch memory
// borrowed around the call cannot be found in use by another task on the same thread.
void isolated(const std::function<void()>& work);

// body(i) for every i in [0, n), in no order, one task an index.
void parallel_for(int64_t n, const std::function<void(int64_t)>& body);

// body(i) for every i in [0, n), started in this order: a thread that is free takes the next. Put long work first and
// all threads end together. The first exception thrown passes through; what has not been started then is left out.
void parallel_in_order(int64_t n, const std::function<void(int64_t)>& body);

// Whether number i of n parts that are started in order is among the last ones, while which some threads have none.
bool threads_to_spare(int64_t i, int64_t n);

}  // namespace lra
