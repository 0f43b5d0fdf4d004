//! How well a regression predicts: its loss, and which classes it takes for which.

/// What came of predicting examples whose classes are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    classes: usize,
    /// The sum of the losses.
    loss: f64,
    /// How many examples of each class were taken for each: the true class decides the row.
    confusion: Vec<u64>,
}

impl Evaluation {
    pub(super) fn new(classes: usize) -> Self {
        Self { classes, loss: 0.0, confusion: vec![0; classes * classes] }
    }

    pub(super) fn count(&mut self, label: u32, predicted: u32, loss: f64) {
        self.loss += loss;
        self.confusion[label as usize * self.classes + predicted as usize] += 1;
    }

    /// How many examples there were.
    #[must_use]
    pub fn examples(&self) -> u64 {
        self.confusion.iter().sum()
    }

    /// The mean loss; not a number where there were no examples.
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.loss / self.examples() as f64
    }

    /// The share of examples whose class was predicted; not a number where there were none.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        let right: u64 = (0..self.classes).map(|class| self.confused(class, class)).sum();
        right as f64 / self.examples() as f64
    }

    /// How many examples of class `label` were taken for class `predicted`.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn confused(&self, label: usize, predicted: usize) -> u64 {
        self.confusion[label * self.classes..][..self.classes][predicted]
    }

    /// The share of the examples taken for a class that are of it; nothing if none was.
    #[must_use]
    pub fn precision(&self, class: usize) -> Option<f64> {
        let taken: u64 = (0..self.classes).map(|label| self.confused(label, class)).sum();
        (taken > 0).then(|| self.confused(class, class) as f64 / taken as f64)
    }

    /// The share of the examples of a class that were taken for it; nothing if there were none.
    #[must_use]
    pub fn recall(&self, class: usize) -> Option<f64> {
        let there: u64 = (0..self.classes).map(|predicted| self.confused(class, predicted)).sum();
        (there > 0).then(|| self.confused(class, class) as f64 / there as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_of_the_counts() {
        let mut evaluation = Evaluation::new(3);
        for (label, predicted, loss) in [(0, 0, 0.5), (0, 1, 1.5), (1, 1, 0.25), (1, 1, 0.75)] {
            evaluation.count(label, predicted, loss);
        }
        assert_eq!((evaluation.examples(), evaluation.loss(), evaluation.accuracy()), (4, 0.75, 0.75));
        assert_eq!([0, 1, 2].map(|class| evaluation.precision(class)), [Some(1.0), Some(2.0 / 3.0), None]);
        assert_eq!([0, 1, 2].map(|class| evaluation.recall(class)), [Some(0.5), Some(1.0), None]);
        assert_eq!((evaluation.confused(0, 1), evaluation.confused(1, 0)), (1, 0));
    }
}
