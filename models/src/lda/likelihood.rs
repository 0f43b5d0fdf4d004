//! The joint log-likelihood of words and topics, `log p(w, z | α, β)`: what training raises.
//!
//! It is the figure that tomotopy (`ll_per_word`, which has it in single precision: the fifth digit may differ) and Mallet
//! print, per token:
//! `Σ_d [ lnΓ(Kα) − lnΓ(N_d + Kα) + Σ_k (lnΓ(n_dk + α) − lnΓ(α)) ]` for the documents and
//! `Σ_k [ lnΓ(Wβ) − lnΓ(n_k + Wβ) + Σ_w (lnΓ(n_wk + β) − lnΓ(β)) ]` for the topics.

/// `lnΓ(n + prior) − lnΓ(prior)` for counts `n`, the small ones from a list.
#[derive(Clone, Debug)]
pub struct LogRising {
    prior: f64,
    at_prior: f64,
    small: Vec<f64>,
}

impl LogRising {
    /// For one prior, which is above zero.
    #[must_use]
    pub fn new(prior: f64) -> Self {
        let at_prior = ln_gamma(prior);
        Self { prior, at_prior, small: (0..256).map(|n| ln_gamma(f64::from(n) + prior) - at_prior).collect() }
    }

    /// The value for a count.
    #[must_use]
    pub fn of(&self, count: f64) -> f64 {
        let whole = count.max(0.0) as usize;
        self.small.get(whole).copied().unwrap_or_else(|| ln_gamma(count + self.prior) - self.at_prior)
    }
}

/// The documents' part, of those whose counts above zero `for_each` gives.
#[must_use]
pub fn of_documents(for_each: impl FnOnce(&mut dyn FnMut(&[u16])), alpha: f32, topics: usize) -> f64 {
    let (one, all) = (LogRising::new(f64::from(alpha)), LogRising::new(f64::from(alpha) * topics as f64));
    let mut likelihood = 0.0;
    for_each(&mut |counts: &[u16]| {
        likelihood += counts.iter().map(|&count| one.of(f64::from(count))).sum::<f64>();
        likelihood -= all.of(counts.iter().map(|&count| f64::from(count)).sum());
    });
    likelihood
}

/// The words' part, of some rows of counts.
#[must_use]
pub fn of_rows(rows: &[f32], of_beta: &LogRising) -> f64 {
    rows.iter().filter(|&&count| count > 0.0).map(|&count| of_beta.of(f64::from(count))).sum()
}

/// The topics' part: what their totals take off.
#[must_use]
pub fn of_totals(totals: &[i32], beta: f32, words: usize) -> f64 {
    let all = LogRising::new(f64::from(beta) * words as f64);
    -totals.iter().map(|&total| all.of(f64::from(total))).sum::<f64>()
}

/// The logarithm of the gamma function, of numbers above zero: Stirling's series, which needs numbers that are not
/// small, after as many steps of `Γ(x + 1) = x Γ(x)` as lead there.
#[must_use]
pub fn ln_gamma(mut x: f64) -> f64 {
    let mut product = 1.0;
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gamma_function_of_whole_numbers_is_the_factorial() {
        let mut factorial = 0.0f64;
        for n in 1..60 {
            assert!((ln_gamma(f64::from(n)) - factorial).abs() < 1e-10 * factorial.max(1.0), "{n}");
            factorial += f64::from(n).ln();
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
        assert!((ln_gamma(0.01) - 4.599_479_878_042_022).abs() < 1e-11);
    }

    #[test]
    fn rising_factorials_agree_with_products() {
        for prior in [0.01, 0.1, 3.0] {
            let rising = LogRising::new(prior);
            let mut product = 0.0;
            for n in 0..400 {
                assert!((rising.of(f64::from(n)) - product).abs() < 1e-9 * product.abs().max(1.0), "{prior} {n}");
                product += (f64::from(n) + prior).ln();
            }
        }
    }
}
