//! Dense matrices: products, and the eigenvectors of symmetric ones.

/// Numbers as a matrix, without owning them.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    numbers: &'a [f32],
    rows: usize,
    columns: usize,
    /// How far the next row and the next column are.
    strides: (usize, usize),
}

impl<'a> Matrix<'a> {
    /// Numbers that lie row by row.
    ///
    /// # Panics
    /// If they are not whole rows of `columns`.
    pub(crate) fn rows_of(numbers: &'a [f32], columns: usize) -> Self {
        assert!(columns > 0 && numbers.len().is_multiple_of(columns), "a matrix has whole rows");
        Self { numbers, rows: numbers.len() / columns, columns, strides: (columns, 1) }
    }

    /// The same numbers with rows for columns.
    pub(crate) fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, strides: (self.strides.1, self.strides.0), ..self }
    }

    /// `out = self · other + keep · out`, where `out` lies row by row.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub(crate) fn times(self, other: Self, keep: f32, out: &mut [f32]) {
        assert_eq!(self.columns, other.rows, "the columns of one matrix are multiplied with the rows of the other");
        assert_eq!(out.len(), self.rows * other.columns, "a product has the rows of one and the columns of the other");
        let strides = |matrix: &Self| (matrix.strides.0 as isize, matrix.strides.1 as isize);
        let (ours, theirs) = (strides(&self), strides(&other));
        #[expect(unsafe_code, reason = "the product takes pointers; what they reach has been checked here")]
        // SAFETY: a matrix covers its numbers exactly, and `out` has a number for each of the product.
        unsafe {
            matrixmultiply::sgemm(
                self.rows,
                self.columns,
                other.columns,
                1.0,
                self.numbers.as_ptr(),
                ours.0,
                ours.1,
                other.numbers.as_ptr(),
                theirs.0,
                theirs.1,
                keep,
                out.as_mut_ptr(),
                other.columns as isize,
                1,
            );
        }
    }
}

/// The eigenvalues of a symmetric matrix that lies row by row, and their eigenvectors as rows, by Jacobi's rotations.
pub(crate) fn eigen(mut matrix: Vec<f64>, size: usize) -> (Vec<f64>, Vec<f64>) {
    const SWEEPS_MAX: usize = 60;
    let mut vectors = vec![0.0; size * size];
    (0..size).for_each(|i| vectors[i * size + i] = 1.0);
    let scale: f64 = matrix.iter().map(|number| number * number).sum();
    for _ in 0..SWEEPS_MAX {
        let off: f64 = (0..size * size).filter(|at| at / size != at % size).map(|at| matrix[at] * matrix[at]).sum();
        if off <= 1e-24 * scale {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut matrix, &mut vectors, size, p, q);
            }
        }
    }
    ((0..size).map(|i| matrix[i * size + i]).collect(), vectors)
}

/// Makes the entry `(p, q)` zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], size: usize, p: usize, q: usize) {
    let entry = matrix[p * size + q];
    if entry == 0.0 {
        return;
    }
    let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * entry);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for k in 0..size {
        let (a, b) = (matrix[k * size + p], matrix[k * size + q]);
        (matrix[k * size + p], matrix[k * size + q]) = (c * a - s * b, s * a + c * b);
    }
    for rows in [matrix, vectors] {
        for k in 0..size {
            let (a, b) = (rows[p * size + k], rows[q * size + k]);
            (rows[p * size + k], rows[q * size + k]) = (c * a - s * b, s * a + c * b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_sums_of_products() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0, 0.0, -1.0, 2.0, 1.0, 0.5];
        let mut out = [10.0; 4];
        Matrix::rows_of(&a, 3).times(Matrix::rows_of(&b, 2), 1.0, &mut out);
        assert_eq!(out, [12.0, 15.5, 15.0, 23.0]);
        let mut square = [0.0; 9];
        Matrix::rows_of(&a, 3).transposed().times(Matrix::rows_of(&a, 3), 0.0, &mut square);
        assert_eq!(square, [17.0, 22.0, 27.0, 22.0, 29.0, 36.0, 27.0, 36.0, 45.0]);
    }

    #[test]
    fn eigenvectors_put_the_matrix_together_again() {
        const SIZE: usize = 5;
        let entry = |i: usize, j: usize| 1.0 / (1.0 + (i + j) as f64) + if i == j { 0.3 * i as f64 } else { 0.0 };
        let matrix: Vec<f64> = (0..SIZE * SIZE).map(|at| entry(at / SIZE, at % SIZE)).collect();
        let (values, vectors) = eigen(matrix.clone(), SIZE);
        for i in 0..SIZE {
            for j in 0..SIZE {
                let sum = |f: &dyn Fn(usize) -> f64| (0..SIZE).map(f).sum::<f64>();
                let again = sum(&|k| values[k] * vectors[k * SIZE + i] * vectors[k * SIZE + j]);
                assert!((again - matrix[i * SIZE + j]).abs() < 1e-12, "{i} {j}");
                let product = sum(&|k| vectors[i * SIZE + k] * vectors[j * SIZE + k]);
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j}");
            }
        }
    }
}
