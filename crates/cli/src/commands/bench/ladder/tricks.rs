//! The tricks of the published post, in its order.

/// One of them.
#[derive(Debug)]
pub struct Trick {
    /// What it is called in files.
    pub name: &'static str,
    /// What it is called by people.
    pub title: &'static str,
    pub how: How,
}

/// Where it can be measured.
#[derive(Debug)]
pub enum How {
    /// Here, by switching this key.
    Key(&'static str),
    /// Not here, and why.
    Elsewhere(&'static str),
}

const fn key(name: &'static str, title: &'static str, key: &'static str) -> Trick {
    Trick { name, title, how: How::Key(key) }
}

const fn elsewhere(name: &'static str, title: &'static str, why: &'static str) -> Trick {
    Trick { name, title, how: How::Elsewhere(why) }
}

/// All of them.
pub const TRICKS: [Trick; 10] = [
    elsewhere(
        "workers",
        "loader workers",
        "needs pictures to decode, and the batches here are drawn beforehand: compare the data wait that `ocelli train` \
         shows under data_config.num_workers=0 and 4 on your own data",
    ),
    key("pinned_memory", "pinned memory", "data_config.pinned_memory"),
    key("cuda_graph", "CUDA graph", "trainer_config.cuda_graph"),
    key("prefetch", "prefetch", "trainer_config.prefetch"),
    key("tf32", "TF32", "trainer_config.tf32"),
    key("amp", "mixed precision", "trainer_config.use_amp"),
    key("compile", "compile (fusion)", "trainer_config.compile"),
    key("flash_attention", "FlashAttention", "trainer_config.flash_attention"),
    key("autotune", "autotune", "trainer_config.autotune"),
    elsewhere("data_parallel", "data parallel", "needs several GPUs, which are not used yet"),
];

/// Which of [`TRICKS`] are on.
pub type Switches = [bool; TRICKS.len()];

/// The keys of all tricks, set.
pub fn overrides(on: &Switches) -> Vec<String> {
    let set = |(trick, on): (&Trick, &bool)| match trick.how {
        How::Key(key) => Some(format!("{key}={on}")),
        How::Elsewhere(_) => None,
    };
    TRICKS.iter().zip(on).filter_map(set).collect()
}

/// The first key of `overrides` that the ladder sets itself.
pub fn taken(overrides: &[String]) -> Option<&'static str> {
    let key = |text: &str| text.trim_start_matches(['+', '~']).split('=').next().map(str::to_string);
    let named: Vec<String> = overrides.iter().filter_map(|o| key(o)).collect();
    TRICKS.iter().find_map(|t| match t.how {
        How::Key(key) if named.iter().any(|n| n == key) => Some(key),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_one_that_can_be_switched() {
        for on in [false, true] {
            for text in overrides(&[on; TRICKS.len()]) {
                let loaded = ocelli_config::load(&ocelli_config::Request {
                    overrides: vec![text.clone()],
                    ..Default::default()
                });
                assert!(loaded.is_ok(), "{text}: {loaded:?}");
            }
        }
    }

    #[test]
    fn keys_of_the_ladder_are_its_own() {
        let of = |text: &str| taken(&["trainer_config.lr=1".into(), text.into()]);
        assert_eq!(of("++trainer_config.tf32=true"), Some("trainer_config.tf32"));
        assert_eq!(of("~trainer_config.use_amp"), Some("trainer_config.use_amp"));
        assert_eq!(of("trainer_config.amp_dtype=fp16"), None);
    }
}
