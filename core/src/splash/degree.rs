//! How many workers take part: appendix B's groups and choices, and who processes what in a pass of a given degree.

/// How often the same degree must be chosen before it is kept, and for how many passes it is.
const AGREEMENTS: u32 = 2;
const KEPT_PASSES: u32 = 8;

/// The sizes of the groups that `workers` try out side by side, where `last` is the degree of the last pass: appendix B's
/// allocation. With two workers it would be twice one, which compares nothing, so it is both together.
#[must_use]
pub fn groups(workers: u32, last: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = Vec::new();
    let mut left = workers;
    while left > 0 {
        let next = sizes.last().map_or(last.max(1), |size| 4 * size);
        let size = if 2 * next <= left { next } else { left };
        sizes.push(size);
        left -= size;
    }
    if sizes == [1, 1] { vec![2] } else { sizes }
}

/// Keeps track of which degree was chosen, and says when to try others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    workers: u32,
    degree: u32,
    agreements: u32,
    kept: u32,
}

impl Choice {
    /// Before the first pass.
    #[must_use]
    pub fn new(workers: u32) -> Self {
        Self { workers, degree: 1, agreements: 0, kept: 0 }
    }

    /// The degree that was chosen last.
    #[must_use]
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// The groups to try at the beginning of the next pass; none while the degree is kept. When it has been kept for long
    /// enough the search begins again at one, since the groups of appendix B never get smaller.
    pub fn trial(&mut self) -> Vec<u32> {
        if self.agreements >= AGREEMENTS {
            self.kept += 1;
            if self.kept <= KEPT_PASSES {
                return Vec::new();
            }
            *self = Self::new(self.workers);
        }
        groups(self.workers, self.degree)
    }

    /// Takes the groups' mean losses, and says which group has the smallest. What is not a number is the largest.
    pub fn choose(&mut self, sizes: &[u32], losses: &[f64]) -> usize {
        let worst_if_nan = |loss: f64| if loss.is_nan() { f64::INFINITY } else { loss };
        let better = |a: &usize, b: &usize| worst_if_nan(losses[*a]).total_cmp(&worst_if_nan(losses[*b]));
        let best = (0..sizes.len()).min_by(better).unwrap_or(0);
        let degree = sizes.get(best).copied().unwrap_or(1);
        self.agreements = if degree == self.degree { self.agreements + 1 } else { 1 };
        self.degree = degree;
        best
    }
}

/// Who processes what until the next synchronisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The workers, each of which takes its elements as many times as there are of them.
    pub members: Vec<u32>,
    /// How many blocks each takes.
    pub blocks: usize,
}

/// The next round of a pass in which at most `degree` workers take part at a time, where `left` says how many blocks each
/// worker still has. Where fewer than all take part they take more blocks, so that as many elements are processed
/// between synchronisations whatever the degree.
#[must_use]
pub fn next_round(left: &[usize], degree: u32) -> Option<Round> {
    let busy: Vec<u32> = (0..left.len() as u32).filter(|&worker| left[worker as usize] > 0).collect();
    let turns = busy.len().div_ceil(degree.max(1) as usize).max(1);
    let members = busy[..busy.len().div_ceil(turns)].to_vec();
    let least = members.iter().map(|&worker| left[worker as usize]).min()?;
    let blocks = (left.len() / members.len()).clamp(1, least);
    Some(Round { members, blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_appendix_b() {
        for (workers, last, sizes) in [
            (64, 1, &[1, 4, 16, 43][..]),
            (64, 4, &[4, 16, 44]),
            (64, 16, &[16, 48]),
            (64, 33, &[64]),
            (64, 64, &[64]),
            (8, 1, &[1, 7]),
            (3, 1, &[1, 2]),
            (2, 1, &[2]),
            (1, 1, &[1]),
        ] {
            assert_eq!(groups(workers, last), sizes, "{workers} workers after {last}");
        }
    }

    #[test]
    fn a_degree_is_kept_once_it_was_chosen_twice_and_then_tried_again() {
        let mut choice = Choice::new(64);
        assert_eq!(choice.trial(), [1, 4, 16, 43]);
        assert_eq!(choice.choose(&[1, 4, 16, 43], &[3.0, 1.0, f64::NAN, 2.0]), 1);
        assert_eq!(choice.trial(), [4, 16, 44]);
        assert_eq!(choice.choose(&[4, 16, 44], &[1.0, 1.5, 2.0]), 0);
        for _ in 0..KEPT_PASSES {
            assert!(choice.trial().is_empty());
            assert_eq!(choice.degree(), 4);
        }
        assert_eq!(choice.trial(), [1, 4, 16, 43]);
    }

    #[test]
    fn a_pass_of_any_degree_processes_every_block_once() {
        for (workers, blocks, degree) in [(1, 3, 1), (5, 4, 1), (8, 2, 3), (64, 5, 43), (7, 1, 7), (6, 3, 100)] {
            let mut left = vec![blocks; workers];
            let mut rounds = 0;
            while let Some(round) = next_round(&left, degree) {
                assert!(!round.members.is_empty() && round.members.len() <= degree as usize && round.blocks > 0);
                round.members.iter().for_each(|&worker| left[worker as usize] -= round.blocks);
                rounds += 1;
                assert!(rounds <= workers * blocks, "it ends");
            }
            assert_eq!(left, vec![0; workers]);
        }
        let (members, blocks) = ((0..32).collect(), 2);
        assert_eq!(next_round(&[5; 64], 43), Some(Round { members, blocks }), "turns of equal size");
    }
}
