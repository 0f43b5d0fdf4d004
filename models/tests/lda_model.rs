//! Topic models: what they say of words and documents, and what is refused as one.

use std::fs;

use hemiola_models::Names;
use hemiola_models::corpus::Corpus;
use hemiola_models::lda::model::LdaModel;
use hemiola_models::model_directory::kind_of;
use serde_json::json;

const WORDS: usize = 6;
const TOPICS: usize = 3;

fn model() -> LdaModel {
    let mut vocabulary = Names::default();
    for word in ["cat", "dog", "owl", "sun", "moon", "star"] {
        vocabulary.intern(word).unwrap();
    }
    LdaModel {
        vocabulary,
        alpha: vec![0.1, 0.5, 0.2],
        beta: 0.25,
        word_topic: vec![9., 0., 1., 4., 0., 1., 4., 1., 1., 0., 7., 1., 0., 5., 2., 0., 0., 3.],
        config: json!({"sweeps": 7}),
        metrics: json!({}),
    }
}

/// The probability of a word in a topic, straight from the definition.
fn probability(model: &LdaModel, topic: usize, word: usize) -> f64 {
    let counted = |word: usize| f64::from(model.word_topic[word * TOPICS + topic]) + f64::from(model.beta);
    counted(word) / (0..WORDS).map(counted).sum::<f64>()
}

/// The proportions of the topics, word by word in double precision.
fn proportions(model: &LdaModel, words: &[u32]) -> Vec<f64> {
    let mut shares = vec![1.0 / TOPICS as f64; TOPICS];
    for _ in 0..40 {
        let mut next: Vec<f64> = model.alpha.iter().map(|alpha| f64::from(*alpha)).collect();
        for &word in words {
            let joint: Vec<f64> =
                (0..TOPICS).map(|topic| shares[topic] * probability(model, topic, word as usize)).collect();
            let all: f64 = joint.iter().sum();
            next.iter_mut().zip(&joint).for_each(|(next, joint)| *next += joint / all);
        }
        let all: f64 = next.iter().sum();
        shares = next.iter().map(|next| next / all).collect();
    }
    shares
}

#[test]
fn proportions_are_those_of_the_definition() {
    let model = model();
    let mut inference = model.inference();
    for words in [&[][..], &[0], &[3, 3, 4], &[5, 0, 1, 0, 5, 2, 4]] {
        let (found, expected) = (inference.proportions(words), proportions(&model, words));
        assert!(
            found.iter().zip(&expected).all(|(one, other)| (f64::from(*one) - other).abs() < 1e-5),
            "{words:?}: {found:?}, not {expected:?}"
        );
        assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn held_out_words_are_predicted_from_the_others() {
    let model = model();
    let mut splits = std::collections::HashSet::new();
    for place in 0..20 {
        // Word `w` occurs `2^w` times, so that the number of words held out tells which.
        let document: Vec<u32> = (0..WORDS as u32).flat_map(|word| std::iter::repeat_n(word, 1 << word)).collect();
        let mut corpus = Corpus::new(model.vocabulary.clone());
        (0..place).for_each(|_| corpus.push([]));
        corpus.push(document.iter().copied());
        let found = model.held_out(&corpus);
        let (held_out, observed): (Vec<u32>, Vec<u32>) =
            document.iter().partition(|word| found.tokens >> **word & 1 == 1);
        assert_eq!(held_out.len() as u64, found.tokens);
        splits.insert(found.tokens);
        let shares = proportions(&model, &observed);
        let predicted = |word: u32| -> f64 {
            (0..TOPICS).map(|topic| shares[topic] * probability(&model, topic, word as usize)).sum()
        };
        let expected = held_out.iter().map(|&word| predicted(word).ln()).sum::<f64>() / held_out.len() as f64;
        assert!((found.log_likelihood - expected).abs() < 1e-5, "{found:?}, not {expected}");
        assert!((found.perplexity().ln() + expected).abs() < 1e-5);
        assert_eq!(found, model.held_out(&corpus));
    }
    assert!(splits.len() > 5, "documents are split in different ways: {splits:?}");
}

#[test]
fn the_most_probable_words_come_first() {
    let model = model();
    let words = |topic, count| model.top_words(topic, count).iter().map(|(word, _)| *word).collect::<Vec<_>>();
    assert_eq!(words(0, 3), [0, 1, 2]);
    assert_eq!(words(2, 9), [5, 4, 0, 1, 2, 3]);
    assert!(words(1, 0).is_empty());
    for (word, found) in model.top_words(1, WORDS) {
        assert!((f64::from(found) - probability(&model, 1, word as usize)).abs() < 1e-6);
    }
    let shares = model.topic_shares();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12 && shares[0] > shares[1] && shares[1] > shares[2]);
}

#[test]
fn what_is_saved_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("MODEL");
    model().save(&path).unwrap();
    assert_eq!(LdaModel::load(&path).unwrap(), model());
    assert_eq!(kind_of(&path).unwrap(), "lda");
    let mut files: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["checksums.txt", "model.json", "topics.safetensors", "vocabulary.txt"]);
    for file in files {
        let whole = fs::read(path.join(&file)).unwrap();
        for position in (0..whole.len()).step_by(3) {
            let mut flipped = whole.clone();
            flipped[position] ^= 1;
            fs::write(path.join(&file), &flipped).unwrap();
            assert!(LdaModel::load(&path).is_err(), "{file} flipped at {position}");
        }
        fs::write(path.join(&file), &whole).unwrap();
    }
}

#[test]
fn what_is_no_topic_model_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("MODEL");
    let refused = |change: fn(&mut LdaModel)| {
        let mut changed = model();
        change(&mut changed);
        let error = changed.save(&path).unwrap_err().to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    let priors =
        |alpha, beta| format!("3 topics of 6 words with alpha {alpha} and beta {beta} are not those of a topic model");
    assert_eq!(refused(|model| model.beta = 0.0), priors("0.1", "0"));
    assert_eq!(refused(|model| model.alpha[1] = -1.0), priors("-1", "0.25"));
    assert_eq!(
        refused(|model| model.word_topic[4] = -2.0),
        "word_topic holds -2 at position 4; expected counts of 0 or more"
    );
    assert_eq!(
        refused(|model| model.word_topic[4] = f32::NAN),
        "word_topic holds NaN at position 4; expected finite numbers"
    );
    assert!(!path.exists());
}
