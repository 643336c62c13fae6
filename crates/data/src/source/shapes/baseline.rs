//! What the score is worth: what guessing gets, and what always saying the same gets.

use ocelli_ir::rng::Stream;

use super::score::{ATTRIBUTES, agreement};
use super::{Colour, Object, Place, Scene, Score, Shape, Size, Split, score};

/// A caption said of every picture, and what it scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The caption.
    pub caption: String,
    /// Over all the scenes.
    pub score: Score,
}

/// The score of captions drawn at random, independent of the pictures, 16 for each scene: valid captions, as
/// a model would write that has learnt the language and is blind.
pub fn chance(scenes: &[Scene]) -> Score {
    let mut stream = Stream::new(0, "shapes.chance");
    let mut sum = Score::default();
    for scene in scenes {
        for _ in 0..16 {
            sum += score(&Scene::draw(&mut stream, Split::Train).caption(), scene);
        }
    }
    sum
}

/// The one caption that scores best if it is said of every scene, found exactly: the objects of a caption
/// score independently of each other, and the total depends on their number only.
pub fn commonest(scenes: &[Scene]) -> Baseline {
    let mut best: Vec<(u32, Object)> = Place::ALL.iter().map(|place| best_in(*place, scenes)).collect();
    best.sort_by_key(|(right, object)| (std::cmp::Reverse(*right), object.place));
    let captions = (1..=Scene::MOST).map(|count| {
        let mut objects: Vec<Object> = best[..count].iter().map(|(_, object)| *object).collect();
        objects.sort_by_key(|object| object.place);
        let total = scenes.iter().map(|s| ATTRIBUTES * s.objects.len().max(count) as u32).sum();
        let score = Score { right: best[..count].iter().map(|(right, _)| right).sum(), total };
        Baseline { caption: Scene { objects }.caption(), score }
    });
    captions
        .max_by(|a, b| a.score.share().total_cmp(&b.score.share()))
        .unwrap_or_else(|| Baseline { caption: String::new(), score: Score::default() })
}

/// The object that scores most in one place, over all scenes.
fn best_in(place: Place, scenes: &[Scene]) -> (u32, Object) {
    let there: Vec<&Object> = scenes.iter().flat_map(|s| &s.objects).filter(|o| o.place == place).collect();
    let most = |same: &dyn Fn(&Object) -> bool| there.iter().filter(|o| same(o)).count();
    let size = Size::ALL.iter().copied().max_by_key(|v| most(&|o| o.size == *v));
    let colour = Colour::ALL.iter().copied().max_by_key(|v| most(&|o| o.colour == *v));
    let shape = Shape::ALL.iter().copied().max_by_key(|v| most(&|o| o.shape == *v));
    let object = Object {
        size: size.unwrap_or(Size::Small),
        colour: colour.unwrap_or(Colour::Red),
        shape: shape.unwrap_or(Shape::Circle),
        place,
    };
    (there.iter().map(|o| agreement(&object, o)).sum(), object)
}

#[cfg(test)]
mod tests {
    use super::super::{Shapes, Split};
    use super::*;

    #[test]
    fn no_random_caption_beats_the_commonest() {
        let scenes = Shapes::new(3, Split::Validation, 500).scenes(500);
        let best = commonest(&scenes);
        let over_all = |caption: &str| {
            let mut sum = Score::default();
            scenes.iter().for_each(|scene| sum += score(caption, scene));
            sum
        };
        assert_eq!(over_all(&best.caption), best.score);
        for other in Shapes::new(4, Split::Train, 2_000).scenes(2_000) {
            assert!(over_all(&other.caption()).share() <= best.score.share(), "{other:?}");
        }
    }

    /// Two of four attributes are fair coins or dice; the exact expectation is worked out by hand.
    #[test]
    fn chance_is_what_the_odds_say() {
        // One object at the top left; a guess of k objects names that place with odds k/4 and gets, besides
        // the place, 1/2 of sizes, about 1/8 of colours and 1/4 of shapes; its total is 4k.
        let scene = Scene::parse("small green circle top left").unwrap();
        let share = chance(&vec![scene; 2_000]).share();
        let named = (1.0 + 2.0 + 3.0) / 3.0 / 4.0;
        let wanted = named * (1.0 + 0.5 + 0.125 + 0.25) / (4.0 * 2.0);
        assert!((share - wanted).abs() < 0.005, "{share}, expected about {wanted}");
    }
}
