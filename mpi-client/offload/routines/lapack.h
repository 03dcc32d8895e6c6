/** The routines of LAPACK that are used here. Fortran: matrices column after column, and the lengths of texts last. */
#pragma once

#include <stddef.h>

/* The norm of a symmetric matrix that `norm` names. */
double dlansy_(const char *norm, const char *uplo, const int *n, const double *a, const int *lda, double *work,
               size_t norm_length, size_t uplo_length);

/* Cholesky: A = L Lᵀ; then the reciprocal of A's condition in norm 1, from its norm. */
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t uplo_length);
void dpocon_(const char *uplo, const int *n, const double *a, const int *lda, const double *norm, double *reciprocal,
             double *work, int *integers, int *info, size_t uplo_length);

/* Eigenvalues from number `first` to `last`, ascending, and their vectors. */
void dsyevr_(const char *job, const char *range, const char *uplo, const int *n, double *a, const int *lda,
             const double *low, const double *high, const int *first, const int *last, const double *tolerance,
             int *found, double *values, double *vectors, const int *ldz, int *support, double *work,
             const int *work_size, int *integers, const int *integers_size, int *info, size_t job_length,
             size_t range_length, size_t uplo_length);

/* A = L Q; then the rows of Q. */
void dgelqf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work, const int *work_size,
             int *info);
void dorglq_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau, double *work,
             const int *work_size, int *info);

/* A = U S Vᵀ, by divide and conquer. */
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s, double *u,
             const int *ldu, double *vt, const int *ldvt, double *work, const int *work_size, int *integers, int *info,
             size_t job_length);
