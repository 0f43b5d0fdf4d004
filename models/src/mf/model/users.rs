//! Users whom a factorisation was not trained on: their vectors follow from their ratings and the items.

use super::MfModel;
use crate::mf::Biases;
use crate::mf::solve::Solver;
use crate::names::NamesFull;
use crate::ratings::Ratings;

/// The regularisation where a model does not say what it was trained with.
const L2: f32 = 0.05;

impl MfModel {
    /// Gives the users of `ratings` the vectors that explain their ratings best, with the items as they are and the
    /// regularisation of the training: section 6.2 of the Splash paper. A user known before is known by these ratings
    /// from now on.
    ///
    /// Items that the model does not know are passed over, and so are users who rated none that it knows. A rating
    /// beyond the range of those trained on counts as the end of the range.
    ///
    /// # Errors
    /// If there are more users than can be numbered.
    pub fn add_users(&mut self, ratings: &Ratings) -> Result<(), NamesFull> {
        let mut known: Vec<(u32, u32, f32)> = Vec::new();
        for rating in ratings.ratings.iter() {
            if let Some(item) = self.items.get(ratings.items.name(rating.item)) {
                known.push((rating.user, item, self.clip(rating.value)));
            }
        }
        known.sort_by_key(|(user, ..)| *user);
        let mut solver = Solver::default();
        for of_user in known.chunk_by(|one, other| one.0 == other.0) {
            let user = self.users.intern(ratings.users.name(of_user[0].0))? as usize;
            let vector = self.vector(of_user, &mut solver);
            let (factors, bias) = vector.split_at(self.rank);
            set(&mut self.user_factors, user * self.rank, factors);
            if let Some(biases) = &mut self.user_bias {
                set(biases, user, bias);
            }
        }
        Ok(())
    }

    /// The factors of a user with these ratings and, where the model has biases, the user's bias.
    fn vector(&self, ratings: &[(u32, u32, f32)], solver: &mut Solver) -> Vec<f32> {
        let biases = if self.item_bias.is_some() { Biases::With } else { Biases::Without };
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        for &(_, item, value) in ratings {
            let item = item as usize;
            rows.extend_from_slice(&self.item_factors[item * self.rank..(item + 1) * self.rank]);
            targets.push(value - self.mean - self.item_bias.as_ref().map_or(0.0, |biases| biases[item]));
        }
        let l2 = self.config["l2"].as_f64().map(|l2| l2 as f32).filter(|l2| l2.is_finite() && *l2 >= 0.0);
        solver.solve(&rows, &targets, self.rank, biases, l2.unwrap_or(L2)).iter().map(|number| *number as f32).collect()
    }
}

/// Puts numbers at a place, of which there may have to be made one first.
fn set(all: &mut Vec<f32>, place: usize, numbers: &[f32]) {
    all.resize(all.len().max(place + numbers.len()), 0.0);
    all[place..place + numbers.len()].copy_from_slice(numbers);
}
