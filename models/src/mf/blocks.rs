//! Cuts the ratings into blocks, one for each worker's users and each chunk of items, without a second copy of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Rating;
use crate::ratings::RatingList;

/// Where the blocks of arranged ratings lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    chunks: usize,
    starts: Vec<usize>,
}

impl Blocks {
    /// The ratings of one worker's users and one chunk of items.
    pub fn range(&self, worker: usize, chunk: usize) -> Range<usize> {
        assert!(chunk < self.chunks, "a block's chunk is one of those the ratings were arranged by");
        let block = worker * self.chunks + chunk;
        self.starts[block]..self.starts[block + 1]
    }

    /// All ratings of one worker's users.
    pub fn worker_range(&self, worker: usize) -> Range<usize> {
        self.starts[worker * self.chunks]..self.starts[(worker + 1) * self.chunks]
    }
}

/// A random permutation of `0..count`: the new label of each row, so that ranges of labels are alike.
pub fn shuffled_labels(count: u32, seed: u64) -> Vec<u32> {
    let mut labels: Vec<u32> = (0..count).collect();
    shuffle(&mut labels, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
    labels
}

/// Shares the users out among workers so that all have about as many ratings: the users with most ratings first, each to
/// the worker that has least so far. Returns the new label of each user, and where each worker's labels start: worker
/// `w` has `starts[w]..starts[w + 1]`.
pub fn assign_users(
    ratings: impl IntoIterator<Item = Rating>,
    users: u32,
    workers: usize,
    seed: u64,
) -> (Vec<u32>, Vec<u32>) {
    let mut counts = vec![0u32; users as usize];
    for rating in ratings {
        counts[rating.user as usize] += 1;
    }
    share_out(&counts, workers, seed)
}

/// Shares out rows with so many data each, as [`assign_users`] does users.
pub fn share_out(counts: &[u32], workers: usize, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut order = shuffled_labels(counts.len() as u32, seed);
    order.sort_by_key(|&user| Reverse(counts[user as usize]));
    let mut loads: BinaryHeap<Reverse<(u64, usize)>> = (0..workers).map(|worker| Reverse((0, worker))).collect();
    let mut shares = vec![Vec::new(); workers];
    for user in order {
        let Reverse((load, worker)) = loads.pop().expect("a worker");
        shares[worker].push(user);
        // A user without ratings takes room too.
        loads.push(Reverse((load + u64::from(counts[user as usize].max(1)), worker)));
    }
    let mut labels = vec![0; counts.len()];
    let mut starts = vec![0];
    for share in shares {
        let first = starts[starts.len() - 1];
        for (label, &user) in (first..).zip(&share) {
            labels[user as usize] = label;
        }
        starts.push(first + share.len() as u32);
    }
    (labels, starts)
}

/// Orders the ratings of a range of the list by worker and chunk, at random within a block, and makes their users and
/// items count from the first row of the worker and the chunk.
///
/// `user_starts` are those of [`assign_users`]; a chunk is `chunk_rows` consecutive items, of which there are `items`.
pub fn arrange(
    ratings: &mut RatingList,
    range: Range<usize>,
    user_starts: &[u32],
    (items, chunk_rows): (u32, u32),
    seed: u64,
) -> Blocks {
    let workers = user_starts.len() - 1;
    let chunks = items.div_ceil(chunk_rows) as usize;
    let block_of = |[user, item]: [u32; 2]| {
        let worker = user_starts[1..workers].partition_point(|&start| start <= user);
        worker * chunks + (item / chunk_rows) as usize
    };
    let starts = group(ratings, range, workers * chunks, block_of);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for (block, ends) in starts.windows(2).enumerate() {
        let (first_user, first_item) = (user_starts[block / chunks], (block % chunks) as u32 * chunk_rows);
        for place in ends[0]..ends[1] {
            let [user, item] = ratings.pair(place);
            ratings.set_pair(place, [user - first_user, item - first_item]);
        }
        exchange_all(ends[1] - ends[0], &mut random, |one, other| ratings.swap(ends[0] + one, ends[0] + other));
    }
    Blocks { chunks, starts }
}

/// Puts the ratings of each user of a block beside one another, and says where each user's begin, and the last one's end.
pub fn sort_by_user(ratings: &mut RatingList, block: Range<usize>, users: u32) -> Vec<usize> {
    group(ratings, block, users as usize, |[user, _]| user as usize)
}

/// Moves every rating of a range into its block, each straight to a free place there (the American flag sort), and says
/// where each block begins, and the last one ends.
fn group(
    ratings: &mut RatingList,
    range: Range<usize>,
    blocks: usize,
    block_of: impl Fn([u32; 2]) -> usize,
) -> Vec<usize> {
    let mut starts = vec![0; blocks + 1];
    starts[0] = range.start;
    for place in range {
        starts[block_of(ratings.pair(place)) + 1] += 1;
    }
    for block in 0..blocks {
        starts[block + 1] += starts[block];
    }
    let mut free = starts.clone();
    for block in 0..blocks {
        while free[block] < starts[block + 1] {
            let home = block_of(ratings.pair(free[block]));
            ratings.swap(free[block], free[home]);
            free[home] += 1;
        }
    }
    starts
}

pub(crate) fn shuffle<T>(values: &mut [T], random: &mut impl Rng) {
    exchange_all(values.len(), random, |one, other| values.swap(one, other));
}

/// Exchanges each of `count` with one at or before it, by chance.
fn exchange_all(count: usize, random: &mut impl Rng, mut swap: impl FnMut(usize, usize)) {
    for left in (1..count).rev() {
        let chosen = (u128::from(random.next_u64()) * (left as u128 + 1)) >> 64;
        swap(left, chosen as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arranging_keeps_every_rating_and_puts_it_in_its_block() {
        let (users, items, workers, chunk_rows) = (97, 50, 3, 8);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let original: Vec<Rating> = (0..5000)
            .map(|value| Rating {
                user: random.next_u32() % users,
                item: random.next_u32() % items,
                value: value as f32,
            })
            .collect();
        let (labels, starts) = assign_users(original.iter().copied(), users, workers, 1);
        let mut ratings = original.clone();
        ratings.iter_mut().for_each(|rating| rating.user = labels[rating.user as usize]);
        let original: Vec<Rating> = ratings.clone();
        let mut list = RatingList::from(ratings);
        let blocks = arrange(&mut list, 0..5000, &starts, (items, chunk_rows), 1);
        let ratings = list.into_vec();
        let mut restored = vec![None; original.len()];
        for worker in 0..workers {
            assert!((1600..1730).contains(&blocks.worker_range(worker).len()), "worker {worker} has an uneven share");
            for chunk in 0..7 {
                for rating in &ratings[blocks.range(worker, chunk)] {
                    assert!(rating.user < starts[worker + 1] - starts[worker] && rating.item < chunk_rows);
                    let (user, item) = (rating.user + starts[worker], rating.item + chunk as u32 * chunk_rows);
                    restored[rating.value as usize] = Some(Rating { user, item, value: rating.value });
                }
            }
        }
        assert_eq!(restored, original.into_iter().map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn users_are_shared_out_by_their_ratings() {
        let rating = |user| Rating { user, item: 0, value: 1.0 };
        let ratings = [rating(0), rating(1), rating(1), rating(1), rating(2), rating(2)];
        assert_eq!(assign_users(ratings, 3, 2, 1), (vec![2, 0, 1], vec![0, 1, 3]));
        assert_eq!(assign_users(ratings[..1].iter().copied(), 1, 3, 1).1, [0, 1, 1, 1]);
        assert_eq!(assign_users([], 0, 2, 1), (vec![], vec![0, 0, 0]));
    }

    #[test]
    fn labels_are_a_permutation_fixed_by_the_seed() {
        let labels = shuffled_labels(1000, 3);
        assert_eq!(labels, shuffled_labels(1000, 3));
        assert_ne!(labels, shuffled_labels(1000, 4));
        let mut sorted = labels;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
    }
}
