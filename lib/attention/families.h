// One function a family file; registry.cpp lists them.
#pragma once

#include <vector>

#include "lib/attention/registry.h"

namespace lra {

std::vector<AttentionFamily> softmax_families();
std::vector<AttentionFamily> polynomial_families();
std::vector<AttentionFamily> sigmoid_families();
std::vector<AttentionFamily> relu_n_families();
std::vector<AttentionFamily> ssmax_families();
std::vector<AttentionFamily> softmax_sink_families();
std::vector<AttentionFamily> sigsoftmax_families();
std::vector<AttentionFamily> softpick_families();
std::vector<AttentionFamily> gd_softmax_families();
std::vector<AttentionFamily> adaptive_temp_families();
std::vector<AttentionFamily> self_adjusted_families();
std::vector<AttentionFamily> periodic_families();
std::vector<AttentionFamily> entmax_families();
std::vector<AttentionFamily> prox_max_families();
std::vector<AttentionFamily> mos_families();
std::vector<AttentionFamily> fox_families();
std::vector<AttentionFamily> nap_families();
std::vector<AttentionFamily> inline_families();
std::vector<AttentionFamily> linear_elu_families();
std::vector<AttentionFamily> favor_families();
std::vector<AttentionFamily> rfa_families();
std::vector<AttentionFamily> rmfa_families();
std::vector<AttentionFamily> hrf_families();
std::vector<AttentionFamily> lln_families();
std::vector<AttentionFamily> lln_diag_families();
std::vector<AttentionFamily> cosformer_families();
std::vector<AttentionFamily> nystrom_families();
std::vector<AttentionFamily> linformer_families();

// m_q = E[x^(2q)] of x = q·k / sqrt(D) for queries and keys ~ N(0, I_D): (2q-1)!! prod_{r<q} (1 + 2r/D).
double polynomial_moment(int power, int head_dim);

}  // namespace lra
