//! Keys named in the documents exist, and the page for users of the published recipe names all of its keys.

use ocelli_config::{GROUPS, KEYS};

const DOCS: [(&str, &str); 3] = [
    ("README.md", include_str!("../../../README.md")),
    ("docs/from-pytorch.md", include_str!("../../../docs/from-pytorch.md")),
    ("CHANGELOG.md", include_str!("../../../CHANGELOG.md")),
];

/// Every key of the published recipe's two presets.
const RECIPE: [&str; 40] = [
    "model_config.num_blks",
    "model_config.n_embd",
    "model_config.n_head",
    "model_config.n_layer",
    "model_config.dropout",
    "model_config.img_size",
    "model_config.patch_size",
    "model_config.image_embed_dim",
    "model_config.emb_dropout",
    "model_config.blk_dropout",
    "model_config.block_size",
    "model_config.head_size",
    "data_config.image_col",
    "data_config.caption_col",
    "data_config.pad_token",
    "data_config.train_split_ratio",
    "data_config.vocab_path",
    "data_config.dataset",
    "data_config.data_path",
    "data_config.padding",
    "data_config.max_seq_length",
    "data_config.num_workers",
    "data_config.pinned_memory",
    "trainer_config.lr",
    "trainer_config.train_batch_size",
    "trainer_config.eval_batch_size",
    "trainer_config.epochs",
    "trainer_config.max_iters",
    "trainer_config.eval_interval",
    "trainer_config.eval_iters",
    "trainer_config.use_amp",
    "trainer_config.compile",
    "trainer_config.cuda_graph",
    "trainer_config.use_wandb",
    "trainer_config.wandb_project",
    "trainer_config.snapshot_dir",
    "trainer_config.snapshot_load_strategy",
    "trainer_config.log_verbose",
    "trainer_config.profile_results_dir",
    "trainer_config.profiler_mode",
];

/// What looks like `group.key` in a text.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    GROUPS.iter().flat_map(move |group| {
        text.match_indices(group).filter_map(move |(at, _)| {
            let rest = &text[at..];
            let name = rest[group.len()..].strip_prefix('.')?;
            let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
            (end > 0).then(|| &rest[..group.len() + 1 + end])
        })
    })
}

#[test]
fn documents_name_only_keys_that_exist() {
    for (file, text) in DOCS {
        for key in keys(text) {
            assert!(KEYS.iter().any(|k| k.path == key), "{file} names {key}, which is no key");
        }
        assert!(file == "CHANGELOG.md" || keys(text).count() > 3, "{file} names hardly a key: is it read?");
    }
}

#[test]
fn the_page_for_the_recipes_users_names_each_of_its_keys() {
    let named: Vec<&str> = keys(DOCS[1].1).collect();
    for key in RECIPE {
        assert!(named.contains(&key), "docs/from-pytorch.md does not name {key}");
    }
}
