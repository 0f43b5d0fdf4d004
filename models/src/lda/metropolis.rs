//! Metropolis-Hastings sampling in a time for each token that does not depend on the number of topics, with one row of
//! counts at hand at a time.
//!
//! As in WarpLDA (Chen, Li, Zhu, Chen 2016) a sweep is two passes. One goes through documents and accepts what the words
//! have proposed, the other goes through words and accepts what the documents have proposed; either then draws its own
//! proposals for the other. So in the first only a document's counts are touched, in the second only a word's, and both
//! stay in the nearest cache.
//!
//! WarpLDA draws all proposals of a document from the same counts `n_dk + α`, though the counts change before they are
//! accepted, which bends the distribution however large the corpus. Here they are drawn from an urn: whatever is drawn is
//! put back with one more of its kind. Draws from an urn are independent draws from proportions `θ_d` that are themselves
//! drawn from `Dirichlet(n_d + α)`, and these are fixed while the words are gone through. That makes both passes exact:
//!
//! - Given `θ`, a token's conditional is `θ_dk (n_wk + β) / (n_k + βW)`. The proposal is by `θ_d`, which cancels, and what is
//!   left of the ratio are counts of the word that are current.
//! - A word's part `∏_k Γ(n_wk + β)` of the joint distribution is an integral over proportions in the same way. Given
//!   those, `p_w ~ Dirichlet(n_w + β)`, a token's conditional is `(n_dk + α) p_wk / (n_k + βW)`, and `p_wk` cancels.
//!
//! An urn that holds the topics of a word's or a document's tokens gives a draw for one random number, as an alias table does,
//! and is filled in one go through them. A word's row of counts, one for each topic, is gone through once in a sweep, so the
//! words with fewer tokens than there are topics cost more than their tokens.
//!
//! Neither `θ` nor `p` is ever computed. With one worker all counts in the ratios are current and the token itself is out
//! of them, so that this leaves the same distribution as it is as the Gibbs sampler does. Successive topics of a token
//! depend on one another, so it needs more sweeps.

use super::share::Share;
use super::topics::Topics;
use super::{Topic, unit};
use hemiola::fetch;
use rand_core::Rng;
use std::ops::Range;

/// How many topics are proposed for a token in each pass. With two or four, fewer passes are needed, which take as much
/// longer.
const PROPOSALS: usize = 1;

/// How many topics a token has in hand: its own, and those that are proposed.
pub const IN_HAND: usize = 1 + PROPOSALS;

/// A token's topic and what is proposed for it.
#[derive(Clone, Copy, Debug)]
struct Token {
    topic: Topic,
    proposed: [Topic; PROPOSALS],
}

/// The tokens of one worker. Beside the epoch and the tables [`Proposals::assignments`] and [`Proposals::in_hand`] are
/// all that must be kept to go on with the same bits.
#[derive(Clone, Debug)]
pub struct Proposals {
    /// As [`Share`] numbers them.
    tokens: Vec<Token>,
    /// The topics by which the tokens are in their word's row.
    counted: Vec<Topic>,
    /// The tokens of every document.
    by_document: Vec<u32>,
    lengths: Vec<u32>,
    /// Room for the tokens of a document, for its counts, and for an urn.
    near: Vec<Token>,
    counts: Vec<f32>,
    urn: Vec<Topic>,
}

impl Proposals {
    /// The tokens of `share` with the topics that they are assigned to, which the rows of their words have.
    ///
    /// # Panics
    /// If there is not one topic below `topics` for every token.
    #[must_use]
    pub fn new(share: &Share, topics: usize, assignments: Vec<Topic>) -> Self {
        // Proposing the topic that a token has is proposing nothing.
        let in_hand: Vec<Topic> = assignments.iter().flat_map(|&topic| [topic; IN_HAND]).collect();
        Self::with(share, topics, assignments, &in_hand)
    }

    /// The same with what was in hand.
    ///
    /// # Panics
    /// If there is not one topic below `topics` for every token, and as much in hand as [`Proposals::in_hand`] gives.
    #[must_use]
    pub fn with(share: &Share, topics: usize, assignments: Vec<Topic>, in_hand: &[Topic]) -> Self {
        let (of_tokens, left) = in_hand.as_chunks::<IN_HAND>();
        assert_eq!((assignments.len(), of_tokens.len(), left.len()), (share.len(), share.len(), 0), "of every token");
        assert!(assignments.iter().chain(in_hand).all(|&topic| usize::from(topic) < topics), "topics of the model");
        let token = |of_token: &[Topic; IN_HAND]| Token {
            topic: of_token[0],
            proposed: std::array::from_fn(|proposal| of_token[1 + proposal]),
        };
        Self {
            tokens: of_tokens.iter().map(token).collect(),
            counted: assignments,
            by_document: share.by_document(),
            lengths: share.lengths.clone(),
            near: Vec::new(),
            counts: vec![0.0; topics],
            urn: Vec::new(),
        }
    }

    /// What every token has in hand: the topic that documents know it by, and what is proposed for it.
    #[must_use]
    pub fn in_hand(&self) -> Vec<Topic> {
        self.tokens.iter().flat_map(|token| std::iter::once(token.topic).chain(token.proposed)).collect()
    }

    /// The topic of every token, as [`Share`] numbers them: the one by which it is counted in its word's row.
    #[must_use]
    pub fn assignments(&self) -> &[Topic] {
        &self.counted
    }

    /// Goes through all documents; how many tokens got another topic than they had.
    pub fn sample_documents(&mut self, topics: &mut Topics, random: &mut impl Rng) -> u64 {
        let (alpha, tokens) = (topics.priors.alpha, self.tokens.as_mut_slice());
        let (mut moved, mut first) = (0, 0);
        for &length in &self.lengths {
            let of_document = &self.by_document[first..][..length as usize];
            first += length as usize;
            // The tokens lie far apart: those of the next document are fetched while this one is worked on.
            for &token in self.by_document[first..].iter().take(length as usize) {
                fetch(tokens.as_ptr().wrapping_add(token as usize), 1);
            }
            self.near.clear();
            self.near.extend(of_document.iter().map(|&token| tokens[token as usize]));
            self.near.iter().for_each(|token| self.counts[usize::from(token.topic)] += 1.0);
            self.urn.clear();
            for token in &mut self.near {
                moved += accept(token, &mut self.counts, alpha, topics, random);
                self.urn.push(token.topic);
            }
            self.urn.iter().for_each(|&topic| self.counts[usize::from(topic)] = 0.0);
            for (token, &place) in self.near.iter_mut().zip(of_document) {
                propose(token, &mut self.urn, alpha, topics, random);
                tokens[place as usize] = *token;
            }
        }
        moved
    }

    /// Goes through `tokens`, which are the same word's; `row` are the word's counts. Returns how many got another topic
    /// than they had.
    pub fn sample_word(
        &mut self,
        row: &mut [f32],
        tokens: Range<usize>,
        topics: &mut Topics,
        random: &mut impl Rng,
    ) -> u64 {
        let (beta, counted) = (topics.priors.beta, &mut self.counted[tokens.clone()]);
        let tokens = &mut self.tokens[tokens];
        for (token, counted) in tokens.iter().zip(&*counted) {
            row[usize::from(*counted)] -= 1.0;
            row[usize::from(token.topic)] += 1.0;
        }
        let mut moved = 0;
        for (token, counted) in tokens.iter_mut().zip(counted) {
            moved += accept(token, row, beta, topics, random);
            *counted = token.topic;
        }
        self.urn.clear();
        for (first, counts) in (0..).step_by(LANES).zip(row.chunks(LANES)) {
            // Most words have few topics.
            if counts.iter().fold(0, |bits, count| bits | count.to_bits()) != 0 {
                for (topic, &count) in (first..).zip(counts) {
                    self.urn.extend(std::iter::repeat_n(topic, count as usize));
                }
            }
        }
        for token in tokens {
            propose(token, &mut self.urn, beta, topics, random);
        }
        moved
    }

    /// Calls `f` with the counts above zero of every document.
    pub(super) fn for_each(&self, mut f: impl FnMut(&[u16])) {
        let (mut counts, mut found) = (vec![0; self.counts.len()], Vec::new());
        let mut rest = self.by_document.as_slice();
        for &length in &self.lengths {
            let of_document;
            (of_document, rest) = rest.split_at(length as usize);
            let topics = || of_document.iter().map(|&token| usize::from(self.tokens[token as usize].topic));
            topics().for_each(|topic| counts[topic] += 1);
            found.clear();
            topics().for_each(|topic| found.push(std::mem::take(&mut counts[topic])));
            found.retain(|count| *count > 0);
            f(&found);
        }
    }
}

/// So many counts of a row are looked at together.
const LANES: usize = 8;

/// Lets a token take the steps that are proposed to it; whether it has another topic then. `counts` are those of the
/// document or word that does not propose, `prior` what every topic has there before any token.
#[inline(always)]
fn accept(token: &mut Token, counts: &mut [f32], prior: f32, topics: &mut Topics, random: &mut impl Rng) -> u64 {
    let old = token.topic;
    let (mut now, totals, smoothing) = (usize::from(old), &mut topics.totals, topics.smoothing);
    for proposed in token.proposed.map(usize::from) {
        if proposed != now {
            // The token itself is in the counts of the topic that it has.
            let to = (counts[proposed] + prior) * ((totals[now] - 1) as f32 + smoothing);
            let from = (counts[now] - 1.0 + prior) * (totals[proposed] as f32 + smoothing);
            if unit(random) * from < to {
                counts[now] -= 1.0;
                totals[now] -= 1;
                counts[proposed] += 1.0;
                totals[proposed] += 1;
                now = proposed;
            }
        }
    }
    token.topic = now as Topic;
    u64::from(token.topic != old)
}

/// Draws what is proposed to a token from an urn with the topics of all tokens and `prior` of every topic.
#[inline(always)]
fn propose(token: &mut Token, urn: &mut Vec<Topic>, prior: f32, topics: &Topics, random: &mut impl Rng) {
    let (prior, count) = (f64::from(prior), topics.count());
    for proposed in &mut token.proposed {
        let place =
            (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64) * (urn.len() as f64 + prior * count as f64);
        *proposed = match urn.get(place as usize) {
            Some(&topic) => topic,
            None => (((place - urn.len() as f64) / prior) as usize).min(count - 1) as Topic,
        };
        urn.push(*proposed);
    }
}
