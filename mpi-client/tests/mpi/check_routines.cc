/*
 * Each routine of libsupply_linalg on matrices that are hard for it, as a rank of mpirun: check-routines LIBRARY. An
 * answer is compared with what long doubles give, or the routine must say that there is none. Prints what is wrong, and
 * the number of checks; "no SLEPc" if there is none.
 */
/* Only the interface of C. */
#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "supply_routine.h"
#undef supply_routines

using Real = long double;

/* All rows of a matrix, alike on all ranks. */
struct Matrix {
    uint64_t rows = 0, columns = 0;
    std::vector<double> values = {};
    double &operator()(uint64_t i, uint64_t j) { return values[i * columns + j]; }
    double operator()(uint64_t i, uint64_t j) const { return values[i * columns + j]; }
};

static Matrix make(uint64_t rows, uint64_t columns, const std::function<double(uint64_t, uint64_t)> &value) {
    Matrix made{rows, columns, std::vector<double>(rows * columns)};
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++) made(i, j) = value(i, j);
    return made;
}

/* The host of the routines. */

struct Part {
    supply_matrix_t matrix = {};
    std::vector<double> values, entries;
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> indices;
};

struct supply_call {
    std::map<std::string, Part> matrices;
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> texts;
    std::map<std::string, Part> rows;
    std::map<std::string, Matrix> results;
    std::string text;
};

static int rank, ranks, checks, failures;
static std::string label;
static const supply_routine_t *routines;

extern "C" {
MPI_Comm supply_call_comm(const supply_call_t *) { return MPI_COMM_WORLD; }
const supply_matrix_t *supply_call_matrix(const supply_call_t *call, const char *name) {
    return &call->matrices.at(name).matrix;
}
int64_t supply_call_integer(const supply_call_t *call, const char *name) { return (int64_t)call->numbers.at(name); }
double supply_call_number(const supply_call_t *call, const char *name) { return call->numbers.at(name); }
const char *supply_call_text(const supply_call_t *call, const char *name) { return call->texts.at(name).c_str(); }
supply_matrix_t *supply_call_rows(supply_call_t *call, const char *name, const supply_matrix_t *like,
                                  uint64_t columns) {
    Part &part = call->rows[name];
    part.values.resize(like->local_rows * columns + 1);
    part.matrix = {like->rows,         columns, like->first_row, like->local_rows,
                   part.values.data(), nullptr, nullptr,         nullptr};
    return &part.matrix;
}
double *supply_call_array(supply_call_t *call, const char *name, uint64_t rows, uint64_t columns) {
    call->results[name] = make(rows, columns, [](uint64_t, uint64_t) { return 0; });
    return call->results[name].values.data();
}
int supply_call_check_memory(supply_call_t *, uint64_t) { return 0; }
void supply_call_progress(supply_call_t *, uint64_t, uint64_t) {}
bool supply_call_cancelled(supply_call_t *) { return false; }
int supply_call_fail(supply_call_t *call, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    call->text = text;
    return 1;
}
}

/* Where the rows are: evenly; none on the first rank; on the first rank all but one for each other. */
enum Layout { EVEN, EMPTY, NARROW };

static uint64_t begin_of(Layout layout, uint64_t rows, int of) {
    const auto part = (uint64_t)of, all = (uint64_t)ranks;
    if (part == 0 || part == all) return part == 0 ? 0 : rows;
    if (layout == EMPTY) return rows * (part - 1) / (all - 1);
    return layout == EVEN || rows < all ? rows * part / all : rows - all + part;
}

static Part part_of(const Matrix &whole, Layout layout) {
    Part part;
    const uint64_t first = begin_of(layout, whole.rows, rank), end = begin_of(layout, whole.rows, rank + 1);
    part.matrix = {whole.rows, whole.columns, first, end - first, nullptr, nullptr, nullptr, nullptr};
    part.offsets.push_back(0);
    for (uint64_t i = first; i < end; i++) {
        for (uint64_t j = 0; j < whole.columns; j++) {
            part.values.push_back(whole(i, j));
            if (whole(i, j) == 0) continue;
            part.indices.push_back((uint32_t)j);
            part.entries.push_back(whole(i, j));
        }
        part.offsets.push_back(part.entries.size());
    }
    part.values.push_back(0);
    return part;
}

struct Given {
    std::map<std::string, Matrix> matrices;
    std::map<std::string, double> numbers = {};
    std::map<std::string, std::string> texts = {};
};

/* All results are whole, and alike on all ranks. */
static supply_call run(const std::string &name, const Given &given, Layout layout, bool sparse) {
    supply_call call;
    call.numbers = given.numbers;
    call.texts = given.texts;
    for (const auto &[key, whole] : given.matrices) {
        Part &part = call.matrices[key] = part_of(whole, layout);
        if (sparse && key == "A") {
            part.matrix.row_offsets = part.offsets.data();
            part.matrix.column_indices = part.indices.data();
            part.matrix.entries = part.entries.data();
        } else
            part.matrix.values = part.values.data();
    }
    int status = -1;
    for (const supply_routine_t *routine = routines; routine->name != nullptr; routine++)
        if (name == routine->name) status = routine->run(&call);
    if (status != 0 && call.text.empty()) call.text = "failed without a text";
    for (const auto &[key, part] : call.rows) {
        Matrix whole = make(part.matrix.rows, part.matrix.columns, [](uint64_t, uint64_t) { return 0; });
        if (part.matrix.local_rows > 0)
            memcpy(&whole(part.matrix.first_row, 0), part.values.data(),
                   part.matrix.local_rows * part.matrix.columns * sizeof(double));
        MPI_Allreduce(MPI_IN_PLACE, whole.values.data(), (int)whole.values.size(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        call.results[key] = whole;
    }
    return call;
}

static void expect(bool holds, const std::string &what) {
    checks++;
    if (holds) return;
    failures++;
    if (rank != 0) return;
    printf("%s: %s\n", label.c_str(), what.c_str());
    fflush(stdout);
}

static void expect_most(Real found, Real most, const std::string &what) {
    char text[200];
    snprintf(text, sizeof text, "%s is %.3Lg, not at most %.3Lg", what.c_str(), found, most);
    expect(found <= most, text);
}

static bool succeeds(const supply_call &call) {
    expect(call.text.empty(), "fails: " + call.text);
    return call.text.empty();
}

static void expect_text(const supply_call &call, const std::string &part) {
    expect(call.text.find(part) != std::string::npos,
           "no '" + part + "' but: " + (call.text.empty() ? "ok" : call.text));
}

/* Small matrices of long doubles, row after row. */
struct Exact {
    uint64_t rows, columns;
    std::vector<Real> values;
    Exact(uint64_t m, uint64_t n) : rows(m), columns(n), values(m * n) {}
    explicit Exact(const Matrix &of) : rows(of.rows), columns(of.columns), values(of.values.begin(), of.values.end()) {}
    Real &operator()(uint64_t i, uint64_t j) { return values[i * columns + j]; }
    Real operator()(uint64_t i, uint64_t j) const { return values[i * columns + j]; }
};

static Exact transpose(const Exact &of) {
    Exact result(of.columns, of.rows);
    for (uint64_t i = 0; i < of.rows; i++)
        for (uint64_t j = 0; j < of.columns; j++) result(j, i) = of(i, j);
    return result;
}

static Exact operator*(const Exact &left, const Exact &right) {
    Exact result(left.rows, right.columns);
    for (uint64_t i = 0; i < left.rows; i++)
        for (uint64_t k = 0; k < left.columns; k++)
            for (uint64_t j = 0; j < right.columns; j++) result(i, j) += left(i, k) * right(k, j);
    return result;
}

static Exact operator-(Exact left, const Exact &right) {
    for (size_t i = 0; i < left.values.size(); i++) left.values[i] -= right.values[i];
    return left;
}

static Real largest(const Exact &of) {
    Real found = 0;
    for (const Real value : of.values) found = std::isnan(value) ? INFINITY : std::max(found, std::fabs(value));
    return found;
}

static Real norm(const Exact &of) {
    Real sum = 0;
    for (const Real value : of.values) sum += value * value;
    return std::sqrt(sum);
}

static Exact identity(uint64_t n) {
    Exact result(n, n);
    for (uint64_t i = 0; i < n; i++) result(i, i) = 1;
    return result;
}

static Exact scaled(Exact of, const std::function<Real(uint64_t)> &by) {
    for (size_t i = 0; i < of.values.size(); i++) of.values[i] *= by(i % of.columns);
    return of;
}

static Exact means(const Exact &A) {
    Exact result(A.columns, 1);
    for (uint64_t i = 0; i < A.rows; i++)
        for (uint64_t j = 0; j < A.columns; j++) result(j, 0) += A(i, j) / (Real)A.rows;
    return result;
}

static Exact centred(Exact A) {
    const Exact mean = means(A);
    for (size_t i = 0; i < A.values.size(); i++) A.values[i] -= mean(i % A.columns, 0);
    return A;
}

/* One-sided Jacobi: A becomes U S, V is returned. */
static Exact jacobi(Exact &A) {
    Exact V = identity(A.columns);
    bool turned = true;
    for (int sweep = 0; turned && sweep < 40; sweep++) {
        turned = false;
        for (uint64_t p = 0; p < A.columns; p++)
            for (uint64_t q = p + 1; q < A.columns; q++) {
                Real a = 0, b = 0, c = 0;
                for (uint64_t i = 0; i < A.rows; i++) {
                    a += A(i, p) * A(i, p);
                    b += A(i, q) * A(i, q);
                    c += A(i, p) * A(i, q);
                }
                if (std::fabs(c) <= 1e-17L * std::sqrt(a) * std::sqrt(b)) continue;
                turned = true;
                const Real zeta = (b - a) / (2 * c);
                const Real t = (zeta >= 0 ? 1 : -1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
                const Real cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
                for (Exact *of : {&A, &V})
                    for (uint64_t i = 0; i < of->rows; i++) {
                        const Real left = (*of)(i, p), right = (*of)(i, q);
                        (*of)(i, p) = cosine * left - sine * right;
                        (*of)(i, q) = sine * left + cosine * right;
                    }
            }
    }
    return V;
}

static std::vector<Real> norms_of_columns(const Exact &A) {
    std::vector<Real> result(A.columns);
    for (size_t i = 0; i < A.values.size(); i++) result[i % A.columns] += A.values[i] * A.values[i];
    for (Real &value : result) value = std::sqrt(value);
    return result;
}

static std::vector<Real> singular_values(Exact A) {
    if (A.rows < A.columns) A = transpose(A);
    jacobi(A);
    std::vector<Real> found = norms_of_columns(A);
    std::sort(found.rbegin(), found.rend());
    return found;
}

/* Least squares with scaled columns; of several solutions the least. */
static Exact least_squares(const Exact &A, const Exact &b) {
    const std::vector<Real> norms = norms_of_columns(A);
    const auto inverse = [&](uint64_t j) { return norms[j] > 0 ? 1 / norms[j] : 0; };
    Exact US = scaled(A, inverse);
    const Exact V = jacobi(US);
    const std::vector<Real> s = norms_of_columns(US);
    Exact y = transpose(US) * b;
    for (uint64_t j = 0; j < A.columns; j++)
        for (uint64_t v = 0; v < b.columns; v++) y(j, v) = s[j] > 1e-15L ? y(j, v) / s[j] / s[j] : 0;
    return transpose(scaled(transpose(V * y), inverse));
}

static double uniform(uint64_t i, uint64_t j) {
    uint64_t z = i * 1000003 + j + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

/* Matrices. digits: what remains of 16 for products with themselves; depends: a column does, also on an intercept. */
struct Case {
    std::string name;
    Matrix A;
    int digits = 16;
    bool depends = false, depends_on_intercept = false;
};

static std::vector<Case> cases() {
    const uint64_t m = 60, n = 6;
    const Matrix plain = make(m, n, uniform);
    const auto with = [&](const std::function<double(uint64_t, uint64_t)> &value) { return make(m, n, value); };
    const auto powers = [&](double exponent) {
        return with([=](uint64_t i, uint64_t j) { return ldexp(uniform(i, j), (int)(exponent * ((double)j - 2))); });
    };
    const auto times = [&](double factor) {
        return with([=](uint64_t i, uint64_t j) { return factor * uniform(i, j); });
    };
    std::vector<Case> found = {
        {"plain", plain},
        {"a zero column", with([](uint64_t i, uint64_t j) { return j == 1 ? 0 : uniform(i, j); }), 16, true, true},
        {"a constant column", with([](uint64_t i, uint64_t j) { return j == 2 ? 0.1 : uniform(i, j); }), 16, false,
         true},
        {"two equal columns", with([](uint64_t i, uint64_t j) { return uniform(i, j == 4 ? 1 : j); }), 16, true, true},
        {"equal rows", with([](uint64_t i, uint64_t j) { return uniform(i % 12, j); })},
        {"one-hot", with([](uint64_t i, uint64_t j) { return (i + i / 6) % 6 == j; }), 16, false, true},
        {"rank 3",
         make(m, n,
              [](uint64_t i, uint64_t j) {
                  double sum = 0;
                  for (uint64_t k = 0; k < 3; k++) sum += uniform(i, 100 + k) * uniform(j, 200 + k);
                  return sum;
              }),
         16, true, true},
        {"columns of 1e-6 to 1e6", powers(20. / 3)},
        {"columns of 1e-160 to 1e160", powers(530 / 3.)},
        {"values of 1e-160", times(1e-160)},
        {"values of 1e-175", times(1e-175)},
        {"values of 1e160", times(1e160)},
        {"an outlier of 1e12", with([](uint64_t i, uint64_t j) { return i == 30 && j == 3 ? 1e12 : uniform(i, j); }),
         8},
        {"means of 1e10", with([](uint64_t i, uint64_t j) { return 1e10 + uniform(i, j) * (double)(j + 1); }), 16,
         true},
        {"nearly dependent",
         with([](uint64_t i, uint64_t j) { return j == 5 ? uniform(i, 0) + 1e-4 * uniform(i, 5) : uniform(i, j); }),
         10},
        {"fewer rows than columns", make(4, 6, uniform), 16, true, true},
    };
    for (const uint64_t rows : {1000, 8000, 33333})
        found.push_back(
            {"one-hot of " + std::to_string(rows) + " rows",
             make(rows, 5, [](uint64_t i, uint64_t j) { return (uint64_t)((uniform(i, 7) + 0.5) * 5) == j; }), 12,
             false, true});
    return found;
}

/* The second column is 0, the others have values from 1e-6 to 1e6. */
static Matrix target(const Matrix &A, uint64_t columns = 1) {
    return make(A.rows, columns, [](uint64_t i, uint64_t v) {
        const double scale = v == 0 ? 1 : v == 1 ? 0 : std::pow(10, (double)(v * 6 % 13) - 6);
        return scale * (uniform(i, 999 + v) + (double)(i % (6 + v)));
    });
}

/* The same case on each layout, dense and, for routines that take it, sparse. */
static Layout layout;
static bool sparse;
static bool has_slepc;

static void check_products(const Case &one) {
    const Exact A(one.A);
    const Exact b(target(one.A));
    Exact magnitude = A;
    for (Real &value : magnitude.values) value = std::fabs(value);
    const auto close = [](const Matrix &found, const Exact &exact, const Exact &bound) {
        Real worst = 0;
        for (size_t i = 0; i < exact.values.size(); i++)
            worst = std::max(worst, std::fabs(found.values[i] - exact.values[i]) / (bound.values[i] + 1e-307L));
        return worst;
    };
    if (!sparse) {
        const supply_call gram = run("gram", {{{"A", one.A}}}, layout, false);
        if (one.name.find("1e160") != std::string::npos)
            expect_text(gram, "too large");
        else if (succeeds(gram))
            expect_most(close(gram.results.at("gram"), transpose(A) * A, transpose(magnitude) * magnitude), 1e-14L,
                        "gram");
    }
    const supply_call product = run("transpose_multiply", {{{"A", one.A}, {"B", target(one.A)}}}, layout, sparse);
    if (succeeds(product))
        expect_most(close(product.results.at("C"), transpose(A) * b, transpose(magnitude) * b), 1e-13L, "AᵀB");
    const Matrix B = make(one.A.columns, 2, [](uint64_t i, uint64_t j) { return uniform(i, j) + 1; });
    const supply_call rows = run("multiply", {{{"A", one.A}, {"B", B}}}, layout, sparse);
    if (succeeds(rows)) expect_most(close(rows.results.at("C"), A * Exact(B), magnitude * Exact(B)), 1e-14L, "A B");
    const Matrix v = make(one.A.columns, 1, [](uint64_t i, uint64_t) { return uniform(i, 5) + 1; });
    for (const int iterations : {1, 3}) {
        const supply_call power =
            run("gram_vector", {{{"A", one.A}, {"v", v}}, {{"iterations", iterations}}}, layout, sparse);
        Exact expected(v);
        for (int i = 0; i < iterations; i++) {
            const Real length = i == 0 ? 1 : norm(expected);
            expected = transpose(A) * (A * scaled(expected, [=](uint64_t) { return 1 / length; }));
        }
        if (largest(expected) > 1e308L)
            expect_text(power, "too large");
        else if (succeeds(power))
            expect_most(largest(Exact(power.results.at("vector")) - expected), 1e-12L * largest(expected) + 1e-307L,
                        "AᵀA v");
    }
    const supply_call statistics = run("column_statistics", {{{"A", one.A}}}, layout, sparse);
    const std::vector<Real> norms = norms_of_columns(centred(A));
    if (largest(A) > 1e150L)
        expect_text(statistics, "too large");
    else if (succeeds(statistics))
        for (uint64_t j = 0; j < A.columns; j++) {
            const Real mean = means(A)(j, 0), variance = norms[j] * norms[j] / (Real)(A.rows - 1);
            const Real rounding = std::fabs(mean) * 1e-15L;
            expect_most(std::fabs(statistics.results.at("mean")(j, 0) - mean), 1e-15L * norms[j] + rounding,
                        "an error of a mean");
            expect_most(std::fabs(statistics.results.at("variance")(j, 0) - variance),
                        1e-12L * variance + rounding * rounding + 1e-307L, "an error of a variance");
        }
}

static void check_qr(const Case &one) {
    label = "qr, " + one.name;
    const supply_call call = run("qr", {{{"A", one.A}}}, layout, false);
    const uint64_t n = one.A.columns;
    if (one.A.rows < n) return expect_text(call, "at least as many rows");
    if (!succeeds(call)) return;
    const Exact Q(call.results.at("Q")), R(call.results.at("R")), A(one.A);
    expect_most(largest(transpose(Q) * Q - identity(n)), 1e-13L, "|QᵀQ − 1|");
    const std::vector<Real> norms = norms_of_columns(A);
    const auto inverse = [&](uint64_t j) { return norms[j] > 0 ? 1 / norms[j] : 1; };
    expect_most(largest(scaled(Q * R - A, inverse)), 1e-13L, "|Q R − A|");
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j <= i; j++) expect(i == j ? R(i, i) >= 0 : R(i, j) == 0, "R is not upper triangular");
}

static void check_singular_values(const Case &one, const std::string &method, bool is_pca) {
    const Exact A = is_pca ? centred(Exact(one.A)) : Exact(one.A);
    const uint64_t side = std::min(A.rows, A.columns);
    const std::vector<Real> s = singular_values(A);
    for (const uint64_t k : {(uint64_t)2, side}) {
        const supply_call call = run(is_pca ? "pca" : "truncated_svd",
                                     {{{"A", one.A}}, {{"k", (double)k}}, {{"method", method}}}, layout, sparse);
        if (is_pca && s[0] > 1e150L) {
            expect_text(call, "too large");
            continue;
        }
        /* It says so if it cannot find all, as of values that are equal. */
        if (method == "lanczos" && k == side && call.text.find("singular values converged") != std::string::npos)
            continue;
        if (!succeeds(call)) continue;
        const Exact V(call.results.at(is_pca ? "components" : "V"));
        Exact U(call.results.at(is_pca ? "scores" : "U"));
        Exact S(call.results.at(is_pca ? "variance" : "S"));
        /* Of squares: what is below the least double is 0. */
        for (Real &value : S.values) value = is_pca ? std::sqrt(value * (Real)(A.rows - 1)) : value;
        const bool underflows = is_pca && s[0] < 1e-150L;
        for (uint64_t j = 0; j < k && !underflows; j++)
            expect_most(std::fabs(S(j, 0) - s[j]), 3e-8L * s[0] + 1e-322L,
                        "an error of singular value " + std::to_string(j));
        for (uint64_t j = 0; j < k && !underflows; j++)
            if (s[j] > 1e-4L * s[0])
                expect_most(std::fabs(S(j, 0) - s[j]), 1e-11L * s[j],
                            "a relative error of singular value " + std::to_string(j));
        expect_most(largest(transpose(V) * V - identity(k)), 1e-12L, "|VᵀV − 1|");
        if (!is_pca) expect_most(largest(transpose(U) * U - identity(k)), 1e-12L, "|UᵀU − 1|");
        if (!is_pca) U = scaled(U, [&](uint64_t j) { return S(j, 0); });
        const Real rounding = is_pca ? largest(Exact(one.A)) * 1e-15L : 0;
        expect_most(largest(A * V - U), 1e-7L * s[0] + rounding, "|A V − U S|");
    }
}

/* Without an intercept these columns are equal but for 1e-10. */
static bool refused_as_nearly_singular(const supply_call &call, const Case &one) {
    return one.name == "means of 1e10" &&
           (call.text.find("singular") != std::string::npos || call.text.find("did not converge") != std::string::npos);
}

static Exact column(const Exact &of, uint64_t number) {
    Exact result(of.rows, 1);
    for (uint64_t i = 0; i < of.rows; i++) result(i, 0) = of(i, number);
    return result;
}

static void check_ridge(const Case &one, double l2, bool intercept, const std::string &method, uint64_t columns) {
    const Matrix b = target(one.A, columns);
    const Given given = {{{"A", one.A}, {"b", b}},
                         {{"l2", l2}, {"intercept", intercept}, {"tolerance", 1e-12}, {"iterations", 1000}},
                         {{"method", method}}};
    const supply_call call = run("ridge", given, layout, sparse);
    const bool depends = l2 == 0 && (intercept ? one.depends_on_intercept : one.depends);
    if (method == "cholesky" && depends) return expect_text(call, "singular");
    if (!intercept && refused_as_nearly_singular(call, one)) return;
    const Exact original(one.A);
    Exact A = intercept ? centred(original) : original, y = intercept ? centred(Exact(b)) : Exact(b);
    if (intercept && one.depends_on_intercept)
        for (Real &value : A.values) value = std::fabs(value) < 1e-17L ? 0 : value;
    /* The rows of sqrt(l2) below. */
    Exact tall(A.rows + A.columns, A.columns), right(A.rows + A.columns, columns);
    std::copy(A.values.begin(), A.values.end(), tall.values.begin());
    std::copy(y.values.begin(), y.values.end(), right.values.begin());
    for (uint64_t j = 0; j < A.columns; j++) tall(A.rows + j, j) = std::sqrt((Real)l2);
    const Exact all_expected = least_squares(tall, right);
    if (!succeeds(call)) return;
    const Exact mean = means(original), mean_of_b = means(Exact(b)), all_found(call.results.at("coefficients"));
    const std::vector<Real> norms = norms_of_columns(tall);
    const Real shift = intercept ? largest(original) / largest(A) * 1e-16L : 0;
    for (uint64_t v = 0; v < columns; v++) {
        const Exact expected = column(all_expected, v), w = column(all_found, v), given_right = column(right, v);
        if (depends || (one.digits < 12 && method == "cg")) {
            /* Of those that fit best. */
            const Real best = norm(given_right - tall * expected);
            expect_most(norm(given_right - tall * w) - best, 1e-9L * norm(given_right),
                        "the distance to the best fit of column " + std::to_string(v));
            continue;
        }
        /* The error of a coefficient, in units of its column. */
        Real scale = 0, error = 0;
        for (uint64_t j = 0; j < A.columns; j++) {
            scale = std::max(scale, std::fabs(expected(j, 0) * norms[j]));
            error = std::max(error, std::fabs(w(j, 0) - expected(j, 0)) * norms[j]);
        }
        expect_most(error, (method == "cg" ? 1e-7L : 10 * std::pow(10.L, 4 - one.digits)) * scale + 100 * shift * scale,
                    "an error of a coefficient of column " + std::to_string(v));
        if (!intercept) continue;
        Real constant = mean_of_b(v, 0), size = std::fabs(constant);
        for (uint64_t j = 0; j < A.columns; j++) constant -= mean(j, 0) * w(j, 0);
        for (uint64_t j = 0; j < A.columns; j++) size += std::fabs(mean(j, 0) * w(j, 0));
        expect_most(std::fabs(call.results.at("intercept")(v, 0) - constant), 1e-14L * size,
                    "an error of intercept " + std::to_string(v));
    }
}

/* known: the least cost, or negative. */
static void check_kmeans(const Matrix &A, uint64_t k, uint64_t seed, Real known) {
    const supply_call call =
        run("kmeans", {{{"A", A}}, {{"k", (double)k}, {"iterations", 40}, {"seed", (double)seed}, {"tolerance", 0}}},
            layout, false);
    if (!succeeds(call)) return;
    const Matrix &centers = call.results.at("centers"), &labels = call.results.at("labels");
    Real cost = 0;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < A.rows; i++) {
        std::vector<Real> squares(k);
        for (uint64_t c = 0; c < k; c++)
            for (uint64_t j = 0; j < A.columns; j++)
                squares[c] += ((Real)A(i, j) - centers(c, j)) * ((Real)A(i, j) - centers(c, j));
        const Real least = *std::min_element(squares.begin(), squares.end());
        wrong += squares[(uint64_t)labels(i, 0)] > least * (1 + 1e-13L);
        cost += least;
    }
    expect(wrong == 0, std::to_string(wrong) + " labels are not the nearest center");
    expect_most(std::fabs(call.results.at("cost")(0, 0) - cost), 1e-12L * cost, "an error of the cost");
    if (known >= 0) expect_most(cost, known, "the cost");
}

static void check_clusters() {
    for (const double far : {0., 1e10, 1e12, 1e15}) {
        label = "kmeans, an outlier of " + std::to_string(far);
        const Matrix outlier = make(151, 2, [=](uint64_t i, uint64_t j) {
            return i == 150 ? (j == 0 ? far : 0) : j == 1 ? (i % 3 == 1 ? 5 : 0) : (double[]){0, 5, 9}[i % 3];
        });
        for (uint64_t seed = 0; seed < 3; seed++) check_kmeans(outlier, far > 0 ? 4 : 3, seed, 0);
        const Matrix noisy = make(
            301, 3, [=](uint64_t i, uint64_t j) { return (i == 7 ? far : 0) + (double)(i % 3) * 8 + uniform(i, j); });
        check_kmeans(noisy, 4, 1, -1);
    }
    for (const double offset : {1e4, 1e8, 1e12}) {
        label = "kmeans, an offset of " + std::to_string(offset);
        check_kmeans(make(200, 3, [=](uint64_t i, uint64_t j) { return offset + (double)(i % 4) * 9 + uniform(i, j); }),
                     4, 2, -1);
    }
    label = "kmeans";
    check_kmeans(make(100, 2, [](uint64_t i, uint64_t) { return (double)(i % 2); }), 5, 3, 0);
    for (const double size : {1e160, 1e-175}) {
        const Matrix A = make(60, 3, [=](uint64_t i, uint64_t j) { return size * uniform(i, j); });
        expect_text(
            run("kmeans", {{{"A", A}}, {{"k", 3}, {"iterations", 5}, {"seed", 0}, {"tolerance", 0}}}, layout, false),
            size > 1 ? "too large" : "too small");
    }
}

static void check_random_features(const Case &one) {
    for (const double bandwidth : {1e-5, 2.}) {
        const supply_call call =
            run("random_features", {{{"A", one.A}}, {{"features", 8}, {"bandwidth", bandwidth}, {"seed", 1}}}, layout,
                sparse);
        if (succeeds(call)) expect_most(largest(Exact(call.results.at("Z"))), 0.5000001L, "a feature");
    }
    if (one.name == "values of 1e160")
        expect_text(run("random_features", {{{"A", one.A}}, {{"features", 8}, {"bandwidth", 1e-160}, {"seed", 1}}},
                        layout, sparse),
                    "A / bandwidth has a value that is NaN, or too large");
}

/* A symmetric matrix, and its eigenvalues by the definition of the case, ascending. */
static void check_eigenvalues(const std::string &name, const Matrix &A, std::vector<Real> known, double size) {
    std::sort(known.begin(), known.end());
    const Real scale = std::max(std::fabs(known.front()), std::fabs(known.back()));
    for (const std::string which : {"smallest", "largest"})
        for (const uint64_t k : {1, 3}) {
            if (sparse && k == 1) continue;
            label = "eigenvalues, " + name + ", " + which + ", k " + std::to_string(k) + (sparse ? ", sparse" : "");
            const supply_call call =
                run("eigenvalues",
                    {{{"A", make(A.rows, A.rows, [&](uint64_t i, uint64_t j) { return size * A(i, j); })}},
                     {{"k", (double)k}},
                     {{"which", which}}},
                    layout, sparse);
            if (!succeeds(call)) continue;
            const Exact V(call.results.at("vectors"));
            expect_most(largest(transpose(V) * V - identity(k)), 1e-9L, "|VᵀV − 1|");
            for (uint64_t j = 0; j < k; j++) {
                const Real expected = which == "smallest" ? known[j] : known[known.size() - 1 - j];
                expect_most(std::fabs(call.results.at("values")(j, 0) / size - expected),
                            1e-9L * std::fabs(expected) + 1e-12L * scale,
                            "an error of eigenvalue " + std::to_string(j));
            }
        }
}

static std::vector<Real> of_path(uint64_t nodes) {
    std::vector<Real> found;
    for (uint64_t i = 0; i < nodes; i++) found.push_back(2 - 2 * std::cos(acosl(-1) * (Real)i / (Real)nodes));
    return found;
}

static void check_all_eigenvalues() {
    const auto paths = [](uint64_t nodes) {
        return [=](uint64_t i, uint64_t j) -> double {
            if (i / nodes != j / nodes) return 0;
            const uint64_t a = i % nodes, b = j % nodes;
            if (a == b) return a == 0 || a + 1 == nodes ? 1 : 2;
            return a + 1 == b || b + 1 == a ? -1 : 0;
        };
    };
    std::vector<Real> thrice, steps;
    for (int i = 0; i < 3; i++)
        for (const Real value : of_path(40)) thrice.push_back(value);
    for (uint64_t i = 0; i < 100; i++) steps.push_back(i == 0 ? 0 : 1 + (Real)i / 100);
    for (const double size : {1., 1e-160, 1e160})
        check_eigenvalues("three paths", make(120, 120, paths(40)), thrice, size);
    check_eigenvalues("a path", make(120, 120, paths(120)), of_path(120), 1);
    check_eigenvalues("a diagonal",
                      make(100, 100, [](uint64_t i, uint64_t j) { return i != j || i == 0 ? 0 : 1 + (double)i / 100; }),
                      steps, 1);
    check_eigenvalues("the identity", make(50, 50, [](uint64_t i, uint64_t j) { return i == j; }),
                      std::vector<Real>(50, 1), 1);
    check_eigenvalues("zeros", make(50, 50, [](uint64_t, uint64_t) { return 0; }), std::vector<Real>(50, 0), 1);
}

/* Each routine refuses values that are not finite. */
static void check_not_finite() {
    const std::map<std::string, double> numbers = {{"k", 2},  {"iterations", 5}, {"seed", 0},     {"tolerance", 1e-4},
                                                   {"l2", 0}, {"intercept", 1},  {"features", 3}, {"bandwidth", 1}};
    for (const double value : {(double)NAN, -(double)INFINITY})
        for (const supply_routine_t *routine = routines; routine->name != nullptr; routine++) {
            const std::string name = routine->name;
            if (name == "multiply" || name == "transpose_multiply" || (name == "eigenvalues" && !has_slepc)) continue;
            const uint64_t rows = name == "eigenvalues" ? 4 : 30;
            Matrix A =
                make(rows, 4, [](uint64_t i, uint64_t j) { return uniform(std::min(i, j), std::max(i, j)) + 1; });
            A(rows - 1, 3) = value;
            label = name + " of " + std::to_string(value);
            for (const std::string method : {"auto", has_slepc ? "lanczos" : "gram"}) {
                const bool has_choice = name == "truncated_svd" || name == "pca";
                const Given given = {{{"A", A}, {"b", target(A)}, {"v", make(4, 1, uniform)}},
                                     numbers,
                                     {{"method", has_choice ? method : "auto"}, {"which", "largest"}}};
                const supply_call call = run(name, given, layout, false);
                expect_text(call, "NaN");
            }
        }
}

static void check(const Case &one) {
    const std::string place = ", layout " + std::to_string(layout) + (sparse ? ", sparse" : "");
    const auto as = [&](const std::string &what) { label = what + ", " + one.name + place; };
    as("products");
    check_products(one);
    as("random_features");
    check_random_features(one);
    for (const double l2 : {0., 1e-3})
        for (const bool intercept : {true, false}) {
            if (sparse && intercept && one.name == "means of 1e10") continue;
            as("ridge, l2 " + std::to_string(l2) + (intercept ? ", intercept" : ""));
            for (const std::string method : {"cg", "cholesky"})
                for (const uint64_t columns : {1, 3, 40})
                    if ((sparse || ranks > 1 ? (method == "cg") == sparse : true) &&
                        (columns < 40 || one.name == "plain"))
                        check_ridge(one, l2, intercept, method, columns);
        }
    if (one.A.rows > 500) return;
    for (const bool is_pca : {false, true})
        for (const std::string method : {"gram", "lanczos"}) {
            if (method == "gram" ? sparse : !has_slepc) continue;
            if (is_pca && sparse && one.name == "means of 1e10") continue;
            as((is_pca ? "pca by " : "truncated_svd by ") + method);
            check_singular_values(one, method, is_pca);
        }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : nullptr;
    if (library == nullptr) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: check-routines LIBRARY");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    routines = (const supply_routine_t *)dlsym(library, "supply_routines_1");
    const Matrix two = make(2, 2, [](uint64_t i, uint64_t j) { return i == j; });
    has_slepc = run("eigenvalues", {{{"A", two}}, {{"k", 1}}, {{"which", "largest"}}}, EVEN, false)
                    .text.find("without SLEPc") == std::string::npos;
    for (const bool with : {false, true}) {
        sparse = with;
        layout = ranks < 3 ? EVEN : sparse ? EMPTY : NARROW;
        for (const Case &of : cases())
            if (ranks == 1 || of.A.rows < 10000) check(of);
        if (has_slepc && (ranks < 3 || sparse)) check_all_eigenvalues();
    }
    layout = ranks < 3 ? EVEN : EMPTY;
    for (const Case &of : cases())
        if (of.A.rows < 500) check_qr(of);
    check_clusters();
    check_not_finite();
    if (rank == 0) printf("%s%d checks, %d failures\n", has_slepc ? "" : "no SLEPc, ", checks, failures);
    MPI_Finalize();
    return failures > 0;
}
