//! The sizes of a model read off the shapes of its parameters, so that a file that does not fit names the keys that
//! differ, whoever wrote it.

use crate::snapshot::{Spec, Tensor};
use std::collections::BTreeMap;

/// What the sizes are called in messages, the way of a picture through the model.
const VOCABULARY: &str = "the vocabulary (data_config.vocab_path, data_config.loss)";

/// The sizes that differ between the model and a file, a line each; `None` if none does.
pub(super) fn differences(model: &[Spec], file: &[Tensor<'_>]) -> Option<String> {
    let here = sizes(|name| model.iter().find(|s| s.name == name).map(|s| &s.shape[..]), names(model));
    let there = sizes(
        |name| file.iter().find(|t| t.name == name).map(|t| &t.shape[..]),
        file.iter().map(|t| t.name.as_str()),
    );
    let lines: Vec<String> = here
        .iter()
        .filter_map(|(key, here)| Some((key, here, there.get(key)?)))
        .filter(|(_, here, there)| here != there)
        .map(|(key, here, there)| format!("\n  {key} is {here} here, {there} in the file"))
        .collect();
    (!lines.is_empty())
        .then(|| format!("the model in it has other sizes:{}\nSet them as in the file", lines.concat()))
}

fn names(model: &[Spec]) -> impl Iterator<Item = &str> {
    model.iter().map(|s| s.name.as_str())
}

/// The sizes that the shapes tell, by the key that sets each.
fn sizes<'a>(
    shape: impl Fn(&str) -> Option<&'a [usize]>,
    names: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'static str, usize> {
    let mut found = BTreeMap::new();
    let extent = |name: &str, axis: usize| shape(name).and_then(|s| s.get(axis).copied());
    let mut set = |key: &'static str, size: Option<usize>| found.extend(size.map(|size| (key, size)));
    set("model_config.image_embed_dim", extent("vision_encoder.cls_token", 2));
    let patch = extent("vision_encoder.patch_embedding.conv.weight", 2);
    set("model_config.patch_size", patch);
    let patches = extent("vision_encoder.pos_embedding", 1).map(|n| n.saturating_sub(1));
    set("model_config.img_size", patches.zip(patch).and_then(|(n, side)| n.isqrt().checked_mul(side)));
    set(VOCABULARY, extent("decoder.token_embedding_table.weight", 0));
    set("model_config.n_embd", extent("decoder.token_embedding_table.weight", 1));
    set("model_config.max_positions", extent("decoder.position_embedding_table.weight", 0));
    let (mut vision, mut text) = (None, None);
    for name in names {
        vision = vision.max(block(name, "vision_encoder.blocks."));
        text = text.max(block(name, "decoder.blocks."));
    }
    set("model_config.num_blks", vision);
    set("model_config.n_layer", text);
    found
}

/// How many blocks there are, as far as this name tells.
fn block(name: &str, prefix: &str) -> Option<usize> {
    name.strip_prefix(prefix)?.split('.').next()?.parse::<usize>().ok()?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::DType;

    fn spec(name: &str, shape: &[usize]) -> Spec {
        Spec { name: name.into(), dtype: DType::F32, shape: shape.to_vec() }
    }

    #[test]
    fn every_size_that_shapes_tell_is_named() {
        let of = |n: usize| {
            vec![
                spec("vision_encoder.cls_token", &[1, 1, 16 * n]),
                spec("vision_encoder.patch_embedding.conv.weight", &[16, 3, 4 * n, 4 * n]),
                spec("vision_encoder.pos_embedding", &[1, 10, 16]),
                spec("decoder.token_embedding_table.weight", &[70 + n, 32 * n]),
                spec("decoder.position_embedding_table.weight", &[100 * n, 32]),
                spec(&format!("vision_encoder.blocks.{n}.ln1.weight"), &[16]),
                spec(&format!("decoder.blocks.1{n}.ln1.weight"), &[16]),
            ]
        };
        let file = of(2);
        let tensors: Vec<Tensor<'_>> =
            file.iter().map(|s| Tensor::borrowed(s.name.clone(), s.dtype, &s.shape, &[])).collect();
        assert_eq!(differences(&file, &tensors), None);
        assert_eq!(differences(&[spec("other", &[1])], &tensors), None);
        let text = differences(&of(1), &tensors).unwrap();
        for line in [
            "model_config.image_embed_dim is 16 here, 32 in the file",
            "model_config.patch_size is 4 here, 8 in the file",
            "model_config.img_size is 12 here, 24 in the file",
            "data_config.loss) is 71 here, 72 in the file",
            "model_config.n_embd is 32 here, 64 in the file",
            "model_config.max_positions is 100 here, 200 in the file",
            "model_config.num_blks is 2 here, 3 in the file",
            "model_config.n_layer is 12 here, 13 in the file",
        ] {
            assert!(text.contains(line), "{line} not in {text}");
        }
    }

    #[test]
    fn nonsense_in_a_file_is_no_size() {
        let shapes: [&[usize]; 3] = [&[], &[1, 0, usize::MAX], &[usize::MAX, usize::MAX, usize::MAX]];
        for shape in shapes {
            let tensors = [
                "vision_encoder.pos_embedding",
                "vision_encoder.patch_embedding.conv.weight",
                "decoder.blocks.x.y",
            ]
            .map(|name| Tensor::borrowed(name, DType::F32, shape, &[]));
            let _ = differences(&[spec("vision_encoder.cls_token", &[1, 1, 4])], &tensors);
        }
    }
}
