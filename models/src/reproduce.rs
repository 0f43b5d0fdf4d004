//! The papers' figures, made again in the simulator: each reproduction prints the paper's claim beside what is found.

mod bosen;
mod essp;
mod ps;
mod sfb;
mod splash;
mod vap;

use crate::generate::GenerateError;
use crate::generate::corpus::GenerateCorpusError;
use crate::lda;
use crate::mf::train::TrainError;
use crate::mlr;
use serde::Serialize;
use thiserror::Error;

/// A figure of a paper that can be made again.
pub struct Reproduction {
    /// What to call it.
    pub name: &'static str,
    /// Which figure of which paper.
    pub figure: &'static str,
    /// What the paper says.
    pub claim: &'static str,
    run: fn(&Scale) -> Result<Findings, ReproduceError>,
}

/// How large a reproduction is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scale {
    /// Simulated nodes, with two workers each.
    pub nodes: u32,
    /// Ratings to train on.
    pub ratings: u64,
    /// Number of factors.
    pub rank: usize,
    /// Passes over the ratings where a curve is drawn.
    pub epochs: u32,
    /// Documents to find topics in.
    pub documents: u32,
    /// Number of topics.
    pub topics: u32,
    /// Passes over the documents where passes to a target are counted, and three times as many where they must settle; over
    /// ratings half of them.
    pub passes: u32,
    /// One seed, one outcome.
    pub seed: u64,
}

/// What a reproduction found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which reproduction.
    pub name: &'static str,
    /// Which figure.
    pub figure: &'static str,
    /// What the paper says.
    pub claim: &'static str,
    /// What was found, in one or two sentences.
    pub found: String,
    /// Whether the claim was borne out.
    pub holds: bool,
    /// How large it was.
    pub scale: Scale,
    /// What to draw.
    pub panels: Vec<Panel>,
}

/// What was found and what to draw, before it is put beside the claim.
struct Findings {
    found: String,
    holds: bool,
    panels: Vec<Panel>,
}

/// One plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// What is along the horizontal axis.
    pub x: String,
    /// What is along the vertical axis.
    pub y: String,
    /// The curves.
    pub series: Vec<Series>,
    /// Whether the points of a curve follow one another, and are joined by lines.
    pub lines: bool,
}

/// Points of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// Where they are.
    pub points: Vec<(f64, f64)>,
}

/// Why a figure could not be made.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the sentences say it")]
pub enum ReproduceError {
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Topics(#[from] lda::train::TrainError),
    #[error(transparent)]
    Regression(#[from] mlr::train::TrainError),
    #[error(transparent)]
    Metric(#[from] crate::dml::train::TrainError),
    #[error(transparent)]
    Dictionary(#[from] crate::sc::train::TrainError),
    #[error(transparent)]
    Proved(#[from] crate::l2mlr::peers::FitError),
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    GenerateCorpus(#[from] GenerateCorpusError),
    #[error(transparent)]
    Split(#[from] crate::SplitError),
    #[error(transparent)]
    Job(#[from] hemiola::Error),
}

impl Default for Scale {
    /// The cluster of the first paper and a hundredth of its ratings. Figures of a paper that had fewer nodes take as many
    /// as it had.
    fn default() -> Self {
        Self { nodes: 64, ratings: 1_000_000, rank: 32, epochs: 4, documents: 600, topics: 50, passes: 120, seed: 1 }
    }
}

/// All reproductions, in the order of the papers.
pub const ALL: [Reproduction; 28] = [
    Reproduction {
        name: "essp-staleness",
        figure: "paper 1, figure 2 left",
        claim: "Under SSP clock differentials are spread nearly evenly over the window; under ESSP most reads are at -1 whatever the bound.",
        run: essp::staleness,
    },
    Reproduction {
        name: "essp-breakdown",
        figure: "paper 1, figure 2 right (there for topic models, here for factorisation)",
        claim: "ESSP waits less for communication than SSP at every bound, and a larger bound helps SSP most.",
        run: essp::breakdown,
    },
    Reproduction {
        name: "essp-convergence",
        figure: "paper 1, figure 3, matrix factorisation",
        claim: "ESSP converges as fast as SSP or faster, per clock and per second.",
        run: essp::convergence,
    },
    Reproduction {
        name: "essp-robustness",
        figure: "paper 1, figure 3 and 'Robustness to Staleness'",
        claim: "With a step size that is large but safe at staleness 0, SSP shakes or diverges as the bound grows; ESSP does not.",
        run: essp::robustness,
    },
    Reproduction {
        name: "vap-cost",
        figure: "paper 1, 'the ideal but hard-to-realize VAP model'",
        claim: "Bounding the value of updates in transit amounts to tight synchronisation: it costs far more communication and waiting than ESSP.",
        run: vap::cost,
    },
    Reproduction {
        name: "bosen-adarevision",
        figure: "paper 2, figure 3, and the experiment on 8 nodes beside it",
        claim: "AdaRevision hardly depends on its initial step; it needs half the iterations of multiplicative decay with its best initial step, and on 8 nodes a tenth.",
        run: bosen::adarevision,
    },
    Reproduction {
        name: "bosen-bandwidth",
        figure: "paper 2, figure 4",
        claim: "Managed communication needs far fewer clocks, the fewer the more may be sent: 24 instead of 64 for factorisation; 195, then 120 instead of 740 for topic models, and 145 instead of 195 with relative magnitude.",
        run: bosen::bandwidth,
    },
    Reproduction {
        name: "bosen-frequency",
        figure: "paper 2, figure 5a",
        claim: "By magnitude, relative or absolute, a small part of the rows is sent much more often; at random or in turn, all rows are sent about as often.",
        run: bosen::frequency,
    },
    Reproduction {
        name: "bosen-overhead",
        figure: "paper 2, figure 6",
        claim: "Managed communication spends what it may and not more; a pass takes little longer: 12 % at 200 Mbit/s for factorisation.",
        run: bosen::overhead,
    },
    Reproduction {
        name: "bosen-time",
        figure: "paper 2, figure 7",
        claim: "In time, too, managed communication converges faster: factorisation 2.5 times as fast at 800 Mbit/s, softmax regression 2.5 times at 200 Mbit/s.",
        run: bosen::time,
    },
    Reproduction {
        name: "bosen-clock-ticks",
        figure: "paper 2, figure 8",
        claim: "More clocks in a pass cost bandwidth in proportion and help; managed communication with relative magnitude converges 28 % faster than 8 clocks a pass on 63 % of their bandwidth.",
        run: bosen::clock_ticks,
    },
    Reproduction {
        name: "sfb-cost",
        figure: "paper 3, figure 4",
        claim: "An iteration sends P² K (J + D) numbers with full and P Q K (J + D) with partial broadcast, and P J D with the full matrix; with sparse data in proportion to what is not zero.",
        run: sfb::cost,
    },
    Reproduction {
        name: "sfb-model-size",
        figure: "paper 3, figure 5, softmax regression",
        claim: "The larger the model, the sooner factors reach an objective compared with the full matrix: 4.4 times as soon for the largest, on 28 machines; here 3 times on 12 will do.",
        run: sfb::model_size,
    },
    Reproduction {
        name: "sfb-throughput",
        figure: "paper 3, figure 6",
        claim: "With factors far more samples are processed per second, and progress per sample is exactly the same.",
        run: sfb::throughput,
    },
    Reproduction {
        name: "sfb-scaling",
        figure: "paper 3, figure 7",
        claim: "More machines are close to as many times as fast: 28 machines 17.4 times for softmax regression and 15.7 times for dual ascent; here 15 will do.",
        run: sfb::scaling,
    },
    Reproduction {
        name: "sfb-waiting",
        figure: "paper 3, figure 8, softmax regression",
        claim: "Whatever the staleness, with factors machines wait far less for the network than with the full matrix, and compute slightly longer.",
        run: sfb::waiting,
    },
    Reproduction {
        name: "sfb-partial",
        figure: "paper 3, figure 9, softmax regression",
        claim: "Sending to few others converges to the same objective, and from Q = 4 of 11 on in about the same time; here 15 % more will do.",
        run: sfb::partial,
    },
    Reproduction {
        name: "splash-toy",
        figure: "paper 4, figure 1 and section 4.4",
        claim: "Of 30 threads' solutions on a thirtieth of the samples each, averages are biased and sums far off; averages of those that took samples 30-fold are as good as one thread's on all samples.",
        run: splash::toy,
    },
    Reproduction {
        name: "splash-rate",
        figure: "paper 4, theorem 2",
        claim: "The mean squared error falls as one over the number of processed samples, however many threads there are: a slope of -1 in log-log.",
        run: splash::rate,
    },
    Reproduction {
        name: "splash-lr",
        figure: "paper 4, figure 2",
        claim: "Logistic regression by Splash converges in a few seconds; one thread and L-BFGS take much longer to the same loss: L-BFGS on Spark 15 to 30 times as long.",
        run: splash::lr,
    },
    Reproduction {
        name: "splash-cf",
        figure: "paper 4, figure 3",
        claim: "Collaborative filtering by Splash converges much faster than one thread and than alternating least squares, on Spark 36 times as fast to a prediction loss of 0.70.",
        run: splash::cf,
    },
    Reproduction {
        name: "splash-lda",
        figure: "paper 4, figure 4",
        claim: "Topic models by Splash converge faster than one thread, and faster and better than variational inference on Spark: 3 to 6 times as fast to the same score.",
        run: splash::lda,
    },
    Reproduction {
        name: "splash-runtime",
        figure: "paper 4, figure 5",
        claim: "Waiting is 16, 21 and 26 % of the time computed; communication 6, 39 and 103 %, in proportion to the parameters, and less with fewer synchronisations.",
        run: splash::runtime,
    },
    Reproduction {
        name: "ps-convergence",
        figure: "paper 5, figure 3",
        claim: "The delayed block method reaches the same objective sooner than a method of L-BFGS type, and than itself under sequential consistency.",
        run: ps::convergence,
    },
    Reproduction {
        name: "ps-delay",
        figure: "paper 5, figure 5",
        claim: "Larger delays cut waiting and slightly slow convergence; the best, 8, reaches the same objective 1.6 times as fast as sequential consistency.",
        run: ps::delay,
    },
    Reproduction {
        name: "ps-waiting",
        figure: "paper 5, figure 4 (there by system, here by delay)",
        claim: "Relaxed consistency cuts the time that workers wait to a small part, while they compute as long.",
        run: ps::waiting,
    },
    Reproduction {
        name: "ps-filters",
        figure: "paper 5, figure 6",
        claim: "Key caching, compression and the KKT filter together cut what workers send to a twelfth and what servers send to a fortieth; here a tenth and a twentieth at the same objective will do.",
        run: ps::filters,
    },
    Reproduction {
        name: "ps-working-set",
        figure: "paper 5, section 2",
        claim: "A worker needs a small part of the model: 7.8 % with 100 workers, 0.15 % with 10,000.",
        run: ps::working_set,
    },
];

impl Reproduction {
    /// Makes the figure.
    ///
    /// # Errors
    /// If a simulated job fails.
    pub fn run(&self, scale: &Scale) -> Result<Finding, ReproduceError> {
        let Findings { found, holds, panels } = (self.run)(scale)?;
        let Self { name, figure, claim, .. } = *self;
        Ok(Finding { name, figure, claim, found, holds, scale: *scale, panels })
    }
}
