//! Who sends to whom when every machine sends to only a few: the topology of partial broadcasting.
//!
//! What a machine learns reaches the others in as many iterations as there are steps on the shortest path to them. The
//! best topology has the least sum of shortest paths over all ordered pairs, at `fanout` receivers for each machine
//! (Xie et al., formula (3)). No machine can have more than `fanout^d` others at distance `d`, which bounds the sum
//! from below.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Words that local search may touch, one or two seconds of one thread.
const SEARCH_WORDS: u64 = 1 << 30;
/// Changes that local search tries at most.
const TRIES_MAX: u64 = 1 << 18;
/// Bounds that branch and bound may compute.
const BRANCHES_MAX: u64 = 1 << 20;
/// More machines than this, and branch and bound would not come to an end.
const EXACT_MAX: usize = 12;

/// A directed network in which every node sends to the same number of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The nodes that each node sends to, in ascending order.
    pub receivers: Vec<Vec<u32>>,
    /// The sum of the lengths of the shortest paths of all ordered pairs.
    pub total: u64,
    /// No topology has a smaller sum.
    pub bound: u64,
    /// Whether no topology is better: the sum is the bound, or all others have been ruled out.
    pub optimal: bool,
}

impl Topology {
    /// Finds the topology of `nodes` machines that send to `fanout` others each: the best one for few machines, and a
    /// good one beyond. The same seed gives the same topology.
    ///
    /// # Panics
    /// If there are no two nodes, or if `fanout` is not from `1` up to one less than `nodes`.
    #[must_use]
    pub fn new(nodes: u32, fanout: u32, seed: u64) -> Self {
        assert!((1..nodes).contains(&fanout), "{nodes} nodes cannot send to {fanout} others each");
        let (nodes, fanout) = (nodes as usize, fanout as usize);
        let bound = nodes as u64 * least_from_one(nodes, fanout);
        let mut search = Search { receivers: imase_itoh(nodes, fanout), reach: Reach::new(nodes), bound, total: 0 };
        search.total = search.reach.total(&search.receivers);
        search.improve(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let Search { receivers, total, .. } = search;
        let mut found = Self { receivers, total, bound, optimal: total == bound };
        if !found.optimal && nodes <= EXACT_MAX {
            let everyone = (0..nodes as u32).map(|from| (0..nodes as u32).filter(|to| *to != from).collect()).collect();
            let mut branches =
                Branches { chosen: everyone, fanout, reach: Reach::new(nodes), best: &mut found, left: BRANCHES_MAX };
            branches.descend(0);
            found.optimal |= branches.left > 0;
        }
        if found.optimal {
            found.bound = found.total;
        }
        found.receivers.iter_mut().for_each(|receivers| receivers.sort_unstable());
        found
    }

    /// How many iterations it takes on average until one machine has heard from another.
    #[must_use]
    pub fn mean_path(&self) -> f64 {
        let nodes = self.receivers.len();
        self.total as f64 / (nodes * (nodes - 1)) as f64
    }

    /// How many iterations it takes until every machine has heard from every other.
    #[must_use]
    pub fn longest_path(&self) -> u32 {
        Reach::new(self.receivers.len()).levels(&self.receivers, |_, _| ())
    }

    /// By what part the sum of paths is at most above the least.
    #[must_use]
    pub fn gap(&self) -> f64 {
        self.total as f64 / self.bound as f64 - 1.0
    }
}

/// The least sum of paths from one node to the others.
fn least_from_one(nodes: usize, fanout: usize) -> u64 {
    let (mut left, mut level, mut distance, mut sum) = (nodes - 1, 1, 0, 0);
    while left > 0 {
        level = left.min(level * fanout);
        distance += 1;
        sum += distance * level as u64;
        left -= level;
    }
    sum
}

/// The generalised Kautz network of Imase and Itoh, where `i` sends to `−fanout·i − a` for `a` in `1..=fanout`: short
/// paths for any number of nodes. Nodes that would send to themselves send to one another instead.
fn imase_itoh(nodes: usize, fanout: usize) -> Vec<Vec<u32>> {
    let to = |from: usize, a: usize| ((nodes - (fanout * from + a) % nodes) % nodes) as u32;
    let mut receivers: Vec<Vec<u32>> = (0..nodes).map(|from| (1..=fanout).map(|a| to(from, a)).collect()).collect();
    let selfish: Vec<usize> = (0..nodes).filter(|node| receivers[*node].contains(&(*node as u32))).collect();
    for (position, node) in selfish.iter().enumerate() {
        let others = (1..selfish.len()).map(|step| selfish[(position + step) % selfish.len()] as u32);
        let unheard = |to: &u32| *to != *node as u32 && !receivers[*node].contains(to);
        let to = others.chain(0..nodes as u32).find(unheard).expect("the fan-out is less than the number of others");
        let own = receivers[*node].iter().position(|to| *to == *node as u32).expect("it sends to itself");
        receivers[*node][own] = to;
    }
    receivers
}

/// Which nodes each node has reached, as bits; all nodes take a step at a time.
struct Reach {
    nodes: usize,
    words: usize,
    now: Vec<u64>,
    next: Vec<u64>,
}

impl Reach {
    fn new(nodes: usize) -> Self {
        let words = nodes.div_ceil(64);
        Self { nodes, words, now: vec![0; nodes * words], next: vec![0; nodes * words] }
    }

    /// Calls `missing` with every node and how many it has not reached, at distance 0, 1, … while some have not reached
    /// all; gives the number of distances. Nodes that cannot be reached at all count as `nodes` steps away.
    fn levels(&mut self, receivers: &[Vec<u32>], mut missing: impl FnMut(usize, u64)) -> u32 {
        self.now.fill(0);
        for node in 0..self.nodes {
            self.now[node * self.words + node / 64] |= 1 << (node % 64);
        }
        for distance in 0..self.nodes as u32 {
            let mut all = 0;
            for (node, reached) in self.now.chunks_exact(self.words).enumerate() {
                let left = self.nodes as u64 - reached.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
                missing(node, left);
                all += left;
            }
            if all == 0 {
                return distance;
            }
            self.next.copy_from_slice(&self.now);
            for (reached, to) in self.next.chunks_exact_mut(self.words).zip(receivers) {
                for node in to {
                    let begin = *node as usize * self.words;
                    let theirs = &self.now[begin..begin + self.words];
                    reached.iter_mut().zip(theirs).for_each(|(word, theirs)| *word |= theirs);
                }
            }
            std::mem::swap(&mut self.now, &mut self.next);
        }
        self.nodes as u32
    }

    /// The sum of all shortest paths: a path of length `d` is missing at the distances `0..d`.
    fn total(&mut self, receivers: &[Vec<u32>]) -> u64 {
        let mut total = 0;
        self.levels(receivers, |_, missing| total += missing);
        total
    }
}

/// Local search: an edge at a time goes to another receiver, or two edges exchange theirs.
struct Search {
    receivers: Vec<Vec<u32>>,
    reach: Reach,
    total: u64,
    bound: u64,
}

impl Search {
    fn improve(&mut self, random: &mut Xoshiro256PlusPlus) {
        let (nodes, fanout) = (self.receivers.len(), self.receivers[0].len());
        let mut below = |end: usize| (random.next_u64() % end as u64) as usize;
        // A change costs a few levels of an or for every edge.
        let cost = (nodes * fanout * self.reach.words * 4) as u64;
        for _ in 0..(SEARCH_WORDS / cost).min(TRIES_MAX) {
            if self.total == self.bound || fanout == nodes - 1 {
                return;
            }
            let (first, second) = ((below(nodes), below(fanout)), (below(nodes), below(fanout)));
            // Most changes keep the number of senders of each node: those with few optimal ones left are regular.
            if below(4) > 0 {
                self.exchange(first, second);
            } else {
                self.redirect(first, below(nodes) as u32);
            }
        }
    }

    fn exchange(&mut self, (from, edge): (usize, usize), (other, its): (usize, usize)) {
        let (to, theirs) = (self.receivers[from][edge], self.receivers[other][its]);
        if from == other || !self.may_send(from, theirs) || !self.may_send(other, to) {
            return;
        }
        (self.receivers[from][edge], self.receivers[other][its]) = (theirs, to);
        if !self.keep() {
            (self.receivers[from][edge], self.receivers[other][its]) = (to, theirs);
        }
    }

    fn redirect(&mut self, (from, edge): (usize, usize), to: u32) {
        if !self.may_send(from, to) {
            return;
        }
        let before = std::mem::replace(&mut self.receivers[from][edge], to);
        if !self.keep() {
            self.receivers[from][edge] = before;
        }
    }

    fn may_send(&self, from: usize, to: u32) -> bool {
        to as usize != from && !self.receivers[from].contains(&to)
    }

    /// Whether the change that was made is none for the worse. Changes that cost nothing lead out of dead ends.
    fn keep(&mut self) -> bool {
        let total = self.reach.total(&self.receivers);
        let keep = total <= self.total;
        if keep {
            self.total = total;
        }
        keep
    }
}

/// Branch and bound: nodes choose their receivers one after the other; those that have not chosen send to everyone, so
/// that paths can only be longer in the end.
struct Branches<'a> {
    chosen: Vec<Vec<u32>>,
    fanout: usize,
    reach: Reach,
    best: &'a mut Topology,
    left: u64,
}

impl Branches<'_> {
    fn descend(&mut self, node: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.bound() >= self.best.total {
            return;
        }
        if node == self.chosen.len() {
            // Everyone has chosen, so the bound is the sum itself.
            self.best.total = self.reach.total(&self.chosen);
            self.best.receivers = self.chosen.clone();
            return;
        }
        let everyone = self.chosen[node].clone();
        // Which nodes the first one sends to is only a matter of names.
        let choices = if node == 0 { 1 } else { u32::MAX };
        let mut choice: Vec<usize> = (0..self.fanout).collect();
        for _ in 0..choices {
            self.chosen[node] = choice.iter().map(|at| everyone[*at]).collect();
            self.descend(node + 1);
            if self.left == 0 || !advance(&mut choice, everyone.len()) {
                break;
            }
        }
        self.chosen[node] = everyone;
    }

    /// What the sum of paths is at least, whatever the others choose.
    fn bound(&mut self) -> u64 {
        let mut from_each = vec![0; self.chosen.len()];
        self.reach.levels(&self.chosen, |node, missing| from_each[node] += missing);
        let least = least_from_one(from_each.len(), self.fanout);
        from_each.iter().map(|from| least.max(*from)).sum()
    }
}

/// The next of the subsets of `0..end` of the same size, in lexicographic order.
fn advance(subset: &mut [usize], end: usize) -> bool {
    let size = subset.len();
    let Some(at) = (0..size).rev().find(|at| subset[*at] < end - size + at) else { return false };
    subset[at] += 1;
    for next in at + 1..size {
        subset[next] = subset[next - 1] + 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortest paths by the textbook's three loops; `nodes` where there is none.
    fn floyd(receivers: &[Vec<u32>]) -> u64 {
        let nodes = receivers.len();
        let edge = |from: usize, to: usize| match from == to {
            true => 0,
            false if receivers[from].contains(&(to as u32)) => 1,
            false => nodes,
        };
        let mut length: Vec<Vec<usize>> = (0..nodes).map(|p| (0..nodes).map(|q| edge(p, q)).collect()).collect();
        for over in 0..nodes {
            for from in 0..nodes {
                for to in 0..nodes {
                    length[from][to] = length[from][to].min(length[from][over] + length[over][to]);
                }
            }
        }
        length.iter().flatten().sum::<usize>() as u64
    }

    /// The least sum over all topologies.
    fn brute_force(nodes: usize, fanout: usize) -> u64 {
        let others = |node: u32| (0..nodes as u32).filter(move |to| *to != node).collect::<Vec<_>>();
        let mut subsets = vec![(0..fanout).collect::<Vec<_>>()];
        let mut subset = subsets[0].clone();
        while advance(&mut subset, nodes - 1) {
            subsets.push(subset.clone());
        }
        let sets: Vec<Vec<Vec<u32>>> = (0..nodes as u32)
            .map(|node| subsets.iter().map(|set| set.iter().map(|at| others(node)[*at]).collect()).collect())
            .collect();
        let (mut reach, mut least) = (Reach::new(nodes), u64::MAX);
        // The first node's choice is only a matter of names; the others' are counted through like digits.
        let mut digits = vec![0; nodes];
        loop {
            let receivers: Vec<Vec<u32>> = digits.iter().zip(&sets).map(|(digit, sets)| sets[*digit].clone()).collect();
            least = least.min(reach.total(&receivers));
            let Some(node) = (1..nodes).find(|node| digits[*node] + 1 < subsets.len()) else { return least };
            digits[1..node].fill(0);
            digits[node] += 1;
        }
    }

    fn check(topology: &Topology, fanout: usize) {
        for (node, receivers) in topology.receivers.iter().enumerate() {
            assert_eq!(receivers.len(), fanout);
            assert!(receivers.windows(2).all(|pair| pair[0] < pair[1]), "twice the same receiver: {receivers:?}");
            assert!(!receivers.contains(&(node as u32)), "node {node} sends to itself");
        }
        assert_eq!(topology.total, floyd(&topology.receivers));
        assert!(topology.bound <= topology.total);
        assert!((topology.longest_path() as usize) < topology.receivers.len(), "some nodes hear nothing of others");
    }

    #[test]
    fn no_topology_of_up_to_six_nodes_is_better() {
        for nodes in 2..=6 {
            for fanout in 1..nodes {
                let found = Topology::new(nodes as u32, fanout as u32, 1);
                check(&found, fanout);
                assert!(found.optimal, "{nodes} nodes with fan-out {fanout}");
                assert_eq!(found.total, brute_force(nodes, fanout), "{nodes} nodes with fan-out {fanout}");
            }
        }
    }

    #[test]
    fn branch_and_bound_finds_what_local_search_does_not_need_to() {
        for (nodes, fanout) in [(5, 2), (6, 2), (6, 3)] {
            let everyone = (0..nodes).map(|from| (0..nodes as u32).filter(|to| *to != from as u32).collect()).collect();
            let mut best = Topology { receivers: Vec::new(), total: u64::MAX, bound: 0, optimal: false };
            let reach = Reach::new(nodes);
            let mut branches = Branches { chosen: everyone, fanout, reach, best: &mut best, left: u64::MAX };
            branches.descend(0);
            assert_eq!(best.total, brute_force(nodes, fanout), "{nodes} nodes with fan-out {fanout}");
            assert_eq!(best.total, floyd(&best.receivers));
        }
    }

    #[test]
    fn one_receiver_each_makes_a_ring() {
        let ring = Topology::new(9, 1, 1);
        assert_eq!((ring.total, ring.longest_path(), ring.optimal), (9 * 36, 8, true));
    }

    #[test]
    fn the_same_seed_gives_the_same_topology_and_it_is_close_to_the_bound() {
        let found = Topology::new(24, 3, 7);
        check(&found, 3);
        assert_eq!(found, Topology::new(24, 3, 7));
        assert!(found.gap() < 0.05, "{found:?}");
    }
}
