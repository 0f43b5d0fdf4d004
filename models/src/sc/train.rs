//! Learns a dictionary by proximal steps on batches of patches, on the threads of one process.
//!
//! A batch is cut into chunks whatever the number of threads; each finds the factors of its patches, and these are applied
//! in the order of the chunks, so that one seed gives one dictionary. Every atom has its own step size: a share of what
//! would be right for the mean square of its codes. An atom that no patch of an epoch has used begins anew as a patch.

use super::codes::Coder;
use super::factors::{Factors, Sums, factors, prox};
use crate::StepSize;
use crate::epoch::{Course, Epoch};
use crate::mf::blocks::shuffle;
use crate::patches::Patches;
use crate::team::share_out;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Atoms of the dictionary.
    pub atoms: usize,
    /// Weight of the absolute codes in the objective, `λ`.
    pub sparsity: f32,
    /// Patches of a step.
    pub batch: u32,
    /// The size of steps, as a part of what would be right for each atom alone.
    pub step: StepSize,
    /// Passes over the patches.
    pub epochs: u32,
    /// Ends early when the held-out objective has not fallen for so many epochs.
    pub patience: Option<u32>,
    /// Fixes everything that is drawn at random.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            atoms: 100,
            sparsity: 0.1,
            batch: 256,
            step: StepSize::Decay { rate: 0.3, factor: 0.7 },
            epochs: 10,
            patience: None,
            seed: 1,
        }
    }
}

/// How good a dictionary is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The mean objective met during the epoch.
    pub objective: f64,
    /// The mean objective of held-out patches.
    pub test_objective: f64,
    /// The part of the held-out patches' energy that is lost when they are put together again.
    pub test_lost: f64,
    /// The mean number of atoms that a held-out patch is put together from.
    pub test_nonzeros: f64,
}

impl Quality {
    /// What atoms made of patches, and of held-out ones, each with how many they were, as numbers that can be added up.
    pub(super) fn sums((met, count): (Sums, usize), (tested, held_out): (Sums, usize), sparsity: f32) -> Vec<f64> {
        vec![
            met.objective(sparsity),
            count as f64,
            tested.objective(sparsity),
            held_out as f64,
            tested.lost,
            tested.energy,
            tested.nonzeros as f64,
        ]
    }

    /// What such numbers say.
    pub(super) fn from_sums(sums: &[f64]) -> Self {
        let at = |i: usize| sums.get(i).copied().unwrap_or(0.0);
        Self {
            objective: at(0) / at(1).max(1.0),
            test_objective: at(2) / at(3).max(1.0),
            test_lost: at(4) / at(5),
            test_nonzeros: at(6) / at(3).max(1.0),
        }
    }
}

/// Why no dictionary could be learnt.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum TrainError {
    #[error("{patches} patches are too few to hold some out; draw more")]
    TooFew { patches: usize },
    #[error("the objective is no longer a number in epoch {epoch}: the steps are too large; try a rate below {rate}")]
    Diverged { epoch: u32, rate: f32 },
    #[error("the epochs have more iterations than can be counted; use fewer, or larger batches")]
    Iterations,
    #[error(transparent)]
    Job(#[from] hemiola::Error),
}

/// One patch in so many is held out.
const HELD_OUT: usize = 10;
/// Patches of a chunk.
const CHUNK: usize = 64;
/// The mean squares of codes are averaged over about so many batches.
const BATCHES_REMEMBERED: f32 = 20.0;

/// Learns atoms from patches, of which the last tenth is held out; shows `observe` how far it is after every epoch.
///
/// # Errors
/// If there are too few patches, or training diverges.
pub fn train(
    config: &Config,
    patches: &Patches,
    workers: u32,
    mut observe: impl FnMut(&Epoch<Quality>, &[f32]),
) -> Result<Vec<f32>, TrainError> {
    let mut began = Instant::now();
    let (task, held_out) = Task::new(config, patches, workers)?;
    let size = task.size;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    let mut atoms = task.begin(&mut random);
    let mut memory = Memory::new(config.atoms);
    let mut order: Vec<u32> = (0..task.count()).collect();
    let mut course = Course::default();
    for epoch in 0..config.epochs {
        shuffle(&mut order, &mut random);
        memory.used.fill(false);
        let rate = config.step.at_epoch(epoch);
        let mut sums = Sums::default();
        order.chunks(config.batch as usize).for_each(|batch| sums.add(task.step(&mut atoms, &mut memory, batch, rate)));
        if !sums.objective(config.sparsity).is_finite() {
            return Err(TrainError::Diverged { epoch: epoch + 1, rate });
        }
        task.begin_unused_anew(&mut atoms, &memory.used, &mut random);
        course.train_seconds += began.elapsed().as_secs_f64();
        let tested = (judge(&atoms, config.sparsity, size, held_out, workers), held_out.len() / size);
        let quality = Quality::from_sums(&Quality::sums((sums, order.len()), tested, config.sparsity));
        observe(&Epoch::alone(epoch + 1, course.train_seconds, quality), &atoms);
        if !course.goes_on_by(config.patience, || Ok::<_, TrainError>(quality.test_objective))? {
            break;
        }
        began = Instant::now();
    }
    Ok(atoms)
}

/// What atoms make of patches, summed over them.
pub(super) fn judge(atoms: &[f32], sparsity: f32, size: usize, patches: &[f32], workers: u32) -> Sums {
    let coder = Coder::new(atoms, size, sparsity);
    let chunks = patches.chunks(CHUNK * size).collect();
    let found = share_out(workers as usize, chunks, |chunk| factors(&coder, atoms, size, chunk).sums);
    let mut sums = Sums::default();
    found.into_iter().for_each(|found| sums.add(found));
    sums
}

/// What is to be learnt from, whoever has the atoms.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) config: &'a Config,
    patches: &'a [f32],
    /// Pixels of a patch.
    pub(super) size: usize,
    /// Threads that compute.
    pub(super) workers: u32,
}

impl<'a> Task<'a> {
    /// What there is, and the patches that are held out.
    pub(super) fn new(config: &'a Config, patches: &'a Patches, workers: u32) -> Result<(Self, &'a [f32]), TrainError> {
        let (count, size) = (patches.len(), patches.side * patches.side);
        if count < HELD_OUT {
            return Err(TrainError::TooFew { patches: count });
        }
        let (shown, held_out) = patches.numbers.split_at((count - count / HELD_OUT) * size);
        Ok((Self { config, patches: shown, size, workers }, held_out))
    }

    fn count(&self) -> u32 {
        (self.patches.len() / self.size) as u32
    }

    /// The patches in random order.
    pub(super) fn order(&self, random: &mut Xoshiro256PlusPlus) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.count()).collect();
        shuffle(&mut order, random);
        order
    }

    /// Begins with patches as atoms.
    pub(super) fn begin(&self, random: &mut Xoshiro256PlusPlus) -> Vec<f32> {
        let mut atoms = vec![0.0; self.config.atoms * self.size];
        self.begin_unused_anew(&mut atoms, &vec![false; self.config.atoms], random);
        atoms
    }

    /// Puts a patch into the place of every atom that was not used.
    fn begin_unused_anew(&self, atoms: &mut [f32], used: &[bool], random: &mut Xoshiro256PlusPlus) {
        for (atom, used) in atoms.chunks_exact_mut(self.size).zip(used) {
            if !used && let Some(fresh) = self.fresh(random) {
                atom.copy_from_slice(&fresh);
            }
        }
    }

    /// A patch as an atom. Some patches are of a single colour; after a few of them there is none.
    pub(super) fn fresh(&self, random: &mut Xoshiro256PlusPlus) -> Option<Vec<f32>> {
        (0..100).find_map(|_| {
            let at = (random.next_u64() % u64::from(self.count())) as usize * self.size;
            let patch = &self.patches[at..at + self.size];
            let square = patch.iter().map(|number| number * number).sum::<f32>();
            (square > 1e-4).then(|| patch.iter().map(|number| number / square.sqrt()).collect())
        })
    }

    /// The factors of a batch, chunk by chunk.
    pub(super) fn factors(&self, atoms: &[f32], batch: &[u32]) -> Vec<Factors> {
        let size = self.size;
        let coder = Coder::new(atoms, size, self.config.sparsity);
        let chunks = batch.chunks(CHUNK).collect();
        share_out(self.workers as usize, chunks, |chunk: &[u32]| {
            let patch = |&at: &u32| &self.patches[at as usize * size..(at as usize + 1) * size];
            let patches: Vec<f32> = chunk.iter().flat_map(patch).copied().collect();
            factors(&coder, atoms, size, &patches)
        })
    }

    /// How many products of two numbers the factors of so many patches take, with so many moves of coordinates: those of
    /// atoms with one another, with the patches, and with the codes.
    pub(super) fn products(&self, patches: usize, moves: u64) -> u64 {
        let (atoms, size) = (self.config.atoms, self.size);
        (atoms * size * (atoms + 2 * patches)) as u64 + atoms as u64 * moves
    }

    /// A step on a batch.
    fn step(&self, atoms: &mut [f32], memory: &mut Memory, batch: &[u32], rate: f32) -> Sums {
        let found = self.factors(atoms, batch);
        let rates = memory.rates(&found, batch.len(), rate);
        let mut sums = Sums::default();
        for mut factors in found {
            sums.add(factors.sums);
            factors.apply(atoms, self.size, &rates);
        }
        prox(atoms, self.size);
        sums
    }
}

/// What is known of the codes that atoms have had.
pub(super) struct Memory {
    /// The mean square of each atom's codes.
    squares: Vec<f32>,
    /// Whether a patch of this epoch has used it.
    pub(super) used: Vec<bool>,
}

impl Memory {
    pub(super) fn new(atoms: usize) -> Self {
        Self { squares: vec![0.0; atoms], used: vec![false; atoms] }
    }

    /// The step size of each atom for a pair of a batch of so many patches, whose codes are now known too.
    pub(super) fn rates(&mut self, found: &[Factors], patches: usize, rate: f32) -> Vec<f32> {
        let atoms = self.squares.len();
        let mut squares = vec![0.0f32; atoms];
        for code in found.iter().flat_map(|factors| factors.vs.chunks_exact(atoms)) {
            squares.iter_mut().zip(code).for_each(|(square, number)| *square += number * number);
        }
        let mut rates = vec![0.0; atoms];
        for (at, square) in squares.iter().enumerate() {
            let mean = square / patches.max(1) as f32;
            self.used[at] |= mean > 0.0;
            let known = &mut self.squares[at];
            // More than was known of counts at once, so that no step is too long.
            *known = mean.max(*known + (mean - *known) / BATCHES_REMEMBERED);
            rates[at] = if *known > 0.0 { rate / (*known * patches.max(1) as f32) } else { 0.0 };
        }
        rates
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Patches put together from two of nine bars.
    pub(in super::super) fn bars(count: usize) -> Patches {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut numbers = Vec::new();
        for _ in 0..count {
            let mut patch = [0.0f32; 16];
            for _ in 0..2 {
                let (bar, strength) =
                    (random.next_u32() as usize % 8, 0.5 + random.next_u32() as f32 / u32::MAX as f32);
                let pixel = |i: usize| if bar < 4 { 4 * bar + i } else { 4 * i + bar - 4 };
                (0..4).for_each(|i| patch[pixel(i)] += strength);
            }
            numbers.extend_from_slice(&patch);
        }
        Patches { side: 4, numbers }
    }

    #[test]
    fn the_parts_of_patches_are_found_with_any_number_of_threads() {
        let patches = bars(2000);
        let config = Config { atoms: 8, epochs: 20, batch: 100, sparsity: 0.05, ..Config::default() };
        let mut found = Vec::new();
        let atoms = train(&config, &patches, 1, |epoch, _| found.push(epoch.quality)).expect("trained");
        let last = found[19];
        assert!(last.test_lost < 0.02 && last.test_objective < found[0].test_objective, "{found:?}");
        for atom in atoms.chunks(16) {
            assert!(atom.iter().map(|number| number * number).sum::<f32>() < 1.0001);
        }
        assert_eq!(train(&config, &patches, 3, |_, _| ()).expect("trained"), atoms);
        let few = Patches { side: 4, numbers: vec![1.0; 16 * 9] };
        assert!(train(&config, &few, 1, |_, _| ()).is_err());
    }
}
