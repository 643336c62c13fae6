//! Finds the wanted columns in the header, or says what the header has.

/// A name further from the wanted one than this is no suggestion (1 is equal, 0 has nothing in common).
const NEAR: f64 = 0.7;

/// A column that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// Its name, if a person gave one.
    pub(crate) given: Option<&'a str>,
    /// Else the first of these that is there, in small or capital letters.
    pub(crate) usual: &'static [&'static str],
    /// The key that names it.
    pub(crate) key: &'static str,
}

impl<'a> Wish<'a> {
    /// The column with the captions.
    pub(crate) fn caption(given: Option<&'a str>) -> Self {
        let usual = &["caption", "text", "captions", "sentence", "sentences", "description"];
        Self { given, usual, key: "data_config.caption_col" }
    }

    /// Its place among `names`, or what is wrong and what is there.
    pub(crate) fn find(&self, names: &[String]) -> Result<usize, String> {
        match self.given {
            Some(wanted) => self.find_given(names, wanted),
            None => {
                let place = |usual: &&str| names.iter().position(|n| n.eq_ignore_ascii_case(usual));
                let place = self.usual.iter().find_map(place).ok_or_else(|| self.none_usual(names))?;
                self.find_given(names, &names[place])
            }
        }
    }

    fn find_given(&self, names: &[String], wanted: &str) -> Result<usize, String> {
        let mut places = (0..names.len()).filter(|i| names[*i] == wanted);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(a), Some(b)) => {
                Err(format!("the column `{wanted}` is there twice, as number {} and {}", a + 1, b + 1))
            }
            _ => Err(format!(
                "no column `{wanted}` ({}): there are {}{}",
                self.key,
                list(names),
                nearest(names, wanted)
            )),
        }
    }

    fn none_usual(&self, names: &[String]) -> String {
        let usual = self.usual.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        format!("no column {usual}: there are {}. Name the column in {}", list(names), self.key)
    }
}

/// The names, shortened: without a header line, the first row stands there with its picture.
fn list(names: &[String]) -> String {
    const MOST: usize = 12;
    let short = |name: &String| match name.char_indices().nth(40) {
        Some((end, _)) => format!("`{}...` ({} characters)", &name[..end], name.chars().count()),
        None => format!("`{name}`"),
    };
    let mut shown: Vec<String> = names.iter().take(MOST).map(short).collect();
    if names.len() > MOST {
        shown.push(format!("and {} more", names.len() - MOST));
    }
    shown.join(", ")
}

fn nearest(names: &[String], wanted: &str) -> String {
    let score = |name: &String| strsim::jaro_winkler(&name.to_lowercase(), &wanted.to_lowercase());
    let nearest = names.iter().filter(|n| n.len() <= 200).max_by(|a, b| score(a).total_cmp(&score(b)));
    nearest.filter(|n| score(n) >= NEAR).map(|n| format!(". Did you mean `{n}`?")).unwrap_or_default()
}

/// A first line that is none of names: Excel's mark, one field that holds another usual delimiter, or fields as long as a
/// picture. What is wrong, and what to do.
pub(super) fn hint(names: &[String], own: char) -> String {
    let mark =
        names.first().and_then(|first| first.get(..4)).filter(|mark| mark.eq_ignore_ascii_case("sep="));
    if mark.is_some() {
        return ". The first line is a mark of Excel's, which names the delimiter: take that line away, and set \
                data_config.delimiter"
            .into();
    }
    let mut others = [',', ';', '\t', '|', '\u{1}'].into_iter().filter(|c| *c != own);
    if let ([only], Some(c)) = (names, others.find(|c| names[0].contains(*c))) {
        let count = only.split(c).count();
        let set = match c {
            '\t' => "data_config.dataset=tsv".into(),
            ',' => "data_config.dataset=csv".into(),
            '\u{1}' => "data_config.delimiter='\\x01'".into(),
            other => format!("data_config.delimiter='{other}'"),
        };
        return format!(". The fields seem to be divided by {c:?} ({count} of them), not {own:?}: set {set}");
    }
    if names.iter().any(|n| n.len() > 200) {
        return ". The first line must name the columns".into();
    }
    String::new()
}
