//! How features are cut into blocks, and in what order blocks are taken.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Serialize, Serializer};
use std::sync::Arc;

use crate::mf::blocks::shuffle;

/// How features are to be cut into blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cut {
    /// Into as many blocks as are worth it.
    #[default]
    Automatic,
    /// Into so many, of about as many entries each.
    Into(u32),
    /// A block for every group, given the groups of the features.
    ByGroup(#[serde(serialize_with = "as_their_number")] Arc<[u32]>),
}

impl Cut {
    /// Cuts features of such weights at random, into as many blocks as are usual if nobody says how many.
    #[must_use]
    pub fn of(&self, weights: &[usize], usual: u32, seed: u64) -> Blocks {
        match self {
            Self::Automatic => Blocks::automatic(weights, usual as usize, seed),
            Self::Into(count) => Blocks::automatic(weights, *count as usize, seed),
            Self::ByGroup(groups) => {
                let mut features: Vec<u32> = (0..weights.len() as u32).collect();
                shuffle(&mut features, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
                Blocks::by_group(features, |feature| group(groups, feature))
            }
        }
    }
}

/// The group of a feature; those that nobody has put into one, such as the bias, are another.
pub(super) fn group(groups: &[u32], feature: u32) -> u32 {
    groups.get(feature as usize).copied().unwrap_or(u32::MAX)
}

/// Groups as the report shows them.
fn as_their_number<S: Serializer>(groups: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    let mut distinct = groups.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    format!("{} groups", distinct.len()).serialize(serializer)
}

/// Features in blocks: those of a block are worked on together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The features, block by block.
    features: Vec<u32>,
    /// Where each block ends in `features`.
    ends: Vec<usize>,
}

impl Blocks {
    /// Cuts features at random into so many blocks of about the same weight, such as their numbers of entries; fewer if
    /// there are fewer features. An example then seldom has several features of one block.
    #[must_use]
    pub fn automatic(weights: &[usize], count: usize, seed: u64) -> Self {
        let mut features: Vec<u32> = (0..weights.len() as u32).collect();
        shuffle(&mut features, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        Self::cut(features, weights, count)
    }

    /// Cuts features, as they are ordered, into so many blocks of about the same weight.
    #[must_use]
    pub fn cut(features: Vec<u32>, weights: &[usize], count: usize) -> Self {
        let total: usize = weights.iter().map(|weight| weight.max(&1)).sum();
        let (mut ends, mut sum) = (Vec::new(), 0);
        for (position, &feature) in features.iter().enumerate() {
            sum += weights[feature as usize].max(1);
            // The block that ends here has had its share of the whole.
            if sum as u128 * count as u128 >= total as u128 * (ends.len() as u128 + 1) {
                ends.push(position + 1);
            }
        }
        Self { features, ends }
    }

    /// A block for each group, within which features stay in the order given.
    #[must_use]
    pub fn by_group(mut features: Vec<u32>, group: impl Fn(u32) -> u32) -> Self {
        features.sort_by_key(|&feature| group(feature));
        let of = |position: usize| group(features[position]);
        let last = |position: &usize| *position == features.len() || of(position - 1) != of(*position);
        let ends = (1..=features.len()).filter(last).collect();
        Self { features, ends }
    }

    /// The same with one more block, of one more feature.
    #[must_use]
    pub fn and(mut self, feature: u32) -> Self {
        self.features.push(feature);
        self.ends.push(self.features.len());
        self
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The features of a block.
    ///
    /// # Panics
    /// If there is no such block.
    #[must_use]
    pub fn block(&self, block: usize) -> &[u32] {
        &self.features[self.range(block)]
    }

    /// All features, block by block.
    #[must_use]
    pub fn features(&self) -> &[u32] {
        &self.features
    }

    /// Where the features of a block are among all, block by block.
    fn range(&self, block: usize) -> std::ops::Range<usize> {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        start..self.ends[block]
    }

    /// All blocks in a random order, another one for every seed.
    #[must_use]
    pub fn order(&self, seed: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        shuffle(&mut order, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(values: &[u32]) -> Vec<u32> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted
    }

    #[test]
    fn every_feature_is_in_one_block_of_a_fair_weight() {
        let weights: Vec<usize> = (0..1000).map(|feature| feature % 17).collect();
        let blocks = Blocks::automatic(&weights, 8, 3);
        assert_eq!(blocks.len(), 8);
        assert_eq!(sorted(blocks.features()), (0..1000).collect::<Vec<u32>>());
        for block in 0..8 {
            let weight: usize = blocks.block(block).iter().map(|&feature| weights[feature as usize].max(1)).sum();
            assert!((950..1100).contains(&weight), "block {block} weighs {weight}");
        }
        assert_eq!(blocks, Blocks::automatic(&weights, 8, 3));
        assert_ne!(blocks, Blocks::automatic(&weights, 8, 4));
        assert_eq!(Blocks::automatic(&[5, 5], 8, 1).features().len(), 2);
        assert!(Blocks::automatic(&[], 8, 1).is_empty());
    }

    #[test]
    fn a_group_is_a_block() {
        let groups = Cut::ByGroup([7, 2, 7, 2, 2, 9].into());
        let blocks = groups.of(&[1; 6], 3, 1);
        let found: Vec<Vec<u32>> = (0..blocks.len()).map(|block| sorted(blocks.block(block))).collect();
        assert_eq!(found, [vec![1, 3, 4], vec![0, 2], vec![5]]);
        assert!(groups.of(&[], 3, 1).is_empty());
        assert_eq!(groups.of(&[1; 8], 3, 1).len(), 4, "features without a group are one");
        let shown = |cut: Cut| serde_json::to_string(&cut).expect("written");
        assert_eq!([shown(groups), shown(Cut::Into(5)), shown(Cut::Automatic)], ["\"3 groups\"", "5", "null"]);
    }

    #[test]
    fn an_order_has_every_block_once_and_depends_on_the_seed() {
        let blocks = Blocks::automatic(&[1; 100], 20, 1);
        let mut order = blocks.order(1);
        assert_ne!(order, blocks.order(2));
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<usize>>());
    }
}
