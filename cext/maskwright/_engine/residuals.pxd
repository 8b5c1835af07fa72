from libc.stdint cimport uint32_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport Index, Residual

cdef void residuals_free(Index* index) noexcept nogil
cdef Residual* residual_intern(Index* index, vector[string]& texts) noexcept nogil
cdef Residual* residual_below(Index* index, Residual* rest, uint32_t top) noexcept nogil
