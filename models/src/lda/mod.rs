//! Topic models: latent Dirichlet allocation by collapsed Gibbs sampling.
//!
//! Every token of every document has a topic. Training draws topics anew, token by token, from what the topics of all
//! other tokens make likely: `p(k) ∝ (n_dk + α)(n_wk + β) / (n_k + βW)`, where `n_dk` counts the document's other tokens of topic
//! `k`, `n_wk` the word's, and `n_k` all. The counts of words and topics are tables; those of documents belong to the
//! worker that has the document.
//!
//! | sampler | where | exact when |
//! |---|---|---|
//! | [`Sampler::Sparse`] | [`kernel`] | all counts are current: one worker; a few tokens of a word at a time are drawn together |
//! | [`Sampler::MetropolisHastings`] | [`metropolis`] | the same: what is proposed is drawn so that it cancels |
//!
//! With several workers the counts of words and totals are as stale as the tables allow, for either sampler.

pub mod documents;
pub mod growth;
pub mod kernel;
pub mod likelihood;
mod lists;
pub mod metropolis;
pub mod model;
#[cfg(test)]
mod reference;
mod rows;
pub mod share;
pub mod splash;
pub mod topics;
pub mod train;
mod vector;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// The number of a topic.
pub type Topic = u16;

/// What stands where there is no topic; so there may be as many topics as this number says.
pub const NO_TOPIC: Topic = Topic::MAX;

/// How a token's new topic is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// From the conditional itself, in time that grows with the number of topics in a document.
    Sparse,
    /// By proposals that are accepted or not, in time that does not depend on the number of topics, but that a word's counts
    /// are gone through once in a pass. A pass takes less time, and there must be more of them.
    MetropolisHastings,
    /// Whichever of the two is sooner at the same likelihood for such documents and so many topics.
    Auto,
}

impl Sampler {
    /// The sampler that is meant, for so many tokens in so many documents and a number of topics.
    #[must_use]
    pub fn settled(self, (tokens, documents): (usize, usize), topics: usize) -> Self {
        let length = tokens / documents.max(1);
        match self {
            Self::Auto if length.min(topics) > MANY_TOPICS => Self::MetropolisHastings,
            Self::Auto => Self::Sparse,
            sampler => sampler,
        }
    }
}

/// With so many topics in a document, many fast passes raise the likelihood sooner than few slow ones. The conditional was
/// ahead in all that was measured: far ahead for documents of 150 words and a hundred topics, a little for a thousand, and
/// still for documents of 5,000 words and 3,000 topics.
const MANY_TOPICS: usize = 4000;

/// The generator of a worker in an epoch. It begins anew with every epoch, so that nobody has to keep its state.
#[must_use]
pub fn generator(seed: u64, worker: usize, epoch: u32) -> Xoshiro256PlusPlus {
    let stream = (worker as u64) << 32 | u64::from(epoch);
    // Distinct streams must not begin alike, and a seed's neighbours are other seeds: hence the odd factor.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A number from zero to below one.
#[inline(always)]
fn unit(random: &mut impl Rng) -> f32 {
    // The upper 24 bits fill an f32's mantissa exactly.
    (random.next_u64() >> 40) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// Two numbers from zero to below one, by one draw of the generator.
#[inline(always)]
fn two_units(random: &mut impl Rng) -> (f32, f32) {
    let bits = random.next_u64();
    let unit = |bits: u64| bits as f32 * (1.0 / (1u32 << 24) as f32);
    (unit(bits >> 40), unit(bits >> 16 & 0xff_ffff))
}

/// A number below `bound`.
#[inline(always)]
fn below(bound: usize, random: &mut impl Rng) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_chosen_only_where_documents_have_room_for_more_topics_than_are_many() {
        let many = MANY_TOPICS;
        let settled = |length, topics| Sampler::Auto.settled((7 * length, 7), topics);
        for (length, topics) in [(many, many), (many, many + 1), (many + 1, many), (150, 60_000), (60_000, 100)] {
            assert_eq!(settled(length, topics), Sampler::Sparse, "documents of {length} words, {topics} topics");
        }
        assert_eq!(settled(many + 1, many + 1), Sampler::MetropolisHastings);
        assert_eq!(Sampler::Auto.settled((0, 0), many + 1), Sampler::Sparse, "there may be no documents");
        for asked in [Sampler::Sparse, Sampler::MetropolisHastings] {
            for size in [(7, 7), (7 * (many + 1), 7)] {
                assert_eq!(asked.settled(size, many + 1), asked, "whoever asks for one gets it");
            }
        }
    }
}
