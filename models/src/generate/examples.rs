//! Examples of two classes with few of many features, made from known weights and written as they are made.

use std::io::{self, Write};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Random;
use super::corpus::Order;
use crate::examples::FEATURES_MAX;

/// What examples to make: some features are far more frequent than others, as by Zipf's law, all have the value 1, and
/// few of them matter, of which half are frequent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticExamples {
    /// How many examples there are.
    pub examples: u32,
    /// How many features there are.
    pub features: u32,
    /// About how many of them an example has on average.
    pub nonzeros: u32,
    /// How many features have a weight in the truth.
    pub relevant: u32,
    /// The same seed gives the same examples.
    pub seed: u64,
}

/// Why examples could not be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GenerateExamplesError {
    /// There is nothing to make.
    #[error("cannot make {examples} examples with {nonzeros} of {features} features; expected 1 or more of each")]
    Nothing {
        /// The number of examples given.
        examples: u32,
        /// The number of features given.
        features: u32,
        /// The number of features of an example given.
        nonzeros: u32,
    },
    /// There are fewer features than are asked for.
    #[error("cannot make examples of {features} features with {wanted} {what}; expected no more than there are")]
    TooFew {
        /// The number of features given.
        features: u32,
        /// The number given that is greater.
        wanted: u32,
        /// What that is the number of.
        what: &'static str,
    },
    /// There are more features than can be read.
    #[error("cannot make examples of {features} features; expected less than {FEATURES_MAX}")]
    TooMany {
        /// The number of features given.
        features: u32,
    },
}

/// The frequency of features falls with their rank to this power.
const ZIPF: f64 = -1.1;
/// Added to the rank, so that no feature alone makes an example.
const ZIPF_SHIFT: f64 = 6.0;
/// So many times as many features are drawn as an example has, because some are drawn twice.
const DRAWS: f64 = 1.1;
/// The most frequent features matter less than others.
const STOP_WORDS: (usize, f32) = (20, 0.3);
/// Examples that say how large margins usually are.
const PILOTS: usize = 1000;
/// What margins are multiplied by, and what is added then.
const MARGINS: (f64, f64) = (1.2, -0.8);

/// Examples, ready to be made one after the other.
#[derive(Debug)]
pub struct ExampleMaker {
    what: SyntheticExamples,
    random: Random,
    order: Order,
    ranks: Ranks,
    /// The weight of each feature, by rank.
    weights: Vec<f32>,
    /// The margin that is taken for the middle.
    centre: f64,
}

impl ExampleMaker {
    /// Draws the truth.
    ///
    /// # Errors
    /// If there are no such examples.
    pub fn new(what: &SyntheticExamples) -> Result<Self, GenerateExamplesError> {
        let SyntheticExamples { examples, features, nonzeros, relevant, seed } = *what;
        if examples == 0 || features == 0 || nonzeros == 0 {
            return Err(GenerateExamplesError::Nothing { examples, features, nonzeros });
        }
        if features as usize >= FEATURES_MAX {
            return Err(GenerateExamplesError::TooMany { features });
        }
        for (wanted, what) in [(nonzeros, "of them in each"), (relevant, "that are relevant")] {
            if wanted > features {
                return Err(GenerateExamplesError::TooFew { features, wanted, what });
            }
        }
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
        let order = Order::new(&mut random, features);
        let weights = weights(&mut random, features, relevant);
        let mut maker = Self { what: *what, random, order, ranks: Ranks::new(features), weights, centre: 0.0 };
        let mut ranks = Vec::new();
        let mut margins: Vec<f64> = (0..PILOTS).map(|_| maker.draw(&mut ranks)).collect();
        margins.sort_by(f64::total_cmp);
        maker.centre = margins[PILOTS / 2];
        Ok(maker)
    }

    /// Makes the examples and writes them as lines of libsvm.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(mut self, output: &mut dyn Write) -> io::Result<()> {
        let (mut ranks, mut line) = (Vec::new(), Vec::new());
        for _ in 0..self.what.examples {
            let margin = MARGINS.0 * (self.draw(&mut ranks) - self.centre) + MARGINS.1;
            let positive = self.random.uniform() < 1.0 / (1.0 + (-margin).exp());
            ranks.iter_mut().for_each(|rank| *rank = 1 + self.order.word(*rank as usize, self.what.features));
            ranks.sort_unstable();
            line.clear();
            line.extend_from_slice(if positive { b"+1" } else { b"-1" });
            for &feature in &ranks {
                write!(line, " {feature}:1")?;
            }
            line.push(b'\n');
            output.write_all(&line)?;
        }
        Ok(())
    }

    /// The ranks of an example's features, and the sum of their weights.
    fn draw(&mut self, ranks: &mut Vec<u32>) -> f64 {
        let usual = (DRAWS * f64::from(self.what.nonzeros)).round() as usize;
        let shortest = usual.div_ceil(2);
        let draws = shortest + self.random.below(2 * (usual - shortest) + 1);
        ranks.clear();
        ranks.extend((0..draws).map(|_| self.ranks.at(self.random.uniform())));
        ranks.sort_unstable();
        ranks.dedup();
        ranks.iter().map(|&rank| f64::from(self.weights[rank as usize])).sum()
    }
}

/// How frequent ranks are, as if they were no whole numbers.
#[derive(Debug)]
struct Ranks {
    count: u32,
    /// The power of the first and of the last.
    ends: [f64; 2],
}

impl Ranks {
    const POWER: f64 = ZIPF + 1.0;

    fn new(count: u32) -> Self {
        Self { count, ends: [0.0, f64::from(count)].map(|rank| (rank + ZIPF_SHIFT).powf(Self::POWER)) }
    }

    /// The rank at a point between 0 and 1 of all by frequency.
    fn at(&self, point: f64) -> u32 {
        let [start, end] = self.ends;
        let rank = (start + point * (end - start)).powf(1.0 / Self::POWER) - ZIPF_SHIFT;
        (rank.max(0.0) as u32).min(self.count - 1)
    }
}

/// Standard normal weights for so many features by rank, half of them among the most frequent; none for the others.
fn weights(random: &mut Random, features: u32, relevant: u32) -> Vec<f32> {
    let mut weights = vec![0.0; features as usize];
    let mut frequent: Vec<u32> = (0..relevant).collect();
    random.shuffle(&mut frequent);
    frequent.truncate(relevant.div_ceil(2) as usize);
    let mut missing = relevant as usize - frequent.len();
    for rank in frequent {
        weights[rank as usize] = random.weight();
    }
    while missing > 0 {
        let rank = random.below(features as usize);
        if weights[rank] == 0.0 {
            weights[rank] = random.weight();
            missing -= 1;
        }
    }
    weights.iter_mut().take(STOP_WORDS.0).for_each(|weight| *weight *= STOP_WORDS.1);
    weights
}

impl Random {
    /// Normal, but never zero.
    fn weight(&mut self) -> f32 {
        let weight = self.normal();
        if weight == 0.0 { 1.0 } else { weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{Examples, Options};

    const WHAT: SyntheticExamples =
        SyntheticExamples { examples: 3000, features: 5000, nonzeros: 30, relevant: 200, seed: 1 };

    fn written(what: &SyntheticExamples) -> Vec<u8> {
        let mut text = Vec::new();
        ExampleMaker::new(what).unwrap().write(&mut text).unwrap();
        text
    }

    #[test]
    fn examples_are_as_asked_for_and_read_again() {
        assert_eq!(written(&WHAT), written(&WHAT));
        assert_ne!(written(&WHAT), written(&SyntheticExamples { seed: 2, ..WHAT }));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), written(&WHAT)).unwrap();
        let examples = Examples::read(&[file.path()], &Options::default()).unwrap();
        assert_eq!((examples.len(), examples.classes.len()), (3000, 2));
        assert!(examples.features() <= 5001);
        let mean = examples.entries() as f64 / 3000.0;
        assert!((26.0..34.0).contains(&mean), "{mean}");
        let positive = examples.labels().iter().filter(|label| **label == 1).count();
        assert!((450..1800).contains(&positive), "{positive}");
        let mut counts = vec![0; examples.features()];
        (0..3000)
            .for_each(|row| examples.example(row).columns.iter().for_each(|&feature| counts[feature as usize] += 1));
        counts.sort_unstable();
        assert!(counts[counts.len() - 1] > 1500 && counts[counts.len() / 2] < 10, "some are frequent, most are rare");
    }

    #[test]
    fn so_many_features_have_a_weight() {
        for relevant in [0, 1, 200, 4999, 5000] {
            let maker = ExampleMaker::new(&SyntheticExamples { relevant, ..WHAT }).unwrap();
            assert_eq!(maker.weights.iter().filter(|weight| **weight != 0.0).count(), relevant as usize);
        }
        let smallest = SyntheticExamples { examples: 5, features: 1, nonzeros: 1, relevant: 1, seed: 3 };
        assert_eq!(written(&smallest).iter().filter(|byte| **byte == b'\n').count(), 5);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |what: SyntheticExamples| ExampleMaker::new(&what).unwrap_err().to_string();
        assert_eq!(
            refused(SyntheticExamples { nonzeros: 0, ..WHAT }),
            "cannot make 3000 examples with 0 of 5000 features; expected 1 or more of each"
        );
        assert_eq!(
            refused(SyntheticExamples { relevant: 5001, ..WHAT }),
            "cannot make examples of 5000 features with 5001 that are relevant; expected no more than there are"
        );
        assert_eq!(
            refused(SyntheticExamples { features: 1 << 24, ..WHAT }),
            "cannot make examples of 16777216 features; expected less than 16777216"
        );
    }
}
