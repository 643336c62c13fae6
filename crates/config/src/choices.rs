//! Keys whose value is one word out of a few. Each enum's words stand once, in this file: the key table,
//! serde and the error messages all read `NAMES`.

use serde::{Deserialize, Serialize};

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word this choice accepts, in the order of the variants.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// The word that stands for this value in a configuration.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

choice! {
    /// Which model.
    Architecture {
        /// The published captioner: a ViT with a class token, one soft token, a decoder with learned positions.
        Seemore = "seemore",
        /// In the manner of SmolVLM: a SigLIP-style tower, groups of patches as tokens, a Llama-style decoder.
        Smol = "smol",
    }
}

choice! {
    /// Where programs run.
    Device {
        /// A GPU if there is one, else the CPU.
        Auto = "auto",
        /// This machine's processor.
        Cpu = "cpu",
        /// An NVIDIA GPU.
        Cuda = "cuda",
    }
}

choice! {
    /// Where a block's second residual starts.
    Residual {
        /// `x = LN2(x); x = x + FFN(x)`: the published model.
        Published = "published",
        /// `x = x + FFN(LN2(x))`: the standard form.
        PreNorm = "pre_norm",
    }
}

choice! {
    /// What quotation marks in a table of text mean.
    Quoting {
        /// As in CSV.
        Minimal = "minimal",
        /// They stand for themselves.
        None = "none",
    }
}

choice! {
    /// Where pictures and captions come from.
    Dataset {
        /// Pictures drawn from a seed, with captions true of them. Needs no file.
        Shapes = "shapes",
        /// A comma-separated table with base64 pictures.
        Csv = "csv",
        /// A tab-separated table with base64 pictures.
        Tsv = "tsv",
        /// Sharded parquet files.
        Parquet = "parquet",
        /// WebDataset: tar archives in which the files of one name are a sample.
        WebDataset = "webdataset",
        /// A folder of pictures with captions beside them.
        Folder = "folder",
        /// The captioning set of the published recipe.
        Coco = "coco",
    }
}

choice! {
    /// Over what rows are shuffled.
    Shuffle {
        /// The whole split, unless its files have more than 8 GiB: then windows.
        Auto = "auto",
        /// The whole split: any row may follow any other.
        Full = "full",
        /// Blocks of the files, and rows within windows of some blocks: files are read about once, in stretches.
        Window = "window",
    }
}

choice! {
    /// How captions of a batch get one length.
    Padding {
        /// As long as the longest caption of the batch (rounded up to a bucket).
        Longest = "longest",
        /// Always `max_seq_length`.
        MaxLength = "max_length",
    }
}

choice! {
    /// Which positions count in the loss.
    Loss {
        /// Padding does not count; an end-of-text token does.
        Masked = "masked",
        /// As in the published recipe: padding counts, there is no end-of-text token.
        Published = "published",
    }
}

choice! {
    /// What becomes of transparent pixels.
    Alpha {
        /// Laid on white.
        White = "white",
        /// The alpha channel is dropped.
        Drop = "drop",
    }
}

choice! {
    /// How a picture file becomes pixels.
    Pixels {
        /// Turned upright as its EXIF orientation says, transparent parts laid on white.
        Upright = "upright",
        /// As scripts with Pillow do: the orientation is ignored, the alpha channel dropped.
        Pillow = "pillow",
    }
}

choice! {
    /// Which of several captions of a picture is learnt.
    CaptionChoice {
        /// The first.
        First = "first",
        /// One of them at random, another in each epoch.
        Random = "random",
        /// All: each pair of picture and caption is a sample.
        All = "all",
    }
}

choice! {
    /// What to do with a character that the vocabulary lacks.
    Unknown {
        /// Stop before the first step and list the characters.
        Error = "error",
        /// Put a replacement in its place.
        Replace = "replace",
    }
}

choice! {
    /// The update rule.
    Optimizer {
        /// Adam; weight decay is added to the gradient.
        Adam = "adam",
        /// Adam with decoupled weight decay.
        AdamW = "adamw",
    }
}

choice! {
    /// How the learning rate moves after the warm-up.
    LrSchedule {
        /// It stays.
        Constant = "constant",
        /// Half a cosine down to zero at the last step.
        Cosine = "cosine",
        /// A straight line down to zero at the last step.
        Linear = "linear",
    }
}

choice! {
    /// The 16-bit type of mixed precision.
    AmpDtype {
        /// What the device is best at; on the CPU, none.
        Auto = "auto",
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE half precision with loss scaling.
        Fp16 = "fp16",
    }
}

choice! {
    /// How mixed precision stores the residual stream.
    AmpResidual {
        /// As `amp` with bf16 in up to 12 blocks, else as `f32`.
        Auto = "auto",
        /// In 32 bits, as PyTorch's autocast does.
        F32 = "f32",
        /// In the type of mixed precision.
        Amp = "amp",
    }
}

choice! {
    /// What the profiler records.
    ProfilerMode {
        /// Times of each kernel.
        Trace = "trace",
        /// Memory over time.
        Memory = "memory",
    }
}
