// Functions of headers that the host and kernels of lib/device share.
#pragma once

#ifdef __CUDACC__
#define LRA_BOTH __host__ __device__
#else
#define LRA_BOTH
#endif
