//! Sparse codes of patches, by coordinate descent.

use crate::matrix::Matrix;

/// Sweeps over the coordinates of a code at most.
const SWEEPS_MAX: u32 = 200;
/// A code is found when no coordinate moves by more than this.
const FOUND: f32 = 1e-4;

/// A dictionary, and the products of its atoms with one another.
#[derive(Clone, Debug)]
pub struct Coder<'a> {
    /// Atoms one after the other.
    atoms: &'a [f32],
    /// Pixels of an atom.
    size: usize,
    products: Vec<f32>,
    sparsity: f32,
}

impl<'a> Coder<'a> {
    /// Atoms of `size` numbers each, one after the other; `sparsity` is the weight of the absolute codes.
    ///
    /// # Panics
    /// If the atoms are not whole.
    #[must_use]
    pub fn new(atoms: &'a [f32], size: usize, sparsity: f32) -> Self {
        let count = atoms.len() / size;
        let mut products = vec![0.0; count * count];
        let rows = Matrix::rows_of(atoms, size);
        rows.times(rows.transposed(), 0.0, &mut products);
        Self { atoms, size, products, sparsity }
    }

    /// The codes of patches, one after the other, and how many coordinates were moved on the way.
    #[must_use]
    pub fn codes(&self, patches: &[f32]) -> (Vec<f32>, u64) {
        let count = self.atoms.len() / self.size;
        let mut pulls = vec![0.0; patches.len() / self.size * count];
        let atoms = Matrix::rows_of(self.atoms, self.size).transposed();
        Matrix::rows_of(patches, self.size).times(atoms, 0.0, &mut pulls);
        let mut codes = vec![0.0; pulls.len()];
        let (mut active, mut moves) = (Vec::new(), 0);
        for (pull, code) in pulls.chunks_exact_mut(count).zip(codes.chunks_exact_mut(count)) {
            moves += self.descend(pull, code, &mut active);
        }
        (codes, moves)
    }

    /// Finds a code from zero; `pull` is what the atoms have in common with what is left of the patch.
    fn descend(&self, pull: &mut [f32], code: &mut [f32], active: &mut Vec<usize>) -> u64 {
        let (count, mut moves) = (code.len(), 0);
        for _ in 0..SWEEPS_MAX {
            let mut moved = 0.0f32;
            active.clear();
            for at in 0..count {
                // Most atoms stay at zero, and need no more than this look.
                if code[at] != 0.0 || pull[at].abs() > self.sparsity {
                    moved = moved.max(self.move_one(at, pull, code));
                    active.push(at);
                }
            }
            moves += active.len();
            if moved < FOUND {
                break;
            }
            for _ in 0..SWEEPS_MAX {
                moves += active.len();
                let among = active.iter().map(|&at| self.move_one(at, pull, code)).fold(0.0f32, f32::max);
                if among < FOUND {
                    break;
                }
            }
        }
        moves as u64
    }

    /// Moves one coordinate to where the objective is least, and says by how much.
    fn move_one(&self, at: usize, pull: &mut [f32], code: &mut [f32]) -> f32 {
        let row = &self.products[at * code.len()..][..code.len()];
        let square = row[at];
        if square < 1e-12 {
            return 0.0;
        }
        let towards = pull[at] + square * code[at];
        let next = (towards.abs() - self.sparsity).max(0.0).copysign(towards) / square;
        let change = next - code[at];
        if change != 0.0 {
            code[at] = next;
            pull.iter_mut().zip(row).for_each(|(pull, product)| *pull -= change * product);
        }
        change.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn codes_fulfil_the_conditions_of_optimality() {
        let (size, count, sparsity) = (6, 10, 0.2);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
        let mut draw = |count: usize| -> Vec<f32> {
            (0..count).map(|_| random.next_u32() as f32 / u32::MAX as f32 - 0.5).collect()
        };
        let (atoms, patches) = (draw(size * count), draw(size * 40));
        let (codes, moves) = Coder::new(&atoms, size, sparsity).codes(&patches);
        let mut zeros = 0;
        for (patch, code) in patches.chunks(size).zip(codes.chunks(count)) {
            let put_together = |d: usize| atoms.chunks(size).zip(code).map(|(atom, a)| atom[d] * a).sum::<f32>();
            let left: Vec<f32> = (0..size).map(|d| patch[d] - put_together(d)).collect();
            for (atom, &a) in atoms.chunks(size).zip(code) {
                let pull: f32 = atom.iter().zip(&left).map(|(atom, left)| atom * left).sum();
                if a == 0.0 {
                    zeros += 1;
                    assert!(pull.abs() <= sparsity + 1e-4, "{pull}");
                } else {
                    assert!((pull - sparsity.copysign(a)).abs() < 1e-3, "{pull} at {a}");
                }
            }
        }
        assert!(zeros > 200 && moves >= 400 - zeros, "{zeros}, {moves}");
    }
}
