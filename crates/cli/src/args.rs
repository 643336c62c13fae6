//! The command line.

use crate::{hydra, output, shown};
use clap::error::ErrorKind;
use clap::{Args as ClapArgs, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Trains small vision-language models: picture in, caption out.
#[derive(Debug, Parser)]
#[command(name = "ocelli", version, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// The command line, understood; otherwise the program ends with exit code 2 and says why.
    pub fn read() -> Self {
        let given = hydra::translated(std::env::args_os());
        let args = Self::try_parse_from(&given).unwrap_or_else(|e| refuse(&hydra::explained(e, &given)));
        if let Err(why) = args.check() {
            let mut command = Self::command();
            // With all its names filled in, so that the usage line is the subcommand's.
            command.build();
            let caption = command.find_subcommand_mut("caption").map(std::mem::take);
            caption.unwrap_or(command).error(ErrorKind::MissingRequiredArgument, why).exit();
        }
        args
    }

    /// What no single argument can know.
    fn check(&self) -> Result<(), &'static str> {
        match &self.command {
            Command::Caption(c) if c.top_k.is_some() && c.temperature <= 0.0 => {
                Err("--top-k <K> does nothing without a --temperature <T> above 0")
            }
            _ => Ok(()),
        }
    }
}

/// Ends the program as the parser says: with help, or with what is wrong. That repeats the arguments, among which may be
/// names of files that somebody else chose.
fn refuse(error: &clap::Error) -> ! {
    if std::env::args_os().any(|arg| shown::hostile(&arg.to_string_lossy())) {
        output::warn(error.render().to_string().trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model; without arguments, a small one on drawn pictures
    Train(Train),
    /// Caption pictures with a trained model
    Caption(Caption),
    /// Look at data without training
    #[command(subcommand)]
    Data(Data),
    /// Measure a trained model: loss, and captions beside those that people wrote
    Eval(Eval),
    /// Write a model's weights for other programs
    Export(Export),
    /// Show what a training step would do: the program behind each pass, the plan, its memory
    Explain(Explain),
    /// Show what this machine has to train on: GPUs, driver, libraries, and what is missing
    Doctor {
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure
    #[command(subcommand)]
    Bench(Bench),
    /// Show what the keys of a configuration mean
    Config(Config),
}

/// `ocelli train`
#[derive(Debug, ClapArgs)]
pub struct Train {
    /// A built-in configuration (shapes, shapes_long, shapes_smol, coco_train, csv_train) or a YAML file
    #[arg(long, value_name = "NAME|FILE")]
    pub config_name: Option<String>,
    /// A folder that is searched for NAME.yaml first
    #[arg(long, value_name = "DIR")]
    pub config_path: Option<PathBuf>,
    /// Go on from this snapshot (a file, a snapshot folder or a run folder), with its configuration unless
    /// --config-name is given
    #[arg(long, value_name = "PATH")]
    pub resume: Option<PathBuf>,
    /// Run once for each combination of overrides such as trainer_config.lr=1e-3,1e-4
    #[arg(short = 'm', long)]
    pub multirun: bool,
    /// Print the configuration, with where each value comes from, and stop
    #[arg(long)]
    pub print_config: bool,
    /// Overrides: key=value, +key=value, ++key=value, ~key (see `ocelli config`)
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// `ocelli caption`
#[derive(Debug, ClapArgs)]
pub struct Caption {
    /// A snapshot file, a snapshot folder or a run folder (its newest snapshot is taken)
    #[arg(long, value_name = "PATH")]
    pub snapshot: PathBuf,
    /// Pictures to caption
    #[arg(value_name = "IMAGE", required = true)]
    pub images: Vec<PathBuf>,
    /// Sample instead of taking the likeliest character; higher is more daring
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = temperature, allow_hyphen_values = true)]
    pub temperature: f64,
    /// Sample among the K likeliest characters only; needs --temperature
    #[arg(long, value_name = "K", value_parser = whole::<1, { u64::MAX }>, allow_negative_numbers = true)]
    pub top_k: Option<u64>,
    /// Seed of the sampling
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<0, { u64::MAX }>, allow_negative_numbers = true)]
    pub seed: u64,
    /// Longest caption in characters, the prompt included
    #[arg(long, value_name = "N", value_parser = whole::<1, { u64::MAX }>, allow_negative_numbers = true)]
    pub max_length: Option<u64>,
    /// How each caption begins
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// One JSON object a line and picture: "caption" and more, or "error" with "reason" and "detail"
    #[arg(long)]
    pub json: bool,
    /// What to compute on; auto: the GPU if there is one
    #[arg(long, value_name = "DEVICE", value_enum, default_value_t = On::Auto)]
    pub device: On,
    /// Threads to compute with
    #[arg(long, value_name = "N", value_parser = whole::<1, 1024>, allow_negative_numbers = true)]
    pub threads: Option<u64>,
}

/// What to compute on, as `trainer_config.device` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// The GPU if there is one, else the CPU
    Auto,
    /// The CPU
    Cpu,
    /// The GPU
    Cuda,
}

/// `ocelli data`
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Read every row of sources and count what can be used; exit code 0 if all of them can be trained on as they are
    /// (pictures without captions cannot)
    Check(DataCheck),
    /// Write one picture as the model sees it
    Show(DataShow),
    /// Decode all pictures of a source into a file, from which training reads them (data_config.cache=FILE)
    Prepare(DataPrepare),
}

/// `ocelli data check`
#[derive(Debug, ClapArgs)]
pub struct DataCheck {
    /// Tables, parquet files, folders, pictures, `shapes`, data sets of the hub (owner/name); KEY=VALUE says how they
    /// are read, as in `ocelli train`
    #[arg(value_name = "SOURCE|KEY=VALUE", required = true)]
    pub sources: Vec<String>,
    #[command(flatten)]
    pub named: Named,
    /// One JSON object a line and source: "parts" with all bad rows and more, or "error"
    #[arg(long)]
    pub json: bool,
}

/// `ocelli data prepare`
#[derive(Debug, ClapArgs)]
pub struct DataPrepare {
    /// A table, parquet files, a folder, a data set of the hub (owner/name); KEY=VALUE says how it is read, as in
    /// `ocelli train`: model_config.img_size is the side of the pictures
    #[arg(value_name = "SOURCE|KEY=VALUE", required = true)]
    pub source: Vec<String>,
    /// The file to write; a split to validate on goes into one beside it, FILE-validation
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub named: Named,
    /// One JSON object a file
    #[arg(long)]
    pub json: bool,
}

/// `ocelli data show`
#[derive(Debug, ClapArgs)]
pub struct DataShow {
    /// A table, a parquet file, a folder, a picture, `shapes`, or a data set of the hub (owner/name); KEY=VALUE says how
    /// it is read, as in `ocelli train`
    #[arg(value_name = "SOURCE|KEY=VALUE", required = true)]
    pub source: Vec<String>,
    #[command(flatten)]
    pub named: Named,
    /// Which row, from 0
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<0, { u64::MAX }>, allow_negative_numbers = true)]
    pub index: u64,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// One JSON object: "caption" and more, or "error" with "reason" and "detail"
    #[arg(long)]
    pub json: bool,
}

/// A configuration by name.
#[derive(Debug, ClapArgs)]
pub struct Named {
    /// A built-in configuration or a YAML file: sizes, columns, vocabulary and how pictures are decoded
    #[arg(long, value_name = "NAME|FILE")]
    pub config_name: Option<String>,
    /// A folder that is searched for NAME.yaml first
    #[arg(long, value_name = "DIR")]
    pub config_path: Option<PathBuf>,
}

/// `ocelli eval`
#[derive(Debug, ClapArgs)]
pub struct Eval {
    /// A snapshot file, a snapshot folder or a run folder (its newest snapshot is taken)
    #[arg(long, value_name = "PATH")]
    pub snapshot: PathBuf,
    /// Other data than the rows that the run validated on: a table, a parquet file, a folder, or a data set of the hub
    /// (owner/name); KEY=VALUE changes the snapshot's configuration, as in `ocelli train`
    #[arg(value_name = "SOURCE|KEY=VALUE")]
    pub source: Vec<String>,
    /// Only the first N rows
    #[arg(long, value_name = "N", value_parser = whole::<1, { u64::MAX }>, allow_negative_numbers = true)]
    pub limit: Option<u64>,
    /// A file for the captions: one JSON object a line, "caption" with "references", or "error"
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// One JSON object with all figures and bad rows
    #[arg(long)]
    pub json: bool,
    /// Threads to compute with
    #[arg(long, value_name = "N", value_parser = whole::<1, 1024>, allow_negative_numbers = true)]
    pub threads: Option<u64>,
}

/// `ocelli export`
#[derive(Debug, ClapArgs)]
pub struct Export {
    /// A snapshot file, a snapshot folder or a run folder (its newest snapshot is taken)
    #[arg(long, value_name = "PATH")]
    pub snapshot: PathBuf,
    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// For whom the weights are named
    #[arg(long, value_name = "NAMES", value_enum, default_value_t = Names::TorchNames)]
    pub to: Names,
}

/// How exported weights are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Names {
    /// As the state dict of the model in PyTorch
    TorchNames,
}

/// Which step, without training: the sizes of `ocelli train` unless others are given.
#[derive(Debug, ClapArgs)]
pub struct StepOf {
    #[command(flatten)]
    pub named: Named,
    /// Size of the vocabulary, instead of opening the data
    #[arg(long, value_name = "N", value_parser = whole::<1, 16777216>, allow_negative_numbers = true)]
    pub vocab: Option<u64>,
    /// Overrides: key=value, +key=value, ++key=value, ~key (see `ocelli config`)
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// `ocelli explain`
#[derive(Debug, ClapArgs)]
pub struct Explain {
    #[command(flatten)]
    pub step: StepOf,
    /// Rows of a batch, or several numbers: then the memory of each is shown [default: trainer_config.train_batch_size]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole::<1, 65536>, allow_negative_numbers = true)]
    pub batch: Vec<u64>,
    /// Text tokens of a row, or several numbers [default: the longest of the data]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole::<1, 1048576>, allow_negative_numbers = true)]
    pub length: Vec<u64>,
    /// Type of mixed precision, or several [default: as the configuration says]
    #[arg(long, value_name = "TYPE,..", value_delimiter = ',', value_enum)]
    pub dtype: Vec<Dtype>,
    /// For which device the roofline is: this machine is measured, of others the data sheet is known
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Device::This)]
    pub device: Device,
    /// All launches, not only the longest
    #[arg(long)]
    pub launches: bool,
    /// The graph behind this pass (see the list of passes)
    #[arg(long, value_name = "PASS", conflicts_with = "launches")]
    pub graph: Option<String>,
    /// Everything as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    /// All in 32 bits
    F32,
    /// Mixed precision with bfloat16
    Bf16,
    /// Mixed precision with half precision and loss scaling
    Fp16,
}

impl Dtype {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
        }
    }
}

/// A device with a roofline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// This machine, measured for half a second
    This,
    /// NVIDIA A100 (80 GB, SXM)
    A100,
    /// NVIDIA H100 (SXM)
    H100,
    /// NVIDIA H200
    H200,
}

/// `ocelli bench`
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Time the very training step of `ocelli train`, over 8 drawn batches in turn
    Step(BenchStep),
    /// Time the way of the data alone, from the source to batches, as `ocelli train` takes it
    Data(BenchData),
    /// Time the same step with every trick off, with one trick more at a time, and with each taken away from all of them
    Ladder(BenchLadder),
}

/// How large a step is that is timed.
#[derive(Debug, ClapArgs)]
pub struct StepSize {
    /// Rows of a batch [default: trainer_config.train_batch_size]
    #[arg(long, value_name = "N", value_parser = whole::<1, 65536>, allow_negative_numbers = true)]
    pub batch: Option<u64>,
    /// Text tokens of a row [default: the longest of the data]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1048576>, allow_negative_numbers = true)]
    pub length: Option<u64>,
}

/// `ocelli bench step`
#[derive(Debug, ClapArgs)]
pub struct BenchStep {
    #[command(flatten)]
    pub step: StepOf,
    #[command(flatten)]
    pub size: StepSize,
    /// Also time each launch of one step by itself
    #[arg(long)]
    pub launches: bool,
    /// Steps that are timed; 4 more come before them
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = whole::<1, 1000000>, allow_negative_numbers = true)]
    pub steps: u64,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ocelli bench data`
#[derive(Debug, ClapArgs)]
pub struct BenchData {
    /// A table, a parquet file, a folder, `shapes`, or a data set of the hub (owner/name); KEY=VALUE says how it is read, as
    /// in `ocelli train`
    #[arg(value_name = "SOURCE|KEY=VALUE", required = true)]
    pub source: Vec<String>,
    #[command(flatten)]
    pub named: Named,
    /// Epochs, and then as many from a cache of decoded pictures; what the first one learns of the source's files the others know
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<1, 1000>, allow_negative_numbers = true)]
    pub epochs: u64,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ocelli bench ladder`
#[derive(Debug, ClapArgs)]
pub struct BenchLadder {
    #[command(flatten)]
    pub step: StepOf,
    #[command(flatten)]
    pub size: StepSize,
    /// Steps of a turn
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<1, 1000000>, allow_negative_numbers = true)]
    pub steps: u64,
    /// Turns that each rung takes beside the one before it
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<1, 1000>, allow_negative_numbers = true)]
    pub rounds: u64,
    /// Folder for ladder.json and ladder.html
    #[arg(long, value_name = "DIR", default_value = "ladder")]
    pub out: PathBuf,
    /// Print what ladder.json holds instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `ocelli config`
#[derive(Debug, ClapArgs)]
#[command(disable_help_flag = true)]
pub struct Config {
    /// A key (group.key or key) to explain; without one, all of them
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
    /// The same: `ocelli config --help KEY`
    #[arg(long, short = 'h', value_name = "KEY", num_args = 0..=1, default_missing_value = "")]
    pub help: Option<String>,
}

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(t) if t.is_finite() && t >= 0.0 => Ok(t),
        _ => Err("a temperature is a number of at least 0".into()),
    }
}

/// A whole number of the range. Negative numbers are taken for values, not for options, so that they get here.
fn whole<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(n) if (MIN..=MAX).contains(&n) => Ok(n),
        _ if MAX == u64::MAX => Err(format!("a whole number of at least {MIN} is wanted")),
        _ => Err(format!("a whole number from {MIN} to {MAX} is wanted")),
    }
}
