//! Linear equations, solved as at school.

/// Solves `a u = b` by elimination.
pub(crate) fn eliminate(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for pivot in 0..n {
        for row in pivot + 1..n {
            let factor = a[row][pivot] / a[pivot][pivot];
            (pivot..n).for_each(|column| a[row][column] -= factor * a[pivot][column]);
            b[row] -= factor * b[pivot];
        }
    }
    for row in (0..n).rev() {
        b[row] = (b[row] - (row + 1..n).map(|column| a[row][column] * b[column]).sum::<f64>()) / a[row][row];
    }
    b
}
