//! How many attributes of drawn pictures captions name.

use crate::report::Attributes;
use ocelli_data::source::shapes;

/// The share of attributes named right, beside both baselines. A truth that is no drawn picture's caption is left out.
pub(crate) fn attributes(truths: &[&str], said: &[&str]) -> Attributes {
    let scenes: Vec<(shapes::Scene, &str)> = truths
        .iter()
        .zip(said)
        .filter_map(|(truth, said)| Some((shapes::Scene::parse(truth)?, *said)))
        .collect();
    let mut all = shapes::Score::default();
    scenes.iter().for_each(|(scene, said)| all += shapes::score(said, scene));
    let scenes: Vec<shapes::Scene> = scenes.into_iter().map(|(scene, _)| scene).collect();
    Attributes {
        pictures: scenes.len(),
        right: all.share(),
        chance: shapes::chance(&scenes).share(),
        commonest: shapes::commonest(&scenes).score.share(),
    }
}
