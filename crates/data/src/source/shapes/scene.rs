//! What can be in a picture, how it is drawn by lot, and the language of its captions.
//!
//! A caption names the objects in reading order, each as `size colour shape place`, with commas between:
//! `big red circle top left, small blue star bottom right`. [`Scene::parse`] reads back what
//! [`Scene::caption`] writes.

use ocelli_ir::rng::Stream;

use super::Split;

/// An enum of words: its values in order, and the word of each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$item_doc])* $item),* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[Self] = &[$(Self::$item),*];

            /// The word in captions.
            pub fn word(self) -> &'static str {
                match self { $(Self::$item => $word),* }
            }

            /// The value of a word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.word() == word)
            }
        }
    };
}

words!(
    /// How large an object is.
    Size {
        /// About a fifth of the picture's side.
        Small = "small",
        /// About two fifths of the picture's side.
        Big = "big",
    }
);

words!(
    /// An object's colour.
    Colour {
        /// Red.
        Red = "red",
        /// Orange.
        Orange = "orange",
        /// Yellow.
        Yellow = "yellow",
        /// Green.
        Green = "green",
        /// Blue.
        Blue = "blue",
        /// Purple.
        Purple = "purple",
        /// Pink.
        Pink = "pink",
        /// Black.
        Black = "black",
    }
);

words!(
    /// An object's shape.
    Shape {
        /// A disc.
        Circle = "circle",
        /// A square on its side.
        Square = "square",
        /// A triangle with a corner at the top.
        Triangle = "triangle",
        /// A star with five points.
        Star = "star",
    }
);

words!(
    /// A quarter of the picture, in reading order.
    Place {
        /// Top left.
        TopLeft = "top left",
        /// Top right.
        TopRight = "top right",
        /// Bottom left.
        BottomLeft = "bottom left",
        /// Bottom right.
        BottomRight = "bottom right",
    }
);

/// One object of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// How large it is.
    pub size: Size,
    /// Its colour.
    pub colour: Colour,
    /// Its shape.
    pub shape: Shape,
    /// Where it is.
    pub place: Place,
}

/// The combinations kept from training: 10 of 64. Every colour, shape and size is among them, and every
/// pair of two attributes still occurs in training, so that what is new is the combination only.
const HELD_OUT: [(Size, Colour, Shape); 10] = [
    (Size::Big, Colour::Red, Shape::Circle),
    (Size::Small, Colour::Orange, Shape::Square),
    (Size::Big, Colour::Yellow, Shape::Triangle),
    (Size::Small, Colour::Green, Shape::Star),
    (Size::Small, Colour::Blue, Shape::Circle),
    (Size::Big, Colour::Purple, Shape::Square),
    (Size::Small, Colour::Pink, Shape::Triangle),
    (Size::Big, Colour::Black, Shape::Star),
    (Size::Small, Colour::Red, Shape::Triangle),
    (Size::Big, Colour::Blue, Shape::Star),
];

impl Object {
    /// Whether its combination of size, colour and shape is kept from training.
    pub fn is_held_out(&self) -> bool {
        HELD_OUT.contains(&(self.size, self.colour, self.shape))
    }

    /// `big red circle top left`.
    pub fn caption(&self) -> String {
        let Self { size, colour, shape, place } = self;
        [size.word(), colour.word(), shape.word(), place.word()].join(" ")
    }

    /// Reads one object's caption, with single spaces between the words.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        Some(Self {
            size: Size::from_word(words.next()?)?,
            colour: Colour::from_word(words.next()?)?,
            shape: Shape::from_word(words.next()?)?,
            place: Place::from_word(words.next()?)?,
        })
    }
}

/// What is in a picture: 1 to 3 objects, in reading order, no two in one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scene {
    /// The objects.
    pub objects: Vec<Object>,
}

impl Scene {
    /// The most objects in a scene.
    pub const MOST: usize = 3;

    /// Draws a scene by lot: 1, 2 or 3 objects with equal chances, then places, then attributes.
    ///
    /// In training, an object that would be held out is drawn again. In validation one object, any of them,
    /// is drawn from the held-out combinations, the others from all.
    pub(super) fn draw(stream: &mut Stream, split: Split) -> Self {
        let mut places = Place::ALL.to_vec();
        stream.shuffle(&mut places);
        places.truncate(1 + stream.below(Self::MOST as u64) as usize);
        places.sort();
        let special = match split {
            Split::Train => None,
            Split::Validation => Some(stream.below(places.len() as u64) as usize),
        };
        let object = |(i, place)| {
            let (size, colour, shape) =
                if special == Some(i) { pick(stream, &HELD_OUT) } else { combination(stream, split) };
            Object { size, colour, shape, place }
        };
        Self { objects: places.into_iter().enumerate().map(object).collect() }
    }

    /// The caption: at most 102 ASCII characters.
    pub fn caption(&self) -> String {
        self.objects.iter().map(Object::caption).collect::<Vec<_>>().join(", ")
    }

    /// Reads a caption. `None` unless it is exactly what [`Scene::caption`] writes for some scene.
    pub fn parse(caption: &str) -> Option<Self> {
        let objects: Vec<Object> = caption.split(", ").map(Object::parse).collect::<Option<_>>()?;
        let in_order = objects.windows(2).all(|pair| pair[0].place < pair[1].place);
        (in_order && objects.len() <= Self::MOST).then_some(Self { objects })
    }
}

fn pick<T: Copy>(stream: &mut Stream, from: &[T]) -> T {
    from[stream.below(from.len() as u64) as usize]
}

fn combination(stream: &mut Stream, split: Split) -> (Size, Colour, Shape) {
    loop {
        let drawn = (pick(stream, Size::ALL), pick(stream, Colour::ALL), pick(stream, Shape::ALL));
        if split == Split::Validation || !HELD_OUT.contains(&drawn) {
            return drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn held_out_combinations_leave_every_pair_in_training() {
        let held: HashSet<_> = HELD_OUT.into_iter().collect();
        assert_eq!(held.len(), HELD_OUT.len());
        let mut pairs = [HashSet::new(), HashSet::new(), HashSet::new()];
        for &z in Size::ALL {
            for &c in Colour::ALL {
                for &s in Shape::ALL {
                    if !held.contains(&(z, c, s)) {
                        pairs[0].insert((z as u8, c as u8));
                        pairs[1].insert((z as u8, s as u8));
                        pairs[2].insert((c as u8, s as u8));
                    }
                }
            }
        }
        assert_eq!(pairs.map(|p| p.len()), [2 * 8, 2 * 4, 8 * 4]);
        assert_eq!(HELD_OUT.iter().filter(|(z, ..)| *z == Size::Big).count(), 5);
        assert_eq!(HELD_OUT.iter().map(|h| h.1).collect::<HashSet<_>>().len(), 8);
        assert_eq!(HELD_OUT.iter().map(|h| h.2).collect::<HashSet<_>>().len(), 4);
    }

    #[test]
    fn parse_reads_what_caption_writes_and_nothing_else() {
        let text = "big red circle top left, small blue star bottom right";
        let scene = Scene::parse(text).unwrap();
        assert_eq!(scene.objects.len(), 2);
        assert_eq!(scene.objects[1].place, Place::BottomRight);
        assert_eq!(scene.caption(), text);
        for wrong in [
            "",
            "big red circle",
            "big red circle top",
            "red big circle top left",
            "big  red circle top left",
            "big red circle top left,",
            "big red circle top left, ",
            "big red circle top left,small blue star bottom right",
            "small blue star bottom right, big red circle top left",
            "big red circle top left, big red star top left",
            "big red circle top left big",
        ] {
            assert_eq!(Scene::parse(wrong), None, "{wrong:?}");
        }
        let longest = "small orange triangle top right, small orange triangle bottom left, \
                       small orange triangle bottom right";
        assert_eq!(longest.len(), Scene::parse(longest).unwrap().caption().len());
        assert!(longest.len() == 102);
    }
}
